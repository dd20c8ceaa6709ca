// Reads the last lines of a ledger, across rotations.

import { existsSync, statSync } from "node:fs";

import { listLedgerFiles } from "./rotation.ts";
import { readLines } from "./reader.ts";

/** Lines are rarely longer. This much is read per line to find the last few. */
const BYTES_PER_LINE = 4096;

/** The last whole lines of the ledger. */
export function readLastLines(path: string, count: number): readonly string[] {
  const { texts, isAll } = readEnd(path, count);
  const rotated = listLedgerFiles(path).filter((file) => file !== path);
  let older = isAll ? rotated.pop() : undefined;
  while (older !== undefined && texts.length < count) {
    const end = readEnd(older, count - texts.length);
    texts.unshift(...end.texts);
    older = end.isAll ? rotated.pop() : undefined;
  }
  return texts;
}

interface FileEnd {
  readonly texts: string[];
  /** The whole file was read. */
  readonly isAll: boolean;
}

function readEnd(path: string, count: number): FileEnd {
  if (!existsSync(path)) return { texts: [], isAll: true };
  const from = Math.max(0, statSync(path).size - Math.max(1, count) * BYTES_PER_LINE);
  const texts: string[] = [];
  let next = from;
  for (const line of readLines(path, from)) {
    if (!line.whole) break;
    // The read may have begun in the middle of a line.
    if (next !== from || from === 0) texts.push(line.text);
    next = line.next;
  }
  return { texts: count === 0 ? [] : texts.slice(-count), isAll: from === 0 };
}
