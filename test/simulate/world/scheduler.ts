// One queue of events for the whole world, in virtual time. An event runs, then every promise that it resolved, then the
// next event: nothing runs at the same time.

import { drainMicrotasks } from "bun:jsc";
import type { Random } from "./random.ts";

/** The owner of an event. When it dies, its events are dropped. While it is suspended, they wait. */
export interface Owner {
  readonly name: string;
  readonly dead: boolean;
  /** Infinite while it lives. */
  readonly diedAt: number;
  /** Until this moment (µs) none of its events run. */
  readonly frozenUntil: number;
}

export interface Event {
  at: number;
  order: number;
  readonly owner: Owner;
  readonly label: string;
  run: (() => void) | null;
}

/** An owner that never dies. */
export const NATURE: Owner = {
  name: "world",
  dead: false,
  diedAt: Number.POSITIVE_INFINITY,
  frozenUntil: 0,
};

export class Scheduler {
  /** Virtual time in microseconds, since the beginning of the world. */
  now = 0;
  /** An event threw. */
  onThrow: (owner: Owner, error: unknown) => void = (_, error) => {
    throw error;
  };
  /** How many events have run. */
  steps = 0;
  readonly random: Random;
  readonly #heap: Event[] = [];
  #order = 0;
  readonly #trace: Trace;

  constructor(random: Random, trace: Trace) {
    this.random = random;
    this.#trace = trace;
  }

  /** `delay` in microseconds. */
  after(delay: number, owner: Owner, label: string, run: () => void): Event {
    const event: Event = {
      at: this.now + Math.max(0, Math.round(delay)),
      order: this.#order++,
      owner,
      label,
      run,
    };
    push(this.#heap, event);
    return event;
  }

  cancel(event: Event): void {
    event.run = null;
  }

  /** Runs the next event. False if there is none before `until`. */
  step(until: number): boolean {
    for (;;) {
      const event = this.#heap[0];
      if (event === undefined || event.at > until) return false;
      pop(this.#heap);
      const { run, owner } = event;
      if (run === null || owner.dead) continue;
      if (owner.frozenUntil > event.at) {
        event.at = owner.frozenUntil;
        push(this.#heap, event);
        continue;
      }
      this.now = event.at;
      this.steps++;
      event.run = null;
      this.#trace.add(this.now, `${owner.name}: ${event.label}`);
      try {
        run();
      } catch (error) {
        this.onThrow(owner, error);
      }
      drainMicrotasks();
      return true;
    }
  }

  note(text: string): void {
    this.#trace.add(this.now, text);
  }
}

/** Everything that happened, in order. Its hash shows whether two runs were the same. */
export class Trace {
  readonly #hash = new Bun.CryptoHasher("sha256");
  readonly #onLine: ((line: string) => void) | null;
  #batch: string[] = [];

  constructor(onLine: ((line: string) => void) | null) {
    this.#onLine = onLine;
  }

  add(at: number, text: string): void {
    const line = `${at} ${text}`;
    this.#onLine?.(line);
    if (this.#batch.push(line) >= 256) this.#flush();
  }

  digest(): string {
    this.#flush();
    return this.#hash.digest("hex").slice(0, 32);
  }

  #flush(): void {
    this.#hash.update(this.#batch.join("\n"));
    this.#batch = [];
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Event[], event: Event): void {
  let at = heap.length;
  heap.push(event);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent]!;
    if (!isBefore(event, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = event;
}

function pop(heap: Event[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
    if (!isBefore(heap[child]!, last)) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = last;
}
