// The proxy of `gateway run --transparent`: what it serves, what it tunnels, and what it refuses.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server as NetServer, type Socket } from "node:net";
import { makeIdentity } from "../../../src/cli/tools/transparent/authority.ts";
import { type Forwarder, openForwarder } from "../../../src/cli/tools/transparent/forward.ts";
import { isWithoutInference } from "../../../src/cli/tools/transparent/paths.ts";
import { openProxy, type RunProxy } from "../../../src/cli/tools/transparent/proxy.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { listen } from "../../../src/lib/http1/server/server.ts";
import type { Exchange, Server } from "../../../src/lib/http/exchange.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";

const HOST = "api.anthropic.com";
const NOW = Date.now();
const identity = makeIdentity([HOST, "api.openai.com"], NOW);
const ELSEWHERE = ["--url", "http://gw:1", "--secret", "sk-s"];
const PLACEHOLDER = "gateway-placeholder";

interface Seen {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly body: string;
}

let seen: Seen[] = [];
let gateway: Server;
let forwarder: Forwarder;
let proxy: RunProxy;
let reply: (exchange: Exchange) => void;

beforeEach(() => {
  seen = [];
  reply = (exchange) => exchange.answer(200, [["content-type", "application/json"]], "{}");
  gateway = listen({ hostname: "127.0.0.1", port: 0, onExchange: (exchange) => void record(exchange) });
  start({});
});

async function record(exchange: Exchange): Promise<void> {
  const body = Buffer.from(await exchange.readBody(1 << 20)).toString();
  const { method, target, fields } = exchange;
  seen.push({ method, target, fields: [...fields], body });
  reply(exchange);
}

function start(env: Record<string, string>): void {
  forwarder = openForwarder({
    gateway: { tls: false, host: "127.0.0.1", port: gateway.port },
    own: [
      ["x-gateway-key", "sk-run"],
      ["x-gateway-label", "my project"],
    ],
    hosts: [HOST, "api.openai.com"],
    placeholder: PLACEHOLDER,
    env,
    dialect: messages,
  });
  proxy = openProxy({ hosts: [HOST, "api.openai.com"], identity, env, onExchange: forwarder.onExchange });
}

afterEach(() => {
  proxy.close();
  forwarder.close();
  gateway.stopNow();
});

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`https://${HOST}${path}`, { ...init, proxy: proxy.url, tls: { ca: identity.authority } });
}

describe("the certificates of a run", () => {
  const root = new X509Certificate(identity.authority);
  const leaf = new X509Certificate(identity.certificate);

  test("the hosts' certificate is valid for the hosts of the run and for no other", () => {
    expect(leaf.verify(root.publicKey)).toBe(true);
    expect(leaf.checkIssued(root)).toBe(true);
    expect(leaf.checkHost(HOST)).toBe(HOST);
    expect(leaf.checkHost("api.openai.com")).toBe("api.openai.com");
    expect(leaf.checkHost("github.com")).toBeUndefined();
    expect([root.ca, leaf.ca]).toEqual([true, false]);
  });

  test("the certificates live for seven days", () => {
    for (const { validTo, validFrom } of [root, leaf]) {
      expect(Date.parse(validTo) - NOW).toBeWithin(7 * 86_400_000 - 2000, 7 * 86_400_000 + 2000);
      expect(Date.parse(validFrom)).toBeLessThanOrEqual(NOW - 3_599_000);
    }
  });
});

describe("a request to a host of the group", () => {
  test("reaches the gateway as it is, with the key and the label of the run", async () => {
    const sent = {
      method: "POST",
      body: '{"a":1}',
      headers: { "x-api-key": PLACEHOLDER, "anthropic-beta": "b" },
    };
    const response = await ask("/v1/messages?beta=true", sent);
    expect([response.status, await response.text()]).toEqual([200, "{}"]);
    const [request] = seen;
    expect(request).toMatchObject({ method: "POST", target: "/v1/messages?beta=true", body: '{"a":1}' });
    const fields = Object.fromEntries(request?.fields ?? []);
    expect(fields).toMatchObject({
      "anthropic-beta": "b",
      "x-api-key": PLACEHOLDER,
      "x-gateway-key": "sk-run",
      "x-gateway-label": "my project",
      host: `127.0.0.1:${gateway.port}`,
    });
    expect(fields["proxy-authorization"]).toBeUndefined();
  });

  test("takes no gateway field from the tool", async () => {
    await ask("/v1/models", { headers: { "x-gateway-key": "sk-other", "x-gateway-label": "other" } });
    const own = seen[0]?.fields.filter(([name]) => name.startsWith("x-gateway-"));
    expect(own).toEqual([
      ["x-gateway-key", "sk-run"],
      ["x-gateway-label", "my project"],
    ]);
  });

  test("gets a stream as it comes", async () => {
    let finish = (): void => {};
    reply = (exchange) => {
      exchange.begin(200, [["content-type", "text/event-stream"]]);
      exchange.write(Buffer.from("data: 1\n\n"));
      finish = () => exchange.end(Buffer.from("data: 2\n\n"));
    };
    const response = await ask("/v1/messages", { method: "POST", body: "{}" });
    const reader = response.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("data: 1\n\n");
    finish();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("data: 2\n\n");
  });

  test("that is left is left at the gateway", async () => {
    const left = Promise.withResolvers<void>();
    const abort = new AbortController();
    reply = (exchange) => {
      exchange.onGone(() => left.resolve());
      abort.abort();
    };
    expect(ask("/v1/messages", { method: "POST", body: "{}", signal: abort.signal })).rejects.toThrow();
    await left.promise;
  });

  test("that the gateway cuts is cut for the tool", async () => {
    reply = (exchange) => {
      exchange.begin(200, [], 100);
      exchange.write(Buffer.from("half"));
      exchange.onceSent(() => exchange.reset());
    };
    const text = ask("/v1/messages", { method: "POST", body: "{}" }).then((response) => response.text());
    expect(text).rejects.toThrow();
  });

  test("without inference needs a login of the tool, and never reaches the gateway", async () => {
    for (const headers of [{}, { "x-api-key": PLACEHOLDER }, { authorization: `Bearer ${PLACEHOLDER}` }]) {
      expect((await ask("/api/oauth/profile", { headers })).status).toBe(404);
    }
    expect(seen).toHaveLength(0);
  });
});

test.each([
  ["GET", "/api/oauth/profile", true],
  ["GET", "/api/oauth/profile?x=1", true],
  ["POST", "/api/event_logging/v2/batch", true],
  ["POST", "/api/oauth/profile", false],
  ["GET", "/api/oauth/%70rofile", false],
  ["GET", "/API/oauth/profile", false],
  ["POST", "/api/event_logging/../../v1/messages", false],
  ["POST", "/api/event_logging//v1/messages", false],
  ["POST", "/api/event_logging/%2e%2e/v1/messages", false],
  ["POST", "/v1/messages", false],
  ["GET", "/v1/models", false],
])("%s %s goes straight to the vendor: %p", (method, target, expected) => {
  expect(isWithoutInference(method, target)).toBe(expected);
});

describe("the proxy of a run", () => {
  function dial(): { socket: Socket; text: Promise<string> } {
    const socket = connect(Number(new URL(proxy.url).port), "127.0.0.1");
    const text = new Promise<string>((resolve) => {
      let all = "";
      socket.on("data", (chunk) => (all += chunk.toString("latin1")));
      socket.on("close", () => resolve(all));
      socket.on("error", () => resolve(all));
    });
    return { socket, text };
  }

  test.each([
    [
      "without a secret",
      "CONNECT github.com:443 HTTP/1.1\r\n\r\n",
      /^HTTP\/1\.1 407 .*proxy-authenticate: Basic/s,
    ],
    [
      "with the secret of another run",
      `CONNECT github.com:443 HTTP/1.1\r\nproxy-authorization: Basic ${btoa("run:0123")}\r\n\r\n`,
      /^HTTP\/1\.1 407 /,
    ],
    [
      "that is not CONNECT",
      "GET http://github.com/ HTTP/1.1\r\nhost: github.com\r\n\r\n",
      /^HTTP\/1\.1 405 /,
    ],
    ["that is no HTTP", "\x16\x03\x01\x02\r\n\r\n", /^HTTP\/1\.1 405 /],
    ["with a head above 16 KiB", `CONNECT a:1 HTTP/1.1\r\nx: ${"y".repeat(17_000)}`, /^HTTP\/1\.1 400 /],
  ])("refuses a request %s", async (_, bytes, expected) => {
    const { socket, text } = dial();
    socket.write(bytes);
    expect(await text).toMatch(expected);
  });

  /** Up to where TLS begins. */
  async function begin(): Promise<Socket> {
    const { username, password } = new URL(proxy.url);
    const { socket } = dial();
    const credential = btoa(`${username}:${password}`);
    socket.write(`CONNECT ${HOST}:443 HTTP/1.1\r\nproxy-authorization: Basic ${credential}\r\n\r\n`);
    await new Promise((resolve) => socket.once("data", resolve));
    return socket;
  }

  // A client that does not trust the authority leaves so. An error that nobody handles fails the test.
  test.each([
    ["nothing", ""],
    ["the beginning of a handshake", "\x16\x03\x01\x02\x00\x01\x00"],
    ["what is no TLS", "GET / HTTP/1.1\r\n\r\n"],
  ])("outlasts clients that leave after %s", async (_, bytes) => {
    for (const end of ["end", "resetAndDestroy"] as const)
      for (let client = 0; client < 5; client += 1) {
        const socket = await begin();
        const closed = new Promise((resolve) => socket.once("close", resolve));
        if (bytes !== "") await new Promise((resolve) => socket.write(bytes, "latin1", resolve));
        socket[end]();
        await closed;
      }
    expect((await ask("/v1/messages")).status).toBe(200);
  });
});

describe("a tunnel to another host", () => {
  let server: NetServer;
  let port = 0;
  let serve: (socket: Socket) => void;

  beforeEach(async () => {
    serve = (socket) => void socket.pipe(socket);
    server = createServer((socket) => {
      socket.on("error", () => {});
      serve(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    port = address !== null && typeof address === "object" ? address.port : 0;
  });

  afterEach(() => void server.close());

  async function open(target = `127.0.0.1:${port}`): Promise<{ socket: Socket; status: string }> {
    const { username, password, port: own } = new URL(proxy.url);
    const socket = connect(Number(own), "127.0.0.1");
    socket.on("error", () => {});
    socket.write(
      `CONNECT ${target} HTTP/1.1\r\nproxy-authorization: Basic ${btoa(`${username}:${password}`)}\r\n\r\n`,
    );
    return { socket, status: (await readHead(socket)).slice(9, 12) };
  }

  /** What follows the head is read later. */
  function readHead(socket: Socket): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.once("data", (chunk) => {
      socket.pause();
      const end = Buffer.from(chunk).indexOf("\r\n\r\n") + 4;
      if (end < chunk.length) socket.unshift(Buffer.from(chunk).subarray(end));
      resolve(Buffer.from(chunk).toString("latin1", 0, end));
    });
    return promise;
  }

  async function readAll(socket: Socket): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  test("delivers everything that was sent before the other side closed", async () => {
    const bytes = Buffer.alloc(20_000_000, 7);
    serve = (socket) => void socket.end(bytes);
    const { socket } = await open();
    expect((await readAll(socket)).length).toBe(bytes.length);
  });

  test("ends when the tool leaves", async () => {
    const ended = Promise.withResolvers<void>();
    serve = (socket) => void socket.on("close", () => ended.resolve()).resume();
    const { socket } = await open();
    socket.destroy();
    await ended.promise;
  });

  test("to a port where nobody listens is a 502", async () => {
    server.close();
    expect((await open("127.0.0.1:1")).status).toBe("502");
  });

  test("works two hundred times at once", async () => {
    const all = await Promise.all(Array.from({ length: 200 }, () => open()));
    const echoes = all.map(
      ({ socket }, index) =>
        new Promise<string>((resolve) => {
          socket.once("data", (chunk) => resolve(chunk.toString())).resume();
          socket.write(`tunnel ${index}`);
        }),
    );
    expect(await Promise.all(echoes)).toEqual(all.map((_, index) => `tunnel ${index}`));
    all.forEach(({ socket }) => socket.destroy());
  });

  test("uses the proxy that was set before, with its credential", async () => {
    let head = "";
    serve = (socket) => {
      socket.once("data", (chunk) => {
        head = chunk.toString();
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        socket.pipe(socket);
      });
    };
    proxy.close();
    start({ HTTPS_PROXY: `http://me:p%40ss@127.0.0.1:${port}` });
    const { socket, status } = await open("github.com:443");
    expect(status).toBe("200");
    expect(head).toStartWith("CONNECT github.com:443 HTTP/1.1\r\n");
    expect(head).toContain(`proxy-authorization: Basic ${btoa("me:p@ss")}`);
    socket.write("ping");
    expect(
      await new Promise((resolve) => socket.once("data", (chunk) => resolve(chunk.toString())).resume()),
    ).toBe("ping");
    socket.destroy();
  });

  test("is refused as the proxy that was set before refuses it", async () => {
    serve = (socket) => void socket.once("data", () => socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"));
    proxy.close();
    start({ HTTPS_PROXY: `http://127.0.0.1:${port}` });
    const { socket, status } = await open("github.com:443");
    expect(status).toBe("502");
    socket.destroy();
  });

  test("passes the host of a group on another port", async () => {
    let head = "";
    serve = (socket) =>
      void socket.once("data", (chunk) => socket.end(((head = chunk.toString()), "HTTP/1.1 403 No\r\n\r\n")));
    proxy.close();
    start({ HTTPS_PROXY: `http://127.0.0.1:${port}` });
    await open(`${HOST}:8443`);
    expect(head).toStartWith(`CONNECT ${HOST}:8443`);
  });
});

describe("`gateway run --transparent`", () => {
  test.each([
    ["another tool", [...ELSEWHERE, "openai", "true"], {}, /--transparent: the OpenAI SDK/],
    [
      "a SOCKS proxy",
      [...ELSEWHERE, "claude"],
      { ALL_PROXY: "socks5://127.0.0.1:9", HTTPS_PROXY: "" },
      /it is not an http: proxy/,
    ],
  ])("is refused for %s", async (_, words, env, message) => {
    using folder = makeTempFolder();
    mkdirSync(folder.join("bin"));
    writeFileSync(folder.join("bin/claude"), "#!/bin/sh\n", { mode: 0o755 });
    const PATH = `${folder.join("bin")}:${process.env["PATH"]}`;
    const surroundings = { folder: folder.path, env: { PATH, HOME: folder.path, ...env } };
    const { status, stderr } = await run(surroundings, "run", "--transparent", ...words);
    expect(stderr).toMatch(message);
    expect(status).not.toBe(0);
  });
});
