// Connections that are open before they are needed: when they are opened, replaced and closed, and that nothing is sent
// on them.

import { afterEach, beforeEach, describe, expect, setSystemTime, test } from "bun:test";
import { createServer } from "node:net";
import { createClient } from "../../../../src/lib/http1/client/client.ts";
import { Demand } from "../../../../src/lib/http1/client/demand.ts";
import { IdleLimit } from "../../../../src/lib/http1/client/idle-limit.ts";
import { Pool } from "../../../../src/lib/http1/client/pool.ts";
import type { NetworkInterfaceInfo } from "node:os";
import { Upkeep } from "../../../../src/lib/http1/client/upkeep.ts";
import { type PullClient, PulledRunning, pullFrom } from "../pull.ts";
import { faultOf, outbound, readAll, startUpstream, type Upstream } from "../peers.ts";

const HEAD = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const SECOND = 1000;
const MINUTE = 60 * SECOND;

const cleanUps: (() => unknown)[] = [];
let now = 0;
beforeEach(() => {
  now = Date.now();
  // From here on, only `pass` moves the clock.
  setSystemTime(new Date(now));
});
afterEach(async () => {
  setSystemTime();
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

function pass(ms: number): void {
  now += ms;
  setSystemTime(new Date(now));
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

async function startWarmPool(
  onRequest: Parameters<typeof startUpstream>[0] = (socket) => void socket.write(OK),
): Promise<{ pool: Pool; upstream: Upstream }> {
  const upstream = await startUpstream(onRequest);
  const pool = new Pool(upstream.origin);
  pool.setWarm(true);
  cleanUps.push(
    () => pool.close(),
    () => upstream[Symbol.asyncDispose](),
  );
  return { pool, upstream };
}

async function get(pool: Pool, { origin }: Upstream): Promise<string> {
  const exchange = new PulledRunning(outbound(origin), HEAD);
  pool.send(exchange);
  return (await readAll(await exchange.head)).toString();
}

describe("a warm pool", () => {
  test("opens connections when a request is expected, and sends nothing on them", async () => {
    const { pool, upstream } = await startWarmPool();
    pool.expectUse(2, now);
    expect(pool.maintain(now)).toBe(true);
    await until(() => pool.idle === 2);
    pool.maintain(now);
    await turn();
    expect([upstream.connections, upstream.requests.length]).toEqual([2, 0]);
    expect(await get(pool, upstream)).toBe("ok");
    expect([upstream.connections, pool.dialled]).toEqual([2, 2]);
  });

  test("opens none while nobody has used it, and none when it is not warm", async () => {
    const { pool, upstream } = await startWarmPool();
    expect(pool.maintain(now)).toBe(false);
    pool.setWarm(false);
    expect(await get(pool, upstream)).toBe("ok");
    expect(pool.maintain(now)).toBe(false);
    expect([pool.dialled, pool.idle]).toEqual([1, 1]);
  });

  test("opens as many as recent requests needed at the same time, and at most six", async () => {
    const { pool, upstream } = await startWarmPool();
    await Promise.all(Array.from({ length: 9 }, () => get(pool, upstream)));
    await until(() => pool.idle === 9);
    pass(11 * SECOND);
    pool.maintain(now);
    expect(pool.idle).toBe(6);
    for (const socket of upstream.sockets) socket.destroy();
    await until(() => pool.open === 0 || pool.dialled > 9);
    await until(() => pool.idle === 6);
    pass(11 * MINUTE);
    pool.maintain(now);
    expect(pool.idle).toBe(2);
  });

  test("closes everything after half an hour without a request", async () => {
    const { pool, upstream } = await startWarmPool();
    await get(pool, upstream);
    pass(29 * MINUTE);
    expect(pool.maintain(now)).toBe(true);
    pass(2 * MINUTE);
    expect(pool.maintain(now)).toBe(false);
    expect(pool.open).toBe(0);
  });

  test("replaces a connection that the upstream closes, without a request", async () => {
    const { pool, upstream } = await startWarmPool();
    pool.expectUse(2, now);
    pool.maintain(now);
    await until(() => upstream.sockets.size === 2 && pool.idle === 2);
    pass(20 * SECOND);
    for (const socket of upstream.sockets) socket.end();
    await until(() => pool.dialled === 4 && pool.idle === 2);
    expect(upstream.requests).toHaveLength(0);
  });

  test("waits longer each time before it replaces connections that the upstream closes at once", async () => {
    const { pool, upstream } = await startWarmPool();
    pool.expectUse(2, now);
    const dials: number[] = [];
    for (let second = 0; second < 40; second += 1) {
      const before = pool.dialled;
      pool.maintain(now);
      if (pool.dialled > before) dials.push(second);
      await until(() => upstream.connections === pool.dialled);
      for (const socket of upstream.sockets) socket.destroy();
      await until(() => pool.open === 0);
      pass(SECOND);
    }
    expect(dials.length).toBeLessThan(8);
    expect(await get(pool, upstream)).toBe("ok");
  });

  test("closes idle connections before the time at which the upstream closed two others, and opens new ones first", async () => {
    const { pool, upstream } = await startWarmPool();
    pool.expectUse(2, now);
    for (let times = 0; times < 2; times += 1) {
      pool.maintain(now);
      await until(() => pool.idle === 2 && upstream.sockets.size === 2);
      pass(60 * SECOND);
      for (const socket of upstream.sockets) socket.end();
      await until(() => pool.dialled === 2 * (times + 2));
    }
    await until(() => pool.idle === 2);
    const { dialled } = pool;
    pass(50 * SECOND);
    pool.maintain(now);
    expect(pool.dialled).toBe(dialled);
    pass(5 * SECOND);
    pool.maintain(now);
    expect(pool.dialled).toBe(dialled + 2);
  });

  test("replaces six before their limit, one by one, and never has more", async () => {
    const { pool, upstream } = await startWarmPool();
    pool.expectUse(6, now);
    pool.maintain(now);
    await until(() => pool.idle === 6 && upstream.sockets.size === 6);
    pass(29 * MINUTE + 56 * SECOND);
    pool.expectUse(6, now);
    pool.maintain(now);
    await until(() => {
      expect(pool.idle).toBeLessThanOrEqual(6);
      return upstream.connections === 12 && upstream.sockets.size === 6;
    });
    pass(SECOND);
    pool.maintain(now);
    expect([pool.idle, pool.dialled]).toEqual([6, 12]);
  });

  // Bun.serve does so, before the first request.
  test("keeps two open for half an hour if the upstream closes unused ones after twelve seconds", async () => {
    const { pool, upstream } = await startWarmPool();
    const acceptedAt = new Map<object, number>();
    let closed = 0;
    const settle = (): Promise<void> =>
      until(() => upstream.connections === pool.dialled && pool.idle === pool.dialled - closed);
    const seen = new Set<number>();
    pool.expectUse(2, now);
    for (let second = 0; second < 30 * 60; second += 1) {
      pool.maintain(now);
      await settle();
      for (const socket of upstream.sockets) {
        const at = acceptedAt.get(socket);
        if (at === undefined) acceptedAt.set(socket, now);
        else if (now - at === 12 * SECOND) {
          closed += 1;
          socket.destroy();
        }
      }
      await settle();
      seen.add(Math.min(2, pool.idle));
      pass(SECOND);
    }
    expect([...seen]).toEqual([2]);
    expect(upstream.requests).toHaveLength(0);
  });

  test("bounds what it dials without a request in between", async () => {
    const { pool, upstream } = await startWarmPool();
    pool.expectUse(2, now);
    const atBound = (): boolean => pool.dialled === 600;
    for (let times = 0; times < 310; times += 1) {
      pool.maintain(now);
      await until(() => pool.idle === 2 || atBound());
      pass(5.5 * SECOND);
      for (const socket of upstream.sockets) socket.destroy();
      await until(() => upstream.sockets.size === 0 || atBound());
    }
    expect(pool.dialled).toBe(600);
  });

  test("hides a failed dial of its own: the next request dials and reports why it fails", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    await new Promise((resolve) => server.close(resolve));
    const origin = { tls: false, host: "127.0.0.1", port };
    const pool = new Pool(origin);
    cleanUps.push(() => pool.close());
    pool.setWarm(true);
    pool.expectUse(2, now);
    pool.maintain(now);
    await turn();
    const exchange = new PulledRunning(outbound(origin), HEAD);
    pool.send(exchange);
    expect(await faultOf(exchange.head)).toEqual({ kind: "connect", answered: false });
  });

  test("gives each request a dial of its own, those that it has started first", async () => {
    const { pool, upstream } = await startWarmPool();
    pool.expectUse(2, now);
    pool.maintain(now);
    expect(pool.dialled).toBe(2);
    const all = await Promise.all([get(pool, upstream), get(pool, upstream), get(pool, upstream)]);
    expect([all, pool.dialled]).toEqual([["ok", "ok", "ok"], 3]);
  });

  test("dials again for a request if the dial that it had started fails", async () => {
    const { pool, upstream } = await startWarmPool();
    await upstream[Symbol.asyncDispose]();
    pool.expectUse(2, now);
    pool.maintain(now);
    expect(await faultOf(get(pool, upstream))).toMatchObject({ kind: "connect" });
    expect(pool.dialled).toBe(3);
  });

  test("that has begun to dial keeps no request waiting longer than the request's own limit", async () => {
    // It accepts connections, but its TLS handshake never ends.
    const upstream = await startUpstream(() => {});
    const origin = { ...upstream.origin, tls: true };
    const pool = new Pool(origin);
    cleanUps.push(
      () => pool.close(),
      () => upstream[Symbol.asyncDispose](),
    );
    pool.setWarm(true);
    pool.expectUse(1, now);
    pool.maintain(now);
    const deadlines = { connectMs: 50, firstByteMs: 10_000, idleMs: 10_000 };
    const exchange = new PulledRunning(outbound(origin, { deadlines }), HEAD);
    pool.send(exchange);
    expect(await faultOf(exchange.head)).toEqual({ kind: "connect_timeout", answered: false });
    expect(pool.dialled).toBe(2);
  });

  test("does not use a connection that has ended, even before the event loop reports it", async () => {
    const { pool, upstream } = await startWarmPool();
    pool.expectUse(2, now);
    pool.maintain(now);
    await until(() => pool.idle === 2 && upstream.sockets.size === 2);
    const ended = [...upstream.sockets].map((socket) => new Promise<void>((resolve) => socket.end(resolve)));
    await Promise.all(ended);
    expect(await get(pool, upstream)).toBe("ok");
    expect(pool.retried).toBe(0);
  });
});

describe("a warm client", () => {
  function openClient(): PullClient {
    const client = pullFrom(createClient());
    cleanUps.push(() => client.close());
    return client;
  }

  async function ask(client: PullClient, { origin }: Upstream): Promise<string> {
    return (await readAll(await client.send(outbound(origin)).head)).toString();
  }

  test("opens six connections to origins that it expects to use, and closes them with itself", async () => {
    const { upstream } = await startWarmPool();
    const client = openClient();
    client.keepWarm([upstream.origin], [upstream.origin]);
    await until(() => client.statsOf(upstream.origin).idle === 6);
    client.close();
    await until(() => upstream.sockets.size === 0);
    expect(upstream.requests).toHaveLength(0);
  });

  test("opens none to origins that it keeps warm but does not expect to use", async () => {
    const { upstream } = await startWarmPool();
    const client = openClient();
    client.keepWarm([upstream.origin]);
    await turn();
    expect(client.statsOf(upstream.origin).dialled).toBe(0);
    await ask(client, upstream);
    expect(client.statsOf(upstream.origin).dialled).toBe(1);
  });

  test("uses no connection from before the machine slept", async () => {
    const { upstream } = await startWarmPool();
    const client = openClient();
    client.keepWarm([upstream.origin], [upstream.origin]);
    await until(() => client.stats().idle === 6);
    const before = upstream.connections;
    pass(5 * MINUTE);
    expect(await ask(client, upstream)).toBe("ok");
    expect(upstream.requests[0]?.connection).toBeGreaterThan(before);
  });

  test("that is switched off keeps no connection open that it does not need", async () => {
    const { upstream } = await startWarmPool();
    const client = openClient();
    client.keepWarm([upstream.origin], [upstream.origin]);
    await until(() => client.stats().idle === 6);
    client.keepWarm([]);
    expect(await ask(client, upstream)).toBe("ok");
    pass(56 * SECOND);
    await ask(client, upstream);
    expect(client.stats().open).toBe(1);
  });
});

describe("when the machine's network changes", () => {
  const WIFI = ["192.168.1.20", "fe80::1", "2001:db8::20"];

  function describeInterface(address: string): NetworkInterfaceInfo {
    const common = { address, internal: address.startsWith("127."), mac: "", cidr: null };
    return address.includes(":")
      ? { ...common, family: "IPv6", netmask: "", scopeid: 0 }
      : { ...common, family: "IPv4", netmask: "" };
  }

  /** Two connections are open. Returns how many are dialled after the machine's addresses became `then`. */
  async function countDials(
    then: readonly string[],
    notice: (upkeep: Upkeep) => void = (upkeep) => {
      pass(5 * SECOND);
      upkeep.setActive(true);
    },
  ): Promise<number> {
    let addresses: readonly string[] = WIFI;
    const { pool, upstream } = await startWarmPool();
    const upkeep = new Upkeep(new Map([["", pool]]), () => ({ lan: addresses.map(describeInterface) }));
    cleanUps.push(() => upkeep.setActive(false));
    pool.expectUse(2, now);
    upkeep.setActive(true);
    await until(() => pool.idle === 2 && upstream.connections === 2);
    addresses = then;
    notice(upkeep);
    return pool.dialled - 2;
  }

  test.each<[string, readonly string[], number]>([
    ["another network", ["10.0.0.7", "fe80::1"], 2],
    ["an address more, of a VPN", [...WIFI, "10.8.0.2"], 2],
    ["an address less", ["192.168.1.20", "fe80::1"], 2],
    ["no network", [], 2],
    ["the same addresses in another order", WIFI.toReversed(), 0],
    ["an address that reaches no other network", [...WIFI, "127.0.0.9", "fe80::2"], 0],
  ])("%s: idle connections are replaced only if the addresses differ", async (_, then, dials) => {
    expect(await countDials(then)).toBe(dials);
  });

  test("a request does not wait for the next look at the addresses", async () => {
    const noteRequest = (upkeep: Upkeep): void => {
      pass(1.1 * SECOND);
      upkeep.noteRequest();
    };
    expect(await countDials(["10.0.0.7"], noteRequest)).toBe(2);
    expect(await countDials(WIFI, noteRequest)).toBe(0);
  });
});

describe("the spare connections that are wanted", () => {
  test.each([
    ["one request at a time", 1, 0, 2],
    ["one request, which runs", 1, 1, 2],
    ["four at once, none of which runs", 4, 0, 4],
    ["four at once, two of which run", 4, 2, 2],
    ["sixty-four at once", 64, 0, 6],
  ])("after %s", (_, peak, running, wanted) => {
    const demand = new Demand();
    demand.note(peak, now);
    expect(demand.countSpares(running, now)).toBe(wanted);
  });

  test("follow a peak for five to ten minutes, and end after thirty", () => {
    const demand = new Demand();
    demand.note(5, now);
    expect(demand.countSpares(0, now + 4 * MINUTE)).toBe(5);
    expect(demand.countSpares(0, now + 11 * MINUTE)).toBe(2);
    expect(demand.countSpares(0, now + 31 * MINUTE)).toBe(0);
  });
});

describe("the spare connections of an expected use", () => {
  test("are wanted for five minutes, then as many as requests needed", () => {
    const demand = new Demand();
    demand.expect(6, now);
    expect(demand.countSpares(0, now)).toBe(6);
    demand.note(3, now + MINUTE);
    expect(demand.countSpares(0, now + 4 * MINUTE)).toBe(6);
    expect(demand.countSpares(0, now + 6 * MINUTE)).toBe(3);
  });

  test("are no fewer than those of a peak that was", () => {
    const demand = new Demand();
    demand.note(5, now);
    demand.expect(2, now + MINUTE);
    expect(demand.countSpares(0, now + MINUTE)).toBe(5);
  });
});

describe("an upstream's limit", () => {
  test("is known after two connections that it closed after the same time", () => {
    const limit = new IdleLimit();
    limit.note(60_020, now);
    expect(limit.ms).toBe(Infinity);
    limit.note(60_900, now + MINUTE);
    expect(limit.ms).toBe(59_020);
  });

  test("is not what a restart looks like", () => {
    const limit = new IdleLimit();
    limit.note(240_000, now);
    limit.note(13_000, now + MINUTE);
    limit.note(240_100, now + 5 * MINUTE);
    expect(limit.ms).toBe(Infinity);
    limit.note(240_100, now + 5 * MINUTE + 10);
    expect(limit.ms).toBe(Infinity);
  });
});
