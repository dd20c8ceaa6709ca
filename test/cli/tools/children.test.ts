// `gateway run --transparent`: what the tool gets, and programs that it starts. As long as they call other hosts, they do not
// notice it.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import { connect, createServer, type Server } from "node:net";
import { makeIdentity } from "../../../src/cli/tools/transparent/authority.ts";
import { CREDENTIAL, startGateway } from "../../harness/gateway.ts";
import { hasPrograms } from "../../harness/needs.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { startVendor, type Vendor } from "../../harness/upstreams/vendor.ts";
import { run } from "../driving.ts";

const VENDOR = "api.anthropic.com";
const SECRET = "sk-the-key-of-the-run";
/** Only the proxy that was set before knows it. */
const REMOTE = "web.example";
const COMMIT = "0123456789012345678901234567890123456789";
const RELEASE = {
  name: "thing",
  version: "1.2.3",
  dist: { tarball: "https://localhost/t", shasum: "0" },
};
const PACKAGE = { name: "thing", "dist-tags": { latest: "1.2.3" }, versions: { "1.2.3": RELEASE } };

/** An MCP server on its standard streams, whose one tool asks a host. */
const MCP = `
for await (const line of console) {
  const { id, params } = JSON.parse(line);
  const text = await (await fetch(params.arguments.url)).text();
  console.log(JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } }));
  break;
}
process.exit();`;

/** Its runtime takes a proxy for WebSockets as a setting only. */
const SOCKET = `
const { HTTPS_PROXY, NO_PROXY } = process.env;
const proxy = NO_PROXY ? undefined : HTTPS_PROXY || undefined;
const socket = new WebSocket(process.argv[2], { proxy });
socket.onopen = () => socket.send("hello");
socket.onmessage = ({ data }) => { console.log(data); process.exit(); };
socket.onerror = ({ message }) => { console.log("failed", message); process.exit(1); };`;

/** Offers nothing else to the server, as gRPC does not. */
const HTTP_2 = `
const [host, port] = process.argv.slice(2);
const { HTTPS_PROXY, NO_PROXY } = process.env;
const proxy = NO_PROXY || !HTTPS_PROXY ? null : new URL(HTTPS_PROXY);
const socket = require("net").connect(proxy?.port ?? port, "127.0.0.1");
const begin = () => {
  const tls = { socket, servername: host, ALPNProtocols: ["h2"], ca: require("fs").readFileSync(process.env.NODE_EXTRA_CA_CERTS) };
  const secure = require("tls").connect(tls, () => {
    const session = require("http2").connect("https://" + host, { createConnection: () => secure });
    const request = session.request({ ":path": "/d" });
    request.on("data", (chunk) => console.log(String(chunk))).on("end", () => process.exit());
    request.end();
  });
  secure.on("error", ({ code }) => { console.log("failed", code); process.exit(1); });
};
if (proxy === null) socket.once("connect", begin);
else {
  const secret = proxy.username === "" ? "" : "proxy-authorization: Basic " + btoa(proxy.username + ":" + proxy.password) + "\\r\\n";
  socket.write("CONNECT " + host + ":" + port + " HTTP/1.1\\r\\n" + secret + "\\r\\n");
  socket.once("data", begin);
}`;

/** Asks the vendor's host with the placeholder, as the tool itself does. */
const ASK = `
const headers = { "x-api-key": process.env.ANTHROPIC_API_KEY, "content-type": "application/json" };
const body = JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 5, messages: [{ role: "user", content: "hi" }] });
const response = await fetch("https://${VENDOR}/v1/messages", { method: "POST", headers, body });
console.log("vendor", response.status, (await response.text()).includes("does not answer"));`;

/** The profile with a login, without one, and a path that is not known. */
const PROFILE = `
const headers = { authorization: "Bearer sk-ant-oat01-invented" };
const ask = async (path, more) => (await fetch("https://${VENDOR}" + path, more)).status;
console.log(await ask("/api/oauth/profile", { headers }), await ask("/api/oauth/profile"), await ask("/v1/organizations", { headers }));`;

const SHOW = `
const { readFileSync, statSync } = require("node:fs");
const path = process.env.NODE_EXTRA_CA_CERTS;
const certificates = readFileSync(path, "utf8").match(/BEGIN CERTIFICATE/g).length;
console.log(JSON.stringify({ env: process.env, certificates, mode: (statSync(path).mode & 0o777).toString(8) }));`;

let folder: TempFolder;
let web: Http2SecureServer;
let echo: ReturnType<typeof Bun.serve>;
let before: Awaited<ReturnType<typeof startProxy>>;
let vendor: Vendor;
let env: Record<string, string>;
let port = 0;

beforeAll(async () => {
  folder = makeTempFolder();
  const { authority, certificate: cert, key } = makeIdentity(["localhost", REMOTE], Date.now());
  const answers: Readonly<Record<string, string>> = {
    "/repo/info/refs": `${COMMIT}\trefs/heads/main\n`,
    "/thing": JSON.stringify(PACKAGE),
  };
  web = createSecureServer({ cert, key, allowHTTP1: true }, ({ httpVersion, url }, response) => {
    response.end(answers[new URL(url, "https://localhost").pathname] ?? `HTTP/${httpVersion} ${url}`);
  });
  port = await listenOn(web);
  echo = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert, key },
    fetch: (request, server) => (server.upgrade(request, { data: undefined }) ? undefined : new Response("")),
    websocket: { message: (socket, text) => void socket.send(`echo ${String(text)}`) },
  });
  before = await startProxy();
  vendor = startVendor(folder.join("vendor.pem"));
  mkdirSync(folder.join("bin"));
  for (const [name, text] of Object.entries({
    "mcp.mjs": MCP,
    "socket.mjs": SOCKET,
    "ask.mjs": ASK,
    "profile.mjs": PROFILE,
    "show.mjs": SHOW,
    "http2.cjs": HTTP_2,
  }))
    writeFileSync(folder.join(name), text);
  // In place of Claude Code: starts what its arguments say, and shows the settings file that it gets.
  const claude = '#!/bin/sh\n[ "$1" = --settings ] && exec cat "$2"\nexec "$@"\n';
  writeFileSync(folder.join("bin/claude"), claude, { mode: 0o755 });
  const trusted = folder.join("own.pem");
  writeFileSync(trusted, authority);
  env = {
    PATH: `${folder.join("bin")}:${process.env["PATH"]}`,
    HOME: folder.path,
    NODE_EXTRA_CA_CERTS: trusted,
    GIT_SSL_CAINFO: trusted,
    GIT_CONFIG_NOSYSTEM: "1",
    npm_config_cafile: trusted,
    npm_config_update_notifier: "false",
  };
});

afterAll(() => {
  web.close();
  void echo.stop(true);
  before.stop();
  vendor.stop();
  folder.remove();
});

async function listenOn(server: Pick<Server, "listen" | "address">): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return address !== null && typeof address === "object" ? address.port : 0;
}

/** Knows CONNECT and every name, as the proxy of a company does. */
async function startProxy() {
  const asked: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (head) => {
      const [, target = "", number = ""] = /^CONNECT (\S+:(\d+)) /.exec(String(head)) ?? [];
      asked.push(target);
      const far = connect(Number(number), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        socket.pipe(far).pipe(socket);
      });
      far.on("error", () => socket.destroy());
    });
  });
  return { url: `http://127.0.0.1:${await listenOn(server)}`, asked, stop: () => void server.close() };
}

/** What an agent may start, with what each prints. */
function listChildren(host: string): readonly (readonly [name: string, command: string, prints: string])[] {
  const url = `https://${host}:${port}`;
  const curl = `curl -sS --cacert "$GIT_SSL_CAINFO"`;
  const call = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { arguments: { url: `${url}/mcp` } },
  });
  const content = [{ type: "text", text: "HTTP/1.1 /mcp" }];
  const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { content } });
  const bun = process.execPath;
  return [
    ["git", `git ls-remote ${url}/repo`, `${COMMIT}\trefs/heads/main`],
    ["npm", `npm view thing version --registry ${url}`, "1.2.3"],
    ["curl", `${curl} --http1.1 ${url}/a`, "HTTP/1.1 /a"],
    ["curl with HTTP/2", `${curl} --http2 ${url}/b`, "HTTP/2.0 /b"],
    ["a client of HTTP/2 only", `${bun} '${folder.join("http2.cjs")}' ${host} ${port}`, "HTTP/2.0 /d"],
    ["an MCP server", `echo '${call}' | ${bun} '${folder.join("mcp.mjs")}'`, answer],
    ["a WebSocket", `${bun} '${folder.join("socket.mjs")}' wss://${host}:${echo.port}/`, "echo hello"],
  ];
}

/** Each in a line, with its exit status. */
const writeScript = (host: string): string =>
  listChildren(host)
    .map(([name, command]) => `echo "${name}: $(${command} 2>&1) ($?)"`)
    .join("\n");
const writeExpected = (): string =>
  listChildren("")
    .map(([name, , prints]) => `${name}: ${prints} (0)\n`)
    .join("");

const hasChildren = hasPrograms("git", "npm", "curl");

async function startGroup(home: TempFolder) {
  const channel = { platform: "messages", base_url: `https://${VENDOR}`, credential: CREDENTIAL };
  return startGateway({
    folder: home,
    config: {
      channels: { own: { ...channel, proxy: vendor.url, ca: vendor.authority } },
      groups: { g: { platform: "messages", channels: ["own"] } },
      keys: [{ name: "k", group: "g", secret: SECRET }],
    },
  });
}

const runBun = (name: string): string => `'${process.execPath}' '${folder.join(name)}'`;

/** The script under the gateway. Returns what it printed, what arrived at the vendor, and the lines of the ledger. */
async function runUnder(script: string, more: Record<string, string> = {}) {
  using home = makeTempFolder();
  const gateway = await startGroup(home);
  const before = vendor.arrived.length;
  const around = { ...env, HTTPS_PROXY: "", GATEWAY_PID: String(gateway.pid), ...more };
  const words = ["run", "--transparent", "--url", gateway.url, "--secret", SECRET, "claude"];
  const { stdout, stderr } = await run({ folder: folder.path, env: around }, ...words, "sh", "-c", script);
  await gateway.stop();
  return { stdout, stderr, arrived: vendor.arrived.slice(before), ledger: gateway.ledger() };
}

describe.skipIf(!hasChildren)("git, npm, curl, an MCP server and a WebSocket of an agent", () => {
  test("reach other hosts through the proxy that was set before, which knows their names", async () => {
    const { stdout, ledger } = await runUnder(writeScript(REMOTE), { HTTPS_PROXY: before.url });
    expect(stdout).toBe(writeExpected());
    const hosts = [...Array.from({ length: 6 }, () => `${REMOTE}:${port}`), `${REMOTE}:${echo.port}`];
    expect([before.asked, ledger]).toEqual([hosts, []]);
  });

  test("reach the hosts of their NO_PROXY without it", async () => {
    // Nobody listens there.
    const more = { HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "localhost" };
    expect((await runUnder(writeScript("localhost"), more)).stdout).toBe(writeExpected());
  });

  test("go on when the gateway stops in the middle, and the tool gets an error that names it", async () => {
    const ask = runBun("ask.mjs");
    const stop = "kill $GATEWAY_PID; while kill -0 $GATEWAY_PID 2>/dev/null; do sleep 0.05; done";
    const { stdout, ledger } = await runUnder([ask, stop, ask, writeScript("localhost")].join("\n"));
    expect(stdout).toBe(`vendor 200 false\nvendor 502 true\n${writeExpected()}`);
    expect(ledger).toHaveLength(1);
  });
});

describe.skipIf(!hasChildren)("a program of the agent that calls a host of the group", () => {
  const url = `https://${VENDOR}/v1/models`;
  const status = `-s -o /dev/null -w '%{http_code}'`;

  test("gets a certificate error if it has a trust store of its own, and is billed if it uses Node's", async () => {
    const script = [
      `curl ${status} ${url}; echo " $?"`,
      `git ls-remote https://${VENDOR}/repo 2>&1 | grep -o certificate | head -1`,
      runBun("ask.mjs"),
    ].join("\n");
    const { stdout, stderr, ledger } = await runUnder(script);
    expect(stdout).toBe("000 60\ncertificate\nvendor 200 false\n");
    expect(stderr).toContain("gets a certificate error, or is billed to this key if it runs on Node");
    expect(ledger).toMatchObject([{ key: "k", endpoint: "/v1/messages" }]);
  });

  test("gets HTTP/1.1, and an alert of TLS if it speaks HTTP/2 only", async () => {
    const curl = `curl ${status} --cacert "$NODE_EXTRA_CA_CERTS"`;
    const only = `${process.execPath} '${folder.join("http2.cjs")}' ${VENDOR} 443`;
    const script = `${curl} --http2 ${url}; echo " $?"; ${only}`;
    const { stdout } = await runUnder(script);
    expect(stdout).toBe("200 0\nfailed ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL\n");
  });

  test("reaches that host itself with NO_PROXY of its own", async () => {
    const curl = `curl -sSk --connect-to ${VENDOR}:443:127.0.0.1:${port}`;
    const script = `NO_PROXY=${VENDOR} ${curl} https://${VENDOR}/own`;
    const { stdout, ledger } = await runUnder(script);
    expect([stdout, ledger]).toEqual(["HTTP/2.0 /own", []]);
  });
});

describe("the tool itself", () => {
  test("is billed for what it sends to its vendor's own address", async () => {
    const theirs = { ANTHROPIC_BASE_URL: "http://127.0.0.1:9", NO_PROXY: ".anthropic.com,example.org" };
    const { stdout, stderr, arrived, ledger } = await runUnder(runBun("ask.mjs"), theirs);
    expect(stdout).toBe("vendor 200 false\n");
    expect(stderr).toContain("NO_PROXY has no .anthropic.com in this run");
    const calls = arrived.filter(({ target }) => target === "/v1/messages");
    expect(calls.map(({ fields }) => Object.fromEntries(fields)["x-api-key"])).toEqual([CREDENTIAL]);
    expect(JSON.stringify(arrived)).not.toContain(SECRET);
    expect(ledger).toMatchObject([{ key: "k", channel: "own", basis: "exact", status: 200 }]);
  });

  test("gets neither the key nor another address, and nothing of the run outlasts it", async () => {
    const theirs = {
      ANTHROPIC_BASE_URL: "http://127.0.0.1:9",
      ANTHROPIC_AUTH_TOKEN: "sk-old",
      NO_PROXY: "*",
    };
    const { stdout } = await runUnder(runBun("show.mjs"), theirs);
    expect(stdout).not.toContain(SECRET);
    const { env: shown, certificates, mode } = JSON.parse(stdout);
    expect(Object.keys(theirs).map((name) => shown[name] ?? "")).toEqual(["", "", ""]);
    expect(shown.HTTPS_PROXY).toMatch(/^http:\/\/run:[0-9a-f]{48}@127\.0\.0\.1:\d+$/);
    expect([certificates, mode]).toEqual([2, "600"]);
    expect(existsSync(shown.NODE_EXTRA_CA_CERTS)).toBe(false);
    expect(fetch(`https://${VENDOR}/`, { proxy: shown.HTTPS_PROXY })).rejects.toThrow();
  });

  test("asks for the profile of its login straight at the vendor, with its own credential", async () => {
    const more = { HTTPS_PROXY: vendor.url, NODE_EXTRA_CA_CERTS: vendor.authority };
    const { stdout, arrived, ledger } = await runUnder(runBun("profile.mjs"), more);
    expect(stdout).toMatch(/^\d+ 404 404\n$/);
    const profiles = arrived.filter(({ target }) => !target.startsWith("/v1/models"));
    expect(profiles.map(({ host, target }) => host + target)).toEqual([`${VENDOR}/api/oauth/profile`]);
    expect(Object.fromEntries(profiles[0]?.fields ?? [])["authorization"]).toBe(
      "Bearer sk-ant-oat01-invented",
    );
    expect(JSON.stringify(arrived)).not.toContain(SECRET);
    expect(ledger).toEqual([]);
  });

  test("gets settings that overrule its own settings file", async () => {
    const theirs = { env: { ANTHROPIC_BASE_URL: "http://127.0.0.1:9", NO_PROXY: "*,example.org" } };
    mkdirSync(folder.join(".claude"));
    writeFileSync(folder.join(".claude/settings.json"), JSON.stringify(theirs));
    const { stdout } = await runUnder("true");
    rmSync(folder.join(".claude"), { recursive: true });
    expect(JSON.parse(stdout).env).toMatchObject({ ANTHROPIC_BASE_URL: "", NO_PROXY: "example.org" });
  });
});
