// Each fault, seen from a bare socket. What one cannot see here (a client's
// behaviour) the gateway's own tests show.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import type { FaultName } from "../../src/demo/faults.ts";
import { makeGate } from "../../src/demo/script.ts";
import { startDemoUpstream, type DemoUpstream } from "../../src/demo/upstream.ts";
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

  test("half of a stream has arrived when it breaks, and the terminal event has not", async () => {
    const answer = await report("reset-mid-stream");
    expect(answer.text).toStartWith("event: message_start");
    expect(answer.text).not.toContain("message_stop");
  });

  test("half of a whole answer has arrived when it breaks", async () => {
    const answer = await report("close-mid-stream", WHOLE);
    expect(answer.body.length).toBe(Number(answer.field("content-length")) >> 1);
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

describe("an answer with correct framing and wrong content", () => {
  test.each([400, 401, 402, 403, 404, 408, 413, 429, 500, 502, 503, 529])(
    "status %d in the native shape",
    async (status) => {
      const answer = await report(`status-${status}`);
      expect(answer.status).toBe(status);
      expect(JSON.parse(answer.text)).toMatchObject({ type: "error", error: { type: expect.any(String) } });
      expect(answer.field("retry-after")).toBe(status === 429 ? "1" : undefined);
    },
  );

  test("429 of a content upstream says when to retry in its details", async () => {
    const target = "/v1beta/models/demo-fault-status-429:generateContent";
    const answer = await rawRequest(upstream.port, { target, body: { contents: [] } });
    expect(answer.status).toBe(429);
    expect(JSON.parse(answer.text).error.details[0].retryDelay).toBe("1s");
  });

  test("an HTML page, text that isn't JSON, a redirect", async () => {
    expect(await report("html")).toMatchObject({ status: 502, complete: true });
    expect((await report("not-json", WHOLE)).text).toBe("{ this is not JSON");
    expect((await report("redirect")).field("location")).toBe("https://example.com/");
  });

  test("a stream that ends cleanly, but too early", async () => {
    const truncated = await report("truncated");
    expect(truncated.complete).toBe(true);
    expect(truncated.text).not.toContain("message_delta");
    const missing = await report("no-terminal");
    expect(missing.complete).toBe(true);
    expect(readEvents(missing.text).at(-1)).toContain("message_delta");
  });

  test("an error event, first or in the middle, in each dialect", async () => {
    const asks: [RequestLines, RegExp][] = [
      [REQUEST, /event: error\ndata: \{"type":"error"/],
      [
        { target: "/v1/responses", body: { model: "m", input: "x", stream: true } },
        /event: response\.failed\n/,
      ],
      [
        { target: "/v1/chat/completions", body: { model: "m", messages: [], stream: true } },
        /data: \{"error":/,
      ],
      [
        { target: "/v1/models/m:streamGenerateContent?alt=sse", body: { contents: [] } },
        /\{"error":\{"code":503/,
      ],
    ];
    for (const [ask, expected] of asks) {
      const middle = await report("error-event", ask);
      expect(middle.text).toMatch(expected);
      expect(readEvents(middle.text).length).toBeGreaterThan(2);
      const first = await report("error-first", ask);
      expect([first.status, first.text.search(expected) < 200]).toEqual([200, true]);
    }
  });

  test("usage that is missing or zero, whole and streamed", async () => {
    expect((await report("no-usage")).text).not.toContain("usage");
    expect((await report("zero-usage")).text).not.toMatch(/"(input|output)_tokens":[1-9]/);
    expect(JSON.parse((await report("zero-usage", WHOLE)).text).usage).toMatchObject({ output_tokens: 0 });
    const content = { target: "/v1beta/models/m:streamGenerateContent?alt=sse", body: { contents: [] } };
    expect((await report("no-usage", content)).text).not.toContain("usageMetadata");
  });

  test("gzip that nobody requested", async () => {
    const answer = await report("gzip", WHOLE);
    expect(answer.field("content-encoding")).toBe("gzip");
    expect(JSON.parse(gunzipSync(answer.body).toString()).type).toBe("message");
  });
});

describe("an answer that arrives in unusual ways", () => {
  test("byte by byte, it is the same answer", async () => {
    const answer = await report("dribble");
    expect(answer.text).toEndWith('event: message_stop\ndata: {"type":"message_stop"}\n\n');
    expect(answer.pieces.length).toBeGreaterThan(10);
  });

  test("an answer arrives after early hints, and one ends with its connection", async () => {
    const hinted = await report("early-hints");
    expect(hinted.bytes.toString()).toStartWith("HTTP/1.1 103 ");
    expect(hinted).toMatchObject({ status: 200, complete: true });
    const delimited = await report("close-delimited");
    expect(delimited.ending).toBe("fin");
    expect(delimited.text).toContain("event: message_stop");
    expect(await upstream.ended(upstream.requests.length - 1)).toBe("answered");
  });

  test("an answer arrives with bytes after its end, with a length below zero, with two framings", async () => {
    upstream.next("extra-bytes");
    const connection = await openRaw(upstream.port);
    connection.send(writeRequest(WHOLE));
    expect((await connection.until("forged")).toString()).toStartWith("HTTP/1.1 200 OK");
    connection.close();
    expect((await report("bad-length")).field("content-length")).toBe("-1");
    expect((await report("two-framings")).fields.map(([name]) => name)).toContain("content-length");
  });

  test("huge, it is never written whole to a peer that does not read", async () => {
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

  test("a connection is kept, and connections are numbered", async () => {
    const connection = await openRaw(upstream.port);
    const index = upstream.requests.length;
    connection.send(Buffer.concat([writeRequest(WHOLE), writeRequest(WHOLE)]));
    const [first, second] = await Promise.all([upstream.received(index), upstream.received(index + 1)]);
    expect([second.connection, first.turn, second.turn]).toEqual([first.connection, 1, 2]);
    connection.close();
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
