// How long an upstream keeps an idle connection open. It says so in a header, or closes connections after the same time
// twice. Closing first avoids a request that crosses the upstream's close.

/** Two times this close are one limit. Otherwise something else closed a connection, a restart for example. */
const SAME_MS = 2000;
const SAME_SHARE = 0.05;
/** For the way there, and for an upstream's coarse timers. */
const MARGIN_MS = 1000;

/** What ends several connections at the same time is not their limit. */
const APART_MS = 5000;

export class IdleLimit {
  #last: number | null = null;
  #lastAt = -Infinity;
  #limit = Infinity;

  /** A connection may wait this long. */
  get ms(): number {
    return this.#limit;
  }

  /** The upstream has closed a connection that was idle for this long. */
  note(idleMs: number, now: number): void {
    if (now - this.#lastAt < APART_MS) return;
    const last = this.#last;
    this.#last = idleMs;
    this.#lastAt = now;
    if (last === null || Math.abs(last - idleMs) > Math.max(SAME_MS, idleMs * SAME_SHARE)) return;
    this.#limit = Math.max(0, Math.min(last, idleMs) - MARGIN_MS);
  }
}
