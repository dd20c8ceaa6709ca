// The HTTP/1.1 client. Sends each request on an idle connection of its origin, or on a new one.

import { networkInterfaces } from "node:os";
import { everySecond } from "../time/heartbeat.ts";
import { atTurnEnd } from "../time/next-turn.ts";
import { Call } from "./call.ts";
import { MAX_SPARES, Pool } from "./pool.ts";
import type { ClientStats, Origin, SentRequest, Upstream, UpstreamRequest } from "./upstream.ts";

/** Timers stand still while the machine sleeps. Its clock does not. */
const SLEPT_MS = 10_000;

export function createClient(readInterfaces = networkInterfaces): Upstream {
  return new Client(readInterfaces);
}

class Client implements Upstream {
  /** Origins that are equal share their connections, also after the config was reloaded. */
  readonly #pools = new Map<string, Pool>();
  readonly #known = new WeakMap<Origin, Pool>();
  readonly #readInterfaces: typeof networkInterfaces;
  #endBeat = (): void => {};
  #lastBeat = 0;
  #network = "";

  constructor(readInterfaces: typeof networkInterfaces) {
    this.#readInterfaces = readInterfaces;
  }

  /** At the end of the turn: the journal's record of an attempt is written before the attempt leaves. */
  send(request: UpstreamRequest): SentRequest {
    const call = new Call(request, this.#poolOf(request.origin));
    atTurnEnd("requests", () => call.start());
    return call;
  }

  keepWarm(origins: Iterable<Origin>, expected: Iterable<Origin> = []): void {
    const warm = new Set([...origins].map((origin) => this.#poolOf(origin)));
    for (const pool of this.#pools.values()) pool.setWarm(warm.has(pool));
    for (const origin of expected) this.#poolOf(origin).expectUse(MAX_SPARES);
    this.#endBeat();
    if (warm.size === 0) return;
    this.#endBeat = everySecond(() => this.#lookAfter());
    this.#lookAfter();
  }

  close(): void {
    this.#endBeat();
    for (const pool of this.#pools.values()) pool.close();
  }

  stats(origin?: Origin): ClientStats {
    const pools = origin === undefined ? [...this.#pools.values()] : [this.#poolOf(origin)];
    const count = (name: keyof ClientStats): number => pools.reduce((sum, { stats }) => sum + stats[name], 0);
    return { open: count("open"), idle: count("idle") };
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

  #lookAfter(): void {
    const now = Date.now();
    const network = this.#describeNetwork();
    if (now - this.#lastBeat > SLEPT_MS || network !== this.#network)
      for (const pool of this.#pools.values()) pool.renew();
    this.#lastBeat = now;
    this.#network = network;
    for (const pool of this.#pools.values()) pool.maintain(now);
  }

  /** The addresses at which other machines reach this one. After a change, a request could wait on a dead connection. */
  #describeNetwork(): string {
    const all = Object.values(this.#readInterfaces()).flatMap((list) => list ?? []);
    const outer = all.filter(({ internal, address }) => !internal && !/^fe80:/i.test(address));
    return outer
      .map(({ address }) => address)
      .sort()
      .join(" ");
  }
}
