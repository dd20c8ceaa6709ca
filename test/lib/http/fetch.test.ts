// Variables of the environment do not change how requests are sent: no credential goes to a proxy or to
// stderr, and no wrong certificate is accepted.

import { expect, onTestFinished, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { makeIdentity } from "../../harness/upstreams/identity.ts";
import { listenOn } from "./peers.ts";

const CREDENTIAL = "sk-credential-of-the-channel-0123456789";
const SRC = `${import.meta.dir}/../../../src/lib/http`;

/** Starts a server that notes all that it gets. */
async function listen(answer: string): Promise<{ port: number; seen: () => string }> {
  let text = "";
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
      socket.end(answer);
    });
  });
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  return { port: await listenOn(server), seen: () => text };
}

/** Runs a script with hostile variables in the environment. */
async function runMisled(script: string, proxyPort: number): Promise<{ stdout: string; stderr: string }> {
  const proxy = `http://127.0.0.1:${proxyPort}`;
  const child = Bun.spawn([process.execPath, "-e", script], {
    env: {
      ...process.env,
      HTTP_PROXY: proxy,
      HTTPS_PROXY: proxy,
      ALL_PROXY: proxy,
      NO_PROXY: "",
      BUN_CONFIG_VERBOSE_FETCH: "curl",
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { stdout: stdout.trim(), stderr };
}

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

const byFetch = (url: string, proxy = "null"): string => `
  import { fetchAnswer } from "${SRC}/fetch.ts";
  const signal = AbortSignal.timeout(10_000);
  const body = JSON.stringify({ key: "${CREDENTIAL}" });
  await fetchAnswer(new URL("${url}"), { proxy: ${proxy}, signal, method: "POST", body }).then(
    async (answer) => console.log(answer.status, await answer.text()), (error) => console.log(error.code));`;

const byClient = (tls: boolean, port: number): string => `
  import { createClient } from "${SRC}/client.ts";
  const deadlines = { connectMs: 10_000, firstByteMs: 10_000, idleMs: 10_000 };
  const origin = { tls: ${tls}, host: "127.0.0.1", port: ${port} };
  const fields = [["authorization", "Bearer ${CREDENTIAL}"]];
  const { answer } = createClient().send({ origin, method: "GET", target: "/", fields, body: null, deadlines });
  await answer.then(({ head }) => console.log(head.status), ({ kind }) => console.log(kind));
  process.exit();`;

test.each([
  ["fetch", byFetch, "200 ok"],
  ["the client", (url: string) => byClient(false, Number(new URL(url).port)), "200"],
] as const)(
  "%s: a credential for an address of this machine goes neither to a proxy nor to stderr",
  async (_, script, said) => {
    const proxy = await listen(OK);
    const own = await listen(OK);
    const { stdout, stderr } = await runMisled(script(`http://127.0.0.1:${own.port}/`), proxy.port);
    expect(stdout).toBe(said);
    expect(own.seen()).toContain(CREDENTIAL);
    expect(proxy.seen()).toBe("");
    expect(stderr).toBe("");
  },
);

test("fetch: the proxy that the caller names is used", async () => {
  const wrong = await listen(OK);
  const proxy = await listen(OK);
  const script = byFetch("http://upstream.invalid/", `new URL("http://127.0.0.1:${proxy.port}")`);
  const { stdout } = await runMisled(script, wrong.port);
  expect([stdout, wrong.seen()]).toEqual(["200 ok", ""]);
  expect(proxy.seen()).toContain("upstream.invalid");
});

test("P194: fetch: a redirect is not followed", async () => {
  const target = await listen(OK);
  const location = `http://127.0.0.1:${target.port}/`;
  const own = await listen(`HTTP/1.1 307 x\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`);
  const { stdout } = await runMisled(byFetch(`http://127.0.0.1:${own.port}/`), 1);
  expect([stdout, target.seen()]).toEqual(["307", ""]);
});

test.each([
  ["fetch", (port: number) => byFetch(`https://127.0.0.1:${port}/`), "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
  ["the client", (port: number) => byClient(true, port), "tls"],
] as const)("P194: %s: a certificate of an unknown authority is refused", async (_, script, said) => {
  const { certificate: cert, key } = makeIdentity(["127.0.0.1"], Date.now());
  let requests = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { cert, key },
    fetch: () => {
      requests += 1;
      return new Response("ok");
    },
  });
  onTestFinished(() => server.stop(true));
  const { stdout, stderr } = await runMisled(script(server.port ?? 0), 1);
  expect([stdout, requests]).toEqual([said, 0]);
  expect(stderr).not.toContain(CREDENTIAL);
});
