// What new lines add to the sums of their hours, days and longer spans.

import {
  ADD_TO_LATENCIES,
  ADD_TO_SUMS,
  type IndexDatabase,
  INSERT_WORK,
  LATENCY_STEPS,
  SPAN_HOURS,
  WORK_SLOT_MS,
} from "./schema.ts";

interface Change {
  readonly trait: number;
  /** The number of the first line. */
  readonly first: number;
  /** The last time. */
  readonly last: string;
  readonly numbers: readonly number[];
}

interface SpanChange extends Change {
  /** In hours. */
  readonly start: number;
  last: string;
  readonly numbers: number[];
}

/** More than traits, and few enough that a number holds a start and a trait. */
const MOST_TRAITS = 2 ** 26;

const HOUR_MS = 3_600_000;

export function slotOf(moment: number): number {
  return Math.floor(moment / WORK_SLOT_MS);
}

/** Of a time in milliseconds. */
export function bucketOf(ms: number): number {
  return Math.round(LATENCY_STEPS * Math.log2(ms + 1));
}

/** The time in the middle of a bucket. */
export function msOfBucket(bucket: number): number {
  return 2 ** (bucket / LATENCY_STEPS) - 1;
}

export class SumChanges {
  /** By hour and trait. */
  #hours = new Map<number, SpanChange>();
  /** By hour, trait and bucket. */
  #latencies = new Map<number, Map<number, number>>();
  /** Slots in which requests began, by trait. */
  #work = new Map<number, Set<number>>();

  /** To be written before a number can exceed 2^53: each has less than 2^31. */
  add(hour: number, change: Change): void {
    addChange(this.#hours, hour, change);
  }

  /** `firstByte`: milliseconds; null: there was none. */
  addRequest(moment: number, trait: number, firstByte: number | null): void {
    const slot = slotOf(moment);
    const slots = this.#work.get(trait);
    if (slots === undefined) this.#work.set(trait, new Set([slot]));
    else slots.add(slot);
    if (firstByte === null) return;
    const place = Math.floor(moment / HOUR_MS) * MOST_TRAITS + trait;
    const buckets = this.#latencies.get(place) ?? new Map<number, number>();
    this.#latencies.set(place, buckets);
    const bucket = bucketOf(firstByte);
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
  }

  #writeRequests(database: IndexDatabase): void {
    const work = database.query(INSERT_WORK);
    for (const [trait, slots] of this.#work) for (const slot of slots) work.run(slot, trait);
    const query = database.query(ADD_TO_LATENCIES);
    for (const [place, buckets] of this.#latencies) {
      const [hour, trait] = [Math.floor(place / MOST_TRAITS), place % MOST_TRAITS];
      for (const hours of SPAN_HOURS)
        for (const [bucket, requests] of buckets)
          query.run(hours, Math.floor(hour / hours) * hours, trait, bucket, requests);
    }
    this.#work = new Map();
    this.#latencies = new Map();
  }

  write(database: IndexDatabase): void {
    this.#writeRequests(database);
    const query = database.query(ADD_TO_SUMS);
    let changes = this.#hours;
    this.#hours = new Map();
    for (const hours of SPAN_HOURS) {
      if (hours > 1) changes = addUp(changes, hours);
      for (const { start, trait, first, last, numbers } of changes.values())
        query.run(hours, start, trait, first, last, ...numbers);
    }
  }
}

function addUp(shorter: ReadonlyMap<number, SpanChange>, hours: number): Map<number, SpanChange> {
  const longer = new Map<number, SpanChange>();
  for (const change of shorter.values()) addChange(longer, Math.floor(change.start / hours) * hours, change);
  return longer;
}

function addChange(changes: Map<number, SpanChange>, start: number, change: Change): void {
  const { trait, first, last, numbers } = change;
  const name = start * MOST_TRAITS + trait;
  const known = changes.get(name);
  if (known === undefined) {
    changes.set(name, { start, trait, first, last, numbers: [...numbers] });
    return;
  }
  if (last > known.last) known.last = last;
  for (let index = 0; index < numbers.length; index += 1)
    known.numbers[index] = (known.numbers[index] ?? 0) + (numbers[index] ?? 0);
}
