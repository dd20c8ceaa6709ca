// Invalid HTTP requests: each is refused in the dialect of its path, as far as the path
// can be read, with an id and a log record.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openRaw, parseAnswer, type RawAnswer, rawRequest } from "../../harness/raw.ts";
import { bearer, makeRequest, openWorld, type World } from "../world.ts";

type Shape = "messages" | "openai" | "content";

let world: World;
beforeAll(() => {
  world = openWorld();
});
afterAll(() => world.stop());

const HOST = "host: 127.0.0.1\r\n";

/** The message of an error that has exactly the members of this shape. */
function readMessage({ text }: RawAnswer, shape: Shape): string {
  const body = JSON.parse(text);
  const { error } = body;
  const found = {
    messages: body.type === "error" && "request_id" in body,
    openai: !("type" in body) && "param" in error,
    content: typeof error.status === "string" && Array.isArray(error.details),
  };
  expect(found).toEqual({ messages: false, openai: false, content: false, [shape]: true });
  return error.message;
}

async function refused(wire: string, status: number, shape: Shape): Promise<string> {
  const count = world.gateway.records.length;
  const answer = await rawRequest(world.gateway.port, Buffer.from(wire, "latin1"));
  expect(answer.bytes.toString("latin1").match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  expect([answer.status, answer.complete, answer.field("connection")]).toEqual([status, true, "close"]);
  expect(answer.field("content-type")).toBe("application/json");
  expect(answer.field("x-should-retry")).toBe(status < 500 ? "false" : undefined);
  const message = readMessage(answer, shape);
  const record = (await world.gateway.recorded(count + 1))[count]!;
  expect(record).toMatchObject({ status, outcome: "refused", problem: message, channel: null });
  expect(answer.field("x-request-id")).toBe(record.id);
  expect(world.gateway.records).toHaveLength(count + 1);
  return message;
}

const post = (target: string): string => `POST ${target} HTTP/1.1\r\n`;
const LONG = `a: ${"b".repeat(70_000)}\r\n`;

describe("invalid HTTP is refused in the dialect of its path", () => {
  test.each<[string, Shape]>([
    [post("/v1/messages"), "messages"],
    [post("/messages"), "messages"],
    [post("/relay/v1/messages"), "messages"],
    [post("http://127.0.0.1/v1/messages?beta=true"), "messages"],
    [`\r\n${post("/v1/messages")}`, "messages"],
    [post("/v1/responses"), "openai"],
    [post("/v1/chat/completions"), "openai"],
    [post("/v1beta/models/gemini-2.5-pro:generateContent"), "content"],
    ["GET /v1/models HTTP/1.1\r\n", "openai"],
    ["GET /v1/models HTTP/1.1\r\nanthropic-version: 2023-06-01\r\n", "messages"],
    ["GET /v1/models HTTP/1.1\r\nX-Goog-Api-Key: k\r\n", "content"],
    [post("/nowhere"), "openai"],
  ])("invalid HTTP is refused in the dialect of its path: %j without a host", async (line, shape) => {
    expect(await refused(`${line}\r\n`, 400, shape)).toContain("exactly one host");
  });

  const path = "/v1/messages";
  test.each<[string, string, number, string]>([
    ["a head without end", `${post(path)}${HOST}${"a: b\r\n".repeat(11_000)}`, 431, "fewer"],
    ["a whole head that is too large", `${post(path)}${HOST}${LONG}\r\n`, 431, "fewer"],
    ["another protocol's version", `POST ${path} HTTP/3.0\r\n${HOST}\r\n`, 505, "HTTP/1.1"],
    ["a folded field", `${post(path)}${HOST}a: b\r\n c\r\n\r\n`, 400, "field"],
    [
      "a length and chunks",
      `${post(path)}${HOST}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      "together",
    ],
    ["broken chunks", `${post(path)}${HOST}transfer-encoding: chunked\r\n\r\nzzz\r\n`, 400, "chunk"],
  ])("invalid HTTP is refused, and nothing after it is read: %s", async (_, wire, status, words) => {
    expect(await refused(`${wire}GET /smuggled HTTP/1.1\r\n${HOST}\r\n`, status, "messages")).toContain(
      words,
    );
  });

  test("invalid HTTP without a readable path is refused as an unknown path is, and without an echo", async () => {
    for (const wire of [
      "\u0016\u0003\u0001\u0002\u0000\u0001",
      "<script>",
      `GET /\u001b[31m"\\\u00ff HTTP/1.1\r\n\r\n`,
    ]) {
      const message = await refused(wire, 400, "openai");
      expect(message).toMatch(/^[ -~]+$/);
      expect(message).not.toContain("script");
    }
    expect(await refused("\u0016\u0003\u0001", 400, "openai")).toContain("http://");
  });

  test("chunks that break later cause one answer and one record", async () => {
    const fields = Object.entries(bearer("messages")).map(([name, value]) => `${name}: ${value}\r\n`);
    const count = world.gateway.records.length;
    const client = await openRaw(world.gateway.port);
    client.send(
      `${post("/v1/messages")}${HOST}${fields.join("")}expect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    await client.until("100 Continue");
    client.send("5\r\nhello!\r\n");
    await client.until('"request_id"');
    client.send(`GET /smuggled HTTP/1.1\r\n${HOST}\r\n`);
    await client.ended;
    const answer = parseAnswer(client.bytes())!;
    expect([answer.status, answer.field("connection")]).toEqual([400, "close"]);
    expect(readMessage(answer, "messages")).toContain("chunk");
    expect(world.gateway.records.slice(count)).toMatchObject([
      { id: answer.field("x-request-id"), status: 400, outcome: "refused", endpoint: "/v1/messages" },
    ]);
    expect(
      client
        .bytes()
        .toString()
        .match(/HTTP\/1\.1 \d/g),
    ).toHaveLength(2);
    expect(world.upstream.requests).toHaveLength(0);
  });

  test("the refusal of an invalid HEAD has no body", async () => {
    const { bytes, status } = await rawRequest(world.gateway.port, "HEAD /v1/models HTTP/1.1\r\n\r\n");
    expect(status).toBe(400);
    expect(bytes.toString()).toEndWith("\r\n\r\n");
    expect(bytes.toString()).toMatch(/x-request-id: req_/);
  });
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
      `GET /v1/models HTTP/1.1\r\norigin: https://app.example\r\n\r\n`,
    );
    expect([answer.status, answer.field("access-control-allow-origin")]).toEqual([
      400,
      "https://app.example",
    ]);
  } finally {
    await open.stop();
  }
});
