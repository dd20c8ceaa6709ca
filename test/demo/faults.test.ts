// The simulated upstream of the tests, seen from a bare socket. The end-to-end tests that use a fault show what it does.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { FaultName } from "../harness/upstreams/faults.ts";
import { startDemoUpstream, type DemoUpstream, makeGate } from "../harness/upstreams/demo-upstream.ts";
import { openRaw, rawRequest, readEvents, writeRequest, type RequestLines } from "../harness/raw.ts";

let upstream: DemoUpstream;
beforeAll(() => {
  upstream = startDemoUpstream();
});
afterAll(() => upstream.stop());
beforeEach(() => upstream.always(undefined));

const STREAM = {
  model: "claude-haiku-4-5",
  max_tokens: 100,
  stream: true,
  messages: [{ role: "user", content: "Hi" }],
};
const REQUEST: RequestLines = { target: "/v1/messages", body: STREAM };
const WHOLE: RequestLines = { target: "/v1/messages", body: { ...STREAM, stream: false } };

const report = (fault: FaultName, request = REQUEST) => {
  upstream.next(fault);
  return rawRequest(upstream.port, request);
};

describe("a connection that breaks", () => {
  const breaks: [FaultName, "fin" | "reset", status: number][] = [
    ["reset-before-head", "reset", 0],
    ["close-before-head", "fin", 0],
    ["reset-in-head", "reset", 0],
    ["close-in-head", "fin", 0],
    ["reset-after-head", "reset", 200],
    ["reset-mid-stream", "reset", 200],
    ["reset-mid-chunk", "reset", 200],
    ["close-mid-chunk", "fin", 200],
    ["close-mid-stream", "fin", 200],
    ["short-length", "fin", 200],
    ["close-delimited-cut", "fin", 200],
  ];
  test.each(breaks)("%s ends by %s with status %d and no complete body", async (fault, ending, status) => {
    const answer = await report(fault);
    expect({ ending: answer.ending, status: answer.status, complete: answer.complete }).toEqual({
      ending,
      status,
      complete: false,
    });
    expect(await upstream.ended(upstream.requests.length - 1)).toBe("broken");
  });
});

describe("an upstream that goes silent", () => {
  const silences: [FaultName, string][] = [
    ["never-answer", ""],
    ["silent-after-head", "\r\n\r\n"],
    ["stall", "content_block_delta"],
    ["garbage", "SSH"],
    ["bad-chunk", "zz\r\n"],
    ["endless-head", "x-padding-63"],
  ];
  test.each(silences)("%s: the upstream sees the peer leave", async (fault, until) => {
    upstream.next(fault);
    const index = upstream.requests.length;
    const connection = await openRaw(upstream.port);
    connection.send(writeRequest(REQUEST));
    await upstream.received(index);
    await connection.until(until);
    connection.close();
    expect(await upstream.ended(index)).toBe("left");
  });
});

test.each([400, 429, 529])("status %d has the shape of the dialect", async (status) => {
  const answer = await report(`status-${status}`);
  expect(answer.status).toBe(status);
  expect(JSON.parse(answer.text)).toMatchObject({ type: "error", error: { type: expect.any(String) } });
  expect(answer.field("retry-after")).toBe(status === 429 ? "1" : undefined);
});

test("an answer of 64 MB is never written whole to a peer that does not read", async () => {
  upstream.next("huge");
  const index = upstream.requests.length;
  const connection = await openRaw(upstream.port);
  connection.send(writeRequest(WHOLE));
  await connection.until("HTTP/1.1 200");
  connection.pause();
  connection.reset();
  expect(await upstream.ended(index)).toBe("left");
  expect((await upstream.received(index)).sentBytes()).toBeLessThan(64 * 1024 * 1024);
});

describe("what tests can control", () => {
  test("behaviours are used in order, by the requests that they are for", async () => {
    upstream.next({ fault: "status-500", when: ({ json }) => JSON.stringify(json).includes("second") });
    upstream.next("status-503");
    const ask = (content: string) =>
      rawRequest(upstream.port, {
        ...WHOLE,
        body: { ...STREAM, stream: false, messages: [{ role: "user", content }] },
      });
    expect([(await ask("first")).status, (await ask("second")).status, (await ask("third")).status]).toEqual([
      503, 500, 200,
    ]);
  });

  test("a model list uses no behaviour that is for other requests", async () => {
    upstream.next("status-500");
    expect((await rawRequest(upstream.port, { target: "/v1/models" })).status).toBe(200);
    expect((await rawRequest(upstream.port, WHOLE)).status).toBe(500);
    expect(upstream.listRequests.length).toBe(1);
    upstream.next({ fault: "status-500", when: ({ target }) => target === "/v1/models" });
    expect((await rawRequest(upstream.port, { target: "/v1/models" })).status).toBe(500);
  });

  test("a header and a model's name choose faults, pace and length", async () => {
    const byHeader = await rawRequest(upstream.port, { ...WHOLE, fields: { "x-demo-fault": "status-503" } });
    expect(byHeader.status).toBe(503);
    const body = { ...STREAM, max_tokens: 1000, model: "demo-words-300_pace-0" };
    const long = await rawRequest(upstream.port, { ...REQUEST, body });
    expect(readEvents(long.text).filter((event) => event.includes("text_delta")).length).toBe(300);
    const count = long.text.match(/"output_tokens":(\d+)/g)?.at(-1);
    expect(count).toBe('"output_tokens":300');
  });

  test("a gate holds a stream until it is opened", async () => {
    const gate = makeGate();
    upstream.next({ gates: { 4: gate } });
    const connection = await openRaw(upstream.port);
    connection.send(writeRequest(REQUEST));
    await gate.reached;
    await connection.until("content_block_delta");
    expect(
      connection
        .bytes()
        .toString()
        .match(/event: /g)?.length,
    ).toBe(4);
    gate.open();
    await connection.until("message_stop");
    connection.close();
  });

  test("a closed gate reports that the peer left", async () => {
    const gate = makeGate();
    upstream.next({ gates: { [-1]: gate } });
    const index = upstream.requests.length;
    const connection = await openRaw(upstream.port);
    connection.send(writeRequest(REQUEST));
    await gate.reached;
    connection.reset();
    expect(await upstream.ended(index)).toBe("left");
  });

  test("it refuses connections, and listens again on the same port", async () => {
    upstream.refuse();
    expect(await openRaw(upstream.port).catch(() => "refused")).toBe("refused");
    upstream.accept();
    expect((await rawRequest(upstream.port, WHOLE)).status).toBe(200);
  });

  test("the simulated upstream accepts only its credential, wherever it stands", async () => {
    const strict = startDemoUpstream({ credential: "secret" });
    const shown = [
      { authorization: "Bearer secret" },
      { "x-api-key": "secret" },
      { "x-goog-api-key": "secret" },
    ];
    for (const fields of shown)
      expect((await rawRequest(strict.port, { ...WHOLE, fields })).status).toBe(200);
    const fields = { authorization: "Bearer other" };
    expect((await rawRequest(strict.port, { ...WHOLE, fields })).status).toBe(401);
    expect((await rawRequest(strict.port, { target: "/v1/models", fields })).status).toBe(401);
    strict.stop();
  });

  test("playing one platform, it knows no other's paths", async () => {
    const relay = startDemoUpstream({ platform: "relay" });
    expect((await rawRequest(relay.port, WHOLE)).status).toBe(200);
    const foreign = { target: "/v1/responses", body: { model: "m", input: "x" } };
    expect((await rawRequest(relay.port, foreign)).status).toBe(404);
    const list = JSON.parse((await rawRequest(relay.port, { target: "/models" })).text);
    expect(list.data.map(({ id }: { id: string }) => id.split("-")[0])).toEqual(
      expect.arrayContaining(["claude", "gemini"]),
    );
    relay.stop();
  });
});
