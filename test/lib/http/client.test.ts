import { describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import type { Upstream as HttpClient } from "../../../src/lib/http/upstream.ts";
import { faultOf, openClient, outbound, readAll, startUpstream, type Upstream } from "./peers.ts";

const reply = (wire: string) => (socket: Socket) => void socket.write(wire, "latin1");
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function get(client: HttpClient, upstream: Upstream): Promise<string> {
  const inbound = await client.send(outbound(upstream.origin)).answer;
  return (await readAll(inbound)).toString();
}

test.skipIf(process.platform === "win32")(
  "a lack of file descriptors is not reported as a refused connection",
  () => {
    const module = (name: string): string => JSON.stringify(`${import.meta.dir}/${name}`);
    const program = `
      import { openSync } from "node:fs";
      import { createClient } from ${module("../../../src/lib/http/client.ts")};
      import { outbound } from ${module("./peers.ts")};
      try { for (;;) openSync("/dev/null"); } catch {}
      const { answer: head } = createClient().send(outbound({ tls: false, host: "127.0.0.1", port: 1 }));
      await head.catch((error) => console.log(error.kind, error.message));
      process.exit();`;
    const command = ["sh", "-c", 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, program];
    const said = Bun.spawnSync(command, { timeout: 50_000 }).stdout.toString();
    expect(said).toBe(
      "shortage 127.0.0.1:1: this process has too many open files and connections: raise its limit (ulimit -n)\n",
    );
  },
);

describe("a request to an upstream arrives complete, or is not sent", () => {
  test("an answer that arrived while the process stood still is read, even past a time limit", async () => {
    const upstream = await startUpstream((socket, { turn }) => {
      socket.write(OK);
      if (turn === 2) Bun.sleepSync(2400); // as after Ctrl-Z, a suspended machine, a long turn of the event loop
    });
    const client = openClient();
    await get(client, upstream);
    // These limits are long enough for a busy machine to bring the request to the upstream.
    const deadlines = { connectMs: 10_000, firstByteMs: 2000, idleMs: 2000 };
    const { answer: head } = client.send(outbound(upstream.origin, { deadlines }));
    expect((await readAll(await head)).toString()).toBe("ok");
    expect(upstream.connections).toBe(1);
  });

  test("a request that would break its own framing is not sent", async () => {
    const upstream = await startUpstream(reply(OK));
    const client = openClient();
    expect(() => client.send(outbound(upstream.origin, { fields: [["x", "a\r\nb: c"]] }))).toThrow(
      "forbidden",
    );
    expect(() => client.send(outbound(upstream.origin, { target: "/ HTTP/1.1\r\nx: y" }))).toThrow(
      "forbidden",
    );
    await tick();
    expect(upstream.connections).toBe(0);
  });

  test("a request with a body of 30 MB arrives complete at a slow upstream", async () => {
    const body = new Uint8Array(30_000_000);
    for (let at = 0; at < body.length; at += 1) body[at] = at * 7;
    const upstream = await startUpstream(reply(OK), (socket) => {
      socket.on("data", () => {
        socket.pause();
        setImmediate(() => socket.resume());
      });
    });
    const client = openClient();
    const inbound = await client.send(outbound(upstream.origin, { method: "POST", body })).answer;
    expect((await readAll(inbound)).toString()).toBe("ok");
    expect(Buffer.compare(upstream.requests[0]?.body ?? Buffer.alloc(0), body)).toBe(0);
    expect(client.stats().idle).toBe(1);
  });
});

/** The same answer in every framing, and whether the end of the connection ends the answer. */
const ANSWERS: [name: string, wire: string, closes: boolean][] = [
  ["of known length", "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 11\r\n\r\nhello world", false],
  [
    "in chunks",
    "HTTP/1.1 200 OK\r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n6;e=1\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n",
    false,
  ],
  ["until the connection ends", "HTTP/1.1 200 OK\r\nx-a: b\r\n\r\nhello world", true],
  ["in HTTP/1.0", "HTTP/1.0 200 OK\r\nx-a: b\r\n\r\nhello world", true],
  [
    "behind 100 and 103",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 11\r\n\r\nhello world",
    false,
  ],
];

describe("an answer of an upstream is read by its framing", () => {
  describe.each(ANSWERS)("an answer %s", (_, wire, closes) => {
    test("an answer is read the same, wherever the network splits it", async () => {
      let cut = 0;
      const upstream = await startUpstream((socket) => {
        socket.setNoDelay(true);
        socket.write(wire.slice(0, cut));
        // Sockets are read between turns of the event loop: after one turn alone, both parts would arrive together.
        void tick()
          .then(tick)
          .then(tick)
          .then(() => (closes ? socket.end(wire.slice(cut)) : socket.write(wire.slice(cut))));
      });
      const client = openClient();
      const headEnd = wire.lastIndexOf("\r\n\r\n", wire.indexOf("hello")) + 4;
      for (cut = 1; cut < wire.length; cut++) {
        const inbound = await client.send(outbound(upstream.origin)).answer;
        const { status, fields, closeDelimited } = inbound.head;
        expect([status, fields.get("x-a"), closeDelimited]).toEqual([200, "b", closes]);
        // After a cut inside the head, the whole body comes in one piece.
        if (cut < headEnd && !closes) expect([cut, inbound.whole?.toString()]).toEqual([cut, "hello world"]);
        expect([cut, (await readAll(inbound)).toString()]).toEqual([cut, "hello world"]);
        expect(await inbound.read()).toBeNull();
      }
      expect(upstream.connections).toBe(closes ? wire.length - 1 : 1);
    });

    test("an answer that is cut before its end never counts as complete", async () => {
      let end = 0;
      let leave: "end" | "resetAndDestroy" = "end";
      const upstream = await startUpstream((socket) => {
        socket.write(wire.slice(0, end), () => setImmediate(() => socket[leave]()));
      });
      const headEnd = wire.lastIndexOf("\r\n\r\n", wire.indexOf("hello")) + 4;
      const client = openClient();
      for (end = 1; end < wire.length; end++) {
        for (const way of ["end", "resetAndDestroy"] as const) {
          leave = way;
          const read = client.send(outbound(upstream.origin)).answer.then(readAll);
          // After a clean end of the connection, two kinds of body count as complete: a body whose
          // last chunk has arrived, and a body that lasts until the connection ends (`closeDelimited`).
          const isUnseen = closes || wire.slice(0, end).includes("\r\n0\r\n");
          const blind = isUnseen && end >= headEnd && leave === "end";
          const kind = end < headEnd ? "reset" : "cut";
          expect([end, leave, await faultOf(read)]).toEqual([
            end,
            leave,
            blind ? null : { kind, answered: kind === "cut" },
          ]);
        }
      }
    });
  });

  test("an answer to HEAD has no body, whatever its head says", async () => {
    const upstream = await startUpstream(reply("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n"));
    const inbound = await openClient().send(outbound(upstream.origin, { method: "HEAD" })).answer;
    expect([inbound.head.length, await inbound.read()]).toEqual([500, null]);
  });

  // The announced bytes may follow all the same, and would be read as the answer to the next request.
  test.each([
    ["204 with a length", "GET", "HTTP/1.1 204 x\r\ncontent-length: 3\r\n\r\n"],
    ["204 in chunks", "GET", "HTTP/1.1 204 x\r\ntransfer-encoding: chunked\r\n\r\n"],
    ["304 with a length", "GET", "HTTP/1.1 304 x\r\ncontent-length: 3\r\n\r\n"],
    ["HEAD with a length", "HEAD", "HTTP/1.1 200 x\r\ncontent-length: 3\r\n\r\n"],
  ])("an answer that announces an impossible body ends its connection: %s", async (_, method, wire) => {
    const upstream = await startUpstream(reply(wire));
    const client = openClient();
    for (let turn = 1; turn <= 2; turn++) {
      await readAll(await client.send(outbound(upstream.origin, { method })).answer);
      expect([upstream.connections, client.stats().open]).toEqual([turn, 0]);
    }
  });

  test.each([204, 304])("an answer with status %p has no body", async (status) => {
    const upstream = await startUpstream(reply(`HTTP/1.1 ${status} x\r\n\r\n`));
    const client = openClient();
    for (let turn = 0; turn < 2; turn++) {
      const inbound = await client.send(outbound(upstream.origin)).answer;
      expect([
        inbound.head.status,
        inbound.head.length,
        inbound.head.closeDelimited,
        await inbound.read(),
      ]).toEqual([status, null, false, null]);
    }
    expect(upstream.connections).toBe(1);
  });

  test("an answer may arrive, and end, while its request is still being sent", async () => {
    const upstream = await startUpstream(
      () => {},
      (socket) => {
        socket.pause();
        socket.end("HTTP/1.1 413 Too Large\r\ncontent-length: 9\r\n\r\ntoo large");
      },
    );
    const client = openClient();
    const inbound = await client.send(
      outbound(upstream.origin, { method: "POST", body: new Uint8Array(50_000_000) }),
    ).answer;
    expect(inbound.head.status).toBe(413);
    expect((await readAll(inbound)).toString()).toBe("too large");
    expect(client.stats()).toMatchObject({ open: 0, idle: 0 });
  });

  test.each([
    ["no HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["an SSH greeting and nothing after it", "SSH-2.0-OpenSSH\r\n"],
    ["a TLS alert", "\u0015\u0003\u0003\u0000\u0002\u0002\r\n\r\n"],
    ["HTTP/2", "HTTP/2 200\r\n\r\n"],
    ["both framings", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc"],
    ["an unknown transfer-encoding", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n"],
    ["a bare LF", "HTTP/1.1 200 OK\nx: y\r\n\r\n"],
    ["a folded field", "HTTP/1.1 200 OK\r\nx: y\r\n z\r\n\r\n"],
    ["an upgrade that nobody asked for", "HTTP/1.1 101 Switching\r\n\r\n"],
    ["an interim answer with a length", `HTTP/1.1 103 x\r\ncontent-length: 3\r\n\r\n${OK}`],
    ["interim answers without end", "HTTP/1.1 103 x\r\n\r\n".repeat(100)],
    ["a head without end", `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(12_000)}`],
    ["a chunk size with blanks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n"],
    [
      "a chunk that is longer than its size",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    ],
    ["a bare LF between chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\na\n0\n\n"],
    ["broken chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"],
  ])("an answer with %s is malformed", async (_, wire) => {
    const upstream = await startUpstream(reply(wire));
    const fault = await faultOf(openClient().send(outbound(upstream.origin)).answer.then(readAll));
    expect(fault).toEqual({ kind: "malformed", answered: true });
    await upstream.closed();
  });
});

describe("connections to upstreams are reused only if that is safe", () => {
  test("requests share a connection if their origins are equal, but not if their origins differ", async () => {
    const upstream = await startUpstream(reply(OK));
    const client = openClient();
    const { origin: own } = upstream;
    for (const origin of [own, { ...own }, { ...own, host: "localhost" }])
      await readAll(await client.send(outbound(origin)).answer);
    expect(upstream.connections).toBe(2);
  });

  test.each([
    ["connection: close", "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"],
    ["HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"],
    ["keep-alive: timeout=0", "HTTP/1.1 200 OK\r\nkeep-alive: timeout=0\r\ncontent-length: 2\r\n\r\nok"],
    ["trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nt: r\r\n\r\n"],
    ["more bytes than the answer has", `${OK}HTTP/1.1 200 OK\r\n`],
  ])("connections are not reused after %s", async (_, wire) => {
    const upstream = await startUpstream(reply(wire));
    const client = openClient();
    expect(await get(client, upstream)).toBe("ok");
    expect(await get(client, upstream)).toBe("ok");
    expect(upstream.connections).toBe(2);
    expect(client.stats()).toEqual({ open: 0, idle: 0 });
  });

  test("connections that are idle are dropped when the upstream closes them or sends bytes", async () => {
    const upstream = await startUpstream(reply(OK));
    const client = openClient();
    for (const disturb of [
      (socket: Socket) => void socket.end(),
      (socket: Socket) => void socket.resetAndDestroy(),
      (socket: Socket) => void socket.write("HTTP/1.1 408 Request Timeout\r\n\r\n"),
    ]) {
      await get(client, upstream);
      expect(client.stats().idle).toBe(1);
      for (const socket of upstream.sockets) disturb(socket);
      while (client.stats().open > 0) await tick();
      expect(client.stats().idle).toBe(0);
    }
  });

  test("connections that are idle are dropped a second before the upstream would drop them", async () => {
    const upstream = await startUpstream(
      reply("HTTP/1.1 200 OK\r\nkeep-alive: timeout=2, max=100\r\ncontent-length: 2\r\n\r\nok"),
    );
    const client = openClient();
    await get(client, upstream);
    expect(client.stats().idle).toBe(1);
    await upstream.closed();
    expect(client.stats()).toMatchObject({ open: 0, idle: 0 });
  });

  test.each([
    ["ended", (socket: Socket) => new Promise<void>((resolve) => void socket.end(() => resolve()))],
    ["been reset", (socket: Socket) => void socket.resetAndDestroy()],
    ["sent unexpected bytes", (socket: Socket) => void socket.write(OK)],
  ])("a connection that has %s is not used, even before the event loop reports it", async (_, disturb) => {
    const upstream = await startUpstream(reply(OK));
    const client = openClient();
    for (let turn = 1; turn <= 20; turn++) {
      await get(client, upstream);
      // The upstream does this to the connection, but the event loop does not report it yet.
      for (const socket of upstream.sockets) await disturb(socket);
      const inbound = await client.send(outbound(upstream.origin, { method: "POST" })).answer;
      expect((await readAll(inbound)).toString()).toBe("ok");
      expect(upstream.connections).toBe(2 * turn);
      for (const socket of upstream.sockets) socket.end();
      while (client.stats().open > 0) await tick();
    }
    expect(upstream.requests).toHaveLength(40);
  });

  test.each([
    ["end", 0],
    ["reset", 0],
    ["end", 50],
    ["reset", 300],
  ] as const)(
    "a POST may have been charged, so it is not sent again when its connection fails (%s after %p ms)",
    async (how, workMs) => {
      const upstream = await startUpstream((socket, { turn }) => {
        if (turn === 1) socket.write(OK);
        else setTimeout(() => (how === "end" ? socket.end() : socket.resetAndDestroy()), workMs);
      });
      const client = openClient();
      await get(client, upstream);
      for (const size of [0, 10, 200_000]) {
        const body = Buffer.alloc(size, "x");
        const { answer: head } = client.send(outbound(upstream.origin, { method: "POST", body }));
        expect(await faultOf(head)).toEqual({ kind: "reset", answered: false });
        await get(client, upstream);
      }
      expect(upstream.requests.filter(({ head }) => head.startsWith("POST"))).toHaveLength(3);
    },
  );

  test("a GET is not sent again if its connection ends before an answer", async () => {
    const upstream = await startUpstream((socket, { turn }) => {
      if (turn === 1) socket.write(OK);
      else socket.end();
    });
    const client = openClient();
    await get(client, upstream);
    const { answer } = client.send(outbound(upstream.origin));
    expect(await faultOf(answer)).toEqual({ kind: "reset", answered: false });
    expect(upstream.requests).toHaveLength(2);
  });

  test("when the HTTP client is closed, idle connections end, and running requests continue", async () => {
    const upstream = await startUpstream((socket, { head }) => {
      if (head.startsWith("GET /slow")) setImmediate(() => socket.write(OK));
      else socket.write(OK);
    });
    const client = openClient();
    await get(client, upstream);
    const slow = client.send(outbound(upstream.origin, { target: "/slow" })).answer;
    client.close();
    expect((await readAll(await slow)).toString()).toBe("ok");
    await upstream.closed();
    expect(client.stats().open).toBe(0);
  });
});

describe("a cancelled request leaves nothing behind", () => {
  test("a cancelled request sends nothing if it was still connecting", async () => {
    const upstream = await startUpstream(reply(OK));
    const client = openClient();
    const sending = client.send(outbound(upstream.origin));
    sending.cancel();
    expect(await faultOf(sending.answer)).toEqual({ kind: "withdrawn", answered: false });
    await get(client, upstream);
    expect(upstream.requests).toHaveLength(1);
  });

  test("a cancelled request causes no unhandled rejection if nobody awaits its head", async () => {
    const upstream = await startUpstream(() => {});
    openClient().send(outbound(upstream.origin)).cancel();
    await tick();
  });

  test("a request that is cancelled after its answer has arrived keeps its connection", async () => {
    const upstream = await startUpstream(reply(OK));
    const client = openClient();
    const sending = client.send(outbound(upstream.origin));
    const inbound = await sending.answer;
    sending.cancel();
    expect((await readAll(inbound)).toString()).toBe("ok");
    inbound.cancel();
    expect(client.stats().idle).toBe(1);
  });
});

describe("a time limit of a request runs only while bytes are awaited", () => {
  const short = { connectMs: 10_000, firstByteMs: 50, idleMs: 50 };

  test("reading a body fails after idleMs if the rest of the body does not arrive", async () => {
    const upstream = await startUpstream(reply("HTTP/1.1 200 OK\r\n\r\nsome"));
    const inbound = await openClient().send(
      outbound(upstream.origin, { deadlines: { ...short, firstByteMs: 10_000 } }),
    ).answer;
    expect(Buffer.from((await inbound.read()) ?? []).toString()).toBe("some");
    expect(await faultOf(inbound.read())).toEqual({ kind: "idle_timeout", answered: true });
    await upstream.closed();
  });

  test("reading a body fails after idleMs if only the size of the next chunk arrives", async () => {
    const upstream = await startUpstream(
      reply("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nsome\r\n"),
    );
    const inbound = await openClient().send(
      outbound(upstream.origin, { deadlines: { ...short, firstByteMs: 10_000 } }),
    ).answer;
    expect(Buffer.from((await inbound.read()) ?? []).toString()).toBe("some");
    const rest = inbound.read();
    for (const socket of upstream.sockets) socket.write("5\r\n");
    expect(await faultOf(rest)).toEqual({ kind: "idle_timeout", answered: true });
  });

  test("a time limit does not run while nobody reads", async () => {
    const upstream = await startUpstream(reply("HTTP/1.1 200 OK\r\n\r\nsome"));
    const client = openClient();
    // A busy machine delivers bytes within this limit. The request to `other` takes longer than that.
    const slow = await client.send(
      outbound(upstream.origin, { deadlines: { connectMs: 10_000, firstByteMs: 10_000, idleMs: 1500 } }),
    ).answer;
    await slow.read();
    const other = await startUpstream(() => {});
    await faultOf(client.send(outbound(other.origin, { deadlines: { ...short, firstByteMs: 2000 } })).answer);
    for (const socket of upstream.sockets) socket.end("more");
    expect((await readAll(slow)).toString()).toBe("more");
  });
});

describe("an answer that is not read makes its upstream wait", () => {
  test("an answer that is not read pauses its upstream, and is complete when it is read later", async () => {
    const size = 40_000_000;
    const chunk = Buffer.alloc(100_000, "z");
    let written = 0;
    const upstream = await startUpstream((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`);
      const more = (): void => {
        while (written < size) {
          written += chunk.length;
          if (!socket.write(chunk)) {
            socket.once("drain", more);
            return;
          }
        }
      };
      more();
    });
    const inbound = await openClient().send(outbound(upstream.origin)).answer;
    let before = -1;
    for (let still = 0; still < 50; still = before === written ? still + 1 : 0) {
      before = written;
      await tick();
    }
    expect(written).toBeLessThan(size / 2);
    let total = 0;
    for (let piece = await inbound.read(); piece !== null; piece = await inbound.read())
      total += piece.length;
    expect(total).toBe(size);
  });
});
