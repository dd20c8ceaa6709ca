// Reads the lines of ledger files, forwards and backwards, in bounded memory.

import { isAscii } from "node:buffer";
import { closeSync, fstatSync, readSync } from "node:fs";

import { openPlain } from "../../lib/files/own-file.ts";

const CHUNK = 1 << 16;
const NEWLINE = 10;

export type Source = string | number;

export interface RawLine {
  readonly text: string;
  /** The offset where the next line begins, or would begin. */
  readonly next: number;
  /** False: the line is torn or still being written. */
  readonly whole: boolean;
}

/** The lines of a file, also those added while it is read. */
export function* readLines(source: Source, from = 0, size = CHUNK): Generator<RawLine, void> {
  const fd = typeof source === "number" ? source : openPlain(source);
  try {
    let buffer = Buffer.allocUnsafe(size);
    let held = 0;
    let base = from;
    for (;;) {
      if (held === buffer.length) buffer = Buffer.concat([buffer], held * 2);
      const count = readSync(fd, buffer, held, buffer.length - held, base + held);
      if (count === 0) break;
      const filled = held + count;
      const end = buffer.subarray(0, filled).lastIndexOf(NEWLINE) + 1;
      yield* splitLines(buffer.subarray(0, end), base);
      buffer.copyWithin(0, end, filled);
      held = filled - end;
      base += end;
    }
    if (held > 0) yield { text: buffer.toString("utf8", 0, held), next: base + held, whole: false };
  } finally {
    if (fd !== source) closeSync(fd);
  }
}

function* splitLines(bytes: Buffer, base: number): Generator<RawLine, void> {
  const ascii = isAscii(bytes);
  const text = ascii ? bytes.toString("latin1") : bytes.toString();
  let start = 0;
  let next = base;
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
    const line = text.slice(start, end);
    next += (ascii ? line.length : Buffer.byteLength(line)) + 1;
    start = end + 1;
    yield { text: line, next, whole: true };
  }
}

export function findLastLineEnd(source: Source): number {
  return look(source, (fd) => {
    const { size } = fstatSync(fd);
    return size - readBackToNewline(fd, size).length;
  });
}

/** The line that ends at `end` (default:
 *  the end of the file), without its newline. */
export function readLineBefore(source: Source, end?: number): Buffer | null {
  return look(source, (fd) => {
    const { size } = fstatSync(fd);
    const last = end ?? size;
    if (last === 0 || last > size) return null;
    return readBackToNewline(fd, last).length === 0 ? readBackToNewline(fd, last - 1) : null;
  });
}

function look<T>(source: Source, read: (fd: number) => T): T {
  const fd = typeof source === "number" ? source : openPlain(source);
  try {
    return read(fd);
  } finally {
    if (fd !== source) closeSync(fd);
  }
}

export function readBackToNewline(fd: number, end: number): Buffer {
  for (let length = Math.min(end, 4096); ; length = Math.min(end, length * 4)) {
    const bytes = Buffer.alloc(length);
    readSync(fd, bytes, 0, length, end - length);
    const newline = bytes.lastIndexOf(NEWLINE);
    if (newline !== -1 || length === end) return bytes.subarray(newline + 1);
  }
}
