// Tests the server towards clients on real sockets. What the runtime does by itself is tested in runtime.test.ts.

import { describe, expect, onTestFinished, spyOn, test } from "bun:test";
import { BodyTooLarge, ClientGone, type Exchange, type Server } from "../../../src/lib/http/exchange.ts";
import { listen } from "../../../src/lib/http/serve.ts";
import type { ClientListener, Payload, WebSocketPeer } from "../../../src/lib/http/web-socket.ts";
import { writeText } from "../../harness/frames.ts";
import { openRaw, parseAnswer, type RawConnection, rawRequest } from "../../harness/raw.ts";

interface Limits {
  readonly idleSeconds?: number;
  readonly bodyMs?: number;
  readonly stallMs?: number;
}

function serve(onExchange: (exchange: Exchange) => unknown, limits: Limits = {}): Server {
  const errors: unknown[] = [];
  const server = listen({
    hostname: "127.0.0.1",
    port: 0,
    maxMessageBytes: 1 << 20,
    onError: (error) => errors.push(error),
    onExchange: (exchange) => {
      void Promise.resolve(onExchange(exchange)).catch((error: unknown) => errors.push(error));
    },
    ...limits,
  });
  onTestFinished(() => {
    server.stopNow();
    expect(errors).toEqual([]);
  });
  return server;
}

const HOST = "host: test\r\n";
const GET = `GET / HTTP/1.1\r\n${HOST}\r\n`;
const post = (fields: string, body = ""): string => `POST / HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;
const MEGABYTE = Buffer.alloc(1 << 20, "x");

/** Starts a server and a client, and waits until the client's request has arrived. */
async function begin(request = GET, limits: Limits = {}) {
  const arrived = Promise.withResolvers<Exchange>();
  const server = serve((exchange) => arrived.resolve(exchange), limits);
  const client = await openRaw(server.port);
  onTestFinished(() => client.reset());
  client.send(request);
  return { server, client, exchange: await arrived.promise };
}

const leaveOf = (exchange: Exchange): Promise<void> =>
  new Promise((resolve) => exchange.onGone(() => resolve()));

/** Writes until the client takes no more. */
async function fill(exchange: Exchange): Promise<{ readonly slow: Promise<void> }> {
  for (;;) {
    const slow = exchange.write(MEGABYTE);
    if (slow !== null) return { slow };
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("a request of a client arrives as it was sent", () => {
  test.each([
    ["/v1/../metrics?a=/../b", "/metrics?a=/../b"],
    ["/v1/%2e%2e/metrics", "/metrics"],
    ["/v1\\models", "/v1/models"],
    ["//v1//models/", "//v1//models/"],
    ["/a%2fb%zz;c=d", "/a%2fb%zz;c=d"],
    ["/caf\u00c3\u00a9", "/caf%C3%A9"],
    ["/a#fragment", "/a"],
    ["http://other/p?q", "/p?q"],
  ])("the target %s becomes %s, whatever host the Host field names", async (target, normal) => {
    const { port } = serve((exchange) => exchange.answer(200, [], exchange.target));
    for (const host of ["test", "[::1]:80"]) {
      const wire = Buffer.from(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\n\r\n`, "latin1");
      expect((await rawRequest(port, wire)).text).toBe(normal);
    }
  });

  test.each(["a b", "a, b", "a/b?c", "127.0.0.1:99999", "x@y", ""])(
    "the Host %j does not change the target, and is passed on unchanged",
    async (host) => {
      const { port } = serve((each) => each.answer(200, [], `${each.target} ${each.field("host")}`));
      const answer = await rawRequest(port, `GET /x/../p?q HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
      expect(answer.text).toBe(`/p?q ${host}`);
    },
  );

  test("header fields with odd names, and repeated fields, arrive", async () => {
    const { port } = serve((exchange) => {
      const all = [...exchange.fields].toSorted(([one], [other]) => (one < other ? -1 : 1));
      exchange.answer(200, [], String(all));
    });
    const lines = "X-B: 1\r\nx-b: 2\r\n12: z\r\n__proto__: p\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n";
    const { text } = await rawRequest(port, `GET / HTTP/1.1\r\n${HOST}${lines}\r\n`);
    expect(text).toBe("12,z,__proto__,p,host,test,set-cookie,a=1,b=2,x-b,1, 2");
  });

  test.each([
    ["of known length", post("content-length: 5\r\n", "hello")],
    ["in chunks", post("transfer-encoding: chunked\r\n", "3;e\r\nhel\r\n2\r\nlo\r\n0\r\nt: r\r\n\r\n")],
    ["with its length twice", post("content-length: 5\r\ncontent-length: 5\r\n", "hello")],
  ])("a body %s is read completely, and refused if it is longer than the limit", async (_, wire) => {
    const { port } = serve(async (exchange) => exchange.answer(200, [], await exchange.readBody(5)));
    expect((await rawRequest(port, wire)).text).toBe("hello");
    const strict = serve(async (exchange) => {
      const error = await exchange.readBody(4).catch((thrown: unknown) => thrown);
      exchange.answer(413, [], error instanceof BodyTooLarge ? "too large" : "read");
    });
    expect((await rawRequest(strict.port, wire)).text).toBe("too large");
  });

  test("a body with short pauses is read, and a body whose rest never comes ends its connection", async () => {
    const steady = await begin(post("transfer-encoding: chunked\r\n"), { bodyMs: 2000 });
    const whole = steady.exchange.readBody(100);
    // The whole body takes longer than the limit, and each pause is a tenth of the limit.
    for (let at = 0; at < 16; at += 1) {
      steady.client.send("4\r\nbody\r\n");
      await Bun.sleep(150);
    }
    steady.client.send("0\r\n\r\n");
    expect(Buffer.from(await whole).toString()).toBe("body".repeat(16));
    for (const length of [10, 1 << 20, 2 << 20]) {
      const { client, exchange } = await begin(post(`content-length: ${length}\r\n`, "hello"), {
        bodyMs: 50,
      });
      expect(await exchange.readBody(2 << 20).catch((thrown: unknown) => thrown)).toBeInstanceOf(ClientGone);
      expect(exchange.gone).toBe(true);
      expect(await client.ended).toBe("reset");
    }
  });

  test.each([
    ["short", 10],
    ["long", 2 << 20],
  ])("reading a %s body fails after bodyMs, even if the runtime's read never ends", async (_, length) => {
    const never = new Promise<never>(() => {});
    using _whole = spyOn(Request.prototype, "arrayBuffer").mockReturnValue(never);
    using pieces = spyOn(ReadableStream.prototype, Symbol.asyncIterator);
    pieces.mockImplementation(async function* () {
      yield await never;
      return undefined;
    });
    const { exchange } = await begin(post(`content-length: ${length}\r\n`, "hello"), { bodyMs: 50 });
    expect(await exchange.readBody(length).catch((thrown: unknown) => thrown)).toBeInstanceOf(ClientGone);
  });
});

describe("a reply reaches its client complete, or the connection breaks", () => {
  test("a reply in one piece gets its true content-length, and no body if the method is HEAD or the status 204 or 304", async () => {
    const { port } = serve((exchange) => {
      exchange.replyFields = [["x-all", "1"]];
      const status = Number(exchange.target.slice(1));
      exchange.answer(
        status,
        [
          ["content-length", "99"],
          ["transfer-encoding", "chunked"],
          ["connection", "close"],
          ["date", "today"],
        ],
        "body",
      );
    });
    const ask = (method: string, status: number) =>
      rawRequest(port, `${method} /${status} HTTP/1.1\r\n${HOST}connection: close\r\n\r\n`);
    const whole = await ask("GET", 200);
    const fields = ["content-length", "x-all", "date"].map((name) => whole.field(name));
    expect([whole.text, ...fields]).toEqual(["body", "4", "1", "today"]);
    for (const [method, status] of [
      ["HEAD", 200],
      ["GET", 204],
      ["GET", 304],
    ] as const)
      expect((await ask(method, status)).bytes.toString()).toEndWith("\r\n\r\n");
    for (const status of [100, 199, 600, 999]) expect((await ask("GET", status)).status).toBe(502);
  });

  test("a large reply arrives complete, whether it is given at once, in many pieces, or as a list of texts", async () => {
    const texts = ["x\u00e9\u4e2d\u{1f600}".repeat(400_000), "short", "y".repeat(1 << 20)];
    const body = Buffer.from(texts.join(""));
    const { port } = serve((exchange) => {
      if (exchange.target === "/large") return exchange.answer(200, [], body);
      exchange.begin(200, []);
      if (exchange.target === "/texts") return exchange.end(texts);
      for (let at = 0; at < body.length; at += 100_000) void exchange.write(body.subarray(at, at + 100_000));
      exchange.end(Buffer.from("end"));
    });
    for (const path of ["/large", "/texts", "/stream"]) {
      const answer = await rawRequest(port, `GET ${path} HTTP/1.1\r\n${HOST}\r\n`);
      expect([answer.complete, answer.body.subarray(0, body.length).equals(body)]).toEqual([true, true]);
    }
  });

  test("a reset delivers what was written, and then breaks the connection", async () => {
    for (const first of ["", "some"]) {
      const { client, exchange } = await begin();
      exchange.begin(200, []);
      if (first !== "") {
        void exchange.write(Buffer.from(first));
        await client.until(first);
        void exchange.write(Buffer.from("the last event"));
      }
      exchange.reset();
      expect(await client.ended).toBe("reset");
      expect(client.bytes().includes("the last event")).toBe(first !== "");
      expect(exchange.gone).toBe(false);
    }
  });

  test("a busy client reads what came before a reset, and sees the reset", async () => {
    const arrived = Promise.withResolvers<Exchange>();
    const { port } = serve((exchange) => arrived.resolve(exchange));
    const read = `try { for await (const piece of body) seen += Buffer.from(piece);
        console.log(seen, "complete"); } catch { console.log(seen, "broken"); }`;
    const script = `const { body } = await fetch("http://127.0.0.1:${port}/"); let seen = "";
      console.log("busy"); Bun.sleepSync(200); ${read}`;
    const busy = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
    onTestFinished(() => busy.kill());
    const lines = busy.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const exchange = await arrived.promise;
    exchange.begin(200, []);
    void exchange.write(Buffer.from("first,"));
    expect((await lines.read()).value).toBe("busy\n");
    void exchange.write(Buffer.from("last"));
    exchange.reset();
    expect((await lines.read()).value).toBe("first,last broken\n");
  });

  test("a client that reads slowly makes the writer wait, and gets everything in the end", async () => {
    const { client, exchange } = await begin();
    client.pause();
    exchange.begin(200, []);
    const { slow } = await fill(exchange);
    expect(await Promise.race([slow.then(() => "taken"), Bun.sleep(100)])).toBeUndefined();
    client.resume();
    await slow;
    exchange.end(Buffer.from("the end"));
    await client.until("the end\r\n0\r\n\r\n");
  });

  test("a connection is broken off if its client leaves the reply unread for too long", async () => {
    const stream = await begin(GET, { stallMs: 100 });
    stream.client.pause();
    stream.exchange.begin(200, []);
    const { slow } = await fill(stream.exchange);
    await slow;
    expect(stream.exchange.gone).toBe(true);
    const whole = await begin(GET, { stallMs: 100 });
    whole.client.pause();
    whole.exchange.answer(200, [], Buffer.alloc(32 << 20));
    await whole.server.stop();
  });

  test("a client that stops reading for longer than the idle limit, and then goes on, still gets its reply", async () => {
    const { client, exchange } = await begin(GET, { idleSeconds: 1, bodyMs: 1000 });
    client.pause();
    exchange.answer(200, [], Buffer.alloc(32 << 20));
    await Bun.sleep(6000);
    client.resume();
    const isWhole = (bytes: Buffer) => bytes.length > 32 << 20 && parseAnswer(bytes)?.complete === true;
    expect((await client.until(isWhole)).length).toBeGreaterThan(32 << 20);
  }, 20_000);
});

describe("a client that leaves is noticed", () => {
  const ways: [string, (client: RawConnection) => void][] = [
    ["by FIN", (client) => client.close()],
    ["by reset", (client) => client.reset()],
  ];
  describe.each(ways)("%s", (_, leave) => {
    test("if a client leaves between its body and the reply, the server notices, and nothing more is sent", async () => {
      const { client, exchange } = await begin(post("content-length: 5\r\n", "hello"));
      await exchange.readBody(5);
      const left = leaveOf(exchange);
      leave(client);
      await left;
      await leaveOf(exchange);
      expect(exchange.gone).toBe(true);
      exchange.answer(200, [], "nobody");
      expect(exchange.write(MEGABYTE)).toBeNull();
      exchange.end();
      exchange.reset();
    });

    test("a client that leaves is noticed while the body of its request arrives", async () => {
      const { client, exchange } = await begin(post("content-length: 9\r\n", "hello"));
      const failed = exchange.readBody(9).catch((thrown: unknown) => thrown);
      leave(client);
      expect(await failed).toBeInstanceOf(ClientGone);
    });

    test("a client that leaves is noticed during a stream, also while its writer waits", async () => {
      const { client, exchange } = await begin();
      client.pause();
      exchange.begin(200, []);
      const { slow } = await fill(exchange);
      const left = leaveOf(exchange);
      leave(client);
      // A socket that is paused would not say that it was closed.
      client.resume();
      await Promise.all([left, slow]);
    });

    test("a client that leaves after the reply is not reported", async () => {
      const { client, exchange } = await begin();
      exchange.onGone(() => expect.unreachable());
      exchange.answer(200, [], "done");
      await client.until("done");
      leave(client);
      await client.ended;
      expect(exchange.gone).toBe(false);
    });
  });
});

describe("a connection of a client is kept for the next request, or closed", () => {
  test("a connection stays open while its request waits for a reply, and is closed after it was idle for idleSeconds", async () => {
    const { client, exchange } = await begin(GET, { idleSeconds: 1 });
    await Bun.sleep(3000);
    expect(exchange.gone).toBe(false);
    exchange.answer(200, [], "still here");
    await client.until("still here");
    expect(await client.ended).toBe("fin");
  }, 20_000);

  test("requests follow one another on a connection", async () => {
    const { port } = serve((exchange) => exchange.answer(200, [], exchange.target));
    const client = await openRaw(port);
    for (const path of ["/one", "/two"]) {
      client.send(`GET ${path} HTTP/1.1\r\n${HOST}\r\n`);
      await client.until(`\r\n\r\n${path}`);
    }
    client.close();
  });

  test("when the server stops, it closes idle connections, accepts no new ones, and lets exchanges finish", async () => {
    const arrived = Promise.withResolvers<Exchange>();
    const server = serve((exchange) =>
      exchange.target === "/" ? arrived.resolve(exchange) : exchange.answer(200, [], "idle"),
    );
    const [idle, client] = [await openRaw(server.port), await openRaw(server.port)];
    idle.send(GET.replace("/", "/idle"));
    await idle.until("\r\n\r\nidle");
    client.send(GET);
    const exchange = await arrived.promise;
    exchange.begin(200, []);
    void exchange.write(Buffer.from("first"));
    await client.until("first");
    const stopped = server.stop();
    await idle.ended;
    await openRaw(server.port).then(
      () => expect.unreachable(),
      () => {},
    );
    exchange.end(Buffer.from("last"));
    await client.until("last\r\n0\r\n\r\n");
    await Promise.all([client.ended, stopped]);
  });

  test("`stopNow` breaks off running exchanges", async () => {
    const { server, client, exchange } = await begin();
    exchange.begin(200, []);
    void exchange.write(Buffer.from("first"));
    await client.until("first");
    const left = leaveOf(exchange);
    server.stopNow();
    await left;
    await client.ended;
    expect(parseAnswer(client.bytes())?.complete).toBe(false);
  });

  test("an error of the handler is reported and breaks the connection, and listening on a taken port throws", async () => {
    const errors: unknown[] = [];
    const server = listen({
      hostname: "127.0.0.1",
      port: 0,
      maxMessageBytes: 1,
      onError: (error) => errors.push(error),
      onExchange: () => {
        throw new Error("ours");
      },
    });
    onTestFinished(() => server.stopNow());
    expect((await rawRequest(server.port, GET)).ending).toBe("reset");
    expect(errors).toEqual([new Error("ours")]);
    const taken = () =>
      listen({
        hostname: "127.0.0.1",
        port: server.port,
        maxMessageBytes: 1,
        onError: () => {},
        onExchange: () => {},
      });
    expect(taken).toThrow(expect.objectContaining({ code: "EADDRINUSE" }));
  });
});

describe("a WebSocket of a client carries messages in both directions", () => {
  const UPGRADE = `GET / HTTP/1.1\r\n${HOST}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;

  interface Opened {
    readonly server: Server;
    readonly client: RawConnection;
    readonly peer: WebSocketPeer;
    readonly heard: unknown[];
    readonly closed: Promise<unknown>;
  }

  async function open(listener: Partial<ClientListener> = {}, limits: Limits = {}): Promise<Opened> {
    const { server, client, exchange } = await begin(UPGRADE, limits);
    const heard: unknown[] = [];
    const closed = Promise.withResolvers<unknown>();
    let peer: WebSocketPeer | null = null;
    const accepted = exchange.acceptWebSocket([["x-a", "1"]], (opened) => {
      peer = opened;
      return {
        message: ({ kind, bytes }) => void heard.push([kind, Buffer.from(bytes).toString()]),
        closed: (closing) => closed.resolve(closing),
        stopping: () => void heard.push("stopping"),
        ...listener,
      };
    });
    expect(accepted).toBe(true);
    expect((await client.until("\r\n\r\n")).toString()).toContain("x-a: 1\r\n");
    return { server, client, peer: peer!, heard, closed: closed.promise };
  }

  const text = (content: string): Payload => ({ kind: "text", bytes: Buffer.from(content) });

  test("messages arrive in both directions, each as text or binary, byte for byte", async () => {
    const { client, peer, heard } = await open();
    client.send(writeText("\ufeff\u00e9", true));
    void peer.send(text("\ufeff\u00e9"));
    void peer.send({ kind: "binary", bytes: Buffer.from([0, 255]) });
    await client.until((bytes) =>
      bytes.toString("latin1").endsWith("\x81\x05\xef\xbb\xbf\xc3\xa9\x82\x02\x00\xff"),
    );
    while (heard.length === 0) await Bun.sleep(1);
    expect(heard).toEqual([["text", "\ufeff\u00e9"]]);
  });

  test("if a client sends a message before its upgrade is accepted, the connection ends and the upgrade fails", async () => {
    const { client, exchange } = await begin(UPGRADE);
    client.send(writeText("early", true));
    await client.ended;
    expect(exchange.acceptWebSocket([], () => expect.unreachable())).toBe(false);
  });

  test("a message in the same packet as the handshake is delivered if the upgrade is accepted at once", async () => {
    const heard: string[] = [];
    const server = serve((exchange) => {
      exchange.acceptWebSocket([], () => ({
        message: ({ bytes }) => void heard.push(Buffer.from(bytes).toString()),
        closed: () => {},
        stopping: () => {},
      }));
    });
    const client = await openRaw(server.port);
    client.send(Buffer.concat([Buffer.from(UPGRADE), writeText("early", true)]));
    while (heard.length === 0) await Bun.sleep(1);
    expect(heard).toEqual(["early"]);
    client.close();
  });

  test.each([
    [{ code: 4001, reason: "limit" }, "\x88\x07\x0f\xa1limit"],
    [{ code: 1005, reason: "" }, "\x88\x00"],
  ])("a slow client gets its messages first, and then the close frame for %j", async (closing, frame) => {
    const { client, peer, closed } = await open();
    client.pause();
    while (peer.send(text("x".repeat(1 << 20))) === null);
    void peer.send(text("held"));
    peer.close(closing);
    expect([peer.open, peer.send(text("late"))]).toEqual([false, null]);
    client.resume();
    await client.ended;
    expect(client.bytes().toString("latin1")).toEndWith(`\x81\x04held${frame}`);
    await closed;
  });

  test("a WebSocket is closed if its client leaves 16 MB unread, or reads nothing for too long", async () => {
    const many = await open();
    many.client.pause();
    for (let count = 0; count < 64 && many.peer.open; count += 1)
      void many.peer.send(text("x".repeat(1 << 20)));
    expect(await many.closed).toEqual({ code: 1006, reason: "" });
    const slow = await open({}, { stallMs: 50 });
    slow.client.pause();
    while (slow.peer.send(text("x".repeat(1 << 20))) === null);
    expect(await slow.closed).toEqual({ code: 1006, reason: "" });
    const large = await open({}, { bodyMs: 50 });
    large.client.pause();
    void large.peer.send(text("x".repeat(32 << 20)));
    expect(await large.closed).toEqual({ code: 1006, reason: "" });
  });

  test("a message that is too long, and a frame without a mask, end the connection", async () => {
    const long = await open();
    long.client.send(writeText("x".repeat((1 << 20) + 1), true));
    expect(await long.closed).toMatchObject({ code: 1006 });
    const bare = await open();
    bare.client.send(writeText("x"));
    expect(await bare.closed).toMatchObject({ code: 1006 });
  });

  test("a stopping server tells the listener of each open WebSocket, and waits until the WebSocket has ended", async () => {
    const { server, client, peer, heard } = await open();
    const stopped = server.stop();
    expect(heard).toEqual(["stopping"]);
    peer.close({ code: 1001, reason: "" });
    await client.ended;
    await stopped;
  });
});
