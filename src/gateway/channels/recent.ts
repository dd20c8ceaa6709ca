// Counts of the last hour of one channel, one bucket per minute, and the times to first byte of its last responses.
// Memory is bounded, and adding is cheap.

const MINUTE_MS = 60_000;
const MINUTES = 60;
const MAX_SAMPLES = 256;

export interface Counts {
  readonly requests: number;
  readonly errors: number;
}

export class ChannelWindow {
  readonly #requests = new Uint32Array(MINUTES);
  readonly #errors = new Uint32Array(MINUTES);
  readonly #firstByteMs = new Float64Array(MAX_SAMPLES);
  #samples = 0;
  /** Minutes since 1970 of the newest bucket. */
  #minute = 0;

  addRequest(now: number): void {
    const bucket = this.#moveTo(now);
    this.#requests[bucket] = (this.#requests[bucket] ?? 0) + 1;
  }

  addError(now: number): void {
    const bucket = this.#moveTo(now);
    this.#errors[bucket] = (this.#errors[bucket] ?? 0) + 1;
  }

  addFirstByte(ms: number): void {
    this.#firstByteMs[this.#samples % MAX_SAMPLES] = ms;
    this.#samples += 1;
  }

  /** Counts of the last minutes, with the current one. */
  count(minutes: number, now: number): Counts {
    this.#moveTo(now);
    let requests = 0;
    let errors = 0;
    for (let back = 0; back < minutes; back += 1) {
      const bucket = (this.#minute - back + MINUTES) % MINUTES;
      requests += this.#requests[bucket] ?? 0;
      errors += this.#errors[bucket] ?? 0;
    }
    return { requests, errors };
  }

  /** The hour in steps of `minutes`, oldest first. */
  steps(minutes: number, now: number): Counts[] {
    this.#moveTo(now);
    const steps: Counts[] = [];
    for (let start = this.#minute - MINUTES + 1; start <= this.#minute; start += minutes) {
      let requests = 0;
      let errors = 0;
      for (let minute = start; minute < start + minutes; minute += 1) {
        requests += this.#requests[minute % MINUTES] ?? 0;
        errors += this.#errors[minute % MINUTES] ?? 0;
      }
      steps.push({ requests, errors });
    }
    return steps;
  }

  /** The time to first byte within which this share of the last responses began; null if there are none. */
  quantile(share: number): number | null {
    const count = Math.min(this.#samples, MAX_SAMPLES);
    const sorted = this.#firstByteMs.slice(0, count).sort();
    const found = sorted[Math.min(count - 1, Math.floor(share * count))];
    return found === undefined ? null : Math.round(found);
  }

  /** For `load`: the minute of the newest bucket, then requests and errors of each minute. */
  save(now: number): number[] {
    const steps = this.steps(1, now);
    return [this.#minute, ...steps.flatMap(({ requests, errors }) => [requests, errors])];
  }

  load(saved: readonly number[], now: number): void {
    const [newest = 0, ...counts] = saved;
    const last = Math.floor(now / MINUTE_MS);
    if (saved.length !== 1 + 2 * MINUTES || newest > last) return;
    this.#minute = newest;
    for (let index = 0; index < MINUTES; index += 1) {
      const bucket = (newest - MINUTES + 1 + index) % MINUTES;
      this.#requests[bucket] = counts[2 * index] ?? 0;
      this.#errors[bucket] = counts[2 * index + 1] ?? 0;
    }
  }

  /** Empties the buckets of the minutes since the newest one. Returns the bucket of the current minute. */
  #moveTo(now: number): number {
    const minute = Math.floor(now / MINUTE_MS);
    // If the clock was set back by more than an hour, everything before is dropped.
    const isFarAhead = this.#minute - minute >= MINUTES;
    if (minute > this.#minute || isFarAhead) {
      const passed = isFarAhead ? MINUTES : Math.min(minute - this.#minute, MINUTES);
      for (let back = 0; back < passed; back += 1) {
        this.#requests[(minute - back) % MINUTES] = 0;
        this.#errors[(minute - back) % MINUTES] = 0;
      }
      this.#minute = minute;
    }
    return this.#minute % MINUTES;
  }
}
