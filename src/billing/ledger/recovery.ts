// Opening a ledger repairs a torn end and finds requests that were left open. It may
// be killed and run again: nothing is removed before its replacement is written.

import { closeSync, constants, existsSync, fstatSync, readSync, writeSync } from "node:fs";

import { appendOwn, ForeignFile, openOwn, truncateOwn } from "../../lib/files/own-file.ts";
import { hashLast, isMentioned, listLedgerFiles, locate, type Position, readLinesFrom } from "./rotation.ts";
import {
  isFromThisStart,
  isNamed,
  judgeEnd,
  judgeEnds,
  type OpenRequest,
  readJournal,
  readOldEnd,
  requireJournal,
} from "./journal.ts";
import { GENESIS, parseLine } from "./line.ts";
import { readBackToNewline, readLineBefore } from "./reader.ts";

export function recoverLedger(path: string, journalPath: string) {
  requireJournal(journalPath);
  const cutBytes = repairEnd(path, journalPath);
  const files = listLedgerFiles(path);
  const last = existsSync(path) ? readLineBefore(path) : null;
  const time = last === null ? undefined : parseLine(last)?.["time"];
  const { ends, endState, missing, doubts } = judgeLedger(path);
  const noted = ends[0] ?? null;
  return {
    prev: missing?.prev ?? hashLast(files),
    /** The month of the growing file's last line. Null: it has no line. */
    month: typeof time === "string" ? time.slice(0, 7) : null,
    unfinished: findUnfinished(files, journalPath),
    cutBytes,
    noted,
    endState,
    // After a power cut, the journal may lack its last records.
    doubts: { ...doubts, unnamed: noted !== null && isFromThisStart(noted) ? doubts.unnamed : [] },
  };
}

export type Recovery = ReturnType<typeof recoverLedger>;

export function judgeLedger(path: string) {
  const files = listLedgerFiles(path);
  const journal = readJournal(`${path}.open`);
  const isThere = (position: Position): boolean =>
    locate(files, position) !== null || isMentioned(files, position);
  const ends = [journal.noted, readOldEnd(path)].filter((noted) => noted !== null);
  const removed = ends.find((noted) => judgeEnd(noted, isThere) === "unexplained" && !isThere(noted.end));
  const { noted } = journal;
  const place = noted && locate(files, noted.end);
  const after = place === null ? [] : readLinesFrom(files, place);
  return {
    /** The ends that the last gateways noted, the newest first. */
    ends,
    endState: judgeEnds(ends, isThere),
    /** The noted end, if its line was removed (not lost in a power cut), and no line is chained to it yet.
     *  The next line is chained to that line, so that restoring it from a backup closes the gap. */
    missing: removed?.end ?? null,
    doubts: {
      isEndGone: removed !== undefined && removed.end.prev !== GENESIS,
      unnamed: [...after].filter((line) => !isNamed(journal, line)),
    },
  };
}

function findUnfinished(files: readonly string[], journalPath: string): Map<string, OpenRequest> {
  const { from, open } = readJournal(journalPath);
  if (open.size === 0) return open;
  const place = (from && locate(files, from)) ?? { file: 0, offset: 0 };
  for (const { id } of readLinesFrom(files, place)) {
    if (typeof id === "string") open.delete(id);
  }
  return open;
}

/** Makes the file end in a whole line. Bytes cut off go to `<path>.torn`.
 *  Returns their number. A line that lacks only its newline stays. */
function repairEnd(path: string, journalPath: string): number {
  if (!existsSync(path)) return 0;
  const fd = openOwn(path, { flags: constants.O_RDWR | constants.O_APPEND, shared: true });
  try {
    const { size, nlink } = fstatSync(fd);
    // An empty file may belong to another program, under its other name.
    if (size === 0 && nlink > 1)
      throw new ForeignFile(`${path} is empty and a hard link: remove it, and a new one is made`);
    const unwritten = findUnwritten(fd, size);
    if (unwritten === null && keepUnended(fd, size)) return 0;
    const tail = readBackToNewline(fd, size);
    const { end, last } = findWholeEnd(fd, unwritten ?? size - tail.length);
    // If a power cut zeroes the first lines, the journal shows whose file it is.
    const isBeginningLost = unwritten === 0 && existsSync(journalPath);
    if (size > 0 && !isBeginningLost) requireLedger(fd, size, last);
    if (end < size) cut(path, fd, end);
    return size - end;
  } finally {
    closeSync(fd);
  }
}

/** Adds a missing newline. False: more is missing. */
function keepUnended(fd: number, size: number): boolean {
  const tail = readBackToNewline(fd, size);
  const unended = tail.length > 0 ? parseLine(tail) : null;
  if (unended === null) return false;
  requireLedger(fd, size, unended);
  writeSync(fd, "\n");
  return true;
}

type ParsedLine = Readonly<Record<string, unknown>>;

function findWholeEnd(fd: number, end: number): { end: number; last: ParsedLine | null } {
  let at = end;
  for (let line = readLineBefore(fd, at); line !== null; line = readLineBefore(fd, at)) {
    const last = parseLine(line);
    if (last !== null) return { end: at, last };
    at -= line.length + 1;
  }
  return { end: at, last: null };
}

/** Where the first line with zeros begins: a power cut leaves them for unwritten bytes.
 *  Null: there are none. Bytes after the zeros were never synced. */
function findUnwritten(fd: number, size: number): number | null {
  const zero = readTail(fd, size).indexOf(0);
  if (zero === -1) return null;
  const at = Math.max(0, size - MAX_LOST_BYTES) + zero;
  return at - readBackToNewline(fd, at).length;
}

/** A power cut loses the lines of 100 ms and of a slow sync: fewer bytes than this. */
const MAX_LOST_BYTES = 8 << 20;

function readTail(fd: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.min(size, MAX_LOST_BYTES));
  readSync(fd, bytes, 0, bytes.length, size - bytes.length);
  return bytes;
}

/** Throws if the file is not a ledger: the path may be a mistake.
 *  A ledger begins or ends with a line, or a power cut left only zeros. */
function requireLedger(fd: number, size: number, last: ParsedLine | null): void {
  if (last?.["v"] === 1) return;
  const head = Buffer.alloc(LINE_BEGINS.length);
  const length = readSync(fd, head, 0, head.length, 0);
  if (LINE_BEGINS.startsWith(head.toString("latin1", 0, length))) return;
  if (size <= MAX_LOST_BYTES && readTail(fd, size).every((byte) => byte === 0)) return;
  throw new Error("it is not a ledger, and was left as it is");
}

const LINE_BEGINS = '{"v":1';

function cut(path: string, fd: number, end: number): void {
  try {
    const bytes = Buffer.alloc(fstatSync(fd).size - end);
    readSync(fd, bytes, 0, bytes.length, end);
    appendOwn(`${path}.torn`, bytes);
  } catch (error) {
    // A full disk must not prevent opening the ledger.
    if (error instanceof ForeignFile) throw error;
  }
  truncateOwn(fd, path, end);
}
