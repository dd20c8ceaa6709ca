import { afterEach, describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { request } from "node:http";
import { connect } from "node:net";
import { listen } from "../../../../src/lib/http1/server/server.ts";
import {
  BodyTooLarge,
  ClientGone,
  type Exchange,
  InvalidBody,
  type ListenOptions,
  type Server,
} from "../../../../src/lib/http/exchange.ts";
import { makeTempFolder } from "../../../harness/temp.ts";
import { openClient, readFailing } from "../peers.ts";

const running: Server[] = [];
const errors: unknown[] = [];
afterEach(() => {
  for (const server of running.splice(0)) server.stopNow();
  expect(errors.splice(0)).toEqual([]);
});

type Options = Omit<ListenOptions, "onExchange">;

function serve(
  onExchange: (exchange: Exchange) => void | Promise<void>,
  options: Partial<Options> = {},
): Server {
  const server = listen({
    hostname: "127.0.0.1",
    port: 0,
    onError: (error) => void errors.push(error),
    ...options,
    onExchange: (exchange) => {
      void Promise.try(onExchange, exchange).catch((error: unknown) => errors.push(error));
    },
  });
  running.push(server);
  return server;
}

const HOST = "host: test\r\n";
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
/** Says what it was asked. */
const report = async (exchange: Exchange): Promise<void> => {
  const body = Buffer.from(await exchange.readBody(1 << 26));
  exchange.answer(
    200,
    [["x-body", String(body.length)]],
    `${exchange.method} ${exchange.target} ${body.toString()}`,
  );
};

/** Sockets are read between turns of the event loop. After one turn alone, two writes would arrive together. */
async function arrival(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** What a client gets that sends this and waits for the connection's end. */
async function sendRaw(port: number, text: string): Promise<string> {
  using client = await openClient(port);
  client.socket.write(Buffer.from(text, "latin1"));
  await client.ended;
  return client.text();
}

describe("requests", () => {
  test("follow one another on a connection", async () => {
    const { port } = serve(report);
    using client = await openClient(port);
    client.socket.write(`GET /a HTTP/1.1\r\n${HOST}\r\n`);
    await client.until("GET /a ");
    client.socket.write(`POST /b HTTP/1.1\r\n${HOST}content-length: 2\r\n\r\nhi`);
    expect(await client.until("POST /b hi")).toBe(
      "HTTP/1.1 200 OK\r\nx-body: 0\r\ncontent-length: 7\r\n\r\nGET /a HTTP/1.1 200 OK\r\nx-body: 2\r\ncontent-length: 10\r\n\r\nPOST /b hi",
    );
  });

  test("that are pipelined are answered strictly one after another, whatever each takes", async () => {
    const gates = new Map<string, () => void>();
    const order: string[] = [];
    const { port } = serve(async (exchange) => {
      order.push(`start ${exchange.target}`);
      if (exchange.target === "/0") await new Promise<void>((resolve) => gates.set("/0", resolve));
      await exchange.readBody(100);
      order.push(`end ${exchange.target}`);
      exchange.answer(200, [], exchange.target);
    });
    using client = await openClient(port);
    for (let index = 0; index < 200; index++) {
      client.socket.write(`POST /${index} HTTP/1.1\r\n${HOST}content-length: 3\r\n\r\nabc`);
    }
    while (!gates.has("/0")) await new Promise((resolve) => setImmediate(resolve));
    gates.get("/0")?.();
    const text = await client.until("\r\n\r\n/199");
    expect(text.match(/\r\n\r\n(\/\d+)/g)?.map((found) => found.trim())).toEqual(
      Array.from({ length: 200 }, (_, index) => `/${index}`),
    );
    expect(order).toEqual(
      Array.from({ length: 200 }, (_, index) => [`start /${index}`, `end /${index}`]).flat(),
    );
  });

  test("that are pipelined without end wait in the kernel, not in memory", async () => {
    const { port } = serve(() => {});
    using client = await openClient(port);
    const one = `GET /${"x".repeat(1000)} HTTP/1.1\r\n${HOST}\r\n`.repeat(1000);
    let written = 0;
    const before = process.memoryUsage().rss;
    await new Promise<void>((resolve) => {
      const more = (): void => {
        for (let turn = 0; turn < 16; turn++) {
          written += one.length;
          if (!client.socket.write(one)) break;
        }
        if (written > 64e6 || client.socket.writableLength > 8e6) resolve();
        else setImmediate(more);
      };
      more();
    });
    expect(client.socket.writableLength).toBeGreaterThan(4e6);
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6);
  });

  test("are the same wherever the network cuts them", async () => {
    const seen: string[] = [];
    const { port } = serve(async (exchange) => {
      const body = Buffer.from(await exchange.readBody(1000)).toString();
      seen.push(`${exchange.method} ${exchange.target} ${exchange.field("x-a")} ${body}`);
      exchange.answer(200, [], "ok");
    });
    const wire =
      `POST /first HTTP/1.1\r\n${HOST}X-A: 1\r\ncontent-length: 5\r\n\r\nhello` +
      `\r\nPUT /second HTTP/1.1\r\n${HOST}x-a: 2\r\ntransfer-encoding: chunked\r\n\r\n3;e\r\nwor\r\n2\r\nld\r\n0\r\nt: r\r\n\r\n` +
      `GET /third HTTP/1.1\r\n${HOST}x-a: 3\r\n\r\n`;
    for (let cut = 1; cut < wire.length; cut++) {
      seen.length = 0;
      using client = await openClient(port);
      client.socket.setNoDelay(true);
      client.socket.write(wire.slice(0, cut));
      await arrival();
      client.socket.write(wire.slice(cut));
      await client.until("\r\n\r\nok", 3);
      expect([cut, ...seen]).toEqual([cut, "POST /first 1 hello", "PUT /second 2 world", "GET /third 3 "]);
    }
  });

  test("are complete when they arrive one byte at a time", async () => {
    const { port } = serve(report);
    using client = await openClient(port);
    client.socket.setNoDelay(true);
    for (const byte of `POST /b HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`) {
      client.socket.write(byte);
      await arrival();
    }
    expect(await client.until("POST /b hi")).toContain("x-body: 2\r\n");
  });

  test("in absolute form are read as their path, and Host stays as it is", async () => {
    const { port } = serve((exchange) =>
      exchange.answer(200, [], `${exchange.target} at ${exchange.field("host")}`),
    );
    expect(
      await sendRaw(port, "GET http://other/p?q HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"),
    ).toContain("/p?q at h");
  });

  test("of node:http and fetch are understood, bodies in chunks and of known length", async () => {
    const { port } = serve(report);
    const chunked = await new Promise<string>((resolve, reject) => {
      const sent = request({ port, host: "127.0.0.1", method: "POST", path: "/n" }, (answer) => {
        let text = "";
        answer.on("data", (chunk) => (text += chunk)).on("end", () => resolve(text));
      });
      sent.on("error", reject);
      sent.write("some ");
      sent.write("chunks");
      sent.end();
    });
    expect(chunked).toBe("POST /n some chunks");
    const big = "x".repeat(3_000_000);
    const answer = await fetch(`http://127.0.0.1:${port}/f`, { method: "POST", body: big });
    expect(await answer.text()).toBe(`POST /f ${big}`);
  });

  test("of a thousand connections at once are all answered", async () => {
    const waiting: Exchange[] = [];
    const all = Promise.withResolvers<void>();
    const server = serve((exchange) => {
      waiting.push(exchange);
      if (waiting.length === 1000) all.resolve();
    });
    const sockets = Array.from({ length: 1000 }, (_, index) => {
      const socket = connect({ port: server.port, host: "127.0.0.1" });
      socket.write(`GET /${index} HTTP/1.1\r\n${HOST}\r\n`);
      return socket;
    });
    const answers = sockets.map(
      (socket) => new Promise<string>((resolve) => socket.once("data", (data) => resolve(data.toString()))),
    );
    await all.promise;
    expect(server.open).toBe(1000);
    for (const exchange of waiting) exchange.answer(200, [], exchange.target);
    const texts = await Promise.all(answers);
    expect(texts.every((text, index) => text.endsWith(`\r\n\r\n/${index}`))).toBe(true);
    for (const socket of sockets) socket.destroy();
  });

  test("reach a server on a unix socket", async () => {
    using folder = makeTempFolder();
    const unix = folder.join("s.sock");
    const server = listen({ unix, onExchange: (exchange) => exchange.answer(200, [], "here") });
    expect(server.port).toBe(0);
    expect(await (await fetch("http://localhost/", { unix })).text()).toBe("here");
    server.stopNow();
  });
});

describe("hostile requests", () => {
  const post = `POST / HTTP/1.1\r\n${HOST}`;
  test.each([
    [
      "content-length and transfer-encoding",
      `${post}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["two content-lengths", `${post}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`, 400],
    ["an odd content-length", `${post}content-length: +5\r\n\r\nhello`, 400],
    ["an unknown transfer-encoding", `${post}transfer-encoding: gzip\r\n\r\n`, 501],
    ["transfer-encoding in HTTP/1.0", "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400],
    ["no host", "GET / HTTP/1.1\r\n\r\n", 400],
    ["two hosts", `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`, 400],
    ["a folded field", `GET / HTTP/1.1\r\n${HOST}a: b\r\n c\r\n\r\n`, 400],
    ["a space before a colon", `GET / HTTP/1.1\r\n${HOST}a : b\r\n\r\n`, 400],
    ["a bare LF", `GET / HTTP/1.1\n${HOST}\r\n\r\n`, 400],
    ["a bare CR in a value", `GET / HTTP/1.1\r\n${HOST}a: b\rc\r\n\r\n`, 400],
    ["a NUL", `GET / HTTP/1.1\r\n${HOST}a: b\0c\r\n\r\n`, 400],
    ["HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
    ["a TLS hello", "\u0016\u0003\u0001\u0002\u0000\u0001\r\n\r\n", 400],
    ["a head without end", `GET / HTTP/1.1\r\n${"a: b\r\n".repeat(11_000)}`, 431],
    ["a head over the limit, complete", `GET / HTTP/1.1\r\n${HOST}a: ${"b".repeat(66_000)}\r\n\r\n`, 431],
    ["empty lines without end", "\r\n".repeat(40_000), 431],
  ])("with %s are refused and the connection is closed", async (_, wire, status) => {
    const { port } = serve(() => {
      throw new Error("must not be reached");
    });
    const text = await sendRaw(port, `${wire}GET /smuggled HTTP/1.1\r\n${HOST}\r\n`);
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*\r\nconnection: close\r\n\r\n[^]+\n$`));
    expect(text.match(/HTTP\/1.1 \d/g)).toHaveLength(1);
  });

  test("that are not HTTP are refused at their first byte, so that an https client does not wait", async () => {
    const { port } = serve(report);
    for (const hello of ["\u0016\u0003\u0001\u0002\u0000\u0001", "get /", "\n"]) {
      using client = await openClient(port);
      client.socket.write(Buffer.from(hello, "latin1"));
      await client.ended;
      expect(client.text()).toStartWith("HTTP/1.1 400 ");
    }
    using client = await openClient(port);
    client.socket.setNoDelay(true);
    for (const byte of `\r\n\r\nGET /slow HTTP/1.1\r\n${HOST}\r\n`) client.socket.write(byte);
    await client.until("GET /slow");
  });

  test("with broken chunks fail in readBody, and nothing after them is read", async () => {
    const outcome = Promise.withResolvers<unknown>();
    const reading = Promise.withResolvers<void>();
    let count = 0;
    const { port } = serve(async (exchange) => {
      count += 1;
      reading.resolve();
      outcome.resolve(await readFailing(exchange));
      exchange.answer(400, [], "broken");
    });
    using client = await openClient(port);
    client.socket.write(`POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`);
    await reading.promise;
    client.socket.write(`5\r\nhello!\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n${HOST}\r\n`);
    client.socket.write(`GET /smuggled HTTP/1.1\r\n${HOST}\r\n`);
    expect(await outcome.promise).toBeInstanceOf(InvalidBody);
    await client.ended;
    expect(client.text()).toMatch(/^HTTP\/1.1 400 [^]*\r\nconnection: close\r\n\r\nbroken$/);
    expect(count).toBe(1);
  });

  test("with broken chunks that nobody reads are refused by the server, and the handler sees that the client is gone", async () => {
    const gone = Promise.withResolvers<unknown>();
    const started = Promise.withResolvers<Exchange>();
    const { port } = serve(
      (exchange) => {
        exchange.onGone(() => gone.resolve(readFailing(exchange)));
        started.resolve(exchange);
      },
      { onRefusal: (exchange, { status }) => exchange.answer(status, [], `no: ${exchange.target}`) },
    );
    using client = await openClient(port);
    client.socket.write(`GET /a HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`);
    const exchange = await started.promise;
    client.socket.write("5\r\nhello!\r\n");
    expect(await gone.promise).toBeInstanceOf(ClientGone);
    exchange.answer(200, [], "not sent");
    await client.ended;
    expect(client.text()).toMatch(/^HTTP\/1.1 400 [^]*\r\nconnection: close\r\n\r\nno: \/a$/);
  });

  test("are passed to the refusing handler, as far as they can be read", async () => {
    const seen: unknown[] = [];
    const { port } = serve(report, {
      onRefusal: (exchange, { message }) => {
        const { method, target, fields } = exchange;
        seen.push([method, target, [...fields]]);
        exchange.answer(400, [], message);
      },
    });
    for (const wire of [
      `POST /a?b HTTP/1.1\r\nX-A: 1 \r\nbad line\r\nx-b:\t2\0\r\n\r\nx-c: of the body\r\n\r\n`,
      `\r\nGET http://there/c HTTP/9.9\r\n\r\n`,
      `GET /\u00e9 HTTP/1.1\r\n\r\n`,
      `no`,
    ]) {
      expect(await sendRaw(port, wire)).toStartWith("HTTP/1.1 400 ");
    }
    expect(seen).toEqual([
      [
        "POST",
        "/a?b",
        [
          ["x-a", "1"],
          ["x-b", "2"],
        ],
      ],
      ["GET", "/c", []],
      ["GET", "/", []],
      ["", "", []],
    ]);
  });

  test("reset the connection if the refusal handler throws, and the server continues", async () => {
    const { port } = serve(report, {
      onRefusal: () => {
        throw new Error("ours");
      },
    });
    using client = await openClient(port);
    client.socket.write("GET / HTTP/1.1\r\n\r\n");
    expect(await client.ended).toBe("ECONNRESET");
    expect(errors.splice(0)).toEqual([new Error("ours")]);
    expect(await (await fetch(`http://127.0.0.1:${port}/alive`)).text()).toBe("GET /alive ");
  });

  test("never start a second exchange nor break the server, whatever their bytes", async () => {
    const { port } = serve(report);
    const pieces = fc.constantFrom(
      "GET / HTTP/1.1\r\n",
      "POST /x HTTP/1.0\r\n",
      HOST,
      "\r\n",
      "\r",
      "\n",
      "a: b\r\n",
      " ",
      ":",
      "content-length: 3\r\n",
      "transfer-encoding: chunked\r\n",
      "abc",
      "\0",
      "5\r\n",
      "0\r\n\r\n",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { maxLength: 14 }), async (parts) => {
        using client = await openClient(port, { allowHalfOpen: true });
        client.socket.end(Buffer.from(parts.join(""), "latin1"));
        await client.ended;
        const answers = client.text();
        expect(answers === "" || answers.startsWith("HTTP/1.1 ")).toBe(true);
      }),
      { numRuns: 150 },
    );
    expect(await (await fetch(`http://127.0.0.1:${port}/alive`)).text()).toBe("GET /alive ");
  });

  test("whose head takes too long get a 408, even while bytes arrive", async () => {
    const { port } = serve(report, { headMs: 500 });
    using client = await openClient(port);
    client.socket.setNoDelay(true);
    client.socket.write("GET / HTTP/1.1\r\n");
    const dripping = setInterval(() => client.socket.write("x"), 1);
    await client.ended;
    clearInterval(dripping);
    expect(client.text()).toStartWith("HTTP/1.1 408 ");
  });

  test("whose body stops arriving end their connection", async () => {
    const outcome = Promise.withResolvers<unknown>();
    const { port } = serve(async (exchange) => outcome.resolve(await readFailing(exchange)), {
      headMs: 50,
    });
    using client = await openClient(port);
    client.socket.write(`POST / HTTP/1.1\r\n${HOST}content-length: 5\r\n\r\nhel`);
    expect(await outcome.promise).toBeInstanceOf(ClientGone);
    await client.ended;
  });
});

describe("a connection without a request", () => {
  test("is closed after its time limit, and a running exchange is not", async () => {
    const held = Promise.withResolvers<Exchange>();
    const server = serve((exchange) => held.resolve(exchange), { idleMs: 500, headMs: 500 });
    using busy = await openClient(server.port);
    busy.socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    const exchange = await held.promise;
    using idle = await openClient(server.port);
    expect(await idle.ended).toBe("end");
    expect(exchange.gone).toBe(false);
    exchange.answer(200, [], "still here");
    await busy.until("still here");
    expect(await busy.ended).toBe("end");
  });
});

describe("the reply", () => {
  test("to HEAD has only the head, with the length that GET would have", async () => {
    const { port } = serve((exchange) => exchange.answer(200, [], "four"));
    const text = await sendRaw(port, `HEAD / HTTP/1.1\r\n${HOST}connection: close\r\n\r\n`);
    expect(text).toBe("HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n");
  });

  test("to HEAD may be streamed: nothing but the head is sent", async () => {
    const { port } = serve((exchange) => {
      exchange.begin(200, [], 1000);
      expect(exchange.write(bytes("body"))).toBe(true);
      exchange.end(bytes("more"));
    });
    using client = await openClient(port);
    client.socket.write(`HEAD / HTTP/1.1\r\n${HOST}\r\n`.repeat(2));
    await client.until("\r\n\r\n", 2);
    expect(client.text()).toBe("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n".repeat(2));
  });

  test.each([204, 304])("%p has neither body nor length", async (status) => {
    const { port } = serve((exchange) => {
      if (exchange.target === "/answer") exchange.answer(status, [["content-length", "7"]], "ignored");
      else {
        exchange.begin(status, []);
        exchange.write(bytes("ignored"));
        exchange.end();
      }
    });
    using client = await openClient(port);
    client.socket.write(`GET /answer HTTP/1.1\r\n${HOST}\r\nGET /stream HTTP/1.1\r\n${HOST}\r\n`);
    const text = await client.until("\r\n\r\n", 2);
    expect(text).toMatch(new RegExp(`^(HTTP/1.1 ${status} [A-Za-z ]+\r\n\r\n){2}$`));
  });

  test("is streamed in chunks, its head with the first, each write in one packet", async () => {
    const held = Promise.withResolvers<Exchange>();
    const { port } = serve((exchange) => held.resolve(exchange));
    using client = await openClient(port);
    const packets: string[] = [];
    client.socket.on("data", (data: Buffer) => packets.push(data.toString()));
    client.socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    const exchange = await held.promise;
    exchange.begin(200, [["content-type", "text/event-stream"]]);
    exchange.write(bytes("data: 1\n\n"));
    await client.until("data: 1\n\n\r\n");
    exchange.write(bytes(""));
    exchange.write(bytes("data: 2\n\n"));
    await client.until("data: 2\n\n\r\n");
    exchange.end(bytes("data: 3\n\n"));
    await client.until("\r\n0\r\n\r\n");
    expect(packets).toEqual([
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n",
      "9\r\ndata: 2\n\n\r\n",
      "9\r\ndata: 3\n\n\r\n0\r\n\r\n",
    ]);
  });

  test("may be empty, and its head may leave alone", async () => {
    const held: Exchange[] = [];
    const { port } = serve((exchange) => {
      held.push(exchange);
      exchange.begin(200, []);
      if (exchange.target === "/flushed") exchange.flush();
      else exchange.end();
    });
    using client = await openClient(port);
    client.socket.write(`GET /empty HTTP/1.1\r\n${HOST}\r\nGET /flushed HTTP/1.1\r\n${HOST}\r\n`);
    const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    expect(await client.until(head, 2)).toBe(`${head}0\r\n\r\n${head}`);
    held[1]?.end();
    expect(await client.until("0\r\n\r\n", 2)).toBe(`${head}0\r\n\r\n${head}0\r\n\r\n`);
  });

  test("of known length is sent without chunks", async () => {
    const { port } = serve((exchange) => {
      exchange.begin(200, [], 6);
      exchange.write(bytes("abc"));
      exchange.end(bytes("def"));
    });
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("abcdef");
  });

  test.each([
    ["fewer", "abc"],
    ["more", "abcdefg"],
  ])("that has %s bytes than announced resets the connection", async (_, text) => {
    const { port } = serve((exchange) => {
      exchange.begin(200, [], 6);
      exchange.write(bytes(text));
      exchange.end();
    });
    using client = await openClient(port);
    client.socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    expect(await client.ended).toBe("ECONNRESET");
    expect(client.text()).not.toContain("abcdefg");
  });

  test("to an HTTP/1.0 client ends with the connection, or has a length", async () => {
    const { port } = serve((exchange) => {
      if (exchange.target === "/whole") exchange.answer(200, [], "whole");
      else {
        exchange.begin(200, []);
        exchange.write(bytes("a"));
        exchange.end(bytes("b"));
      }
    });
    expect(await sendRaw(port, "GET /stream HTTP/1.0\r\n\r\n")).toBe(
      "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab",
    );
    expect(await sendRaw(port, "GET /whole HTTP/1.0\r\n\r\n")).toBe(
      "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nwhole",
    );
  });

  test("must not have a forbidden character in its fields", async () => {
    const { port } = serve((exchange) => {
      expect(() => exchange.answer(200, [["x", "a\r\nset-cookie: b"]], "")).toThrow("forbidden");
      exchange.answer(500, [], "");
    });
    expect(await sendRaw(port, `GET / HTTP/1.1\r\n${HOST}connection: close\r\n\r\n`)).toStartWith(
      "HTTP/1.1 500 ",
    );
  });

  test("can be started only once", async () => {
    const { port } = serve((exchange) => {
      expect(exchange.begun).toBe(false);
      exchange.begin(200, []);
      expect(exchange.begun).toBe(true);
      expect(() => exchange.answer(200, [], "")).toThrow("begun");
      exchange.end();
      exchange.end();
      exchange.reset();
      expect(exchange.write(bytes("late"))).toBe(true);
    });
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200);
  });

  test("whose handler throws resets its connection, and the server continues", async () => {
    const seen: unknown[] = [];
    const server = listen({
      hostname: "127.0.0.1",
      port: 0,
      onError: (error) => void seen.push(error),
      onExchange: (exchange) => {
        if (exchange.target === "/bad") throw new Error("a bug");
        exchange.answer(200, [], "fine");
      },
    });
    running.push(server);
    using client = await openClient(server.port);
    client.socket.write(`GET /bad HTTP/1.1\r\n${HOST}\r\n`);
    expect(await client.ended).toBe("ECONNRESET");
    expect(seen).toEqual([new Error("a bug")]);
    expect(await (await fetch(`http://127.0.0.1:${server.port}/`)).text()).toBe("fine");
  });
});

describe("the body of a request", () => {
  test("is requested with 100-continue only when it is read", async () => {
    const held = Promise.withResolvers<Exchange>();
    const { port } = serve((exchange) => held.resolve(exchange));
    using client = await openClient(port);
    client.socket.write(`POST / HTTP/1.1\r\n${HOST}expect: 100-continue\r\ncontent-length: 2\r\n\r\n`);
    const exchange = await held.promise;
    expect(client.text()).toBe("");
    const body = exchange.readBody(100);
    expect(await client.until("\r\n\r\n")).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    client.socket.write("ok");
    expect(Buffer.from(await body).toString()).toBe("ok");
    exchange.answer(200, [], "");
    expect(await client.until("200 OK")).not.toContain("connection: close");
  });

  test("is not requested when it is refused, and the connection ends then", async () => {
    const { port } = serve((exchange) => exchange.answer(401, [], "no"));
    const text = await sendRaw(
      port,
      `POST / HTTP/1.1\r\n${HOST}expect: 100-continue\r\ncontent-length: 2\r\n\r\n`,
    );
    expect(text).toBe("HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
  });

  test("is not requested when it has already arrived", async () => {
    const { port } = serve(report);
    const text = await sendRaw(
      port,
      `POST / HTTP/1.1\r\n${HOST}connection: close\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nok`,
    );
    expect(text).toStartWith("HTTP/1.1 200 OK");
  });

  test("is not requested when a part of it has already arrived", async () => {
    const { port } = serve(report);
    using client = await openClient(port);
    client.socket.write(
      `POST / HTTP/1.1\r\n${HOST}expect: 100-continue\r\ncontent-length: 4\r\nx-a: b\r\n\r\nok`,
    );
    // The exchange has started before this one is answered.
    using other = await openClient(port);
    other.socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await other.until("200 OK");
    client.socket.write("ay");
    expect(await client.until("okay")).toStartWith("HTTP/1.1 200 OK");
  });

  test("that nobody reads is skipped once it is complete, and the connection continues", async () => {
    const { port } = serve((exchange) => exchange.answer(200, [], exchange.target));
    using client = await openClient(port);
    client.socket.write(
      `POST /a HTTP/1.1\r\n${HOST}content-length: 2\r\n\r\nokPOST /b HTTP/1.1\r\n${HOST}\r\n`,
    );
    expect(await client.until("\r\n\r\n/b")).not.toContain("close");
  });

  const limit = 100_000;
  const respond = async (exchange: Exchange): Promise<void> => {
    try {
      await exchange.readBody(limit);
      exchange.answer(200, [], "taken");
    } catch (error) {
      exchange.answer(error instanceof BodyTooLarge ? 413 : 500, [], "too large, says the server");
    }
  };

  test("with an announced length over the limit is refused before it is read", async () => {
    const { port } = serve(respond);
    const text = await sendRaw(port, `POST / HTTP/1.1\r\n${HOST}content-length: 100001\r\n\r\n`);
    expect(text).toContain("413 Content Too Large");
    expect(text).toEndWith("connection: close\r\n\r\ntoo large, says the server");
  });

  test.each(["content-length", "chunked"])(
    "over the limit (%s): a client that sends on without looking still reads the reply",
    async (kind) => {
      const { port } = serve(respond);
      const size = 8_000_000;
      const framing = kind === "chunked" ? "transfer-encoding: chunked" : `content-length: ${size}`;
      using client = await openClient(port);
      client.socket.write(`POST / HTTP/1.1\r\n${HOST}${framing}\r\n\r\n`);
      const chunk = Buffer.alloc(80_000, 120);
      for (let sent = 0; sent < size; sent += chunk.length) {
        if (kind === "chunked") client.socket.write(`${chunk.length.toString(16)}\r\n`);
        client.socket.write(chunk);
        if (kind === "chunked") client.socket.write("\r\n");
      }
      await client.until("too large, says the server");
      expect(await client.ended).toBe("end");
    },
  );

  test("is refused as soon as it has grown over the limit, before its end", async () => {
    const reading = Promise.withResolvers<void>();
    const { port } = serve(async (exchange) => {
      const body = exchange.readBody(10);
      reading.resolve();
      const outcome = await Promise.resolve(body).catch((error: unknown) => error);
      exchange.answer(413, [], outcome instanceof BodyTooLarge ? "too large" : "accepted");
    });
    using client = await openClient(port);
    client.socket.write(`POST / HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`);
    await reading.promise;
    client.socket.write("b\r\nhello world\r\n");
    await client.until("too large");
  });

  test("may be exactly as large as the limit, and have any chunks", async () => {
    const { port } = serve(respond);
    for (const headers of [{}, { "transfer-encoding": "chunked" }]) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const sent = request({ port, host: "127.0.0.1", method: "POST", headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on("error", reject);
        sent.end(Buffer.alloc(limit));
      });
      expect(status).toBe(200);
    }
  });

  test("in very many tiny chunks takes memory for its bytes only", async () => {
    const { port } = serve(report);
    const count = 1_000_000;
    using client = await openClient(port);
    const before = process.memoryUsage().rss;
    client.socket.write(`POST /t HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n`);
    client.socket.write(`${"1\r\nx\r\n".repeat(count)}0\r\n\r\n`);
    expect(await client.until("POST /t xx")).toContain(`x-body: ${count}\r\n`);
    expect(process.memoryUsage().rss - before).toBeLessThan(150e6);
  });

  test("waits in the kernel until it is read", async () => {
    const held = Promise.withResolvers<Exchange>();
    const { port } = serve((exchange) => {
      if (exchange.method === "POST") held.resolve(exchange);
      else exchange.answer(200, [], "other");
    });
    using client = await openClient(port);
    using other = await openClient(port);
    const size = 30_000_000;
    client.socket.write(`POST / HTTP/1.1\r\n${HOST}content-length: ${size}\r\n\r\n`);
    client.socket.write(Buffer.alloc(size, 97));
    const exchange = await held.promise;
    // Time enough for all of the body to arrive, if it could.
    for (let round = 1; round <= 500; round += 1) {
      other.socket.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
      await other.until("other", round);
    }
    expect(client.socket.writableLength).toBeGreaterThan(5_000_000);
    const body = await exchange.readBody(size);
    expect(body.length).toBe(size);
    expect(body.every((byte) => byte === 97)).toBe(true);
    exchange.answer(200, [], "done");
    await client.until("done");
  });
});
