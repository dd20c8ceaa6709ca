// Reads the lines of ledger files, forwards and from the end, in bounded memory.

import { isAscii } from "node:buffer";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const CHUNK = 1 << 16;
const NEWLINE = 10;

export interface RawLine {
  /** Without its newline. */
  readonly text: string;
  /** Where the next line begins, or would begin. */
  readonly next: number;
  /** False for what stands behind the last newline: a torn line, or one that is being written. */
  readonly whole: boolean;
}

export function* readLines(file: string, from = 0): Generator<RawLine, void> {
  const fd = openSync(file, "r");
  try {
    let buffer = Buffer.allocUnsafe(CHUNK);
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
    closeSync(fd);
  }
}

/** One decoding for many lines: most ledgers are ASCII, where characters are bytes. */
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
