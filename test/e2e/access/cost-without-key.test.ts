// A request without a valid key costs the gateway little CPU time, whatever it contains. Measured on the real gateway, as
// the mean of many requests, and compared with a plain request: machines differ, and other work on one slows down both.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { type ChildGateway, makeConfig, startGateway } from "../../harness/gateway.ts";

/** Of 60 KB, which was allowed once, the most expensive content takes 26 times as long as a plain request. Quadratic work on it takes hundreds. */
const MAX_RATIO = 100;
const REQUESTS = 10;

let gateway: ChildGateway;
beforeAll(async () => {
  gateway = await startGateway({ config: makeConfig({ url: "http://127.0.0.1:1" }) });
});
afterAll(async () => void (await gateway.stop()));

/** CPU time of the gateway's threads in nanoseconds: the first field of each thread's schedstat. */
function readCpu(): number {
  const threads = `/proc/${gateway.pid}/task`;
  return readdirSync(threads).reduce(
    (sum, thread) => sum + Number(readFileSync(`${threads}/${thread}/schedstat`, "latin1").split(" ")[0]),
    0,
  );
}

/** Sends bytes on a new connection, and resolves with the status of the response when the gateway has closed it. */
function send(bytes: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(gateway.port, "127.0.0.1", () => socket.write(bytes, "latin1"));
    socket.on("data", (chunk: Buffer) => void (text += chunk.toString("latin1")));
    socket.on("end", () => resolve(Number(text.slice(9, 12))));
    socket.on("error", reject);
  });
}

const HOST = "host: 127.0.0.1\r\nconnection: close\r\n";
const fill = (text: string, bytes = 12_000): string => text.repeat(bytes / text.length);
const get = (target: string, fields = HOST): string => `GET ${target} HTTP/1.1\r\n${fields}\r\n`;
const PLAIN = get("/v1/models");
const CASES: readonly (readonly [string, string, number])[] = [
  ["a query of broken escapes", get(`/v1/models?${fill("&%6")}`), 401],
  ["a query of escaped keys", get(`/v1/models?${fill("&%6bey=a")}`), 401],
  ["a query of keys on a content path", get(`/v1beta/models?${fill("&key=a")}`), 401],
  ["a query of plus signs", get(`/v1beta/models?key=${fill("+")}`), 401],
  ["a long wrong key", get("/v1/models", `${HOST}authorization: Bearer ${fill("x")}\r\n`), 401],
  ["many connection fields", get("/v1/models", HOST + fill("connection: a\r\n", 1800)), 401],
  ["many fields", get("/v1/models", HOST + fill("a:b\r\n", 900)), 401],
  ["a cookie of semicolons", get("/console/api/x", `${HOST}cookie: ${fill(";")}\r\n`), 401],
  ["a cookie of many pairs", get("/console/api/x", `${HOST}cookie: ${fill("gateway_console=a; ")}\r\n`), 401],
  ["a label of escapes", get("/v1/models", `${HOST}x-gateway-label: ${fill("%41")}\r\n`), 401],
  [
    "a handshake of many extensions",
    get(
      "/v1/responses",
      `host: 127.0.0.1\r\nconnection: close, upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-extensions: ${fill("a; b=c, ")}\r\n`,
    ),
    401,
  ],
  ["a long unknown path", get(`/${fill("a/")}`), 404],
  ["a path of escapes", get(`/v1beta/models/${fill("%25")}`), 404],
  ["repeated slashes", get(fill("/")), 200],
  ["a foreign host", get("/v1/models", `host: ${fill("a")}\r\nconnection: close\r\n`), 403],
  ["an invalid head", `GET / HTTP/1.1\r\nhost: 127.0.0.1${fill("\r\n a")}\r\n\r\n`, 400],
  ["a head that is too large", `GET / HTTP/1.1\r\n${HOST}${fill("a:b\r\n", 20_000)}`, 431],
  ["a head without an end of its name", `GET / HTTP/1.1\r\n${HOST}${fill("a")} \r\n\r\n`, 400],
  [
    "a body of tiny chunks",
    `POST /v1/messages HTTP/1.1\r\n${HOST}transfer-encoding: chunked\r\n\r\n${fill("1\r\na\r\n")}0\r\n\r\n`,
    401,
  ],
];

async function measure(bytes: string): Promise<number> {
  const before = readCpu();
  for (let count = 0; count < REQUESTS; count += 1) await send(bytes);
  return readCpu() - before;
}

test.skipIf(process.platform !== "linux").each(CASES)(
  "a request without a valid key costs little more than a plain one: %s",
  async (_, bytes, status) => {
    for (let warmUp = 0; warmUp < 5; warmUp += 1) expect(await send(bytes)).toBe(status);
    // The compiler and the garbage collector add time to some measurements.
    let ratio = Infinity;
    for (let attempt = 0; attempt < 20 && ratio > MAX_RATIO; attempt += 1)
      ratio = (await measure(bytes)) / (await measure(PLAIN));
    expect(ratio).toBeLessThanOrEqual(MAX_RATIO);
  },
);
