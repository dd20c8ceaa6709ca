// One queue of events for the whole world, in virtual time. An event runs, then every promise that it resolved, then the
// next event: nothing runs at the same time.

import { drainMicrotasks } from "bun:jsc";
import type { Random } from "./random.ts";

/** The owner of an event. When it dies, its events are dropped. While it is suspended, they wait. */
export interface Owner {
  readonly name: string;
  readonly dead: boolean;
  /** Infinite while the owner lives. */
  readonly diedAt: number;
  /** Until this moment (µs) none of the owner's events run. */
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
  /** Called with what an event has thrown. */
  onThrow: (owner: Owner, error: unknown) => void = (_, error) => {
    throw error;
  };
  /** How many events have run. */
  steps = 0;
  readonly random: Random;
  /** The next event is the last of the list. */
  readonly #events: Event[] = [];
  #order = 0;
  readonly #trace: Trace;

  constructor(random: Random, trace: Trace) {
    this.random = random;
    this.#trace = trace;
  }

  /** Adds an event that runs after `delay` microseconds. */
  after(delay: number, owner: Owner, label: string, run: () => void): Event {
    const event: Event = {
      at: this.now + Math.max(0, Math.round(delay)),
      order: this.#order++,
      owner,
      label,
      run,
    };
    this.#insert(event);
    return event;
  }

  #insert(event: Event): void {
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(event, this.#events[middle]!)) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
  }

  cancel(event: Event): void {
    event.run = null;
  }

  /** Runs the next event. False if there is none before `until`. */
  step(until: number): boolean {
    for (;;) {
      const event = this.#events.at(-1);
      if (event === undefined || event.at > until) return false;
      this.#events.pop();
      const { run, owner } = event;
      if (run === null || owner.dead) continue;
      if (owner.frozenUntil > event.at) {
        event.at = owner.frozenUntil;
        this.#insert(event);
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

  constructor(onLine: ((line: string) => void) | null) {
    this.#onLine = onLine;
  }

  add(at: number, text: string): void {
    const line = `${at} ${text}`;
    this.#onLine?.(line);
    this.#hash.update(line);
  }

  digest(): string {
    return this.#hash.digest("hex").slice(0, 32);
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
