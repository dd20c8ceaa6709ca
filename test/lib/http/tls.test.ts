// Tests TLS and proxies. The certificates are made by the openssl command; without it
// the tests of TLS are skipped, and say so.

import { beforeAll, describe, expect, onTestFinished, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server as NetServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { Origin } from "../../../src/lib/http/upstream.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { faultOf, listenOn, openClient, outbound, readAll, startUpstream, type Upstream } from "./peers.ts";

const noOpenssl = Bun.which("openssl") === null;

interface Identity {
  readonly key: string;
  readonly cert: string;
}

let ca = "";
let foreignCa = "";
let local: Identity = { key: "", cert: "" };
let other: Identity = local;
let elsewhere: Identity = local;
let selfSigned: Identity = local;

beforeAll(() => {
  if (noOpenssl) return;
  using folder = makeTempFolder();
  const openssl = (...args: string[]): void =>
    void execFileSync("openssl", args, { cwd: folder.path, stdio: "ignore" });
  const read = (name: string): string => readFileSync(folder.join(name), "utf8");
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const makeRoot = (name: string): void => {
    const extensions = [
      "-addext",
      "basicConstraints=critical,CA:TRUE",
      "-addext",
      "keyUsage=keyCertSign,digitalSignature",
    ];
    openssl(
      "req",
      "-x509",
      ...newKey,
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.pem`,
      "-subj",
      `/CN=${name}`,
      ...extensions,
    );
  };
  const makeLeaf = (name: string, names: string): Identity => {
    writeFileSync(folder.join("names"), `subjectAltName=${names}\n`);
    openssl("req", ...newKey, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", `/CN=${name}`);
    const signer = ["-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial"];
    openssl("x509", "-req", "-in", `${name}.csr`, ...signer, "-out", `${name}.pem`, "-extfile", "names");
    return { key: read(`${name}.key`), cert: read(`${name}.pem`) };
  };
  makeRoot("root");
  makeRoot("foreign");
  ca = read("root.pem");
  foreignCa = read("foreign.pem");
  selfSigned = { key: read("foreign.key"), cert: foreignCa };
  local = makeLeaf("local", "DNS:localhost,IP:127.0.0.1");
  other = makeLeaf("other", "DNS:other.test");
  // The proxy of the tests is at localhost: a certificate for it must not be accepted for an origin at 127.0.0.1.
  elsewhere = makeLeaf("elsewhere", "DNS:localhost,DNS:127.0.0.1,IP:127.0.0.2");
});

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

async function startTls(
  identity: Identity,
  script = (socket: Socket) => void socket.write(OK),
): Promise<Upstream> {
  return await startUpstream(script, undefined, (accept) => {
    const server = createTlsServer(identity, accept);
    server.on("tlsClientError", () => {});
    return server;
  });
}

const originOf = (upstream: Upstream, more: Partial<Origin> = {}): Origin => ({
  tls: true,
  host: "localhost",
  port: upstream.port,
  ca,
  ...more,
});

const faultAt = (origin: Origin): Promise<unknown> => faultOf(openClient().send(outbound(origin)).answer);

describe.skipIf(noOpenssl)("P194: requests over TLS are sent only if the certificate is right", () => {
  test.each(["localhost", "127.0.0.1"])(
    "an upstream at %s gets requests if its certificate has that name, and its connection is reused",
    async (host) => {
      const upstream = await startTls(local);
      const client = openClient();
      for (let turn = 0; turn < 3; turn++) {
        const inbound = await client.send(outbound(originOf(upstream, { host }))).answer;
        expect((await readAll(inbound)).toString()).toBe("ok");
      }
      expect(upstream.connections).toBe(1);
      expect(upstream.requests[0]?.head).toBe(`GET / HTTP/1.1\r\nhost: ${host}:${upstream.port}`);
    },
  );

  test("a connection that had ended is not reused, even before the event loop reports it", async () => {
    const upstream = await startTls(local);
    const client = openClient();
    const origin = originOf(upstream);
    await readAll(await client.send(outbound(origin)).answer);
    await readAll(await client.send(outbound(origin)).answer);
    // A TLS session ends with an alert, which the kernel takes for ordinary data.
    for (const socket of upstream.sockets) await new Promise<void>((resolve) => socket.end(() => resolve()));
    const inbound = await client.send(outbound(origin, { method: "POST" })).answer;
    expect((await readAll(inbound)).toString()).toBe("ok");
    expect([upstream.connections, upstream.requests.length]).toEqual([2, 3]);
  });

  test("nothing is sent to an upstream whose certificate is of an unknown authority", async () => {
    const upstream = await startTls(local);
    const { ca: _, ...origin } = originOf(upstream);
    expect(await faultAt(origin)).toEqual({ kind: "tls", answered: false });
    expect(await faultAt({ ...origin, ca: foreignCa })).toEqual({ kind: "tls", answered: false });
    expect(upstream.requests).toEqual([]);
  });

  test("nothing is sent to an upstream whose certificate has another name", async () => {
    const upstream = await startTls(other);
    expect(await faultAt(originOf(upstream))).toEqual({ kind: "tls", answered: false });
    expect(await faultAt(originOf(upstream, { host: "127.0.0.1" }))).toEqual({
      kind: "tls",
      answered: false,
    });
    expect(upstream.requests).toEqual([]);
  });

  test("nothing is sent to an upstream with a self-signed certificate", async () => {
    const upstream = await startTls(selfSigned);
    expect(await faultAt(originOf(upstream))).toEqual({ kind: "tls", answered: false });
    expect(upstream.requests).toEqual([]);
  });

  test("a peer without TLS, or one that closes during the handshake, causes a TLS fault", async () => {
    for (const leave of [
      (socket: Socket) => void socket.end("HTTP/1.1 400 x\r\n\r\n"),
      (socket: Socket) => void socket.resetAndDestroy(),
    ]) {
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => leave(socket));
      });
      expect(await faultAt({ tls: true, host: "localhost", port: await listenOn(server), ca })).toEqual({
        kind: "tls",
        answered: false,
      });
    }
  });

  // RFC 6066: an address is not a host name, and some servers refuse a handshake with it.
  test("the name of the upstream is sent in the handshake, an address is not", async () => {
    for (const [host, isSent] of [
      ["localhost", true],
      ["127.0.0.1", false],
    ] as const) {
      const hello = Promise.withResolvers<Buffer>();
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", (bytes: Buffer) => {
          hello.resolve(bytes);
          socket.destroy();
        });
      });
      await faultAt({ tls: true, host, port: await listenOn(server), ca });
      expect((await hello.promise).includes(host)).toBe(isSent);
    }
  });

  test("a handshake that never ends runs out of time", async () => {
    const server = createServer((socket) => socket.on("error", () => {}));
    const origin = { tls: true, host: "localhost", port: await listenOn(server), ca };
    const deadlines = { connectMs: 50, firstByteMs: 10_000, idleMs: 10_000 };
    expect(await faultOf(openClient().send(outbound(origin, { deadlines })).answer)).toEqual({
      kind: "connect_timeout",
      answered: false,
    });
  });

  test("an authority that is not PEM is a fault, not a crash", async () => {
    const upstream = await startTls(local);
    expect(await faultAt(originOf(upstream, { ca: "nonsense" }))).toMatchObject({ answered: false });
  });

  test("large bodies arrive in both directions, and a slow side pauses the other", async () => {
    const size = 12_000_000;
    const body = new Uint8Array(size);
    for (let at = 0; at < size; at++) body[at] = at * 13;
    const upstream = await startUpstream(
      (socket, request) => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${request.body.length}\r\n\r\n`);
        socket.end(request.body);
      },
      (socket) => {
        socket.pause();
        setImmediate(() => socket.resume());
      },
      (accept) => createTlsServer(local, accept),
    );
    const inbound = await openClient().send(outbound(originOf(upstream), { method: "POST", body })).answer;
    const pieces: Uint8Array[] = [];
    for (let piece = await inbound.read(); piece !== null; piece = await inbound.read()) {
      pieces.push(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(Buffer.compare(Buffer.concat(pieces), body)).toBe(0);
  });

  test("a cut response is reported as cut", async () => {
    const upstream = await startTls(
      local,
      (socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsome"),
    );
    const inbound = await openClient().send(outbound(originOf(upstream))).answer;
    expect(await faultOf(readAll(inbound))).toEqual({ kind: "cut", answered: true });
  });
});

/** A proxy of a few lines: CONNECT opens a tunnel, and any other request is passed on as it is. */
interface Proxy {
  readonly port: number;
  readonly heads: string[];
}

async function startProxy(
  options: { refuse?: string; listenWith?: (accept: (socket: Socket) => void) => NetServer } = {},
): Promise<Proxy> {
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  const server = (options.listenWith ?? createServer)((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", (bytes: Buffer) => {
      const head = bytes.toString("latin1", 0, bytes.indexOf("\r\n\r\n"));
      heads.push(head);
      const target = /^(?:CONNECT |[A-Z]+ http:\/\/)([^:/ ]+):(\d+)/.exec(head);
      if (options.refuse !== undefined || target === null) {
        socket.end(options.refuse ?? "HTTP/1.1 400 Bad\r\n\r\n");
        return;
      }
      const onward = connect(Number(target[2]), target[1] === "localhost" ? "127.0.0.1" : target[1]);
      sockets.add(onward);
      onward.on("error", () => socket.destroy());
      onward.on("close", () => socket.destroy());
      socket.on("close", () => onward.destroy());
      if (head.startsWith("CONNECT")) {
        socket.write("HTTP/1.1 200 Connec");
        setImmediate(() => socket.write("tion established\r\nx: y\r\n\r\n"));
      } else {
        onward.write(bytes);
      }
      socket.pipe(onward).pipe(socket);
    });
  });
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  return { port: await listenOn(server), heads };
}

const startPlain = (): Promise<Upstream> => startUpstream((socket) => void socket.write(OK));

describe("requests through a proxy reach their origin", () => {
  test("through a proxy, an origin without TLS is requested by its full address, with the credential of the proxy's URL", async () => {
    const upstream = await startPlain();
    const proxy = await startProxy();
    const origin = { ...upstream.origin, proxy: new URL(`http://me:p%40ss@127.0.0.1:${proxy.port}`) };
    const client = openClient();
    for (let turn = 0; turn < 2; turn++)
      await readAll(await client.send(outbound(origin, { target: "/a?b" })).answer);
    const at = `127.0.0.1:${upstream.port}`;
    const credential = Buffer.from("me:p@ss").toString("base64");
    expect(proxy.heads).toEqual([
      `GET http://${at}/a?b HTTP/1.1\r\nhost: ${at}\r\nproxy-authorization: Basic ${credential}`,
    ]);
    expect(upstream.requests).toHaveLength(2);
  });

  test.each([
    ["pa%ss", "pa%ss"],
    ["p%C3%A9", "pé"],
    ["100%", "100%"],
  ])("the proxy's password may contain a plain percent sign: %s", async (written, meant) => {
    const upstream = await startPlain();
    const proxy = await startProxy();
    const origin = { ...upstream.origin, proxy: new URL(`http://me:${written}@127.0.0.1:${proxy.port}`) };
    await readAll(await openClient().send(outbound(origin)).answer);
    expect(proxy.heads[0]).toEndWith(` Basic ${Buffer.from(`me:${meant}`).toString("base64")}`);
  });

  test.skipIf(noOpenssl)(
    "through a proxy, a TLS origin is reached by CONNECT; its name and certificate are checked and its connection is reused",
    async () => {
      const upstream = await startTls(local);
      const proxy = await startProxy();
      const origin = originOf(upstream, { proxy: new URL(`http://me:you@127.0.0.1:${proxy.port}`) });
      const client = openClient();
      for (let turn = 0; turn < 2; turn++) {
        expect((await readAll(await client.send(outbound(origin, { target: "/a" })).answer)).toString()).toBe(
          "ok",
        );
      }
      expect([...upstream.sockets].map((socket) => Reflect.get(socket, "servername"))).toEqual(["localhost"]);
      const at = `localhost:${upstream.port}`;
      expect(proxy.heads).toEqual([
        `CONNECT ${at} HTTP/1.1\r\nhost: ${at}\r\nproxy-authorization: Basic bWU6eW91`,
      ]);
      expect(upstream.requests.map(({ head }) => head)).toEqual(
        Array.from({ length: 2 }, () => `GET /a HTTP/1.1\r\nhost: ${at}`),
      );
    },
  );

  test.skipIf(noOpenssl)("through a proxy, a large body arrives complete", async () => {
    const upstream = await startTls(local, (socket) => void socket.write(OK));
    const proxy = await startProxy();
    const origin = originOf(upstream, { proxy: new URL(`http://127.0.0.1:${proxy.port}`) });
    const body = new Uint8Array(8_000_000).fill(7);
    expect((await openClient().send(outbound(origin, { method: "POST", body })).answer).head.status).toBe(
      200,
    );
    expect(Buffer.compare(upstream.requests[0]?.body ?? Buffer.alloc(0), body)).toBe(0);
  });

  test.skipIf(noOpenssl)("through a proxy, a certificate has to name the origin's IP address", async () => {
    const proxy = await startProxy();
    const via = { host: "127.0.0.1", proxy: new URL(`http://localhost:${proxy.port}`) };
    const right = await startTls(local);
    const inbound = await openClient().send(outbound(originOf(right, via))).answer;
    expect((await readAll(inbound)).toString()).toBe("ok");
    for (const identity of [other, elsewhere, selfSigned]) {
      const wrong = await startTls(identity);
      expect(await faultAt(originOf(wrong, via))).toEqual({ kind: "tls", answered: false });
      expect(wrong.requests).toEqual([]);
    }
  });

  test.skipIf(noOpenssl)("through a proxy, an origin with another name or authority is refused", async () => {
    const proxy = await startProxy();
    const via = { proxy: new URL(`http://127.0.0.1:${proxy.port}`) };
    const upstreams = [await startTls(other), await startTls(selfSigned)];
    for (const upstream of upstreams) {
      expect(await faultAt(originOf(upstream, via))).toEqual({ kind: "tls", answered: false });
      expect(upstream.requests).toEqual([]);
    }
  });

  test.each([
    ["refuses", "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"],
    ["speaks no HTTP", "SSH-2.0\r\n\r\n"],
    ["speaks before the tunnel stands", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"],
    ["hangs up", ""],
  ])("through a proxy that %s, a TLS origin cannot be connected to", async (_, refuse) => {
    const proxy = await startProxy({ refuse });
    const origin = {
      tls: true,
      host: "localhost",
      port: 1,
      proxy: new URL(`http://127.0.0.1:${proxy.port}`),
    };
    expect(await faultAt(origin)).toEqual({ kind: "connect", answered: false });
  });
});
