// The HTTP/1.1 client: a pool of connections for each origin.

import { networkInterfaces } from "node:os";
import { everySecond } from "../time/heartbeat.ts";
import { Call } from "./call.ts";
import { MAX_SPARES, Pool } from "./pool.ts";
import type { ClientStats, Origin, Upstream } from "./upstream.ts";

/** After a longer pause between two beats,
 *  the machine has slept: sleep stops timers. */
const SLEPT_MS = 10_000;

export function createClient(readInterfaces = networkInterfaces): Upstream {
  const pools = new Map<string, Pool>();
  const known = new WeakMap<Origin, Pool>();
  const findPool = (origin: Origin): Pool => {
    const { tls, host, port, proxy, ca } = origin;
    const key = JSON.stringify([tls, host, port, proxy?.href, ca]);
    return pools.getOrInsertComputed(key, () => new Pool(origin));
  };
  const poolOf = (origin: Origin): Pool => known.getOrInsertComputed(origin, findPool);
  let endBeat = (): void => {};
  let last = { at: 0, network: "" };
  const lookAfterPools = (): void => {
    const now = Date.now();
    const network = describeNetwork(readInterfaces());
    const isRenewed = network !== last.network || now - last.at > SLEPT_MS;
    last = { at: now, network };
    for (const pool of pools.values()) {
      if (isRenewed) pool.renew();
      pool.maintain(now);
    }
  };
  return {
    send: (request) => new Call(request, poolOf(request.origin)),
    keepWarm(origins, expected = []) {
      const warm = new Set([...origins].map(poolOf));
      for (const pool of pools.values()) pool.setWarm(warm.has(pool));
      for (const origin of expected) poolOf(origin).expectUse(MAX_SPARES);
      endBeat();
      if (warm.size === 0) return;
      endBeat = everySecond(lookAfterPools);
      lookAfterPools();
    },
    close() {
      endBeat();
      for (const pool of pools.values()) pool.close();
    },
    stats(origin) {
      const counted = origin === undefined ? [...pools.values()] : [poolOf(origin)];
      const count = (name: keyof ClientStats): number =>
        counted.reduce((sum, { stats }) => sum + stats[name], 0);
      return { open: count("open"), idle: count("idle") };
    },
  };
}

/** If these addresses change, open connections may be dead. */
function describeNetwork(interfaces: ReturnType<typeof networkInterfaces>): string {
  const all = Object.values(interfaces).flatMap((list) => list ?? []);
  const outer = all.filter(({ internal, address }) => !internal && !/^fe80:/i.test(address));
  return String(outer.map(({ address }) => address).sort());
}
