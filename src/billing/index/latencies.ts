// How long requests took to their first byte, and in which ten minutes they began.

import { Classes, type Fold } from "./cells.ts";
import {
  divideBySpan,
  divideRange,
  FIRST_HOUR,
  type GroupQuery,
  HOUR_MS,
  LAST,
  LAST_HOUR,
  ofSessions,
  type SpanQuery,
  type TimeRange,
} from "./groups.ts";
import type { IndexPart, LedgerIndex } from "./ledger-index.ts";
import { CELL, LATENCY, WORK_SLOT_MS } from "./schema.ts";
import { BUCKETS, bucketOf, slotOf } from "./sum-changes.ts";
import type { Traits } from "./traits.ts";

type LatencyQuery = SpanQuery & Pick<GroupQuery, "sessions"> & { readonly fold: Fold };

/** Requests with about the same time to their first byte. */
export interface LatencyGroup {
  readonly traits: Traits;
  readonly span: string;
  readonly bucket: number;
  readonly requests: number;
}

export function listLatencies({ parts }: LedgerIndex, query: LatencyQuery): LatencyGroup[] {
  return parts.flatMap((part) => {
    const classes = new Classes((trait) => part.traitsOf(trait), query.fold);
    return [...divideBySpan(part, query)].flatMap(({ period, name }) => {
      const counts = new Map<number, number>();
      for (const [trait, bucket, requests] of listBuckets(part, period, query.sessions)) {
        const own = classes.of(trait);
        const place = own * BUCKETS + bucket;
        if (own >= 0) counts.set(place, (counts.get(place) ?? 0) + requests);
      }
      return [...counts].flatMap(([place, requests]) => {
        const found = classes.get(Math.floor(place / BUCKETS));
        const { traits } = found ?? {};
        return traits === undefined ? [] : [{ traits, span: name, bucket: place % BUCKETS, requests }];
      });
    });
  });
}

type Bucket = readonly [trait: number, bucket: number, requests: number];

function* listBuckets(
  part: IndexPart,
  range: TimeRange,
  sessions: readonly string[] | undefined,
): Generator<Bucket, void> {
  if (sessions !== undefined) {
    yield* listSingle(part, range, `AND ${ofSessions(sessions)}`, ...sessions);
    return;
  }
  const { whole, edges } = divideRange(range);
  for (const [hours, from, to] of whole)
    for (const { cells } of part.listSpans(hours, from, to, "latencies")) {
      const { columns } = cells;
      const read = (column: number, row: number): number => columns[column]?.[row] ?? 0;
      for (let row = 0; row < cells.rows; row += 1)
        yield [read(LATENCY.trait, row), read(LATENCY.bucket, row), read(LATENCY.requests, row)];
    }
  for (const hour of edges) yield* listSingle(part, range, "AND hour = ?", hour);
}

/** From the rows of the requests. */
function listSingle(
  part: IndexPart,
  { since, until }: TimeRange,
  more: string,
  ...values: (string | number)[]
): Bucket[] {
  const sql = `SELECT trait, first_byte, COUNT(*) FROM requests
    WHERE first_byte IS NOT NULL AND odd IS NULL AND time >= ? AND time < ? ${more} GROUP BY trait, first_byte`;
  return part
    .list(sql, since ?? "", until ?? LAST, ...values)
    .map(([trait, ms, requests]) => [Number(trait), bucketOf(Number(ms)), Number(requests)]);
}

/** In how many slots of ten minutes requests of each class began. */
export function listWork({ parts }: LedgerIndex, query: LatencyQuery): { traits: Traits; slots: number }[] {
  const byName = new Map<string, { readonly traits: Traits; readonly hours: Map<number, number> }>();
  for (const part of parts)
    for (const { traits, hours } of sumWork(part, query)) {
      const name = JSON.stringify(traits);
      const known = byName.getOrInsertComputed(name, () => ({ traits, hours: new Map() }));
      for (const [hour, slots] of hours) known.hours.set(hour, (known.hours.get(hour) ?? 0) | slots);
    }
  return Array.from(byName.values(), ({ traits, hours }) => ({
    traits,
    slots: [...hours.values()].reduce((sum, slots) => sum + countBits(slots), 0),
  }));
}

/** The slots of each class, by hour. */
function sumWork(part: IndexPart, query: LatencyQuery): { traits: Traits; hours: Map<number, number> }[] {
  const classes = new Classes((trait) => part.traitsOf(trait), query.fold);
  const found: Map<number, number>[] = [];
  for (const [trait, hour, slots] of listSlots(part, query)) {
    const own = slots === 0 ? -1 : classes.of(trait);
    if (own < 0) continue;
    const hours = (found[own] ??= new Map());
    hours.set(hour, (hours.get(hour) ?? 0) | slots);
  }
  return found.flatMap((hours, own) => {
    const { traits } = classes.get(own) ?? {};
    return traits === undefined ? [] : [{ traits, hours }];
  });
}

type Slots = readonly [trait: number, hour: number, slots: number];

function* listSlots(part: IndexPart, { sessions, ...range }: LatencyQuery): Generator<Slots, void> {
  if (sessions === undefined) {
    yield* listSpanSlots(part, range);
    return;
  }
  const sql = `SELECT DISTINCT time, trait FROM requests WHERE odd IS NULL AND time >= ? AND time < ? AND ${ofSessions(sessions)}`;
  for (const [time, trait] of part.list(sql, range.since ?? "", range.until ?? LAST, ...sessions)) {
    const moment = Date.parse(String(time));
    yield [Number(trait), Math.floor(moment / HOUR_MS), 1 << slotOf(moment)];
  }
}

function* listSpanSlots(part: IndexPart, { since, until }: TimeRange): Generator<Slots, void> {
  const first = since === null ? FIRST_HOUR * HOUR_MS : Date.parse(since);
  const end = until === null ? LAST_HOUR * HOUR_MS : Date.parse(until);
  for (const { start, cells } of part.listSpans(1, Math.floor(first / HOUR_MS), Math.ceil(end / HOUR_MS))) {
    const wanted = maskSlots(start * HOUR_MS, first, end);
    const [traits, slots] = [cells.columns[CELL.trait], cells.columns[CELL.slots]];
    for (let row = 0; row < cells.rows; row += 1)
      yield [traits?.[row] ?? 0, start, (slots?.[row] ?? 0) & wanted];
  }
}

/** Slots of an hour that a range has, or a part of them. */
function maskSlots(start: number, first: number, end: number): number {
  let mask = 0;
  for (let slot = 0; slot * WORK_SLOT_MS < HOUR_MS; slot += 1) {
    const from = start + slot * WORK_SLOT_MS;
    if (from < end && from + WORK_SLOT_MS > first) mask |= 1 << slot;
  }
  return mask;
}

function countBits(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count += 1;
  return count;
}
