// One connection, without pool and client: what it does after each kind of response, and with an exchange that it
// cannot send.

import { describe, expect, test } from "bun:test";
import type { Socket } from "bun";
import type { SocketListener } from "../../../../src/lib/http1/client/dial.ts";
import type { RunningRequest } from "../../../../src/lib/http1/client/running-request.ts";
import { PulledRunning } from "../pull.ts";
import { UpstreamConnection } from "../../../../src/lib/http1/client/upstream-connection.ts";
import { Deadline } from "../../../../src/lib/time/deadline.ts";
import { nextTurn } from "../../../../src/lib/time/next-turn.ts";
import { faultOf, outbound, readAll, startUpstream, type Upstream } from "../peers.ts";

/** What the connection reported to its pool, in order. */
interface Reports {
  readonly seen: string[];
  readonly retried: RunningRequest[];
  /** Resolves with each release or end of the connection. */
  readonly done: Promise<void>;
}

async function connectTo(upstream: Upstream): Promise<{ connection: UpstreamConnection; reports: Reports }> {
  const done = Promise.withResolvers<void>();
  const reports: Reports = { seen: [], retried: [], done: done.promise };
  const owner = {
    release: (_: UpstreamConnection, idleMs: number | null) => {
      reports.seen.push(idleMs === null ? "released" : `released for ${idleMs} ms`);
      done.resolve();
    },
    forget: () => {
      reports.seen.push("closed");
      done.resolve();
    },
    noteIdleEnd: () => void reports.seen.push("ended while idle"),
    keepSession: () => {},
    retry: (exchange: RunningRequest) => void reports.retried.push(exchange),
    send: (exchange: RunningRequest) => void reports.retried.push(exchange),
    reused: 0,
  };
  const socket: Socket<SocketListener> = await Bun.connect<SocketListener>({
    hostname: "127.0.0.1",
    port: upstream.port,
    socket: {
      data: (_, bytes) => connection.receive(bytes),
      close: (_, error) => connection.closed(error),
    },
  });
  const connection = new UpstreamConnection(socket, owner);
  return { connection, reports };
}

function makeExchange(upstream: Upstream, method: string, onResend = (): void => {}): PulledRunning {
  const head = `${method} / HTTP/1.1\r\nhost: x\r\n\r\n`;
  return new PulledRunning(outbound(upstream.origin, { method, onResend }), head);
}

const KEPT = "released";
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

describe("after a response", () => {
  test.each([
    ["of known length", "GET", OK, "ok", KEPT],
    [
      "in chunks",
      "GET",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      "ok",
      KEPT,
    ],
    ["without a body", "GET", "HTTP/1.1 204 No Content\r\n\r\n", "", KEPT],
    ["to HEAD without a length", "HEAD", "HTTP/1.1 200 OK\r\n\r\n", "", KEPT],
    ["after early hints", "GET", `HTTP/1.1 103 Early Hints\r\n\r\n${OK}`, "ok", KEPT],
    [
      "with a short keep-alive",
      "GET",
      OK.replace("\r\n", "\r\nkeep-alive: timeout=5, max=9\r\n"),
      "ok",
      "released for 4000 ms",
    ],
    [
      "with a long keep-alive",
      "GET",
      OK.replace("\r\n", "\r\nkeep-alive: timeout=600\r\n"),
      "ok",
      "released for 599000 ms",
    ],
    [
      "with a keep-alive of a second",
      "GET",
      OK.replace("\r\n", "\r\nkeep-alive: timeout=1\r\n"),
      "ok",
      "closed",
    ],
    ["with connection: close", "GET", OK.replace("\r\n", "\r\nConnection: foo, Close\r\n"), "ok", "closed"],
    ["in HTTP/1.0", "GET", OK.replace("1.1", "1.0"), "ok", "closed"],
    ["with bytes after its end", "GET", `${OK}x`, "ok", "closed"],
    [
      "204 that announces a body",
      "GET",
      "HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n",
      "",
      "closed",
    ],
    [
      "304 that announces chunks",
      "GET",
      "HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n",
      "",
      "closed",
    ],
    ["to HEAD that announces a body", "HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", "", "closed"],
    [
      "after early hints that announce a body",
      "GET",
      `HTTP/1.1 103 E\r\ncontent-length: 2\r\n\r\n${OK}`,
      "ok",
      "closed",
    ],
  ] as const)("%s, the connection is kept or closed", async (_, method, bytes, body, report) => {
    await using upstream = await startUpstream((socket) => void socket.write(bytes));
    const { connection, reports } = await connectTo(upstream);
    const exchange = makeExchange(upstream, method);
    connection.send(exchange);
    expect((await readAll(await exchange.head)).toString()).toBe(body);
    await reports.done;
    expect(reports.seen).toEqual([report]);
    connection.abandon();
  });

  test("whose head arrives in two parts, the first together with early hints, it is complete", async () => {
    await using upstream = await startUpstream((socket) => {
      socket.write(`HTTP/1.1 103 Early Hints\r\nlink: ${"x".repeat(200)}\r\n\r\n${OK.slice(0, 20)}`);
    });
    const { connection, reports } = await connectTo(upstream);
    const exchange = makeExchange(upstream, "GET");
    connection.send(exchange);
    while (upstream.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    // A round trip on another connection: the first part has arrived.
    const other = await connectTo(upstream);
    other.connection.send(makeExchange(upstream, "GET"));
    while (upstream.requests.length === 1) await new Promise((resolve) => setImmediate(resolve));
    for (const socket of upstream.sockets) socket.write(OK.slice(20));
    expect((await readAll(await exchange.head)).toString()).toBe("ok");
    await reports.done;
    expect(reports.seen).toEqual([KEPT]);
  });

  test.each([
    ["switching protocols", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
    ["too many interim responses", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(33)],
    ["another protocol", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["a head that is too large", `HTTP/1.1 200 OK\r\nx: ${"x".repeat(64 * 1024)}\r\n\r\n`],
    ["a head without an end", `HTTP/1.1 200 OK\r\nx: ${"x".repeat(64 * 1024)}`],
    ["two lengths", OK.replace("\r\n", "\r\ncontent-length: 2\r\n")],
  ])("that is invalid (%s), the request fails and the connection is closed", async (_, bytes) => {
    await using upstream = await startUpstream((socket) => void socket.write(bytes));
    const { connection, reports } = await connectTo(upstream);
    const exchange = makeExchange(upstream, "GET");
    connection.send(exchange);
    expect(await faultOf(exchange.head)).toEqual({ kind: "malformed", answered: true });
    expect(reports.seen).toEqual(["closed"]);
  });
});

describe("when a connection ends before the response", () => {
  const cases = [
    ["a GET on a reused connection is resent and reported", "GET", true, { retried: 1, resends: 1 }],
    ["a POST on a reused connection fails", "POST", true, { retried: 0, resends: 0 }],
    ["a GET on a new connection fails", "GET", false, { retried: 0, resends: 0 }],
  ] as const;
  test.each(cases)("%s", async (_, method, reused, wanted) => {
    await using upstream = await startUpstream((socket, { turn }) => {
      if (reused && turn === 1) socket.write(OK);
      else socket.end();
    });
    const { connection, reports } = await connectTo(upstream);
    if (reused) {
      const first = makeExchange(upstream, "GET");
      connection.send(first);
      await readAll(await first.head);
    }
    let resends = 0;
    const exchange = makeExchange(upstream, method, () => void resends++);
    const fault = faultOf(exchange.head);
    connection.send(exchange);
    while (!reports.seen.includes("closed")) await new Promise((resolve) => setImmediate(resolve));
    expect({ retried: reports.retried.length, resends }).toEqual(wanted);
    if (wanted.retried === 0) expect(await fault).toEqual({ kind: "reset", answered: false });
  });

  // No upstream can cause this through the client, which checks the connection first.
  test("an exchange of which no byte was taken goes to another connection, unsent and unreported", async () => {
    await using upstream = await startUpstream((socket) => void socket.write(OK));
    const { connection, reports } = await connectTo(upstream);
    const first = makeExchange(upstream, "POST");
    connection.send(first);
    expect((await readAll(await first.head)).toString()).toBe("ok");
    for (const peer of upstream.sockets) peer.resetAndDestroy();
    let resends = 0;
    const second = makeExchange(upstream, "POST", () => void resends++);
    connection.send(second);
    while (!reports.seen.includes("closed")) await new Promise((resolve) => setImmediate(resolve));
    expect([reports.retried, second.sent, resends, upstream.requests.length]).toEqual([
      [second],
      false,
      0,
      1,
    ]);
  });
});

test("a request that is cancelled in the turn in which it was sent never leaves, and its connection ends", async () => {
  await using upstream = await startUpstream((socket) => void socket.write(OK));
  const { connection, reports } = await connectTo(upstream);
  const exchange = makeExchange(upstream, "POST");
  connection.send(exchange);
  exchange.cancel();
  expect(await faultOf(exchange.head)).toMatchObject({ kind: "withdrawn" });
  while (upstream.sockets.size > 0) await nextTurn();
  expect([upstream.requests, reports.retried]).toEqual([[], []]);
});

test("the wait for a response begins anew while the request is still leaving", async () => {
  await using upstream = await startUpstream(
    () => {},
    (socket) => void socket.pause(),
  );
  const { connection } = await connectTo(upstream);
  const deadlines = { connectMs: 10_000, firstByteMs: 200, idleMs: 10_000 };
  const body = new Uint8Array(30_000_000);
  const head = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`;
  const exchange = new PulledRunning(outbound(upstream.origin, { method: "POST", body, deadlines }), head);
  let failed = false;
  exchange.head.catch(() => (failed = true));
  // Deadlines that are due at once expire in the order in which they were armed first.
  new Deadline(() => connection.drain()).arm(100);
  const later = Promise.withResolvers<boolean>();
  new Deadline(() => later.resolve(failed)).arm(250);
  connection.send(exchange);
  while (await Promise.race([later.promise.then(() => false), new Promise((go) => setImmediate(go, true))]));
  expect(await later.promise).toBe(false);
  connection.abandon();
});
