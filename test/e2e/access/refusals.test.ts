// Requests that never become one of an endpoint: invalid HTTP, which the runtime refuses by itself, loops, other origins.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { rawRequest } from "../../harness/raw.ts";
import { bearer, makeRequest, openWorld, type World } from "../world.ts";

let world: World;
beforeAll(() => {
  world = openWorld();
});
afterAll(() => world.stop());

const HOST = "host: 127.0.0.1\r\n";

const post = (target: string): string => `POST ${target} HTTP/1.1\r\n`;
const PATH = "/v1/messages";
const KEY = Object.entries(bearer("messages"))
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join("");

test.each([
  ["without a host", `${post(PATH)}\r\n`, 400],
  ["with a head without end", `${post(PATH)}${HOST}${"a: b\r\n".repeat(11_000)}`, 431],
  ["with a whole head that is too large", `${post(PATH)}${HOST}a: ${"b".repeat(20_000)}\r\n\r\n`, 431],
  ["with a folded field", `${post(PATH)}${HOST}a: b\r\n c\r\n\r\n`, 400],
  ["with a space before a colon", `${post(PATH)}${HOST}a : b\r\n\r\n`, 400],
  ["with a bare line feed", `${post(PATH)}${HOST}a: b\n\r\n`, 400],
  ["with a NUL", `${post(PATH)}${HOST}a: b\0c\r\n\r\n`, 400],
  ["with two lengths", `${post(PATH)}${HOST}content-length: 1\r\ncontent-length: 2\r\n\r\nab`, 400],
  ["with an odd length", `${post(PATH)}${HOST}content-length: +1\r\n\r\na`, 400],
  [
    "with a length and chunks",
    `${post(PATH)}${HOST}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ["with broken chunks", `${post(PATH)}${HOST}${KEY}transfer-encoding: chunked\r\n\r\nzzz\r\n`, 400],
  ["in a version of another protocol", `POST ${PATH} HTTP/3.0\r\n${HOST}\r\n`, 505],
  ["of a TLS client", "\u0016\u0003\u0001\u0002\u0000\u0001\r\n\r\n", 400],
])("a request %s is refused without a body, and nothing after it is read", async (_, wire, status) => {
  const smuggled = `GET /smuggled HTTP/1.1\r\n${HOST}\r\n`;
  const answer = await rawRequest(world.gateway.port, Buffer.from(wire + smuggled, "latin1"));
  const text = answer.bytes.toString("latin1");
  expect(text.slice(text.lastIndexOf("HTTP/1.1 "))).toMatch(
    new RegExp(`^HTTP/1.1 ${status} [^]*\r\nConnection: close\r\n\r\n$`),
  );
  expect(text).not.toContain("smuggled");
  expect(answer.ending).toBe("fin");
  expect(world.upstream.requests).toHaveLength(0);
});

test("a request with two Host fields is refused in its dialect", async () => {
  const answer = await rawRequest(world.gateway.port, `${post(PATH)}${HOST}host: other\r\n\r\n`);
  expect([answer.status, JSON.parse(answer.text).error.message]).toEqual([
    400,
    "The request has two Host fields.",
  ]);
});

test("a request that seven gateways have passed on goes upstream with one mark more, and after eight it ends", async () => {
  const marks = Array.from({ length: 8 }, (_, index) => `mark-${index}`);
  const passThrough = (count: number) =>
    world.trace({
      ...makeRequest("messages"),
      fields: { ...bearer("messages"), "x-gateway-hop": marks.slice(0, count).join(", ") },
    });
  const { answer, received } = await passThrough(7);
  expect(answer.status).toBe(200);
  expect(received?.field("x-gateway-hop")?.split(", ")).toEqual([
    ...marks.slice(0, 7),
    expect.stringMatching(/^\w{8}$/),
  ]);
  const sent = world.upstream.requests.length;
  const last = await passThrough(8);
  expect([last.answer.status, world.upstream.requests.length - sent]).toEqual([502, 0]);
  expect(last.answer.text).toContain("leads back to it");
});

test("a page of an allowed origin may read why its request was refused", async () => {
  const open = openWorld(() => ({ cors_origins: ["https://app.example"] }));
  try {
    const answer = await rawRequest(
      open.gateway.port,
      `GET /v1/models HTTP/1.1\r\n${HOST}origin: https://app.example\r\n\r\n`,
    );
    expect([answer.status, answer.field("access-control-allow-origin")]).toEqual([
      401,
      "https://app.example",
    ]);
  } finally {
    await open.stop();
  }
});
