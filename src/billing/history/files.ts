// Finds and reads the files of other programs' logs, which may be gigabytes, damaged, or written to at the moment. Only
// lines that can matter are decoded, and memory does not depend on the size of a file.

import { Glob } from "bun";
import { closeSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { openPlain } from "../../lib/files/own-file.ts";
import { getErrorCode, getErrorMessage } from "../../lib/errors.ts";
import { isObject, parseJson } from "../../lib/json/json.ts";
import type { History } from "./entry.ts";

export interface Place {
  /** It may be a link. Links below it may lead anywhere, and are left out. */
  readonly folder: string;
  readonly pattern: string;
}

export interface LogFile {
  readonly path: string;
  readonly size: number;
  /** When it was made: a copy of a session is made after the session. */
  readonly born: number;
}

/** The oldest first. `unread` gets the folders that cannot be read, and why. */
export function listFiles(places: readonly Place[], unread: string[]): LogFile[] {
  const files: LogFile[] = [];
  for (const { folder, pattern } of places) {
    try {
      for (const name of new Glob(pattern).scanSync({ cwd: folder, dot: true })) {
        const path = join(folder, name);
        // It may have been removed meanwhile.
        const found = statSync(path, { throwIfNoEntry: false });
        if (found !== undefined) files.push({ path, size: found.size, born: found.birthtimeMs });
      }
    } catch (error) {
      if (getErrorCode(error) !== "ENOENT") unread.push(`${folder}: ${getErrorMessage(error)}`);
    }
  }
  return files.toSorted((a, b) => a.born - b.born || (a.path < b.path ? -1 : 1));
}

/** Reads the files of one tool, the oldest first. */
export interface LogReader {
  read(file: LogFile): void;
  /** After the last one. */
  end?(): void;
}

const CHUNK_BYTES = 1 << 20;
/** No tool writes such a line with counts in it. */
const MAX_LINE_BYTES = 16 << 20;
const NEWLINE = 10;
const NOTHING = Buffer.alloc(0);

/** Each chunk is valid until the next one. */
function* readChunks(path: string, history: History): Generator<Buffer, void> {
  const fd = openPlain(path);
  try {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer)) {
      history.onBytes(count);
      yield buffer.subarray(0, count);
    }
  } finally {
    closeSync(fd);
  }
}

export function readWhole(path: string, history: History): string {
  return Buffer.concat(Array.from(readChunks(path, history), (chunk) => Buffer.from(chunk))).toString();
}

type SeeRow = (row: Readonly<Record<string, unknown>>) => void;

/** Passes the rows of a file whose lines contain one of the needles. */
export function scanRows(path: string, needles: readonly string[], history: History, see: SeeRow): void {
  let held = NOTHING;
  let skips = false;
  for (const chunk of readChunks(path, history)) {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const start = skips ? bytes.indexOf(NEWLINE) + 1 : 0;
    if (skips && start === 0) continue;
    const end = bytes.lastIndexOf(NEWLINE) + 1;
    findLines(bytes.subarray(start, Math.max(start, end)), needles, (line) => {
      const row = parseJson(line.toString());
      if (isObject(row)) see(row);
      else history.damaged += 1;
    });
    held = Buffer.from(bytes.subarray(Math.max(start, end)));
    skips = held.length > MAX_LINE_BYTES;
    if (!skips) continue;
    history.tooLong += 1;
    held = NOTHING;
  }
  // The last line is being written, if it is not whole.
  findLines(held, needles, (line) => {
    const row = parseJson(line.toString());
    if (isObject(row)) see(row);
  });
}

/** Each needle is looked for once from the beginning to the end. */
function findLines(bytes: Buffer, needles: readonly string[], see: (line: Buffer) => void): void {
  const next = needles.map((needle) => bytes.indexOf(needle));
  for (;;) {
    const at = next.reduce((least, each) => (each >= 0 && (least < 0 || each < least) ? each : least), -1);
    if (at < 0) return;
    const newline = bytes.indexOf(NEWLINE, at);
    const end = newline < 0 ? bytes.length : newline;
    see(bytes.subarray(bytes.lastIndexOf(NEWLINE, at) + 1, end));
    for (const [index, needle] of needles.entries()) {
      const found = next[index] ?? -1;
      if (found >= 0 && found < end) next[index] = bytes.indexOf(needle, end);
    }
  }
}
