// Counts of the last hour and the last day of one channel, and the times to first byte of its last responses. Memory is
// bounded, and adding is cheap.

const MINUTE_MS = 60_000;
const MINUTES = 60;
const HOUR_MS = 60 * MINUTE_MS;
const HOURS = 24;
const MAX_SAMPLES = 256;

export interface Counts {
  readonly requests: number;
  readonly errors: number;
}

/** Counts of the last `length` units of time, one bucket for each. */
class Buckets {
  readonly #length: number;
  readonly #unitMs: number;
  readonly #requests: Uint32Array;
  readonly #errors: Uint32Array;
  /** Units since 1970 of the newest bucket. */
  #newest = 0;

  constructor(length: number, unitMs: number) {
    this.#length = length;
    this.#unitMs = unitMs;
    this.#requests = new Uint32Array(length);
    this.#errors = new Uint32Array(length);
  }

  addRequest(now: number): void {
    const bucket = this.#moveTo(now);
    this.#requests[bucket] = (this.#requests[bucket] ?? 0) + 1;
  }

  addError(now: number): void {
    const bucket = this.#moveTo(now);
    this.#errors[bucket] = (this.#errors[bucket] ?? 0) + 1;
  }

  /** Counts of the last units, with the current one. */
  count(units: number, now: number): Counts {
    this.#moveTo(now);
    return this.#sum(this.#newest - units + 1, units);
  }

  /** All in steps of this many units, oldest first. */
  steps(units: number, now: number): Counts[] {
    this.#moveTo(now);
    const steps: Counts[] = [];
    for (let start = this.#newest - this.#length + 1; start <= this.#newest; start += units)
      steps.push(this.#sum(start, units));
    return steps;
  }

  /** For `load`: the newest unit, then requests and errors of each. */
  save(now: number): number[] {
    const steps = this.steps(1, now);
    return [this.#newest, ...steps.flatMap(({ requests, errors }) => [requests, errors])];
  }

  load(saved: readonly number[], now: number): void {
    const [newest = 0, ...counts] = saved;
    const last = Math.floor(now / this.#unitMs);
    if (saved.length !== 1 + 2 * this.#length || newest > last) return;
    this.#newest = newest;
    for (let index = 0; index < this.#length; index += 1) {
      const bucket = (newest - this.#length + 1 + index) % this.#length;
      this.#requests[bucket] = counts[2 * index] ?? 0;
      this.#errors[bucket] = counts[2 * index + 1] ?? 0;
    }
  }

  #sum(start: number, units: number): Counts {
    let requests = 0;
    let errors = 0;
    for (let unit = start; unit < start + units; unit += 1) {
      requests += this.#requests[unit % this.#length] ?? 0;
      errors += this.#errors[unit % this.#length] ?? 0;
    }
    return { requests, errors };
  }

  /** Empties the buckets of the units since the newest one. Returns the bucket of the current unit. */
  #moveTo(now: number): number {
    const unit = Math.floor(now / this.#unitMs);
    // If the clock was set back by more than all of it, everything before is dropped.
    const isFarAhead = this.#newest - unit >= this.#length;
    if (unit > this.#newest || isFarAhead) {
      const passed = isFarAhead ? this.#length : Math.min(unit - this.#newest, this.#length);
      for (let back = 0; back < passed; back += 1) {
        this.#requests[(unit - back) % this.#length] = 0;
        this.#errors[(unit - back) % this.#length] = 0;
      }
      this.#newest = unit;
    }
    return this.#newest % this.#length;
  }
}

export class ChannelWindow {
  readonly hour = new Buckets(MINUTES, MINUTE_MS);
  readonly day = new Buckets(HOURS, HOUR_MS);
  readonly #firstByteMs = new Float64Array(MAX_SAMPLES);
  #samples = 0;

  addRequest(now: number): void {
    this.hour.addRequest(now);
    this.day.addRequest(now);
  }

  addError(now: number): void {
    this.hour.addError(now);
    this.day.addError(now);
  }

  addFirstByte(ms: number): void {
    this.#firstByteMs[this.#samples % MAX_SAMPLES] = ms;
    this.#samples += 1;
  }

  /** The time to first byte within which this share of the last responses began; null if there are none. */
  quantile(share: number): number | null {
    const count = Math.min(this.#samples, MAX_SAMPLES);
    const sorted = this.#firstByteMs.slice(0, count).sort();
    const found = sorted[Math.min(count - 1, Math.floor(share * count))];
    return found === undefined ? null : Math.round(found);
  }
}
