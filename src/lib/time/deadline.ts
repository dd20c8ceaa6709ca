// Time limits of all requests on one timer. None expires early. After a standstill
// (Ctrl-Z, a suspended machine), arrived bytes are processed first.

const RESOLUTION_MS = 25;
const MAX_TIMER_MS = 2 ** 31 - 1;
/** If the timer is this late, the process stood still and got no socket events. */
const STANDSTILL_MS = 100;

const armed: Deadline[] = [];
let timer: ReturnType<typeof setTimeout> | null = null;
let wakeAt = Infinity;
/** A standstill postpones one sweep.
 *  If it postponed more, a slow loop would disable all limits. */
let postponed = false;

export class Deadline {
  readonly #expire: () => void;
  #at = Infinity;
  #index = -1;

  constructor(expire: () => void) {
    this.#expire = expire;
  }

  arm(ms: number): void {
    if (ms <= 0 || ms === Infinity) return this.disarm();
    this.#at = performance.now() + ms;
    if (this.#index < 0) this.#index = armed.push(this) - 1;
    if (this.#at < wakeAt) wakeBy(this.#at);
  }

  disarm(): void {
    if (this.#index < 0) return;
    const last = armed.pop();
    if (last !== undefined && last !== this) {
      armed[this.#index] = last;
      last.#index = this.#index;
    }
    this.#index = -1;
    this.#at = Infinity;
  }

  static sweep(this: void): void {
    timer = null;
    const now = performance.now();
    postponed = !postponed && now - wakeAt > RESOLUTION_MS + STANDSTILL_MS;
    wakeAt = Infinity;
    if (postponed) return wakeBy(now, sweepAfterReading);
    const due: Deadline[] = [];
    let next = Infinity;
    for (const deadline of armed) {
      if (deadline.#at <= now) due.push(deadline);
      else if (deadline.#at < next) next = deadline.#at;
    }
    if (next < Infinity) wakeBy(next);
    for (const deadline of due) {
      if (deadline.#at > now) continue; // an earlier one moved or disarmed this one
      deadline.disarm();
      deadline.#expire();
    }
  }
}

/** The event loop reads sockets between two immediates.
 *  Timers may run before it reads them. */
function sweepAfterReading(): void {
  setImmediate(() => setImmediate(Deadline.sweep));
}

/** A time limit alone does not keep the process alive. */
function wakeBy(at: number, run = Deadline.sweep): void {
  if (timer !== null) clearTimeout(timer);
  wakeAt = at;
  const wait = Math.max(RESOLUTION_MS, at - performance.now());
  timer = setTimeout(run, Math.min(wait, MAX_TIMER_MS));
  timer.unref();
}
