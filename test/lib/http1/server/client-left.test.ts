// How an exchange ends badly: clients that leave, replies that are broken off,
// readers that stall, a server that stops.

import { afterEach, describe, expect, test } from "bun:test";
import { listen } from "../../../../src/lib/http1/server/server.ts";
import { ClientGone, type Exchange, type Server } from "../../../../src/lib/http/exchange.ts";
import { drained, openClient, readFailing, type BareClient } from "../peers.ts";

const running: Server[] = [];
afterEach(() => {
  for (const server of running.splice(0)) server.stopNow();
});

function serve(onExchange: (exchange: Exchange) => void, stallMs?: number): Server {
  const limits = stallMs === undefined ? {} : { stallMs };
  const server = listen({ hostname: "127.0.0.1", port: 0, onExchange, ...limits });
  running.push(server);
  return server;
}

const REQUEST = "GET / HTTP/1.1\r\nhost: test\r\n\r\n";

/** A server with one exchange that has begun, and its client. */
async function begin(
  request = REQUEST,
  stallMs?: number,
): Promise<{ server: Server; exchange: Exchange; client: BareClient }> {
  const held = Promise.withResolvers<Exchange>();
  const server = serve((exchange) => held.resolve(exchange), stallMs);
  const client = await openClient(server.port);
  client.socket.write(request);
  return { server, client, exchange: await held.promise };
}

function leaveOf(exchange: Exchange): Promise<void> {
  return new Promise((resolve) => exchange.onGone(resolve));
}

describe("a client that leaves", () => {
  const ways: [string, (client: BareClient) => void][] = [
    ["by FIN", ({ socket }) => void socket.end()],
    ["by reset", ({ socket }) => void socket.resetAndDestroy()],
  ];

  describe.each(ways)("%s", (_, leave) => {
    test("before the reply is detected at once", async () => {
      const { exchange, client } = await begin();
      expect(exchange.gone).toBe(false);
      const left = leaveOf(exchange);
      leave(client);
      await left;
      expect(exchange.gone).toBe(true);
      exchange.answer(200, [], "nobody reads this");
      expect(exchange.write(new Uint8Array(3))).toBe(true);
      exchange.end();
      exchange.reset();
      await drained(exchange);
    });

    test.each([63, 64, 300].map((kilobytes) => kilobytes * 1024))(
      "after it has sent a body of %d bytes is detected at once",
      async (bytes) => {
        const head = `POST / HTTP/1.1\r\nhost: test\r\ncontent-length: ${bytes}\r\n\r\n`;
        const { exchange, client } = await begin(`${head}${"x".repeat(bytes)}`);
        expect(await exchange.readBody(1_000_000)).toHaveLength(bytes);
        const left = leaveOf(exchange);
        leave(client);
        await left;
      },
    );

    test("during the reply is detected at once", async () => {
      const { exchange, client } = await begin();
      exchange.begin(200, []);
      exchange.write(Buffer.from("one"));
      await client.until("one");
      const left = leaveOf(exchange);
      leave(client);
      await left;
    });

    test("while a writer waits for it to read releases the writer", async () => {
      const { exchange, client } = await begin();
      client.socket.pause();
      exchange.begin(200, []);
      const chunk = Buffer.alloc(1_000_000);
      while (exchange.write(chunk));
      const sent = drained(exchange);
      leave(client);
      client.socket.destroy();
      await sent;
      await leaveOf(exchange);
    });

    test("while it sends its body makes readBody fail", async () => {
      const { exchange, client } = await begin(
        "POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 5\r\n\r\nhel",
      );
      const body = readFailing(exchange);
      leave(client);
      expect(await body).toBeInstanceOf(ClientGone);
      expect(exchange.gone).toBe(true);
      expect(await readFailing(exchange)).toBeInstanceOf(ClientGone);
    });

    test("after the reply is not reported", async () => {
      const { exchange, client, server } = await begin();
      let noticed = 0;
      exchange.onGone(() => noticed++);
      exchange.answer(200, [], "done");
      await client.until("done");
      leave(client);
      const stopped = server.stop();
      await stopped;
      expect({ noticed, gone: exchange.gone }).toEqual({ noticed: 0, gone: false });
    });
  });

  test("is reported to every listener once, also to a late one", async () => {
    const { exchange, client } = await begin();
    const shown: string[] = [];
    exchange.onGone(() => shown.push("first"));
    exchange.onGone(() => shown.push("second"));
    const left = leaveOf(exchange);
    client.socket.destroy();
    await left;
    exchange.onGone(() => shown.push("late"));
    expect(shown).toEqual(["first", "second", "late"]);
  });

  test("by closing its sending side only has left too, which is a documented limit", async () => {
    const held = Promise.withResolvers<Exchange>();
    const server = serve((exchange) => held.resolve(exchange));
    using client = await openClient(server.port, { allowHalfOpen: true });
    client.socket.end(REQUEST);
    await leaveOf(await held.promise);
  });
});

describe("a reply that is reset", () => {
  test("delivers what was written, and then a reset", async () => {
    for (let round = 0; round < 20; round++) {
      const { exchange, client } = await begin();
      exchange.begin(200, []);
      exchange.write(Buffer.from(`data: ${"x".repeat(50_000)}\n\n`));
      exchange.write(Buffer.from("data: the error event\n\n"));
      exchange.reset();
      exchange.reset();
      expect(await client.ended).toBe("ECONNRESET");
      expect(client.text()).toContain("x\n\n\r\n");
      expect(client.text()).toEndWith("data: the error event\n\n\r\n");
      expect(exchange.gone).toBe(false);
    }
  });

  test("before its head delivers a reset and nothing else", async () => {
    const { exchange, client } = await begin();
    exchange.begin(200, []);
    exchange.reset();
    expect(await client.ended).toBe("ECONNRESET");
    expect(client.text()).toBe("");
  });

  test("while bytes wait for a slow client delivers them first", async () => {
    const { exchange, client } = await begin();
    client.socket.pause();
    exchange.begin(200, []);
    const chunk = Buffer.alloc(1_000_000, 97);
    let written = 1;
    while (exchange.write(chunk)) written++;
    exchange.reset();
    client.socket.resume();
    expect(await client.ended).toBe("ECONNRESET");
    expect(client.text().split("a").length - 1).toBeGreaterThan((written - 1) * chunk.length);
  });

  test("ends soon for a client that does not read", async () => {
    const { server, exchange, client } = await begin();
    client.socket.pause();
    exchange.begin(200, []);
    while (exchange.write(Buffer.alloc(1_000_000)));
    exchange.reset();
    await server.stop();
    expect(server.open).toBe(0);
    client.socket.destroy();
  });
});

describe("a client that reads slowly", () => {
  test("stops the writer after one unsent chunk, and gets every byte in the end", async () => {
    const { exchange, client } = await begin();
    client.socket.pause();
    exchange.begin(200, []);
    const sent: number[] = [];
    for (let index = 0; index < 60; index++) {
      if (!exchange.write(Buffer.alloc(500_000, 97 + (index % 26)))) {
        sent.push(index);
        client.socket.resume();
        await drained(exchange);
        client.socket.pause();
      }
    }
    exchange.end();
    client.socket.resume();
    const text = await client.until("\r\n0\r\n\r\n");
    expect(sent.length).toBeGreaterThan(1);
    const body = text.slice(text.indexOf("\r\n\r\n") + 4).replaceAll(/(?:^|\r\n)[0-9a-f]+\r\n/g, "");
    expect(body.length).toBe(60 * 500_000 + 2);
    for (const index of [0, 20, 59]) {
      const middle = index * 500_000 + 250_000;
      expect(body[middle]).toBe(String.fromCharCode(97 + (index % 26)));
    }
  });

  test("is reported by the first write that is not taken whole", async () => {
    const { exchange, client } = await begin();
    client.socket.pause();
    exchange.begin(200, []);
    for (let goesOn = true; goesOn;) {
      goesOn = exchange.write(Buffer.alloc(1_000_000));
      let isSent = false;
      exchange.onceSent(() => (isSent = true));
      expect(isSent).toBe(goesOn);
    }
    client.socket.destroy();
  });

  test("loses nothing if the writer does not wait, but memory grows", async () => {
    const { exchange, client } = await begin();
    client.socket.pause();
    exchange.begin(200, [], 20_000_000);
    for (let index = 0; index < 20; index++) exchange.write(Buffer.alloc(1_000_000, 65 + index));
    exchange.end();
    client.socket.resume();
    while (client.bytes().length < 20_000_000)
      await client.until("\r\n\r\n").then(() => new Promise((resolve) => setImmediate(resolve)));
    const body = client.bytes().subarray(-20_000_000);
    expect(Array.from({ length: 20 }, (_, index) => body[index * 1_000_000 + 7])).toEqual(
      Array.from({ length: 20 }, (_, index) => 65 + index),
    );
  });

  test("counts as gone if it takes nothing for too long", async () => {
    const { server, exchange, client } = await begin(REQUEST, 100);
    client.socket.pause();
    exchange.begin(200, []);
    while (exchange.write(Buffer.alloc(1_000_000)));
    await drained(exchange);
    expect([exchange.gone, server.open]).toEqual([true, 0]);
    client.socket.destroy();
  });

  test("does not count as gone while there is nothing to read", async () => {
    const exchanges: Exchange[] = [];
    const server = serve((exchange) => void exchanges.push(exchange), 1000);
    const stall = async (): Promise<BareClient> => {
      const client = await openClient(server.port);
      client.socket.pause();
      client.socket.write(REQUEST);
      const count = exchanges.length;
      while (exchanges.length === count) await new Promise((resolve) => setImmediate(resolve));
      exchanges.at(-1)!.begin(200, []);
      while (exchanges.at(-1)!.write(Buffer.alloc(1_000_000)));
      return client;
    };
    const patient = await stall();
    patient.socket.resume();
    await drained(exchanges[0]!);
    const stalled = await stall();
    await drained(exchanges[1]!);
    expect(exchanges.map(({ gone }) => gone)).toEqual([false, true]);
    exchanges[0]!.end(Buffer.from("the end"));
    await patient.until("the end");
    stalled.socket.destroy();
    patient.socket.destroy();
  });

  test("gets its next request answered once it has read the reply", async () => {
    const server = serve((exchange) =>
      exchange.answer(200, [], Buffer.alloc(20_000_000, exchange.target.charCodeAt(1))),
    );
    using client = await openClient(server.port);
    client.socket.pause();
    client.socket.write(REQUEST.replace("/", "/a") + REQUEST.replace("/", "/b"));
    client.socket.resume();
    while (client.bytes().length < 40_000_000) await Bun.sleep(1);
    expect(client.bytes().at(-1)).toBe("b".charCodeAt(0));
  });
});

describe("the end of a connection", () => {
  test("waits for no reader, but loses nothing of what was sent to it", async () => {
    const { server, exchange, client } = await begin(
      REQUEST.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"),
    );
    client.socket.pause();
    // All of it fits into the buffers of the kernel.
    const body = Buffer.alloc(500_000, "reply");
    exchange.answer(200, [], body);
    await server.stop();
    expect(server.open).toBe(0);
    client.socket.resume();
    expect(await client.ended).toBe("end");
    expect(client.bytes().subarray(-body.length)).toEqual(body);
  });
});

describe("the end of a reply", () => {
  test("waits for its reader longer than an idle connection for a request", async () => {
    const body = Buffer.alloc(20_000_000, "reply");
    const server = listen({
      hostname: "127.0.0.1",
      port: 0,
      idleMs: 100,
      onExchange: (exchange) => exchange.answer(200, [["x-size", "large"]], body),
    });
    running.push(server);
    const client = await openClient(server.port);
    client.socket.write(REQUEST);
    await client.until("x-size");
    client.socket.pause();
    for (let count = 0; count < 4; count++) {
      using idle = await openClient(server.port);
      expect(await idle.ended).toBe("end");
    }
    client.socket.resume();
    expect(await client.ended).toBe("end");
    expect(client.bytes().subarray(-body.length)).toEqual(body);
  });
});

describe("a server that stops", () => {
  test("accepts no new connection, closes idle ones and lets exchanges finish", async () => {
    const { server, exchange, client } = await begin();
    using idle = await openClient(server.port);
    exchange.begin(200, []);
    exchange.write(Buffer.from("first"));
    let stopped = false;
    const stopping = server.stop().then(() => (stopped = true));
    expect(await idle.ended).toBe("end");
    expect(
      await openClient(server.port).then(
        () => "open",
        () => "refused",
      ),
    ).toBe("refused");
    await client.until("first");
    expect(stopped).toBe(false);
    exchange.end(Buffer.from("last"));
    expect(await client.until("0\r\n\r\n")).toContain("last");
    expect(await client.ended).toBe("end");
    await stopping;
    expect(server.open).toBe(0);
  });

  test("announces the end of the connection in its last replies", async () => {
    const { server, exchange, client } = await begin();
    const stopping = server.stop();
    exchange.answer(200, [], "bye");
    expect(await client.until("bye")).toContain("connection: close\r\n");
    await stopping;
  });

  test("with nothing to do stops at once, and can be stopped twice", async () => {
    const server = serve(() => {});
    await Promise.all([server.stop(), server.stop()]);
    server.stopNow();
  });

  test("at once resets running replies", async () => {
    const { server, exchange, client } = await begin();
    exchange.begin(200, []);
    exchange.write(Buffer.from("some"));
    await client.until("some");
    const left = leaveOf(exchange);
    server.stopNow();
    await left;
    expect(await client.ended).toBe("ECONNRESET");
    await server.stop();
  });
});
