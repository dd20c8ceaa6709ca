// The ledger's interface for the rest of the gateway: exactly one line for every
// request that went to an upstream, whatever happens to the request, the disk or
// the process.

import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

import { GatewayError, getErrorMessage } from "../../lib/errors.ts";
import type { FileLock } from "../../lib/files/file-lock.ts";
import { LockHeld, takeLock } from "../../lib/files/file-lock.ts";
import type { LedgerOptions, LedgerWriter } from "./writer.ts";
import { recoverWriter } from "./start/start.ts";

/** For the rest of the gateway. */
export type Ledger = Omit<LedgerWriter, "start" | "marks">;

/** Throws `ledger_unwritable` if another process writes this ledger, or if it cannot be opened. */
export function openLedger(options: LedgerOptions): Ledger {
  const { path } = options;
  const lock = lockLedger(path);
  try {
    return recoverWriter(options, lock);
  } catch (error) {
    lock.release();
    throw new GatewayError(
      "ledger_unwritable",
      `the ledger ${path} cannot be opened: ${getErrorMessage(error)}`,
      {
        cause: error,
      },
    );
  }
}

function lockLedger(path: string): FileLock {
  try {
    mkdirSync(dirname(path), { recursive: true });
    requirePlace(path);
    return takeLock(`${path}.lock`);
  } catch (error) {
    const why =
      error instanceof LockHeld && error.holder !== null
        ? `is being written by process ${error.holder.pid} since ${error.holder.since}`
        : `cannot be locked: ${getErrorMessage(error)}`;
    throw new GatewayError("ledger_unwritable", `the ledger ${path} ${why}`, { cause: error });
  }
}

/** A device keeps no lines, and a pipe blocks until somebody reads it. */
function requirePlace(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile() && !found.isDirectory())
    throw new Error("it is not a regular file");
}

/** Whether a gateway writes this ledger at this moment. */
export function isLedgerHeld(path: string): boolean {
  if (!existsSync(`${path}.lock`)) return false;
  try {
    takeLock(`${path}.lock`).release();
    return false;
  } catch (error) {
    return error instanceof LockHeld;
  }
}
