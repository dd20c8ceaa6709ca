// The connections to one origin. The idle connection that was used last is taken first. Without one, a new connection
// is dialled, and the request takes it or the first one that becomes idle meanwhile.
// A warm pool also opens connections before they are needed, and keeps them for as long as the upstream does.

import { FILES_RESERVED_FROM_CLIENTS, RESERVED_FILES } from "../shortage.ts";
import type { FaultKind, Origin } from "../../http/upstream.ts";
import { Addresses } from "./addresses.ts";
import { Demand, MAX_SPARE_CONNECTIONS } from "./demand.ts";
import { Dial, type DialOptions, hostToDial } from "./dial.ts";
import { IdleLimit } from "./idle-limit.ts";
import type { RunningRequest } from "./running-request.ts";
import { UpstreamConnection, type ConnectionOwner } from "./upstream-connection.ts";

const MAX_IDLE_CONNECTIONS = 512;
/** Of a pool that is not warm. Load balancers often close after 60 s. */
const COLD_IDLE_MS = 55_000;
/** Of a warm pool, unless the upstream closes earlier. */
const WARM_IDLE_MS = 30 * 60_000;
/** Connections above the number that is kept may wait this long for a request. */
const SURPLUS_MS = 10_000;
/** A connection is replaced this long before its limit, or in the last fifth of a short limit. */
const RENEW_MS = 5000;
const SPARE_CONNECT_MS = 10_000;
/** A connection that ends earlier is not replaced at once. */
const SHORT_LIFE_MS = 5000;
const MIN_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 5 * 60_000;
/** Dials without a request in between. Some upstreams close a connection after 12 s if nothing was sent on it. With them,
 *  this lasts for six connections for five minutes, and then for two until half an hour is over. */
const MAX_UNUSED_DIALS = 600;
/** A spare connection leaves these to requests and clients. */
const FILES_RESERVED_FROM_SPARES = 4 * FILES_RESERVED_FROM_CLIENTS;

export class Pool implements ConnectionOwner {
  readonly #origin: Origin;
  readonly #addresses: Addresses;
  readonly #demand = new Demand();
  /** Of connections that have served a request, and of those that have not: upstreams may treat them differently. */
  readonly #limits = { used: new IdleLimit(), unused: new IdleLimit() };
  /** The one that was used last is at the end. */
  readonly #idle: UpstreamConnection[] = [];
  readonly #open = new Set<UpstreamConnection>();
  /** Requests without a connection, and the dial that each waits for. */
  readonly #waiting = new Map<RunningRequest, PendingDial>();
  /** Dials that no request waits for. */
  readonly #spareDials = new Set<PendingDial>();
  #unusedDials = 0;
  #pauseMs = 0;
  #pausedUntil = 0;
  #session: Buffer | null = null;
  #warm = false;
  #closed = false;
  dialled = 0;
  reused = 0;
  retried = 0;

  constructor(origin: Origin) {
    this.#origin = origin;
    this.#addresses = new Addresses(hostToDial(origin));
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

  send(exchange: RunningRequest): void {
    const connection = this.#takeIdle();
    if (connection === undefined) this.#dialFor(exchange);
    else connection.send(exchange);
    this.#demand.note(this.#running, Date.now());
    this.#unusedDials = 0;
  }

  /** Closes idle connections. A busy connection closes when its exchange ends. */
  close(): void {
    this.#closed = true;
    this.#closeIdle();
  }

  // Keeping it warm. The client calls these.

  setWarm(warm: boolean): void {
    if (this.#warm && !warm) this.#closeIdle();
    this.#warm = warm;
    if (!warm) this.#session = null;
  }

  /** Requests are expected, this many at the same time. */
  expectUse(atOnce: number, now: number): void {
    this.#demand.expect(atOnce, now);
  }

  /** Opens and closes spare connections. Called every second. False: there is nothing to do until the next request. */
  maintain(now: number): boolean {
    const wanted = this.#warm && !this.#closed ? this.#demand.countSpares(this.#running, now) : 0;
    if (wanted === 0) {
      if (this.#warm) this.#closeIdle();
      return false;
    }
    while (this.#idle.length > wanted && now - (this.#idle[0]?.idleSince ?? now) > SURPLUS_MS)
      this.#idle[0]?.abandon();
    if (now < this.#pausedUntil) return true;
    const lasting = this.#idle.filter((connection) => connection.isLasting(now, RENEW_MS)).length;
    for (let count = lasting + this.#spareDials.size; count < wanted; count += 1) this.#dialSpare();
    return true;
  }

  /** The machine has slept, or its network has changed. Idle connections may be dead without a sign of it. */
  renew(): void {
    this.#addresses.forget();
    this.#pauseMs = 0;
    this.#pausedUntil = 0;
    this.#unusedDials = 0;
    if (this.#warm) this.#closeIdle();
  }

  // Called by connections.

  release(connection: UpstreamConnection, idleMs: number | null): void {
    this.#pauseMs = 0;
    if (this.#closed || this.#idle.length >= MAX_IDLE_CONNECTIONS) {
      connection.abandon();
      return;
    }
    this.#idle.push(connection);
    const longest = this.#warm ? Math.min(WARM_IDLE_MS, this.#limits.used.ms) : COLD_IDLE_MS;
    connection.becomeIdle(Math.min(idleMs ?? longest, longest));
    this.#serveWaiting();
  }

  forget(connection: UpstreamConnection): void {
    this.#open.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  noteIdleEnd({ used, idleSince }: UpstreamConnection): void {
    const now = Date.now();
    const idleMs = now - idleSince;
    (used ? this.#limits.used : this.#limits.unused).note(idleMs, now);
    if (idleMs < SHORT_LIFE_MS) this.#pause(now);
    else if (this.#warm) queueMicrotask(() => this.maintain(Date.now()));
  }

  keepSession(session: Buffer): void {
    if (this.#warm) this.#session = session;
  }

  retry(exchange: RunningRequest): void {
    this.retried++;
    this.#dialFor(exchange);
  }

  /** Dials for a connection that the pool does not keep. */
  dialAlone(connectMs: number, { connected, failed }: LoneDialEnd): Dial {
    return this.#startDial({ connectMs, reservedFiles: RESERVED_FILES, connected, failed });
  }

  #takeIdle(): UpstreamConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.isUsable) return connection;
      connection.abandon();
    }
  }

  #closeIdle(): void {
    while (this.#idle.length > 0) this.#idle.pop()?.abandon();
  }

  /** A connection has become idle. The request that waits longest takes it, and leaves its dial to another one. */
  #serveWaiting(): void {
    for (const [exchange, dial] of this.#waiting) {
      const connection = this.#takeIdle();
      if (connection === undefined) return;
      this.#waiting.delete(exchange);
      dial.exchange = null;
      this.#spareDials.add(dial);
      connection.send(exchange);
    }
  }

  /** Waits for a dial that no other request waits for, or starts one. */
  #dialFor(exchange: RunningRequest): void {
    const { connectMs } = exchange.deadlines;
    const [spare] = this.#spareDials;
    spare?.dial.limit(connectMs);
    const pending = spare ?? this.#dial(connectMs, RESERVED_FILES);
    this.#spareDials.delete(pending);
    pending.exchange = exchange;
    pending.adopted = spare !== undefined;
    this.#waiting.set(exchange, pending);
    const abandon = (): void => {
      this.#waiting.delete(exchange);
      pending.dial.cancel();
    };
    exchange.connection = { pause() {}, resume() {}, abandon };
  }

  #dialSpare(): void {
    if (++this.#unusedDials > MAX_UNUSED_DIALS) return;
    this.#spareDials.add(this.#dial(SPARE_CONNECT_MS, FILES_RESERVED_FROM_SPARES));
  }

  #dial(connectMs: number, reservedFiles: number): PendingDial {
    const dial = this.#startDial({
      connectMs,
      reservedFiles,
      connected: (socket) => {
        const connection = new UpstreamConnection(socket, this);
        this.#open.add(connection);
        this.#finishDial(pending, connection);
        return connection;
      },
      failed: (kind, message, cause) => this.#failDial(pending, { kind, message, cause }),
    });
    const pending: PendingDial = { dial, exchange: null, adopted: false };
    return pending;
  }

  #startDial(options: Omit<DialOptions, "origin" | "addresses" | "session">): Dial {
    this.dialled++;
    const shared = { origin: this.#origin, addresses: this.#addresses, session: this.#session };
    return new Dial({ ...shared, ...options });
  }

  #finishDial(pending: PendingDial, connection: UpstreamConnection): void {
    const { exchange } = pending;
    this.#spareDials.delete(pending);
    if (exchange === null) {
      this.#shelve(connection);
      return;
    }
    this.#waiting.delete(exchange);
    connection.send(exchange);
  }

  /** A failed dial that was started in advance is silent: the request dials itself, and reports why that fails. But it
   *  waits no longer than its own limit. */
  #failDial(pending: PendingDial, { kind, message, cause }: DialFailure): void {
    const { exchange, adopted } = pending;
    this.#spareDials.delete(pending);
    if (exchange === null || adopted) this.#pause(Date.now());
    if (exchange === null) return;
    this.#waiting.delete(exchange);
    if (adopted && kind !== "connect_timeout") this.#dialFor(exchange);
    else exchange.fail(kind, message, false, cause);
  }

  /** Keeps a connection that has not served a request, instead of one that is near its limit. It is taken after all others. */
  #shelve(connection: UpstreamConnection): void {
    if (!this.#closed && this.#idle.length >= MAX_SPARE_CONNECTIONS) this.#findEnding()?.abandon();
    if (this.#closed || this.#idle.length >= MAX_SPARE_CONNECTIONS) {
      connection.abandon();
      return;
    }
    this.#idle.unshift(connection);
    connection.becomeIdle(this.#warm ? Math.min(WARM_IDLE_MS, this.#limits.unused.ms) : COLD_IDLE_MS);
    this.#serveWaiting();
  }

  #findEnding(): UpstreamConnection | undefined {
    const now = Date.now();
    return this.#idle.find((connection) => !connection.isLasting(now, RENEW_MS));
  }

  #pause(now: number): void {
    this.#pauseMs = Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, this.#pauseMs * 2));
    this.#pausedUntil = now + this.#pauseMs;
  }
}

export type LoneDialEnd = Pick<DialOptions, "connected" | "failed">;

interface PendingDial {
  readonly dial: Dial;
  /** The request that waits for it. */
  exchange: RunningRequest | null;
  /** It was started for another reason than this request. */
  adopted: boolean;
}

interface DialFailure {
  readonly kind: FaultKind;
  readonly message: string;
  readonly cause: unknown;
}
