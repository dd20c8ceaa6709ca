// The sums of the last thirty days, kept in memory and brought up to date with what was written since: for the
// console's page, which shows them again and again. It reads the ledger from its end backwards, a part at a time, so that
// today is there at once however long the ledger is. Sums do not depend on the order of their lines.

import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";

import { addUsd, subtractUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { createNamer, startOfSpan, type Zone } from "../../lib/text/zone.ts";
import { eachLine, readFile } from "../ledger/reader.ts";
import { listLedgerFiles } from "../ledger/rotation.ts";
import { viewBytes } from "../ledger/scan/bytes.ts";
import { readRow, type Row } from "../ledger/scan/row.ts";
import { LineScanner } from "../ledger/scan/scan.ts";
import { addRow, openTotals, type Totals } from "./report.ts";

const CUBE_DAYS = 30;
const DAY_MS = 86_400_000;
const BLOCK_BYTES = 4 << 20;
const NEWLINE = 10;

const CUBE_NAMES = ["model", "tool", "key", "group", "channel", "label"] as const;
export type CubeName = (typeof CUBE_NAMES)[number];

/** What one name of an hour stands for. */
export interface Share {
  charge: Usd;
  requests: number;
}

/** The requests of one local hour. */
export interface Hour {
  /** `2026-11-20 14:00` */
  readonly name: string;
  readonly totals: Totals;
  readonly by: Readonly<Record<CubeName, Map<string, Share>>>;
  /** Model → its requests without a price. */
  readonly unpriced: Map<string, number>;
}

function openHour(name: string): Hour {
  const open = (): Map<string, Share> => new Map();
  return {
    name,
    totals: openTotals(),
    by: { model: open(), tool: open(), key: open(), group: open(), channel: open(), label: open() },
    unpriced: new Map(),
  };
}

/** A file that is read backwards. What begins at `end` or later has been read. */
interface Backward {
  readonly fd: number;
  end: number;
}

export class LedgerCube {
  readonly #path: string;
  readonly #zone: Zone;
  readonly #now: () => number;
  readonly #scanner = new LineScanner();
  readonly #nameHour: (time: string) => string;
  #hours = new Map<string, Hour>();
  #unreadable = 0;
  /** The growing file, and where its unread lines begin. */
  #growing: { readonly fd: number; readonly inode: number; next: number } | null = null;
  /** The files that are not read whole yet, the newest last. */
  #behind: Backward[] = [];
  #total = 0;

  constructor(path: string, zone: Zone, now: () => number) {
    this.#path = path;
    this.#zone = zone;
    this.#now = now;
    this.#nameHour = createNamer("hour", zone);
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
    const left = this.#behind.reduce((sum, { end }) => sum + end, 0);
    return left === 0 ? 1 : Math.min(0.99, 1 - left / this.#total);
  }

  get unreadable(): number {
    return this.#unreadable;
  }

  /** From a local hour on, in no order. */
  *hours(from: string): Generator<Hour, void> {
    for (const hour of this.#hours.values()) if (hour.name >= from) yield hour;
  }

  close(): void {
    for (const { fd } of this.#behind) if (fd !== this.#growing?.fd) closeSync(fd);
    if (this.#growing !== null) closeSync(this.#growing.fd);
    this.#behind = [];
    this.#growing = null;
  }

  /** True at the first call, and after the growing file was rotated or replaced. */
  #hasMoved(): boolean {
    const inode = statSync(this.#path, { throwIfNoEntry: false })?.ino ?? null;
    const size = this.#growing === null ? 0 : fstatSync(this.#growing.fd).size;
    return inode !== (this.#growing?.inode ?? null) || size < (this.#growing?.next ?? 0);
  }

  #openFiles(): void {
    this.close();
    this.#hours = new Map();
    this.#unreadable = 0;
    this.#behind = listLedgerFiles(this.#path).map((file) => {
      const fd = openSync(file, "r");
      return { fd, end: findLastLineEnd(fd) };
    });
    this.#total = this.#behind.reduce((sum, { end }) => sum + end, 0);
    const newest = this.#behind.at(-1);
    const inode = statSync(this.#path, { throwIfNoEntry: false })?.ino;
    if (newest !== undefined && inode !== undefined && fstatSync(newest.fd).ino === inode)
      this.#growing = { fd: newest.fd, inode, next: newest.end };
  }

  #catchUp(): void {
    if (this.#growing === null) return;
    for (const { bytes, whole } of readFile(this.#growing.fd, this.#growing.next)) {
      if (!whole) continue;
      eachLine(bytes, (from, to) => this.#see(readRow(bytes, from, to, this.#scanner)));
      this.#growing.next += bytes.buffer.length;
    }
  }

  /** Reads the lines of one block before what has been read. */
  #readBlock(): void {
    const file = this.#behind.at(-1);
    if (file === undefined) return;
    const { lines, start } = readBefore(file.fd, file.end);
    const bytes = viewBytes(lines);
    let newest = "";
    eachLine(bytes, (from, to) => {
      const row = readRow(bytes, from, to, this.#scanner);
      if (row !== null && row.time > newest) newest = row.time;
      this.#see(row);
    });
    file.end = start;
    // A line is written when its request has ended, at most about a day after it came.
    const isOld = newest !== "" && newest < new Date(this.#findStart() - DAY_MS).toISOString();
    if (start > 0 && !isOld) return;
    const done = isOld ? this.#behind.splice(0) : this.#behind.splice(-1);
    for (const { fd } of done) if (fd !== this.#growing?.fd) closeSync(fd);
  }

  /** The moment at which the thirty days begin. */
  #findStart(): number {
    const today = startOfSpan("day", this.#zone.toLocal(this.#now()));
    return this.#zone.fromLocal(today - (CUBE_DAYS - 1) * DAY_MS);
  }

  #see(row: Row | null): void {
    if (row === null) {
      this.#unreadable += 1;
      return;
    }
    const name = this.#nameHour(row.time);
    let hour = this.#hours.get(name);
    if (hour === undefined) {
      hour = openHour(name);
      this.#hours.set(name, hour);
    }
    addRow(hour.totals, row);
    addShares(hour, row);
  }
}

function addShares(hour: Hour, row: Row): void {
  const more = subtractUsd(row.charge ?? ZERO_USD, row.was?.charge ?? ZERO_USD);
  // A correction is not a request.
  const requests = row.was === null ? 1 : 0;
  const names = readCubeNames(row);
  for (const dimension of CUBE_NAMES) {
    const share = findShare(hour.by[dimension], names[dimension]);
    share.charge = addUsd(share.charge, more);
    share.requests += requests;
  }
  const pending = countUnpriced(row);
  if (pending !== 0) addCount(hour.unpriced, row.model, pending);
}

function readCubeNames(row: Row): Readonly<Record<CubeName, string>> {
  const { tool = "", label = "" } = row.client() ?? {};
  const { model, key, group, channel } = row;
  return { model, tool, key, group, channel, label };
}

function findShare(shares: Map<string, Share>, name: string): Share {
  const known = shares.get(name);
  if (known !== undefined) return known;
  const share = { charge: ZERO_USD, requests: 0 };
  shares.set(name, share);
  return share;
}

/** -1: a correction has found the price. */
function countUnpriced({ was, official, basis }: Row): number {
  if (was === null) return basis === "unpriced" ? 1 : 0;
  return was.official === null && official !== null ? -1 : 0;
}

/** The whole lines in the block before `end`, which is the end of a line, and where they begin. */
function readBefore(fd: number, end: number): { lines: Buffer; start: number } {
  for (let size = BLOCK_BYTES; ; size *= 2) {
    const from = Math.max(0, end - size);
    const block = Buffer.allocUnsafe(end - from);
    readSync(fd, block, 0, block.length, from);
    if (from === 0) return { lines: block, start: 0 };
    const first = block.indexOf(NEWLINE) + 1;
    // Otherwise the block is the end of one long line.
    if (first < block.length) return { lines: block.subarray(first), start: from + first };
  }
}

/** Without the bytes of a line that is being written, or was torn. */
function findLastLineEnd(fd: number): number {
  const { size } = fstatSync(fd);
  for (let length = Math.min(size, 4096); length > 0; length = Math.min(size, length * 4)) {
    const bytes = Buffer.allocUnsafe(length);
    readSync(fd, bytes, 0, length, size - length);
    const newline = bytes.lastIndexOf(NEWLINE);
    if (newline >= 0) return size - length + newline + 1;
    if (length === size) break;
  }
  return 0;
}

function addCount(counts: Map<string, number>, name: string, more: number): void {
  counts.set(name, (counts.get(name) ?? 0) + more);
}
