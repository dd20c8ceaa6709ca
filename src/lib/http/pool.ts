// The connections to one origin. The idle connection that was used last is taken first. Without one, a new connection is
// dialled, and the call takes it or the first one that becomes idle meanwhile.
// A warm pool keeps connections open before they are needed: as many as recent calls needed at once.

import type { Call } from "./call.ts";
import { Connection, type ConnectionOwner } from "./connection.ts";
import { Dial } from "./dial.ts";
import type { UpstreamFault } from "./faults.ts";
import type { Origin } from "./upstream.ts";

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

export class Pool implements ConnectionOwner {
  readonly #origin: Origin;
  /** The one that was used last is at the end. */
  readonly #idle: Connection[] = [];
  readonly #open = new Set<Connection>();
  /** Calls without a connection, the oldest first. Each dial serves the oldest. */
  readonly #waiting = new Set<Call>();
  readonly #dials = new Set<Dial>();
  #lastUse = -Infinity;
  #peak = 0;
  #peakAt = -Infinity;
  #pauseMs = 0;
  #pausedUntil = 0;
  #isWarm = false;
  #isClosed = false;
  dialled = 0;
  reused = 0;
  retried = 0;

  constructor(origin: Origin) {
    this.#origin = origin;
  }

  get open(): number {
    return this.#open.size;
  }

  get idle(): number {
    return this.#idle.length;
  }

  get #running(): number {
    return this.#open.size - this.#idle.length + this.#waiting.size;
  }

  send(call: Call): void {
    if (call.ended) return;
    const connection = this.#takeIdle();
    if (connection === undefined) this.#wait(call);
    else this.#serve(call, connection);
    this.expectUse(this.#running, Date.now());
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
    const lasting = this.#idle.filter((connection) => connection.lasts(RENEW_MS, now)).length;
    const coming = this.#dials.size - this.#waiting.size;
    for (let count = lasting + coming; count < wanted; count += 1) this.#dial(SPARE_CONNECT_MS);
    return true;
  }

  /** The machine has slept, or its network has changed. Idle connections may be dead without a sign of it. */
  renew(): void {
    this.#pauseMs = 0;
    this.#pausedUntil = 0;
    if (this.#isWarm) this.#closeIdle();
  }

  // Called by connections.

  release(connection: Connection, idleMs: number | null): void {
    this.#pauseMs = 0;
    this.#keep(connection, idleMs ?? IDLE_MS);
  }

  forget(connection: Connection): void {
    this.#open.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  noteIdleEnd({ idleSince }: Connection): void {
    const now = Date.now();
    if (now - idleSince < SHORT_LIFE_MS) this.#pause(now);
    else queueMicrotask(() => this.maintain(Date.now()));
  }

  retry(call: Call): void {
    this.retried += 1;
    this.#wait(call);
  }

  // Steps.

  #takeIdle(): Connection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.isUsable) return connection;
      connection.abandon();
    }
  }

  #closeIdle(): void {
    while (this.#idle.length > 0) this.#idle.pop()?.abandon();
  }

  #wait(call: Call): void {
    const { connectMs } = call.deadlines;
    this.#waiting.add(call);
    call.owner = { pause() {}, resume() {}, abandon: () => void this.#waiting.delete(call) };
    call.deadline.arm(connectMs);
    if (this.#dials.size < this.#waiting.size) this.#dial(connectMs);
  }

  #dial(connectMs: number): void {
    this.dialled += 1;
    const dial = new Dial(this.#origin, connectMs, {
      connected: (socket) => {
        this.#dials.delete(dial);
        const connection = new Connection(socket, this);
        this.#open.add(connection);
        this.#keep(connection, IDLE_MS);
      },
      failed: (fault) => {
        this.#dials.delete(dial);
        this.#failDial(dial, fault);
      },
    });
    this.#dials.add(dial);
  }

  #serve(call: Call, connection: Connection): void {
    connection.send(call);
    if (call.reused) this.reused += 1;
  }

  /** The call that waits longest takes it. Without one it waits, behind those that were used. */
  #keep(connection: Connection, idleMs: number): void {
    const [call] = this.#waiting;
    if (call !== undefined) {
      this.#waiting.delete(call);
      return this.#serve(call, connection);
    }
    if (this.#isClosed) return connection.abandon();
    if (connection.isUsed) this.#idle.push(connection);
    else this.#idle.unshift(connection);
    connection.becomeIdle(Math.min(idleMs, IDLE_MS));
  }

  /** The oldest call fails with it, unless other dials are enough, or the dial is older than the call, which then has one of
   *  its own. */
  #failDial({ startedAt }: Dial, fault: UpstreamFault): void {
    const [call] = this.#waiting;
    const isSpare = this.#waiting.size <= this.#dials.size;
    if (isSpare || call === undefined || startedAt < call.queuedAt) this.#pause(Date.now());
    if (isSpare || call === undefined) return;
    if (startedAt < call.queuedAt) this.#dial(call.deadlines.connectMs);
    else call.fail(fault.kind, fault.message, fault.cause);
  }

  #pause(now: number): void {
    this.#pauseMs = Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, this.#pauseMs * 2));
    this.#pausedUntil = now + this.#pauseMs;
  }
}
