// Yields the lines of a ledger while it grows, across rotations.

import { existsSync, statSync } from "node:fs";

import { listLedgerFiles } from "./rotation.ts";
import { readLines } from "./reader.ts";

const POLL_MS = 250;
/** Lines are rarely longer. This much is read per line to find the last few. */
const BYTES_PER_LINE = 4096;

/** The last lines of the ledger, and the offset at which its growing file continues. */
export function readLastLines(
  path: string,
  count: number,
): { readonly texts: readonly string[]; readonly next: number } {
  const { texts, next, isAll } = readEnd(path, count);
  const rotated = listLedgerFiles(path).filter((file) => file !== path);
  let older = isAll ? rotated.pop() : undefined;
  while (older !== undefined && texts.length < count) {
    const end = readEnd(older, count - texts.length);
    texts.unshift(...end.texts);
    older = end.isAll ? rotated.pop() : undefined;
  }
  return { texts, next };
}

interface FileEnd {
  readonly texts: string[];
  readonly next: number;
  /** The whole file was read. */
  readonly isAll: boolean;
}

function readEnd(path: string, count: number): FileEnd {
  if (!existsSync(path)) return { texts: [], next: 0, isAll: true };
  const from = Math.max(0, statSync(path).size - Math.max(1, count) * BYTES_PER_LINE);
  const texts: string[] = [];
  let next = from;
  for (const line of readLines(path, from)) {
    if (!line.whole) break;
    // The read may have begun in the middle of a line.
    if (next !== from || from === 0) texts.push(line.text);
    next = line.next;
  }
  return { texts: count === 0 ? [] : texts.slice(-count), next, isAll: from === 0 };
}

/** The lines from an offset on, until `signal`. */
export async function* followLedger(
  path: string,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  let next = from;
  let inode = inodeOf(path);
  while (!signal.aborted) {
    const now = inodeOf(path);
    if (now !== inode) {
      yield* readRotated(path, inode, next);
      inode = now;
      next = 0;
    }
    for (const line of now === null ? [] : readLines(path, next)) {
      if (!line.whole) break;
      next = line.next;
      yield line.text;
    }
    await pause(signal);
  }
}

/** The lines written to a file between the last read and its rotation. */
function* readRotated(path: string, inode: number | null, from: number): Generator<string, void> {
  const rotated = listLedgerFiles(path).find((file) => inode !== null && inodeOf(file) === inode);
  for (const { text, whole } of rotated === undefined ? [] : readLines(rotated, from)) if (whole) yield text;
}

function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, POLL_MS);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
