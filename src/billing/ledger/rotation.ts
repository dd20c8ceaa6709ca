// Finds a ledger's files, and a line in them. `ledger.jsonl` grows. Rotated files
// have names such as `ledger-2026-11.jsonl` and `ledger-2026-11.2.jsonl`.

import { closeSync, existsSync, readdirSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";

import { openPlain } from "../../lib/files/own-file.ts";
import { getField, isObject, parseJson } from "../../lib/json/json.ts";
import { GENESIS, hashLine } from "./line.ts";
import { readLineBefore, readLines, type Source } from "./reader.ts";

/** Where a line begins. `prev`, the hash of the line before,
 *  finds the place after a rotation. */
export interface Position {
  readonly offset: number;
  readonly prev: string;
}

export interface FileOffset {
  readonly file: number;
  readonly offset: number;
}

function listRotated(path: string) {
  const extension = extname(path);
  const prefix = `${basename(path, extension)}-`;
  const names = existsSync(dirname(path)) ? readdirSync(dirname(path)) : [];
  return names
    .filter((name) => name.startsWith(prefix) && name.endsWith(extension))
    .flatMap((name) => {
      const words = basename(name, extension).slice(prefix.length);
      const [, month, number = "1"] = /^(\d{4}-\d{2})(?:\.(\d+))?$/.exec(words) ?? [];
      return month === undefined ? [] : [{ path: join(dirname(path), name), month, number: Number(number) }];
    })
    .sort((a, b) => (a.month === b.month ? a.number - b.number : a.month < b.month ? -1 : 1));
}

/** Oldest first. The growing file is last. */
export function listLedgerFiles(path: string): string[] {
  const files = listRotated(path).map((rotated) => rotated.path);
  if (existsSync(path)) files.push(path);
  return files;
}

export interface HeldFiles extends Disposable {
  readonly sources: readonly Source[];
}

/** Keeps the growing file open, also if it is rotated. */
export function holdLedgerFiles(path: string): HeldFiles {
  for (;;) {
    const rotated = listRotated(path).map((file) => file.path);
    const growing = openIfThere(path);
    const release = (): void => {
      if (growing !== null) closeSync(growing);
    };
    // If a file was added, a rotation came in between.
    if (listRotated(path).length === rotated.length)
      return { sources: growing === null ? rotated : [...rotated, growing], [Symbol.dispose]: release };
    release();
  }
}

function openIfThere(path: string): number | null {
  try {
    return openPlain(path);
  } catch (error) {
    if (getField(error, "code") === "ENOENT") return null;
    throw error;
  }
}

export function nameOf(source: Source, path: string): string {
  return basename(typeof source === "string" ? source : path);
}

/** The new name sorts after the others. */
export function nameRotated(path: string, month: string): string {
  const newest = listRotated(path).at(-1);
  const stem = path.slice(0, path.length - extname(path).length);
  if (newest === undefined || month > newest.month) return `${stem}-${month}${extname(path)}`;
  return `${stem}-${newest.month}.${newest.number + 1}${extname(path)}`;
}

/** The `prev` of the line that follows these files. */
export function hashLast(files: readonly Source[]): string {
  for (const file of files.toReversed()) {
    const line = readLineBefore(file);
    if (line !== null) return hashLine(line);
  }
  return GENESIS;
}

export function locate(files: readonly Source[], { offset, prev }: Position): FileOffset | null {
  const file = files.findLastIndex((source, index) => {
    return prev === (offset === 0 ? hashLast(files.slice(0, index)) : findPlace(source, offset)?.prev);
  });
  return file === -1 ? null : { file, offset };
}

export function findPlace(source: Source, offset: number): Position | null {
  if (offset === 0) return { offset, prev: GENESIS };
  const line = readLineBefore(source, offset);
  return line === null ? null : { offset, prev: hashLine(line) };
}

export function isMentioned(files: readonly Source[], { prev }: Position): boolean {
  // Each line ends with its `prev`.
  const end = `"prev":"${prev}"}`;
  return files.some((file) =>
    readLines(file).some(({ text, whole }) => whole && (text.endsWith(end) || hashLine(text) === prev)),
  );
}

export function* readLinesFrom(
  files: readonly Source[],
  place: FileOffset = { file: 0, offset: 0 },
): Generator<Readonly<Record<string, unknown>>, void> {
  for (const [index, file] of files.entries()) {
    if (index < place.file) continue;
    for (const { text, whole } of readLines(file, index === place.file ? place.offset : 0)) {
      const line = whole ? parseJson(text) : null;
      if (isObject(line)) yield line;
    }
  }
}
