// The ledger's interface for the rest of the gateway: exactly one line for every
// request that went to an upstream, whatever happens to the request, the disk or
// the process.

import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

import { GatewayError, getErrorMessage } from "../../lib/errors.ts";
import type { FileLock } from "../../lib/files/file-lock.ts";
import { LockHeld, takeLock } from "../../lib/files/file-lock.ts";
import type { Conversation } from "../limits/cached-prompts.ts";
import type { Usd } from "../../lib/money.ts";
import type { Zone } from "../../lib/text/zone.ts";
import type { Intent } from "./journal.ts";
import type { CorrectionDraft, LineDraft } from "./line.ts";
import type { MarkDraft } from "./start/mark.ts";
import type { Holder, Tallies, Window } from "./sums/sums.ts";
import type { Recent } from "./row.ts";
import type { SessionSum } from "./sums/session-sums.ts";
import type { LedgerOptions } from "./writer.ts";
import { recoverWriter } from "./start/start.ts";

export interface Ledger {
  /** Await this before a request goes to an upstream. From then on it gets a line, even if the gateway is killed. Null: it
   *  is written. Rejects with `ledger_unwritable` while lines cannot be written. */
  open(intent: Intent): Promise<void> | null;
  /** Records that the open request goes to another channel. `isFirst`: nothing was sent to the one before. */
  attempt(id: string, channel: string, isFirst?: boolean): void;
  /** Writes the one line of an open request. */
  append(draft: LineDraft): void;
  /** Writes a line for a response that was delivered without an open request. */
  appendUnopened(draft: LineDraft): void;
  /** Writes what waits for the end of the event loop's turn. */
  flush(): void;
  /** For an open request that reached no upstream: it gets no line. */
  discard(id: string): void;
  /** Writes new amounts for a request that has its line. */
  correct(draft: CorrectionDraft): void;
  /** The owner accepts what earlier starts found in the ledger. Returns what it was. */
  acceptMarks(): readonly MarkDraft[];
  /** Why nothing can be written at present; null: it can. Lines wait in memory until it can. */
  readonly problem: string | null;
  /** Of the days and months of the sums. To set another one reads the whole ledger. */
  zone: Zone;
  /** How many lines of the start's sums are from the index, which may be wrong. Null: all are from the ledger. */
  readonly indexedLines: number | null;
  /** Takes what these lines add up to in the ledger. The larger amount counts. */
  raiseSums(tallies: Tallies): void;
  /** The sum of the charges of a key or group, corrections included. */
  spentOf(holder: Holder, window: Window): Usd;
  /** What limits count in addition: estimates of requests whose cost is not known. */
  estimatedOf(holder: Holder, window: Window): Usd;
  /** What a session has cost. Null: it has no line, or was used too long ago. */
  sessionOf(id: string): SessionSum | null;
  /** The requests of the half hour before the ledger was opened, as far as they are at its end. The oldest come first. */
  readonly recent: readonly Recent[];
  /** The charges of the whole ledger. */
  spentTogether(window: Window): Usd;
  /** Arrival times of the requests since a moment, from `recent`. */
  recentOf(holder: Holder, since: number): number[];
  /** How many tokens of its next prompt a session will probably read from the cache. */
  expectCached(conversation: Conversation): number;
  /** How many output tokens the longest 1 % of a model's recent responses used; null: it has none. */
  expectOutput(model: string): number | null;
  /** ISO time of a key's last billed request. */
  lastUsed(key: string): string | null;
  /** Writes what is left and releases the ledger. */
  close(): Promise<void>;
}

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
