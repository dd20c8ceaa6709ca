// Opens a ledger for writing: repairs what the last gateway left behind, marks what nothing explains, and reads the sums.

import type { FileLock } from "../../../lib/files/file-lock.ts";
import { AnswerHistory } from "../../limits/answer-history.ts";
import type { OpenRequest } from "../journal.ts";
import { type EndState, removeOldFiles } from "../noted-end.ts";
import { LedgerFiles } from "../files.ts";
import { Sums } from "../sums.ts";
import { type LedgerOptions, LedgerWriter } from "../writer.ts";
import { findFault } from "../check.ts";
import type { MarkDraft } from "../line.ts";
import { Table } from "../../store/open.ts";
import { draftMarks, listLost } from "./mark.ts";
import { readRecent, type Recent } from "./recent.ts";
import { recoverLedger } from "./recovery.ts";

/** As long as a pause that ends an inferred session. */
const RECENT_MS = 30 * 60_000;

/** Repairs what the last gateway left behind, and opens the ledger for writing. */
export function recoverWriter(options: LedgerOptions, lock: FileLock): LedgerWriter {
  const { path, report } = options;
  const recovery = recoverLedger(path, `${path}.open`);
  if (recovery.cutBytes > 0)
    report(`${path} ended in a torn line: ${recovery.cutBytes} bytes cut off and kept in ${path}.torn`);
  if (recovery.endState !== "whole") report(describeMissingEnd(path, recovery.endState));
  const now = (options.now ?? Date.now)();
  // Before the table follows the ledger and forgets them.
  const lost = recovery.doubts.isEndGone ? listLost(path, [...recovery.unfinished.keys()]) : [];
  new Table(path, { report: (text) => report(text, "note"), compares: true })[Symbol.dispose]();
  const sums = new Sums({ ...options, now: options.now ?? Date.now });
  const requests = sums.ask((table) => readRecent(table, now - RECENT_MS));
  const answers = new AnswerHistory();
  for (const { model, output, durationMs } of requests)
    if (output !== null) answers.add(model, output, durationMs);
  const recent = listRecent(requests, recovery.unfinished, new Date(now - RECENT_MS).toISOString());
  const files = new LedgerFiles(options, recovery);
  // The first check compiles the schema, which takes milliseconds. No request waits for that.
  findFault({ v: 1 });
  const writer = new LedgerWriter(options, { lock, files, sums, prev: recovery.prev, recent, answers });
  const { size } = recovery.unfinished;
  if (size > 0)
    report(`${size} ${size === 1 ? "request was" : "requests were"} cut short by the gateway's end`);
  writer.start(
    recovery.unfinished,
    draftMarks(recovery.doubts, recovery.prev, new Date(now).toISOString(), lost),
  );
  for (const problem of listFew(writer.marks)) report(`${problem}. ${ACCEPT}`);
  const old = removeOldFiles(path);
  if (old.length > 0)
    report(`files of an earlier version next to ${path} were read and removed: ${old.join(", ")}`, "note");
  return writer;
}

/** The oldest come first. Requests that were in flight at a kill get their lines later, and count like all others. */
function listRecent(
  requests: readonly Recent[],
  unfinished: ReadonlyMap<string, OpenRequest>,
  since: string,
): Recent[] {
  const cut = [...unfinished.values()].map(({ intent }): Recent => {
    const { time, key, group, model, client = {} } = intent;
    return { time, key, group, model, client, output: null, durationMs: null };
  });
  const recent = [...requests, ...cut].filter(({ time }) => time >= since);
  return recent.sort((a, b) => Number(a.time > b.time) - Number(a.time < b.time));
}

const MAX_REPORTED = 10;
const ACCEPT =
  "It is reported, and limits count the larger amount, until `gateway ledger accept`; `gateway ledger verify` names the line";

/** What the log shows of the marks that were not accepted. */
function listFew(marks: readonly MarkDraft[]): string[] {
  const few = marks.slice(0, MAX_REPORTED).map(({ mark }) => mark);
  return marks.length > few.length ? [...few, `and ${marks.length - few.length} more`] : few;
}

function describeMissingEnd(path: string, state: EndState): string {
  const gone = `lines at the end of ${path} are gone or changed since it was written`;
  return state === "unexplained"
    ? `${gone}, and no power cut explains it. \`gateway ledger verify\` shows the gap until they are restored from a backup`
    : `${gone}; it goes on from what is there`;
}
