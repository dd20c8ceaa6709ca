// Time limits that are armed and disarmed with every request: moving one is an
// assignment, and a single timer serves them all. Coarse on purpose: a limit is
// never early, and late by RESOLUTION_MS plus the load of the event loop. A process
// that stood still (Ctrl-Z, a suspended machine) hears first what came meanwhile.
// What this file does not own: what happens when time is up.

const RESOLUTION_MS = 25;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** Timers that are this late tell of a standstill: sockets have not been heard since. */
const STANDSTILL_MS = 100;

const armed: Deadline[] = [];
let timer: ReturnType<typeof setTimeout> | null = null;
let wakeAt = Infinity;
/** A sweep was put off for a standstill: once, lest a loop that is always late knows no limits. */
let putOff = false;

export class Deadline {
  readonly #expire: () => void;
  #at = Infinity;
  #index = -1;

  constructor(expire: () => void) {
    this.#expire = expire;
  }

  /** (Re)starts the limit. Zero, less and Infinity switch it off. */
  arm(ms: number): void {
    if (ms <= 0 || ms === Infinity) {
      this.disarm();
      return;
    }
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
    putOff = !putOff && now - wakeAt > RESOLUTION_MS + STANDSTILL_MS;
    wakeAt = Infinity;
    if (putOff) {
      wakeBy(now);
      return;
    }
    const due: Deadline[] = [];
    let next = Infinity;
    for (const deadline of armed) {
      if (deadline.#at <= now) due.push(deadline);
      else if (deadline.#at < next) next = deadline.#at;
    }
    if (next < Infinity) wakeBy(next);
    for (const deadline of due) {
      if (deadline.#at > now) continue; // one that expired before it disarmed or moved this one
      deadline.disarm();
      deadline.#expire();
    }
  }
}

/** The timer never keeps the process alive: what a deadline guards does. */
function wakeBy(at: number): void {
  if (timer !== null) clearTimeout(timer);
  wakeAt = at;
  const wait = Math.max(RESOLUTION_MS, at - performance.now());
  timer = setTimeout(Deadline.sweep, Math.min(wait, LONGEST_TIMER_MS));
  timer.unref();
}
