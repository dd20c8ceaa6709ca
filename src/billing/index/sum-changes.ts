// What new lines add to the sums of their hours, of their days, and of who sent them.

import { carrySums, decodeCells, encodeCells, listRows } from "./cells.ts";
import {
  ADD_TO_SHARES,
  CELL,
  type IndexDatabase,
  LATENCY,
  LATENCY_STEPS,
  SPAN_HOURS,
  WORK_SLOT_MS,
} from "./schema.ts";

const HOUR_MS = 3_600_000;

/** Of a time in milliseconds. */
function bucketOf(ms: number): number {
  return Math.round(LATENCY_STEPS * Math.log2(ms + 1));
}

/** More than there are, as times have 31 bits. */
const BUCKETS = 128;

/** Within its hour, from 0. */
function slotOf(moment: number): number {
  return Math.floor((moment - Math.floor(moment / HOUR_MS) * HOUR_MS) / WORK_SLOT_MS);
}

interface Change {
  readonly line: number;
  /** In milliseconds, and as ISO text. */
  readonly moment: number;
  readonly time: string;
  readonly trait: number;
  readonly sender: number;
  readonly root: number;
  readonly numbers: readonly number[];
  /** Undefined: it is not a request. Null: it had no first byte. */
  readonly firstByte: number | null | undefined;
}

interface SpanChange {
  /** By trait. */
  readonly cells: Map<number, number[]>;
  /** By trait and bucket. */
  readonly latencies: Map<number, number>;
}

interface Share extends Pick<Change, "root" | "sender" | "trait"> {
  readonly first: number;
  last: number;
  since: string;
  until: string;
  readonly numbers: number[];
}

export class SumChanges {
  /** By hour. */
  readonly #hours = new Map<number, SpanChange>();
  /** By sender, then by trait. */
  readonly #shares = new Map<number, Map<number, Share>>();

  add(change: Change): void {
    const { moment, trait, line, numbers, firstByte } = change;
    const hour = Math.floor(moment / HOUR_MS);
    const { cells, latencies } = openSpan(this.#hours, hour);
    const slots = firstByte === undefined ? 0 : 1 << slotOf(moment);
    addCell(cells, [trait, line, moment, slots, ...numbers]);
    if (typeof firstByte === "number") count(latencies, trait * BUCKETS + bucketOf(firstByte), 1);
    this.#addShare(change);
  }

  #addShare({ root, sender, trait, line, time, numbers }: Change): void {
    const own = this.#shares.getOrInsertComputed(sender, () => new Map<number, Share>());
    const share = own.get(trait);
    if (share === undefined) {
      own.set(trait, {
        root,
        sender,
        trait,
        first: line,
        last: line,
        since: time,
        until: time,
        numbers: [...numbers],
      });
      return;
    }
    share.last = line;
    if (time < share.since) share.since = time;
    if (time > share.until) share.until = time;
    addNumbers(share.numbers, numbers, 0);
  }

  write(database: IndexDatabase): void {
    for (const hours of SPAN_HOURS)
      for (const [start, change] of addUp(this.#hours, hours)) writeSpan(database, hours, start, change);
    const query = database.query(ADD_TO_SHARES);
    for (const shares of this.#shares.values())
      for (const { root, sender, trait, since, until, first, last, numbers } of shares.values()) {
        carrySums(numbers, 0);
        query.run(root, sender, trait, since, until, first, last, ...numbers);
      }
    this.#hours.clear();
    this.#shares.clear();
  }
}

function openSpan(spans: Map<number, SpanChange>, start: number): SpanChange {
  return spans.getOrInsertComputed(start, () => ({ cells: new Map(), latencies: new Map() }));
}

function addUp(shorter: ReadonlyMap<number, SpanChange>, hours: number): ReadonlyMap<number, SpanChange> {
  if (hours === 1) return shorter;
  const longer = new Map<number, SpanChange>();
  for (const [start, { cells, latencies }] of shorter) {
    const span = openSpan(longer, Math.floor(start / hours) * hours);
    // Slots are those of one hour.
    for (const cell of cells.values()) addCell(span.cells, cell.with(CELL.slots, 0));
    for (const [place, requests] of latencies) count(span.latencies, place, requests);
  }
  return longer;
}

const READ = "SELECT cells, latencies FROM spans WHERE hours = ? AND start = ?";
const WRITE = "REPLACE INTO spans VALUES (?, ?, ?, ?)";

function writeSpan(database: IndexDatabase, hours: number, start: number, change: SpanChange): void {
  const [[cells, latencies] = []] = database.query(READ).values(hours, start);
  const span: SpanChange = { cells: new Map(), latencies: new Map() };
  for (const row of readRows(cells, CELL.width)) addCell(span.cells, row);
  for (const row of change.cells.values()) addCell(span.cells, row);
  for (const row of span.cells.values()) carrySums(row, CELL.sums);
  for (const [trait = 0, bucket = 0, requests = 0] of readRows(latencies, LATENCY.width))
    span.latencies.set(trait * BUCKETS + bucket, requests);
  for (const [place, requests] of change.latencies) count(span.latencies, place, requests);
  const counts = Array.from(span.latencies, ([place, requests]) => [
    Math.floor(place / BUCKETS),
    place % BUCKETS,
    requests,
  ]);
  database
    .query(WRITE)
    .run(hours, start, encodeCells([...span.cells.values()], CELL.width), encodeCells(counts, LATENCY.width));
}

function readRows(bytes: unknown, width: number): number[][] {
  return bytes instanceof Uint8Array ? listRows(decodeCells(bytes, width)) : [];
}

/** `cell` becomes a part of the map. */
function addCell(cells: Map<number, number[]>, cell: number[]): void {
  const [trait = 0, first = 0, last = 0, slots = 0] = cell;
  const known = cells.get(trait);
  if (known === undefined) {
    cells.set(trait, cell);
    return;
  }
  known[CELL.first] = Math.min(known[CELL.first] ?? 0, first);
  known[CELL.last] = Math.max(known[CELL.last] ?? 0, last);
  known[CELL.slots] = (known[CELL.slots] ?? 0) | slots;
  addNumbers(known, cell, CELL.sums);
}

function addNumbers(sums: number[], more: readonly number[], from: number): void {
  for (let index = from; index < sums.length; index += 1)
    sums[index] = (sums[index] ?? 0) + (more[index] ?? 0);
}

function count(counts: Map<number, number>, place: number, more: number): void {
  counts.set(place, (counts.get(place) ?? 0) + more);
}
