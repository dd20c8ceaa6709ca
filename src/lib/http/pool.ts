// The connections to one origin. The idle connection that was used last is taken first. Without one, a new connection is
// dialled, and the call takes it or the first one that becomes idle meanwhile.
// A warm pool keeps connections open before they are needed: as many as recent calls needed at once.

import { Deadline } from "../time/deadline.ts";
import { describePlace, dial } from "./dial.ts";
import { UpstreamFault } from "./faults.ts";
import type { ClientStats, Origin } from "./upstream.ts";
import type { Wire } from "./wire.ts";

/** Load balancers often close after 60 s. A spare connection is replaced a little earlier. */
const IDLE_MS = 55_000;
const RENEW_MS = 5000;
/** At most this many wait for a call. */
export const MAX_SPARES = 6;
/** Agents send a second, smaller request next to the first. */
const MIN_SPARES = 2;
/** What calls needed at once counts this long. */
const PEAK_MS = 10 * 60_000;
/** Without a call for this long, nothing is kept open. */
const USED_MS = 30 * 60_000;
const SPARE_CONNECT_MS = 10_000;
/** A connection that ends earlier is not replaced at once. */
const SHORT_LIFE_MS = 5000;
const MIN_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 5 * 60_000;

/** A call without a connection. */
export class Waiter {
  readonly connectMs: number;
  readonly startedAt = performance.now();
  readonly #connected = Promise.withResolvers<Wire>();
  readonly #deadline: Deadline;
  readonly #all: Set<Waiter>;

  constructor(connectMs: number, place: string, all: Set<Waiter>) {
    this.connectMs = connectMs;
    this.#all = all.add(this);
    const late = `${place}: the connection was not established in time`;
    this.#deadline = new Deadline(() => this.fail(new UpstreamFault("connect_timeout", late)));
    this.#deadline.arm(connectMs);
  }

  get wire(): Promise<Wire> {
    return this.#connected.promise;
  }

  give(wire: Wire): void {
    this.#end();
    this.#connected.resolve(wire);
  }

  fail(fault: UpstreamFault): void {
    this.#end();
    this.#connected.reject(fault);
  }

  #end(): void {
    this.#deadline.disarm();
    this.#all.delete(this);
  }
}

export class Pool {
  readonly #origin: Origin;
  /** The one that was used last is at the end. */
  readonly #idle: Wire[] = [];
  readonly #open = new Set<Wire>();
  /** The oldest first. Each dial serves the oldest. */
  readonly #waiting = new Set<Waiter>();
  #dials = 0;
  #lastUse = -Infinity;
  #peak = 0;
  #peakAt = -Infinity;
  #pauseMs = 0;
  #pausedUntil = 0;
  #isWarm = false;
  #isClosed = false;
  #dialled = 0;
  #reused = 0;
  retried = 0;

  constructor(origin: Origin) {
    this.#origin = origin;
  }

  get stats(): ClientStats {
    const counts = { dialled: this.#dialled, reused: this.#reused, retried: this.retried };
    return { open: this.#open.size, idle: this.#idle.length, ...counts };
  }

  get #running(): number {
    return this.#open.size - this.#idle.length + this.#waiting.size;
  }

  /** One that can serve a call now. */
  takeIdle(): Wire | undefined {
    for (let wire = this.#idle.pop(); wire !== undefined; wire = this.#idle.pop()) {
      if (!wire.isUsable) {
        wire.terminate();
        continue;
      }
      wire.becomeBusy();
      if (wire.isUsed) this.#reused += 1;
      this.expectUse(this.#running, Date.now());
      return wire;
    }
    return undefined;
  }

  wait(connectMs: number): Waiter {
    const waiter = new Waiter(connectMs, describePlace(this.#origin), this.#waiting);
    if (this.#dials < this.#waiting.size) this.#dial(connectMs);
    this.expectUse(this.#running, Date.now());
    return waiter;
  }

  /** The call that waits longest takes it. Without one it waits, behind those that were used. */
  keep(wire: Wire, idleMs = IDLE_MS): void {
    if (wire.isUsed) this.#pauseMs = 0;
    const [waiter] = this.#waiting;
    if (waiter !== undefined) {
      if (wire.isUsed) this.#reused += 1;
      return waiter.give(wire);
    }
    if (wire.isClosed || this.#isClosed) return wire.terminate();
    if (wire.isUsed) this.#idle.push(wire);
    else this.#idle.unshift(wire);
    wire.becomeIdle(Math.min(idleMs, IDLE_MS));
  }

  /** It has closed, or belongs to somebody else now. */
  forget(wire: Wire): void {
    this.#open.delete(wire);
    const at = this.#idle.indexOf(wire);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  /** Closes idle connections. A busy one closes when its call ends. */
  close(): void {
    this.#isClosed = true;
    this.#closeIdle();
  }

  // Keeping it warm. The client calls these.

  setWarm(isWarm: boolean): void {
    if (this.#isWarm && !isWarm) this.#closeIdle();
    this.#isWarm = isWarm;
  }

  /** Calls are expected, this many at once. */
  expectUse(atOnce: number, now: number): void {
    this.#lastUse = now;
    if (atOnce < this.#peak && now - this.#peakAt < PEAK_MS) return;
    this.#peak = atOnce;
    this.#peakAt = now;
  }

  /** Opens spare connections. Called every second. False: there is nothing to do until the next call. */
  maintain(now: number): boolean {
    if (!this.#isWarm || this.#isClosed) return false;
    if (now - this.#lastUse > USED_MS) {
      this.#closeIdle();
      return false;
    }
    if (now < this.#pausedUntil) return true;
    const peak = now - this.#peakAt < PEAK_MS ? this.#peak - this.#running : 0;
    const wanted = Math.min(MAX_SPARES, Math.max(MIN_SPARES, peak));
    const lasting = this.#idle.filter(({ idleUntil }) => idleUntil - now > RENEW_MS).length;
    const coming = this.#dials - this.#waiting.size;
    for (let count = lasting + coming; count < wanted; count += 1) this.#dial(SPARE_CONNECT_MS);
    return true;
  }

  /** The machine has slept, or its network has changed. Idle connections may be dead without a sign of it. */
  renew(): void {
    this.#pauseMs = 0;
    this.#pausedUntil = 0;
    if (this.#isWarm) this.#closeIdle();
  }

  // Steps.

  #closeIdle(): void {
    while (this.#idle.length > 0) this.#idle.pop()?.terminate();
  }

  #dial(connectMs: number): void {
    const startedAt = performance.now();
    this.#dialled += 1;
    this.#dials += 1;
    dial(this.#origin, connectMs).then(
      (wire) => {
        this.#dials -= 1;
        this.#open.add(wire);
        wire.onClosed = (byPeer) => {
          if (byPeer && wire.isIdle) this.#noteIdleEnd(wire);
          this.forget(wire);
        };
        this.keep(wire);
      },
      (fault: UpstreamFault) => {
        this.#dials -= 1;
        this.#failDial(startedAt, fault);
      },
    );
  }

  #noteIdleEnd({ idleSince }: Wire): void {
    const now = Date.now();
    if (now - idleSince < SHORT_LIFE_MS) this.#pause(now);
    else queueMicrotask(() => this.maintain(Date.now()));
  }

  /** The oldest call fails with it, unless other dials are enough, or the dial is older than the call, which then has one of
   *  its own. */
  #failDial(startedAt: number, fault: UpstreamFault): void {
    const [waiter] = this.#waiting;
    const isSpare = this.#waiting.size <= this.#dials;
    if (isSpare || waiter === undefined || startedAt < waiter.startedAt) this.#pause(Date.now());
    if (isSpare || waiter === undefined) return;
    if (startedAt < waiter.startedAt) this.#dial(waiter.connectMs);
    else waiter.fail(fault);
  }

  #pause(now: number): void {
    this.#pauseMs = Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, this.#pauseMs * 2));
    this.#pausedUntil = now + this.#pauseMs;
  }
}
