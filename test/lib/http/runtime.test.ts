// Tests facts about the runtime that src/lib relies on, or works around. Each title names the file to look
// at if the test fails after an update of the runtime.

import { describe, expect, onTestFinished, test } from "bun:test";
import type { Socket, SocketHandler } from "bun";
import { hasUnread } from "../../../src/lib/http/wire.ts";
import { openRaw, type RawConnection, rawRequest } from "../../harness/raw.ts";

interface Ends {
  readonly server: Socket<unknown>;
  readonly client: Socket<unknown>;
}

const deaf: SocketHandler = { data() {}, drain() {}, close() {}, error() {} };

async function connectPair(onServer: SocketHandler = {}, onClient: SocketHandler = {}): Promise<Ends> {
  const accepted = Promise.withResolvers<Socket<unknown>>();
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { ...deaf, ...onServer, open: (socket) => accepted.resolve(socket) },
  });
  const client = await Bun.connect<unknown>({
    hostname: "127.0.0.1",
    port: listener.port,
    socket: { ...deaf, ...onClient },
  });
  const server = await accepted.promise;
  onTestFinished(() => {
    client.terminate();
    server.terminate();
    listener.stop(true);
  });
  return { server, client };
}

describe("a socket of this runtime behaves as src/lib/http assumes", () => {
  test("a full socket of this runtime takes a part of the bytes, write returns how many, and drain is called when there is room (wire.ts)", async () => {
    const drained = Promise.withResolvers<void>();
    const received = Promise.withResolvers<number>();
    let count = 0;
    const { server, client } = await connectPair(
      { drain: () => drained.resolve() },
      {
        data: (_, bytes) => {
          count += bytes.length;
          if (count >= taken) received.resolve(count);
        },
      },
    );
    client.pause();
    const bytes = Buffer.alloc(64 * 1024 * 1024);
    const taken = server.write(bytes);
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(bytes.length);
    expect(server.write(bytes, taken, bytes.length - taken)).toBeLessThan(bytes.length - taken);
    client.resume();
    await drained.promise;
    await received.promise;
  });

  test("a socket of this runtime resets on terminate, and calls close before terminate returns (wire.ts)", async () => {
    const how = Promise.withResolvers<unknown>();
    let closed = false;
    const { server } = await connectPair(
      { close: () => void (closed = true) },
      { close: (_, error) => how.resolve(error) },
    );
    server.terminate();
    expect(closed).toBe(true);
    expect(server.write("x")).toBe(-1);
    expect(await how.promise).toMatchObject({ code: "ECONNRESET" });
  });

  test.skipIf(process.platform === "win32")(
    "a socket of this runtime has a descriptor whose state can be read before the event loop reports it (wire.ts)",
    async () => {
      for (const change of ["end", "terminate", "write"] as const) {
        const { server, client } = await connectPair();
        expect(hasUnread(client)).toBe(false);
        server[change]("x");
        expect([change, hasUnread(client)]).toEqual([change, true]);
      }
    },
  );

  test("a socket of this runtime takes no byte once the other side has reset it (wire.ts)", async () => {
    const { server, client } = await connectPair();
    server.terminate();
    expect(client.write("x")).toBeLessThanOrEqual(0);
  });

  test("a socket of this runtime reports close without an error after a FIN (wire.ts)", async () => {
    const how = Promise.withResolvers<unknown>();
    const { server } = await connectPair({}, { close: (_, error) => how.resolve(error) });
    server.end();
    expect(await how.promise).toBeUndefined();
  });

  test("after `shutdown`, the other side sees the end, and the socket itself still receives bytes (peer.ts)", async () => {
    const came = Promise.withResolvers<string>();
    const learned = Promise.withResolvers<void>();
    const listener = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        ...deaf,
        open: (socket) => socket.shutdown(),
        data: (_, bytes) => came.resolve(bytes.toString()),
      },
    });
    const client = await Bun.connect({
      hostname: "127.0.0.1",
      port: listener.port,
      allowHalfOpen: true,
      socket: { ...deaf, end: () => learned.resolve() },
    });
    onTestFinished(() => {
      client.terminate();
      listener.stop(true);
    });
    await learned.promise;
    client.write("late");
    expect(await came.promise).toBe("late");
  });

  test("a socket of this runtime gets no bytes while paused, and all of them with the FIN after resume (wire.ts)", async () => {
    const ended = Promise.withResolvers<void>();
    const came: string[] = [];
    const { server, client } = await connectPair({
      data: (_, bytes) => void came.push(bytes.toString()),
      end: () => ended.resolve(),
    });
    server.pause();
    client.write("a");
    client.end();
    // In ten turns of the event loop, bytes would arrive.
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(came).toEqual([]);
    server.resume();
    await ended.promise;
    expect(came).toEqual(["a"]);
  });

  test("a socket of this runtime delivers nothing more from the moment its handler pauses it (wire.ts)", async () => {
    const sizes: number[] = [];
    const first = Promise.withResolvers<void>();
    const { server, client } = await connectPair({
      data: (socket, bytes) => {
        sizes.push(bytes.length);
        socket.pause();
        first.resolve();
      },
    });
    server.pause();
    const sent = client.write(Buffer.alloc(8 << 20));
    server.resume();
    await first.promise;
    for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(sizes).toHaveLength(1);
    expect(sizes[0]).toBeLessThan(sent);
  });
});

/** Starts a server of the runtime, without any of our code. */
function serve(fetch: (request: Request, server: Bun.Server<undefined>) => Response | Promise<Response>) {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, fetch });
  onTestFinished(() => void server.stop(true));
  return { port: server.port ?? 0, url: server.url };
}

async function connectTo(
  port: number,
  request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
): Promise<RawConnection> {
  const client = await openRaw(port);
  onTestFinished(() => client.reset());
  client.send(request);
  return client;
}

const HOST = "host: a\r\n";
const P = "POST / HTTP/1.1\r\n";

describe("the runtime's server behaves as src/lib/http assumes", () => {
  test("the runtime's server gives field names in lower case, repeated fields joined, values as Latin-1 (serve.ts)", async () => {
    const { port } = serve((request) => Response.json([...request.headers]));
    const wire = `GET / HTTP/1.1\r\nHost: a\r\nX-B: 1\r\nhost: b\r\nx-b: 2\r\nX-C: caf\u00e9\r\n\r\n`;
    expect(JSON.parse((await rawRequest(port, Buffer.from(wire, "latin1"))).text)).toEqual([
      ["host", "a, b"],
      ["x-b", "1, 2"],
      ["x-c", "caf\u00e9"],
    ]);
  });

  test.each([
    ["without a host", `${P}\r\n`, 400],
    ["with a head without end", `${P}${HOST}${"a: b\r\n".repeat(11_000)}`, 431],
    ["with a head of more than 16 KB", `${P}${HOST}a: ${"b".repeat(17_000)}\r\n\r\n`, 431],
    ["with more than 200 fields", `${P}${HOST}${"a: b\r\n".repeat(201)}\r\n`, 431],
    ["with a folded field", `${P}${HOST}a: b\r\n c\r\n\r\n`, 400],
    ["with a space before a colon", `${P}${HOST}a : b\r\n\r\n`, 400],
    ["with a bare line feed", `${P}${HOST}a: b\n\r\n`, 400],
    ["with a NUL", `${P}${HOST}a: b\0c\r\n\r\n`, 400],
    ["with two lengths", `${P}${HOST}content-length: 1\r\ncontent-length: 2\r\n\r\nab`, 400],
    ["with an odd length", `${P}${HOST}content-length: +1\r\n\r\na`, 400],
    [
      "with a length and chunks",
      `${P}${HOST}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["with an unknown transfer-encoding", `${P}${HOST}transfer-encoding: gzip, chunked\r\n\r\n`, 400],
    ["in a version of another protocol", `POST / HTTP/3.0\r\n${HOST}\r\n`, 505],
    ["of a TLS client", "\u0016\u0003\u0001\u0002\u0000\u0001\r\n\r\n", 400],
  ])(
    "the runtime's server refuses a request %s: the refusal has no body, and nothing more is read (serve.ts)",
    async (_, wire, status) => {
      const { port } = serve(() => expect.unreachable());
      const answer = await rawRequest(port, Buffer.from(`${wire}GET / HTTP/1.1\r\n${HOST}\r\n`, "latin1"));
      expect(answer.bytes.toString()).toMatch(
        new RegExp(`^HTTP/1.1 ${status} [^\r]*\r\nConnection: close\r\n\r\n$`),
      );
      expect(answer.ending).toBe("fin");
    },
  );

  test("the runtime's server leaves an unread body in the kernel (serve.ts)", async () => {
    const arrived = Promise.withResolvers<Request>();
    const { port } = serve((request) => (arrived.resolve(request), new Promise<Response>(() => {})));
    const client = await connectTo(port, `${P}${HOST}content-length: ${64 << 20}\r\n\r\n`);
    const request = await arrived.promise;
    const piece = Buffer.alloc(1 << 20);
    const before = process.memoryUsage().rss;
    for (let count = 0; count < 64; count += 1) client.send(piece);
    await Bun.sleep(200);
    expect(process.memoryUsage().rss - before).toBeLessThan(32 << 20);
    expect((await request.bytes()).length).toBe(64 << 20);
  });

  test("the runtime's server answers `Expect: 100-continue` before anybody reads the body (serve.ts)", async () => {
    const { port } = serve(() => new Promise(() => {}));
    const client = await connectTo(port, `${P}${HOST}content-length: 5\r\nexpect: 100-continue\r\n\r\n`);
    await client.until("HTTP/1.1 100 Continue\r\n\r\n");
  });

  test.each(["zz\r\n", "5\r\nhello!\r\n"])(
    "the runtime's server answers 400 to a body with the broken chunk %j, and reading it fails (serve.ts)",
    async (chunk) => {
      const failed = Promise.withResolvers<boolean>();
      const { port } = serve(async (request) => {
        await request.bytes().then(
          () => failed.resolve(false),
          () => failed.resolve(true),
        );
        return new Response();
      });
      const client = await connectTo(port, `${P}${HOST}transfer-encoding: chunked\r\n\r\n${chunk}`);
      expect(await failed.promise).toBe(true);
      await client.ended;
      expect(client.bytes().toString()).toStartWith("HTTP/1.1 400 Bad Request\r\n");
    },
  );

  test("the runtime's server aborts a request that is not answered yet if the client sends a second one behind it (serve.ts)", async () => {
    const seen: string[] = [];
    const { port } = serve(({ url, signal }) => {
      seen.push(new URL(url).pathname);
      signal.addEventListener("abort", () => seen.push("gone"));
      return new Promise<Response>(() => {});
    });
    const client = await connectTo(port, `GET /one HTTP/1.1\r\n${HOST}\r\nGET /two HTTP/1.1\r\n${HOST}\r\n`);
    await client.ended;
    expect([...seen, client.bytes().length]).toEqual(["/one", "gone", 0]);
  });
});
