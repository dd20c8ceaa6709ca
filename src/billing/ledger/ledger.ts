// The ledger of a running gateway, as the rest of it knows the ledger: exactly
// one line for every request that went to an upstream, whatever happens to the
// request, the disk or the process.

import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

import { GatewayError } from "../../lib/errors.ts";
import type { FileLock } from "../../lib/file-lock.ts";
import { LockHeld, takeLock } from "../../lib/file-lock.ts";
import type { Usd } from "../../lib/money.ts";
import type { Intent } from "./journal.ts";
import type { CorrectionDraft, LineDraft } from "./line.ts";
import type { Holder, Window } from "./sums.ts";
import type { LedgerOptions } from "./writer.ts";
import { LedgerWriter } from "./writer.ts";

export interface Ledger {
  /** To be awaited before a request goes to an upstream: from then on it gets a line, come what may.
   *  Rejects with `ledger_unwritable` while lines can't be written. */
  open(intent: Intent): Promise<void>;
  /** The open request goes to another channel. */
  attempt(id: string, channel: string): void;
  /** The one line of an open request. */
  append(draft: LineDraft): void;
  /** The open request reached no upstream, or was refused by it: it gets no line. */
  discard(id: string): void;
  /** New amounts for a request that has its line. */
  correct(draft: CorrectionDraft): void;
  /** Why nothing can be written at present. Lines are kept until it can. */
  readonly problem: string | null;
  /** What lines and corrections of this key or group come to. Days and months are UTC. */
  spentOf(holder: Holder, window: Window): Usd;
  /** The same of everything in the ledger. */
  spentTogether(window: Window): Usd;
  /** When the requests came, since a moment, that the ledger had when it was opened: at most those of its last minute. */
  recentOf(holder: Holder, since: number): number[];
  /** ISO time of a key's last billed request. */
  lastUsed(key: string): string | null;
  /** Writes what is left and gives the ledger up. */
  close(): Promise<void>;
}

/** Throws `ledger_unwritable` when another process writes this ledger, or when it can't be opened. */
export function openLedger(options: LedgerOptions): Ledger {
  const { path } = options;
  const lock = lockLedger(path);
  try {
    return new LedgerWriter(options, lock);
  } catch (error) {
    lock.release();
    throw new GatewayError("ledger_unwritable", `the ledger ${path} can't be opened: ${describe(error)}`, {
      cause: error,
    });
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
        : `can't be locked: ${describe(error)}`;
    throw new GatewayError("ledger_unwritable", `the ledger ${path} ${why}`, { cause: error });
  }
}

/** A device keeps no lines, and a pipe waits for whoever reads it. */
function requirePlace(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile() && !found.isDirectory())
    throw new Error("it is no regular file");
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A gateway writes this ledger at this moment. */
export function isLedgerHeld(path: string): boolean {
  if (!existsSync(`${path}.lock`)) return false;
  try {
    takeLock(`${path}.lock`).release();
    return false;
  } catch (error) {
    return error instanceof LockHeld;
  }
}
