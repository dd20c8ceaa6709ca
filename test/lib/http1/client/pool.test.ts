// Which connection an exchange gets, and what the pool counts.

import { afterEach, describe, expect, test } from "bun:test";
import { PulledRunning } from "../pull.ts";
import { Pool } from "../../../../src/lib/http1/client/pool.ts";
import { faultOf, outbound, readAll, startUpstream, type Upstream } from "../peers.ts";

const HEAD = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

/** An upstream that answers when the test says so. */
async function startPool(): Promise<{ pool: Pool; upstream: Upstream; answer: () => void }> {
  const waiting: (() => void)[] = [];
  const upstream = await startUpstream((socket) => void waiting.push(() => void socket.write(OK)));
  const pool = new Pool(upstream.origin);
  cleanUps.push(
    () => pool.close(),
    () => void upstream[Symbol.asyncDispose](),
  );
  return {
    pool,
    upstream,
    answer: () => {
      for (const write of waiting.splice(0)) write();
    },
  };
}

function send(pool: Pool, upstream: Upstream): PulledRunning {
  const exchange = new PulledRunning(outbound(upstream.origin), HEAD);
  pool.send(exchange);
  return exchange;
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function finish(answer: () => void, exchanges: readonly PulledRunning[]): Promise<void> {
  let complete = 0;
  for (const { head } of exchanges) void head.then(readAll).then(() => (complete += 1));
  while (complete < exchanges.length) {
    answer();
    await tick();
  }
}

function count({ open, idle, dialled, reused, retried }: Pool): object {
  return { open, idle, dialled, reused, retried };
}

describe("a pool", () => {
  test("dials a connection for each exchange that runs at the same time", async () => {
    const { pool, upstream, answer } = await startPool();
    await finish(answer, [send(pool, upstream), send(pool, upstream)]);
    expect(count(pool)).toEqual({ open: 2, idle: 2, dialled: 2, reused: 0, retried: 0 });
  });

  test("takes the idle connection that was used last", async () => {
    const { pool, upstream, answer } = await startPool();
    await finish(answer, [send(pool, upstream), send(pool, upstream), send(pool, upstream)]);
    for (let again = 0; again < 3; again += 1) await finish(answer, [send(pool, upstream)]);
    const used = upstream.requests.slice(3).map(({ connection }) => connection);
    expect(new Set(used).size).toBe(1);
    expect(count(pool)).toEqual({ open: 3, idle: 3, dialled: 3, reused: 3, retried: 0 });
  });

  test("closes idle connections that cannot be used any more, and takes the next one", async () => {
    const { pool, upstream, answer } = await startPool();
    await finish(answer, [send(pool, upstream), send(pool, upstream)]);
    await finish(answer, [send(pool, upstream)]);
    const last = upstream.requests.at(-1)?.connection;
    const lastSocket = [...upstream.sockets][(last ?? 0) - 1];
    // Bytes that the event loop has not reported when the next exchange is sent.
    await new Promise<void>((resolve) => void lastSocket?.write("x", () => resolve()));
    await finish(answer, [send(pool, upstream)]);
    expect(upstream.requests.at(-1)?.connection).not.toBe(last ?? 0);
    expect(count(pool)).toEqual({ open: 1, idle: 1, dialled: 2, reused: 2, retried: 0 });
  });

  test("sends an exchange once, if another connection serves it before its dial ends", async () => {
    const { pool, upstream, answer } = await startPool();
    const first = send(pool, upstream);
    while (upstream.requests.length === 0) await tick();
    answer();
    await finish(answer, [first, send(pool, upstream)]);
    while (pool.idle < 2) await tick();
    await tick();
    expect([upstream.requests.length, pool.dialled]).toEqual([2, 2]);
  });

  test("closes an idle connection on which bytes arrive that nobody asked for", async () => {
    const { pool, upstream, answer } = await startPool();
    await finish(answer, [send(pool, upstream)]);
    for (const socket of upstream.sockets) socket.write("HTTP/1.1 200 OK\r\n");
    while (pool.open > 0) await tick();
    expect(count(pool)).toEqual({ open: 0, idle: 0, dialled: 1, reused: 0, retried: 0 });
  });

  test("forgets an idle connection that the upstream closes", async () => {
    const { pool, upstream, answer } = await startPool();
    await finish(answer, [send(pool, upstream)]);
    for (const socket of upstream.sockets) socket.end();
    while (pool.open > 0) await tick();
    expect(count(pool)).toEqual({ open: 0, idle: 0, dialled: 1, reused: 0, retried: 0 });
  });

  test("that is closed drops its idle connections at once and busy ones after their exchange", async () => {
    const { pool, upstream, answer } = await startPool();
    await finish(answer, [send(pool, upstream), send(pool, upstream)]);
    const running = send(pool, upstream);
    pool.close();
    expect([pool.open, pool.idle]).toEqual([1, 0]);
    await finish(answer, [running]);
    while (pool.open > 0) await tick();
    expect(count(pool)).toEqual({ open: 0, idle: 0, dialled: 2, reused: 1, retried: 0 });
  });

  test("gives a failed dial to the exchange, and keeps nothing of it", async () => {
    const { pool, upstream } = await startPool();
    await upstream[Symbol.asyncDispose]();
    expect(await faultOf(send(pool, upstream).head)).toEqual({ kind: "connect", answered: false });
    expect(count(pool)).toEqual({ open: 0, idle: 0, dialled: 1, reused: 0, retried: 0 });
  });

  test("keeps at most 512 idle connections", async () => {
    const { pool, upstream, answer } = await startPool();
    await finish(
      answer,
      Array.from({ length: 520 }, () => send(pool, upstream)),
    );
    while (pool.open > 512) await tick();
    expect(count(pool)).toMatchObject({ open: 512, idle: 512, dialled: 520 });
  });
});
