// What is done when a ledger is opened: a torn end is mended, and the requests
// that the last gateway left open are found. Killed at any instant of it, it can
// be done again: nothing is taken away before what replaces it is written.

import {
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";

import { hashLast, listLedgerFiles, locate, readLinesFrom } from "./ledger-files.ts";
import { readJournal, type OpenRequest } from "./ledger-journal.ts";
import { parseLine } from "./ledger-line.ts";
import { readBackToNewline, readLineBefore } from "./ledger-reader.ts";

export interface Recovery {
  /** What the next line bears as `prev`. */
  readonly prev: string;
  /** The month of the growing file's last line; null while it has none. */
  readonly month: string | null;
  /** Requests that were with an upstream and have no line. */
  readonly unfinished: ReadonlyMap<string, OpenRequest>;
  /** Bytes that were cut off the end because they were no line. */
  readonly cutBytes: number;
}

export function recoverLedger(path: string, journalPath: string): Recovery {
  const cutBytes = mendEnd(path);
  const files = listLedgerFiles(path);
  const last = existsSync(path) ? readLineBefore(path) : null;
  const time = last === null ? undefined : parseLine(last)?.["time"];
  return {
    prev: hashLast(files),
    month: typeof time === "string" ? time.slice(0, 7) : null,
    unfinished: findUnfinished(files, journalPath),
    cutBytes,
  };
}

/** How many requests the next start will give a line. */
export function countUnfinished(path: string): number {
  return findUnfinished(listLedgerFiles(path), `${path}.open`).size;
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

/** Leaves the file ending in a whole line. Returns how many bytes were cut off.
 *  A line that lacks only its newline is kept. What is cut goes to `<path>.torn`, for whoever wants to look. */
export function mendEnd(path: string): number {
  if (!existsSync(path)) return 0;
  const fd = openSync(path, constants.O_RDWR | constants.O_APPEND);
  try {
    const size = fstatSync(fd).size;
    const tail = readBackToNewline(fd, size);
    if (tail.length > 0 && parseLine(tail) !== null) {
      writeSync(fd, "\n");
      return 0;
    }
    let end = size - tail.length;
    // A power cut may also leave whole lines of which some pages were never written.
    for (let line = readLineBefore(path, end); line !== null && parseLine(line) === null;) {
      end -= line.length + 1;
      line = readLineBefore(path, end);
    }
    if (end === 0 && size > 0) requireLedger(fd);
    if (end < size) cut(path, fd, end);
    return size - end;
  } finally {
    closeSync(fd);
  }
}

/** Somebody may have named another file by mistake. A power cut leaves the beginning of a line, or pages of zeros. */
function requireLedger(fd: number): void {
  const head = Buffer.alloc(LINE_BEGINS.length);
  const length = readSync(fd, head, 0, head.length, 0);
  if (head[0] === 0 || LINE_BEGINS.startsWith(head.toString("latin1", 0, length))) return;
  throw new Error("it is no ledger, and stays as it is");
}

const LINE_BEGINS = '{"v":1,"id":"';

function cut(path: string, fd: number, end: number): void {
  try {
    const bytes = Buffer.alloc(fstatSync(fd).size - end);
    readSync(fd, bytes, 0, bytes.length, end);
    appendFileSync(`${path}.torn`, bytes);
  } catch {
    // A full disk must not keep the ledger shut for the sake of bytes that are no lines.
  }
  ftruncateSync(fd, end);
}
