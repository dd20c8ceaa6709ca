// Finds and reads the files of other programs' logs, which may be gigabytes, damaged, or written to at the moment. Only
// lines that can matter are decoded, and memory does not depend on the size of a file.

import { closeSync, type Dirent, readdirSync, readSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { openPlain } from "../../lib/files/own-file.ts";

export interface LogFile {
  readonly path: string;
  readonly size: number;
  /** When it was made. A copy of a session is made after the session. */
  readonly born: number;
}

/** The folders that a tool makes are not deeper. */
const MAX_DEPTH = 12;

export interface Place {
  /** It may be a link. Links below it may lead anywhere, and are not followed. */
  readonly folder: string;
  /** Of the files' paths below it. */
  readonly pattern: RegExp;
  readonly depth?: number;
}

/** The oldest first. */
export function listFiles(
  { folder, pattern, depth = MAX_DEPTH }: Place,
  onLink: (path: string) => void,
): LogFile[] {
  const files: LogFile[] = [];
  const walk = (at: string, below: string, left: number): void => {
    for (const entry of listEntries(at)) {
      const [path, name] = [join(at, entry.name), below + entry.name];
      if (entry.isSymbolicLink()) onLink(path);
      else if (entry.isDirectory() && left > 0) walk(path, `${name}/`, left - 1);
      else if (entry.isFile() && pattern.test(name)) {
        const { size, birthtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? GONE;
        files.push({ path, size, born: birthtimeMs });
      }
    }
  };
  const root = resolveFolder(folder);
  if (root !== null) walk(root, "", depth);
  return files.toSorted((a, b) => a.born - b.born || (a.path < b.path ? -1 : 1));
}

const GONE = { size: 0, birthtimeMs: 0 };

function listEntries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function resolveFolder(folder: string): string | null {
  try {
    return realpathSync(folder);
  } catch {
    return null;
  }
}

const CHUNK_BYTES = 1 << 20;
/** No tool writes such a line with counts in it. */
const MAX_LINE_BYTES = 16 << 20;
const NEWLINE = 10;

/** Hears what becomes of the files. */
export interface LogListener {
  onTooLong(): void;
  onBytes(count: number): void;
}

/** Reads the files of one tool, the oldest first. */
export interface LogReader {
  read(file: LogFile): void;
  /** After the last one. */
  end?(): void;
}

/** Gets a line, which is valid during the call. `whole`: it has its end. */
type SeeLine = (line: Buffer, whole: boolean) => void;

/** Each chunk is valid until the next one. */
export function* readChunks(path: string): Generator<Buffer, void> {
  const fd = openPlain(path);
  try {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer))
      yield buffer.subarray(0, count);
  } finally {
    closeSync(fd);
  }
}

/** Passes the lines of a file that contain one of the needles. */
export function scanLines(
  path: string,
  needles: readonly Buffer[],
  listener: LogListener,
  see: SeeLine,
): void {
  const fd = openPlain(path);
  try {
    let buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    let held = 0;
    let skips = false;
    for (let at = 0; ;) {
      const count = readSync(fd, buffer, held, buffer.length - held, at);
      if (count === 0) break;
      at += count;
      listener.onBytes(count);
      const filled = held + count;
      const start = skips ? buffer.subarray(0, filled).indexOf(NEWLINE) + 1 : 0;
      const end = buffer.subarray(0, filled).lastIndexOf(NEWLINE) + 1;
      if (skips && start === 0) continue;
      skips = false;
      findLines(buffer.subarray(start, end), needles, (line) => see(line, true));
      buffer.copyWithin(0, Math.max(start, end), filled);
      held = filled - Math.max(start, end);
      if (held < buffer.length) continue;
      if (held < MAX_LINE_BYTES) buffer = Buffer.concat([buffer], held * 2);
      else {
        listener.onTooLong();
        [skips, held] = [true, 0];
      }
    }
    if (!skips) findLines(buffer.subarray(0, held), needles, (line) => see(line, false));
  } finally {
    closeSync(fd);
  }
}

/** Each needle is looked for once from the beginning to the end. */
function findLines(bytes: Buffer, needles: readonly Buffer[], see: (line: Buffer) => void): void {
  const next = needles.map((needle) => bytes.indexOf(needle));
  for (;;) {
    const at = next.reduce((least, each) => (each >= 0 && (least < 0 || each < least) ? each : least), -1);
    if (at < 0) return;
    const newline = bytes.indexOf(NEWLINE, at);
    const end = newline < 0 ? bytes.length : newline;
    see(bytes.subarray(bytes.lastIndexOf(NEWLINE, at) + 1, end));
    for (const [index, needle] of needles.entries())
      if ((next[index] ?? -1) >= 0 && (next[index] ?? 0) < end) next[index] = bytes.indexOf(needle, end);
  }
}
