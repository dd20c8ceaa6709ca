// Which files make up a ledger, in which order, and how their lines are read.
// A ledger is `ledger.jsonl`, which grows, and what was rotated out of it:
// `ledger-2026-11.jsonl`, then `ledger-2026-11.2.jsonl` and so on.

import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";

import { GENESIS, hashLine, parseLine } from "./ledger-line.ts";

const CHUNK = 1 << 20;
const NEWLINE = 10;

/** A place in the chain: the file may have been renamed since, the hash of the line before still finds it. */
export interface Position {
  readonly offset: number;
  readonly prev: string;
}

export interface Place {
  /** Index in the list of files. */
  readonly file: number;
  readonly offset: number;
}

interface Rotated {
  readonly path: string;
  readonly month: string;
  readonly number: number;
}

function listRotated(path: string): Rotated[] {
  const extension = extname(path);
  const prefix = `${basename(path, extension)}-`;
  const rotated: Rotated[] = [];
  for (const name of existsSync(dirname(path)) ? readdirSync(dirname(path)) : []) {
    if (!name.startsWith(prefix) || !name.endsWith(extension)) continue;
    const match = /^(\d{4}-\d{2})(?:\.(\d+))?$/.exec(
      name.slice(prefix.length, name.length - extension.length),
    );
    if (match?.[1] === undefined) continue;
    rotated.push({ path: join(dirname(path), name), month: match[1], number: Number(match[2] ?? 1) });
  }
  return rotated.sort((a, b) => (a.month === b.month ? a.number - b.number : a.month < b.month ? -1 : 1));
}

/** Oldest first; the growing file, when it exists, is the last. */
export function listLedgerFiles(path: string): string[] {
  const files = listRotated(path).map((rotated) => rotated.path);
  if (existsSync(path)) files.push(path);
  return files;
}

/** The name under which a file that ends in `month` is put away: always after those that are there. */
export function nameRotated(path: string, month: string): string {
  const newest = listRotated(path).at(-1);
  const stem = path.slice(0, path.length - extname(path).length);
  if (newest === undefined || month > newest.month) return `${stem}-${month}${extname(path)}`;
  return `${stem}-${newest.month}.${newest.number + 1}${extname(path)}`;
}

/** Calls `visit` with each whole line, without its newline. The bytes are only good during the call.
 *  Returns the bytes after the last newline: empty unless the end is torn. */
export function readLines(
  file: string,
  from: number,
  visit: (line: Buffer, offset: number) => void,
): { readonly end: number; readonly rest: Buffer } {
  const fd = openSync(file, "r");
  try {
    let buffer = Buffer.allocUnsafe(CHUNK);
    let held = 0;
    let base = from;
    for (;;) {
      if (held === buffer.length) buffer = Buffer.concat([buffer], buffer.length * 2);
      const count = readSync(fd, buffer, held, buffer.length - held, base + held);
      if (count === 0) return { end: base, rest: buffer.subarray(0, held) };
      const filled = held + count;
      let start = 0;
      for (
        let at = buffer.indexOf(NEWLINE, held);
        at !== -1 && at < filled;
        at = buffer.indexOf(NEWLINE, start)
      ) {
        visit(buffer.subarray(start, at), base + start);
        start = at + 1;
      }
      buffer.copyWithin(0, start, filled);
      held = filled - start;
      base += start;
    }
  } finally {
    closeSync(fd);
  }
}

/** The line that ends at `end` (default: the end of the file), without its newline; null when none ends there. */
export function readLineBefore(file: string, end?: number): Buffer | null {
  const fd = openSync(file, "r");
  try {
    const size = fstatSync(fd).size;
    const last = end ?? size;
    if (last === 0 || last > size) return null;
    return readBackToNewline(fd, last).length === 0 ? readBackToNewline(fd, last - 1) : null;
  } finally {
    closeSync(fd);
  }
}

/** The bytes before `end` that no newline separates from it. */
export function readBackToNewline(fd: number, end: number): Buffer {
  for (let length = Math.min(end, 4096); ; length = Math.min(end, length * 4)) {
    const bytes = Buffer.alloc(length);
    readSync(fd, bytes, 0, length, end - length);
    const newline = bytes.lastIndexOf(NEWLINE);
    if (newline !== -1 || length === end) return bytes.subarray(newline + 1);
  }
}

/** The hash that the next line after these files has to bear. */
export function hashLast(files: readonly string[]): string {
  for (const file of files.toReversed()) {
    const line = readLineBefore(file);
    if (line !== null) return hashLine(line);
  }
  return GENESIS;
}

/** Where a position is now; null when no file holds it. */
export function locate(files: readonly string[], position: Position): Place | null {
  for (let file = files.length - 1; file >= 0; file -= 1) {
    const path = files[file];
    if (path === undefined) continue;
    const line = position.offset === 0 ? null : readLineBefore(path, position.offset);
    const prev =
      position.offset === 0 ? hashLast(files.slice(0, file)) : line === null ? null : hashLine(line);
    if (prev === position.prev) return { file, offset: position.offset };
  }
  return null;
}

/** Visits every whole line from a place on, through all later files; lines that are not JSON objects are passed over. */
export function readLinesFrom(
  files: readonly string[],
  place: Place,
  visit: (line: Record<string, unknown>) => void,
): void {
  for (const [index, file] of files.entries()) {
    if (index < place.file) continue;
    readLines(file, index === place.file ? place.offset : 0, (bytes) => {
      const line = parseLine(bytes);
      if (line !== null) visit(line);
    });
  }
}
