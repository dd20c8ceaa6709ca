// How many connections to an origin are worth keeping open without a request: what recent requests needed at the same
// time.

/** At most this many wait for a request. */
export const MAX_SPARE_CONNECTIONS = 6;
/** Agents send a second, smaller request beside the first. */
const MIN_SPARE_CONNECTIONS = 2;
/** A peak counts for one to two of these. */
const PEAK_MS = 5 * 60_000;
/** Without a request for this long, nothing is kept open. */
const USED_MS = 30 * 60_000;

export class Demand {
  #lastUse = -Infinity;
  #peak = 0;
  #peakBefore = 0;
  #peakSince = -Infinity;

  /** A request was made, and with it this many run at the same time. */
  note(running: number, now: number): void {
    this.#turn(now);
    this.#lastUse = now;
    if (running > this.#peak) this.#peak = running;
  }

  /** This many requests are expected at the same time. The number is kept as long as that of a peak that has just ended. */
  expect(atOnce: number, now: number): void {
    this.note(0, now);
    this.#peakBefore = Math.max(this.#peakBefore, atOnce);
  }

  /** The spare connections that should be open while this many requests run. */
  countSpares(running: number, now: number): number {
    if (now - this.#lastUse > USED_MS) return 0;
    this.#turn(now);
    const peak = Math.max(this.#peak, this.#peakBefore);
    return Math.min(MAX_SPARE_CONNECTIONS, Math.max(MIN_SPARE_CONNECTIONS, peak - running));
  }

  #turn(now: number): void {
    if (now - this.#peakSince < PEAK_MS) return;
    this.#peakBefore = now - this.#peakSince < 2 * PEAK_MS ? this.#peak : 0;
    this.#peak = 0;
    this.#peakSince = now;
  }
}
