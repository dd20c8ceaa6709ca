// What is done when a ledger is opened: a torn end is mended, and the requests
// that the last gateway left open are found. Killed at any instant of it, it can
// be done again: nothing is taken away before what replaces it is written.

import { closeSync, constants, existsSync, fstatSync, ftruncateSync, readSync, writeSync } from "node:fs";

import { appendOwn, ForeignFile, openOwn } from "../../lib/own-file.ts";
import { hashLast, listLedgerFiles, locate, readLinesFrom } from "./rotation.ts";
import { readJournal, type OpenRequest } from "./journal.ts";
import { parseLine } from "./line.ts";
import { readBackToNewline, readLineBefore } from "./reader.ts";

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
  const fd = openOwn(path, { flags: constants.O_RDWR | constants.O_APPEND, shared: true });
  try {
    const { size, nlink } = fstatSync(fd);
    // An empty file does not show whose it is: under its other name it may be anything.
    if (size === 0 && nlink > 1)
      throw new ForeignFile(`${path} is empty and a hard link: remove it, and a new one is made`);
    const tail = readBackToNewline(fd, size);
    const unended = tail.length > 0 ? parseLine(tail) : null;
    if (unended !== null) {
      requireLedger(fd, size, unended);
      writeSync(fd, "\n");
      return 0;
    }
    let end = size - tail.length;
    let last: Line | null = null;
    // A power cut may also leave whole lines of which some pages were never written.
    for (let line = readLineBefore(fd, end); line !== null; line = readLineBefore(fd, end)) {
      last = parseLine(line);
      if (last !== null) break;
      end -= line.length + 1;
    }
    if (size > 0) requireLedger(fd, size, last);
    if (end < size) cut(path, fd, end);
    return size - end;
  } finally {
    closeSync(fd);
  }
}

type Line = Readonly<Record<string, unknown>>;

/** Somebody may have named another file by mistake, or put a link to it here. A ledger ends in a line of a ledger, or
 *  begins with one, whole or torn; or a power cut left nothing but zeros. */
function requireLedger(fd: number, size: number, last: Line | null): void {
  if (last?.["v"] === 1) return;
  const head = Buffer.alloc(LINE_BEGINS.length);
  const length = readSync(fd, head, 0, head.length, 0);
  if (LINE_BEGINS.startsWith(head.toString("latin1", 0, length)) || isZeros(fd, size)) return;
  throw new Error("it is no ledger, and stays as it is");
}

const LINE_BEGINS = '{"v":1';

/** More than this was never at risk at once. */
const MAX_LOST_BYTES = 1 << 20;

function isZeros(fd: number, size: number): boolean {
  if (size > MAX_LOST_BYTES) return false;
  const bytes = Buffer.alloc(size);
  readSync(fd, bytes, 0, size, 0);
  return bytes.every((byte) => byte === 0);
}

function cut(path: string, fd: number, end: number): void {
  try {
    const bytes = Buffer.alloc(fstatSync(fd).size - end);
    readSync(fd, bytes, 0, bytes.length, end);
    appendOwn(`${path}.torn`, bytes);
  } catch (error) {
    // A full disk must not keep the ledger shut for the sake of bytes that are no lines.
    if (error instanceof ForeignFile) throw error;
  }
  ftruncateSync(fd, end);
}
