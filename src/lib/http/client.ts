// The HTTP/1.1 client. Sends each request on an idle connection of its origin, or on a new one. It does not follow
// redirects, keep cookies or decode bodies. What is resent, and when, is in call.ts.

import { networkInterfaces } from "node:os";
import { everySecond } from "../time/heartbeat.ts";
import { atTurnEnd } from "../time/next-turn.ts";
import { Call } from "./call.ts";
import { MAX_SPARES, Pool } from "./pool.ts";
import { openUpgrade } from "./upgrade.ts";
import type {
  ClientStats,
  Origin,
  SentRequest,
  SocketRequest,
  StartedSocket,
  Upstream,
  UpstreamRequest,
} from "./upstream.ts";

/** Timers stand still while the machine sleeps. Its clock does not. */
const SLEPT_MS = 10_000;
/** Reading the machine's addresses takes 0.1 ms. After a change, a request could wait on a dead connection. */
const NETWORK_PERIOD_MS = 1000;
const NAMES = ["open", "idle", "dialled", "reused", "retried"] as const;

export function createClient(readInterfaces = networkInterfaces): Upstream {
  return new Client(readInterfaces);
}

class Client implements Upstream {
  /** Origins that are equal share their connections, also after the config was reloaded. */
  readonly #pools = new Map<string, Pool>();
  readonly #known = new WeakMap<Origin, Pool>();
  readonly #readInterfaces: typeof networkInterfaces;
  #isWarm = false;
  #endBeat: (() => void) | null = null;
  #lastLook = 0;
  #network = "";

  constructor(readInterfaces: typeof networkInterfaces) {
    this.#readInterfaces = readInterfaces;
  }

  send(request: UpstreamRequest): SentRequest {
    const call = new Call(request, this.#poolOf(request.origin));
    this.#start(call);
    return call;
  }

  openWebSocket(request: SocketRequest): StartedSocket {
    return openUpgrade(request, this.#poolOf(request.origin), (call) => this.#start(call));
  }

  keepWarm(origins: Iterable<Origin>, expected: Iterable<Origin> = []): void {
    const warm = new Set([...origins].map((origin) => this.#poolOf(origin)));
    for (const pool of this.#pools.values()) pool.setWarm(warm.has(pool));
    for (const origin of expected) this.#poolOf(origin).expectUse(MAX_SPARES, Date.now());
    this.#isWarm = warm.size > 0;
    if (this.#isWarm) this.#lookAfter();
    else this.#stop();
  }

  close(): void {
    this.#isWarm = false;
    this.#stop();
    for (const pool of this.#pools.values()) pool.close();
  }

  stats(): ClientStats {
    const sum = { open: 0, idle: 0, dialled: 0, reused: 0, retried: 0 };
    for (const { stats } of this.#pools.values()) for (const name of NAMES) sum[name] += stats[name];
    return sum;
  }

  statsOf(origin: Origin): ClientStats {
    return this.#poolOf(origin).stats;
  }

  /** At the end of the turn: the journal's record of an attempt is written before the attempt leaves. */
  #start(call: Call): void {
    const isLate = this.#endBeat === null || Date.now() - this.#lastLook > NETWORK_PERIOD_MS;
    if (this.#isWarm && isLate) this.#lookAfter();
    atTurnEnd("requests", () => call.start());
  }

  #poolOf(origin: Origin): Pool {
    const known = this.#known.get(origin);
    if (known !== undefined) return known;
    const { tls, host, port, proxy, ca } = origin;
    const key = JSON.stringify([tls, host, port, proxy?.href, ca]);
    const pool = this.#pools.getOrInsertComputed(key, () => new Pool(origin));
    this.#known.set(origin, pool);
    return pool;
  }

  // Warm connections are looked after every second, while one of their pools is in use.

  #lookAfter(): void {
    const now = Date.now();
    this.#endBeat ??= everySecond(() => this.#lookAfter());
    this.#renewIfNeeded(now);
    let isInUse = false;
    for (const pool of this.#pools.values()) isInUse = pool.maintain(now) || isInUse;
    if (!isInUse) this.#stop();
  }

  /** Idle connections may be dead without a sign of it. */
  #renewIfNeeded(now: number): void {
    if (now - this.#lastLook < NETWORK_PERIOD_MS) return;
    const hasSlept = this.#lastLook > 0 && now - this.#lastLook > SLEPT_MS;
    const before = this.#network;
    this.#lastLook = now;
    this.#network = Object.values(this.#readInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ internal, address }) => !internal && !/^fe80:/i.test(address))
      .map(({ address }) => address)
      .sort()
      .join(" ");
    if (hasSlept || this.#network !== before) for (const pool of this.#pools.values()) pool.renew();
  }

  #stop(): void {
    this.#endBeat?.();
    this.#endBeat = null;
  }
}
