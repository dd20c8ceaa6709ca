// Reads the sums of the last thirty days (cells.ts) from the ledger and brings them up to date with what was written
// since: for the console's page, which shows them again and again. It reads backwards from the end, a part at a time, so
// that today is there at once however long the ledger is. Sums do not depend on the order of their lines. They are saved
// beside the ledger, so that after the next start only the lines since then are read. If the saved ones do not fit the
// ledger's files, all of it is read again. Nothing that binds depends on them: limits have sums of their own (sums.ts).

import { closeSync, fstatSync, readSync, statSync } from "node:fs";
import { z } from "zod";

import { openPlain } from "../../lib/files/own-file.ts";
import type { Zone } from "../../lib/text/zone.ts";
import { readCheckpoint, writeCheckpoint } from "../ledger/sums/checkpoint.ts";
import { GENESIS, hashLine } from "../ledger/line.ts";
import { eachLine, readFile, readLineBefore, type Source } from "../ledger/reader.ts";
import { type HeldFiles, holdLedgerFiles, type Position } from "../ledger/rotation.ts";
import { positionSchema } from "../ledger/noted-end.ts";
import { readRow } from "../ledger/row.ts";
import { type Cell, Cells, cellsSchema } from "./cells.ts";

const DAY_MS = 86_400_000;
const BLOCK_BYTES = 1 << 18;
const NEWLINE = 10;
/** Sums are saved when this much is new. Twice of it, which may be read again after a start, takes a fifth of a second. */
export const SAVE_BYTES = 8 << 20;

const savedSchema = z.lazy(() =>
  cellsSchema.unwrap().extend({
    /** How far each file of the ledger was read, the oldest first. */
    files: z.array(positionSchema),
  }),
);

/** Lines that are not read yet: the whole ones between two offsets of a file. */
interface Unread {
  readonly source: Source;
  readonly from: number;
  end: number;
}

/** Sums, and how far each file was read for them. */
interface SavedSums {
  readonly cells: Cells;
  readonly places: readonly Position[];
}

export class LedgerCube {
  readonly #path: string;
  readonly #zone: Zone;
  readonly #now: () => number;
  readonly #pause: () => void;
  #cells: Cells;
  #held: HeldFiles | null = null;
  /** Where the unread lines of the growing file begin. */
  #next = 0;
  /** What was there at the start and is not read yet, the newest last. */
  #behind: Unread[] = [];
  #total = 0;
  #unsaved = 0;

  /** `pause` is called after each line, and after each cell. */
  constructor(path: string, zone: Zone, now: () => number, pause: () => void = () => {}) {
    this.#path = path;
    this.#zone = zone;
    this.#now = now;
    this.#pause = pause;
    this.#cells = new Cells(zone, now());
  }

  /** Reads what was written since the last call, then older lines for about `budgetMs`, at least one part. */
  advance(budgetMs: number): void {
    const until = performance.now() + budgetMs;
    if (this.#hasMoved()) this.#openFiles();
    this.#catchUp();
    do this.#readBlock();
    while (this.#behind.length > 0 && performance.now() < until);
  }

  /** The share of the last thirty days' bytes that is read, from 0 to 1. */
  get read(): number {
    const left = this.#behind.reduce((sum, { from, end }) => sum + end - from, 0);
    return left === 0 ? 1 : Math.min(0.99, 1 - left / this.#total);
  }

  get unreadable(): number {
    return this.#cells.unreadable;
  }

  /** From a local day on, in no order. */
  *cells(fromDay: string): Generator<Cell, void> {
    for (const cell of this.#cells.from(fromDay)) {
      yield cell;
      this.#pause();
    }
  }

  /** Saves the sums for the next start when all are there and enough of them is new. */
  save(): void {
    if (this.read < 1 || this.#unsaved < SAVE_BYTES) return;
    const places = this.#listPlaces();
    if (places === null) return;
    this.#cells.fold(this.#now());
    writeCheckpoint(nameSaved(this.#path), { ...this.#cells.encode(), files: places });
    this.#unsaved = 0;
  }

  close(): void {
    this.#held?.[Symbol.dispose]();
    this.#held = null;
    this.#behind = [];
  }

  get #growing(): number | null {
    const last = this.#held?.sources.at(-1);
    return typeof last === "number" ? last : null;
  }

  /** True at the first call, and after the growing file was rotated or replaced. */
  #hasMoved(): boolean {
    if (this.#held === null) return true;
    const inode = statSync(this.#path, { throwIfNoEntry: false })?.ino ?? null;
    const growing = this.#growing === null ? null : fstatSync(this.#growing);
    return inode !== (growing?.ino ?? null) || (growing?.size ?? 0) < this.#next;
  }

  #openFiles(): void {
    const kept = this.#held === null ? this.#readSaved() : this.#keep();
    this.close();
    this.#held = holdLedgerFiles(this.#path);
    try {
      this.#begin(this.#held.sources, kept);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  #begin(sources: readonly Source[], kept: SavedSums | null): void {
    const ends = sources.map(findLastLineEnd);
    const isKept = kept !== null && fitsFiles(kept.places, sources, ends);
    const places = isKept ? kept.places : [];
    this.#cells = isKept ? kept.cells : new Cells(this.#zone, this.#now());
    this.#behind = sources.flatMap((source, index) => {
      const [from, end] = [places[index]?.offset ?? 0, ends[index] ?? 0];
      return from < end ? [{ source, from, end }] : [];
    });
    this.#total = ends.reduce((sum, end) => sum + end, 0);
    this.#next = this.#growing === null ? 0 : (ends.at(-1) ?? 0);
  }

  #readSaved(): SavedSums | null {
    const saved = savedSchema.safeParse(readCheckpoint(nameSaved(this.#path))).data;
    const cells = saved === undefined ? null : Cells.decode(saved, this.#zone, this.#now());
    return saved === undefined || cells === null ? null : { cells, places: saved.files };
  }

  /** After a rotation, the descriptor still leads to the last lines of the file that was rotated. */
  #keep(): SavedSums | null {
    if (this.#behind.length > 0) return null;
    this.#catchUp();
    const places = this.#listPlaces();
    return places === null ? null : { cells: this.#cells, places };
  }

  /** Null: a line that was read is gone. */
  #listPlaces(): Position[] | null {
    const growing = this.#growing;
    const places = (this.#held?.sources ?? []).map((source) =>
      findPlace(source, source === growing ? this.#next : findLastLineEnd(source)),
    );
    return places.every((place) => place !== null) ? places : null;
  }

  #catchUp(): void {
    if (this.#growing === null) return;
    for (const { bytes, whole } of readFile(this.#growing, this.#next)) {
      if (!whole) continue;
      eachLine(bytes, (from, to) => this.#see(readRow(bytes.toString("utf8", from, to))));
      this.#next += bytes.length;
      this.#unsaved += bytes.length;
    }
  }

  /** Reads the lines of one block before what has been read. */
  #readBlock(): void {
    const unread = this.#behind.at(-1);
    if (unread === undefined) return;
    const { lines, start } = readBefore(unread);
    let newest = "";
    eachLine(lines, (from, to) => {
      const row = readRow(lines.toString("utf8", from, to));
      // A correction has the time of its request, which may be much older than the lines before it.
      if (row !== null && row.was === null && row.time > newest) newest = row.time;
      this.#see(row);
    });
    unread.end = start;
    this.#unsaved += lines.length;
    // A line is written when its request has ended, at most about a day after it came.
    const isOld = newest !== "" && Date.parse(newest) < this.#findStart() - DAY_MS;
    if (isOld) this.#behind = [];
    else if (start === unread.from) this.#behind.pop();
  }

  /** The moment from which on the sums are wanted. */
  #findStart(): number {
    return this.#zone.fromLocal(Date.parse(`${this.#cells.since}T00:00:00Z`));
  }

  #see(row: ReturnType<typeof readRow>): void {
    if (row === null) this.#cells.unreadable += 1;
    else this.#cells.add(row);
    this.#pause();
  }
}

function nameSaved(path: string): string {
  return `${path}.hours`;
}

/** Whether these are the files that were read, with new lines at most behind the last of them. A file that was removed
 *  or put back changes what the ledger contains. */
function fitsFiles(
  places: readonly Position[],
  sources: readonly Source[],
  ends: readonly number[],
): boolean {
  return places.every((place, index) => {
    const source = sources[index];
    if (source === undefined || (index < places.length - 1 && place.offset !== ends[index])) return false;
    return findPlace(source, place.offset)?.prev === place.prev;
  });
}

/** Null: no line ends there. */
function findPlace(source: Source, offset: number): Position | null {
  if (offset === 0) return { offset, prev: GENESIS };
  const line = readLineBefore(source, offset);
  return line === null ? null : { offset, prev: hashLine(line) };
}

/** The whole lines in the last block of what is unread, and where they begin. */
function readBefore({ source, from, end }: Unread): { lines: Buffer; start: number } {
  return useFile(source, (fd) => {
    for (let size = BLOCK_BYTES; ; size *= 2) {
      const start = Math.max(from, end - size);
      const block = Buffer.allocUnsafe(end - start);
      readSync(fd, block, 0, block.length, start);
      if (start === from) return { lines: block, start };
      const first = block.indexOf(NEWLINE) + 1;
      // Otherwise the block is the end of one long line.
      if (first < block.length) return { lines: block.subarray(first), start: start + first };
    }
  });
}

/** Without the bytes of a line that is being written, or was torn. */
function findLastLineEnd(source: Source): number {
  return useFile(source, (fd) => {
    const { size } = fstatSync(fd);
    for (let length = Math.min(size, 4096); length > 0; length = Math.min(size, length * 4)) {
      const bytes = Buffer.allocUnsafe(length);
      readSync(fd, bytes, 0, length, size - length);
      const newline = bytes.lastIndexOf(NEWLINE);
      if (newline >= 0) return size - length + newline + 1;
      if (length === size) break;
    }
    return 0;
  });
}

function useFile<T>(source: Source, use: (fd: number) => T): T {
  if (typeof source === "number") return use(source);
  const fd = openPlain(source);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
