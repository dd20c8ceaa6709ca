// The connections to one origin. A warm pool opens spare ones.

import { dial } from "./dial.ts";
import type { ClientStats, Origin } from "./upstream.ts";
import type { Wire } from "./wire.ts";

/** Load balancers often close after 60 s. */
const IDLE_MS = 55_000;
const RENEW_MS = 5000;
export const MAX_SPARES = 6;
/** Agents send a second, smaller request next to the first. */
const MIN_SPARES = 2;
/** After so long without a request,
 *  connections close and the peak is forgotten. */
const USED_MS = 30 * 60_000;
const SPARE_CONNECT_MS = 10_000;
/** An upstream that closes an idle connection earlier gets no spare ones. */
const SHORT_LIFE_MS = 5000;

export class Pool {
  readonly #origin: Origin;
  /** The connection used last is at the end. */
  readonly #idle: Wire[] = [];
  readonly #open = new Set<Wire>();
  /** How many requests dial a connection now. */
  #waiting = 0;
  #spareDials = 0;
  #lastUse = -Infinity;
  #peak = 0;
  /** A spare connection failed or did not last, and no answer has come since. */
  #isResting = false;
  #isWarm = false;
  #isClosed = false;

  constructor(origin: Origin) {
    this.#origin = origin;
  }

  get stats(): ClientStats {
    return { open: this.#open.size, idle: this.#idle.length };
  }

  takeIdle(now = Date.now()): Wire | null {
    for (let wire = this.#idle.pop(); wire !== undefined; wire = this.#idle.pop()) {
      if (wire.isUsable(now)) {
        wire.becomeBusy();
        this.expectUse(this.#running, now);
        return wire;
      }
      wire.terminate();
    }
    return null;
  }

  async connect(connectMs: number): Promise<Wire> {
    this.#waiting += 1;
    this.expectUse(this.#running);
    try {
      return this.#add(await dial(this.#origin, connectMs));
    } finally {
      this.#waiting -= 1;
    }
  }

  keep(wire: Wire, idleMs = IDLE_MS): void {
    if (wire.isUsed) this.#isResting = false;
    if (this.#isClosed) return wire.terminate();
    if (wire.isClosed) return;
    if (wire.isUsed) this.#idle.push(wire);
    else this.#idle.unshift(wire);
    wire.becomeIdle(Math.min(idleMs, IDLE_MS));
  }

  forget(wire: Wire): void {
    this.#open.delete(wire);
  }

  close(): void {
    this.#isClosed = true;
    this.#closeIdle();
  }

  setWarm(isWarm: boolean): void {
    if (this.#isWarm && !isWarm) this.#closeIdle();
    this.#isWarm = isWarm;
  }

  expectUse(atOnce: number, now = Date.now()): void {
    this.#lastUse = now;
    this.#peak = Math.max(this.#peak, atOnce);
  }

  maintain(now: number): void {
    if (!this.#isWarm || this.#isResting || this.#isClosed) return;
    if (now - this.#lastUse > USED_MS) {
      this.#peak = 0;
      return this.#closeIdle();
    }
    const wanted = Math.min(MAX_SPARES, Math.max(MIN_SPARES, this.#peak - this.#running));
    const lasting = this.#idle.filter(({ idleUntil }) => idleUntil - now > RENEW_MS).length;
    for (let count = lasting + this.#spareDials; count < wanted; count += 1) void this.#dialSpare();
  }

  /** Sleep or another network can kill connections without a sign. */
  renew(): void {
    this.#isResting = false;
    if (this.#isWarm) this.#closeIdle();
  }

  get #running(): number {
    return this.#open.size - this.#idle.length + this.#waiting;
  }

  #closeIdle(): void {
    while (this.#idle.length > 0) this.#idle.pop()?.terminate();
  }

  async #dialSpare(): Promise<void> {
    this.#spareDials += 1;
    try {
      this.keep(this.#add(await dial(this.#origin, SPARE_CONNECT_MS)));
    } catch {
      this.#isResting = true;
    }
    this.#spareDials -= 1;
  }

  #add(wire: Wire): Wire {
    this.#open.add(wire);
    wire.onClosed = () => {
      const at = this.#idle.indexOf(wire);
      if (at >= 0) this.#idle.splice(at, 1);
      if (at >= 0 && Date.now() - wire.idleSince < SHORT_LIFE_MS) this.#isResting = true;
      this.forget(wire);
    };
    return wire;
  }
}
