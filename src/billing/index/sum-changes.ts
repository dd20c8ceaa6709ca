// What new lines add to the sums of their hours, days and longer spans.

import { ADD_TO_SUMS, type IndexDatabase, SPAN_HOURS } from "./schema.ts";

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

export class SumChanges {
  /** By hour and trait. */
  #hours = new Map<number, SpanChange>();

  /** To be written before a number can exceed 2^53: each has less than 2^31. */
  add(hour: number, change: Change): void {
    addChange(this.#hours, hour, change);
  }

  write(database: IndexDatabase): void {
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
