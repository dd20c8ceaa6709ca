import { expect, test } from "bun:test";
import { startStaticUpstream } from "../../src/demo/static.ts";
import { openRaw, parseAnswer, rawRequest, readEvents, writeRequest } from "../harness/raw.ts";

test("answers of about 1 KB, and streams of as many events as asked, are whole", async () => {
  for (const family of ["messages", "responses", "chat", "content"] as const) {
    const upstream = startStaticUpstream({ family, words: 50 });
    const body = { model: "m", stream: true };
    const json = await rawRequest(upstream.port, { target: "/", body: {} });
    const stream = await rawRequest(upstream.port, { target: "/", body });
    expect(json.complete && stream.complete).toBe(true);
    expect([json.bytes.length, stream.bytes.length]).toEqual([upstream.jsonBytes, upstream.streamBytes]);
    expect(JSON.parse(json.text)).toBeObject();
    expect(readEvents(stream.text).length).toBeGreaterThan(50);
    upstream.stop();
  }
});

test("requests that come at once, or in pieces, are each answered", async () => {
  const upstream = startStaticUpstream();
  const connection = await openRaw(upstream.port);
  const request = writeRequest({ target: "/v1/messages", body: { model: "m" } });
  connection.send(Buffer.concat([request, request, request.subarray(0, 30)]));
  await connection.until((all) => all.length === 2 * upstream.jsonBytes);
  connection.send(request.subarray(30));
  await connection.until((all) => all.length === 3 * upstream.jsonBytes);
  connection.close();
  upstream.stop();
});

test("paced events say when they were sent", async () => {
  const upstream = startStaticUpstream({ words: 5, paceMs: 1, stamps: true });
  const before = process.hrtime.bigint() / 1000n;
  const { text } = await rawRequest(upstream.port, { target: "/", body: { stream: true } });
  const after = process.hrtime.bigint() / 1000n;
  const stamps = Array.from(text.matchAll(/"(\d{16})"/g), ([, stamp]) => BigInt(stamp ?? 0));
  expect(stamps.length).toBe(5);
  expect(stamps).toEqual(stamps.toSorted((a, b) => Number(a - b)));
  expect(stamps.every((stamp) => stamp >= before && stamp <= after)).toBe(true);
  upstream.stop();
});

test("a peer that reads slowly gets all of a large stream", async () => {
  const upstream = startStaticUpstream({ words: 50_000 });
  const connection = await openRaw(upstream.port);
  connection.send(writeRequest({ target: "/", body: { stream: true } }));
  await connection.until("HTTP/1.1 200");
  connection.pause();
  await new Promise(setImmediate);
  connection.resume();
  await connection.until((all) => all.length === upstream.streamBytes);
  expect(parseAnswer(connection.bytes())?.complete).toBe(true);
  connection.close();
  upstream.stop();
});
