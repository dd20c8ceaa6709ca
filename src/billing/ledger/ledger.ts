// Opens a ledger: one line for every request that went to an upstream.

import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

import { GatewayError, messageOf } from "../../lib/errors.ts";
import { type FileLock, LockHeld, takeLock } from "../../lib/files/file-lock.ts";
import { AnswerHistory } from "../limits/forecasts.ts";
import type { Table } from "../store/open.ts";
import { LedgerFiles } from "./files.ts";
import { type EndState, removeOldFiles } from "./journal.ts";
import { draftMarks, listLost } from "./mark.ts";
import { recoverLedger } from "./recovery.ts";
import { Sums } from "./sums.ts";
import { type LedgerOptions, LedgerWriter } from "./writer.ts";

export type Ledger = Omit<LedgerWriter, "start">;

/** Throws `ledger_unwritable` if opening fails or another process writes it. */
export function openLedger(options: LedgerOptions): Ledger {
  const { path } = options;
  const lock = lockLedger(path);
  try {
    return recoverWriter(options, lock);
  } catch (error) {
    lock.release();
    throw new GatewayError("ledger_unwritable", `the ledger ${path} cannot be opened: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function lockLedger(path: string): FileLock {
  try {
    mkdirSync(dirname(path), { recursive: true });
    const found = statSync(path, { throwIfNoEntry: false });
    // A device keeps no lines. A pipe blocks until somebody reads it.
    if (found !== undefined && !found.isFile() && !found.isDirectory())
      throw new Error("it is not a regular file");
    return takeLock(`${path}.lock`);
  } catch (error) {
    const why =
      error instanceof LockHeld && error.holder !== null
        ? `is being written by process ${error.holder.pid} since ${error.holder.since}`
        : `cannot be locked: ${messageOf(error)}`;
    throw new GatewayError("ledger_unwritable", `the ledger ${path} ${why}`, { cause: error });
  }
}

export function isLedgerHeld(path: string): boolean {
  if (!existsSync(`${path}.lock`)) return false;
  try {
    takeLock(`${path}.lock`).release();
    return false;
  } catch (error) {
    return error instanceof LockHeld;
  }
}

function recoverWriter(options: LedgerOptions, lock: FileLock): LedgerWriter {
  const { path, report } = options;
  const recovery = recoverLedger(path, `${path}.open`);
  if (recovery.cutBytes > 0)
    report(`${path} ended in a torn line: ${recovery.cutBytes} bytes cut off and kept in ${path}.torn`);
  if (recovery.endState !== "whole") report(describeMissingEnd(path, recovery.endState));
  const now = (options.now ?? Date.now)();
  // The table still has the lost lines: nothing has updated it yet.
  const lost = recovery.doubts.isEndGone ? listLost(path, [...recovery.unfinished.keys()]) : [];
  const sums = new Sums({ ...options, now: options.now ?? Date.now });
  sums.load();
  const answers = sums.ask(readAnswers);
  const files = new LedgerFiles(options, recovery);
  const writer = new LedgerWriter(options, { lock, files, sums, answers }, recovery.prev);
  const { size } = recovery.unfinished;
  if (size > 0)
    report(`${size} ${size === 1 ? "request was" : "requests were"} cut short by the gateway's end`);
  writer.start(
    recovery.unfinished,
    draftMarks(recovery.doubts, recovery.prev, new Date(now).toISOString(), lost),
  );
  const marks = [...sums.marks.values()];
  for (const { mark } of marks.slice(0, MAX_REPORTED)) report(`${mark}. ${ACCEPT}`);
  if (marks.length > MAX_REPORTED) report(`and ${marks.length - MAX_REPORTED} more. ${ACCEPT}`);
  const old = removeOldFiles(path);
  if (old.length > 0)
    report(`files of an earlier version next to ${path} were read and removed: ${old.join(", ")}`, "note");
  return writer;
}

const MAX_REPORTED = 10;
const ACCEPT =
  "Each start reports this, and limits count what lost lines cost, until `gateway ledger accept`; `gateway ledger verify` names the line";

function describeMissingEnd(path: string, state: EndState): string {
  const gone = `lines at the end of ${path} are gone or changed`;
  return state === "unexplained"
    ? `${gone}, and no power cut explains it. \`gateway ledger verify\` shows the gap until the lines are restored from a backup`
    : `${gone}; the ledger goes on from what is there`;
}

const LAST_REQUESTS = 1000;

function readAnswers(table: Table): AnswerHistory {
  // If `counted` is not the charge, a plan paid or it is an estimate.
  // Estimates are left out.
  const found = table.list(
    `SELECT model, output FROM requests
     WHERE line > (SELECT MAX(line) FROM requests) - ${LAST_REQUESTS} AND output IS NOT NULL
       AND basis = 'exact' AND (counted = charge OR paid_by IS NOT NULL) ORDER BY line`,
  );
  const answers = new AnswerHistory();
  for (const [model, output] of found) answers.add(String(model), Number(output));
  return answers;
}
