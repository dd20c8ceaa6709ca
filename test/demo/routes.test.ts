// What official clients don't show of the simulated upstream's paths.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { startDemoUpstream, type DemoUpstream } from "../harness/upstreams/demo-upstream.ts";
import { rawRequest, readEvents } from "../harness/raw.ts";

let upstream: DemoUpstream;
beforeAll(() => {
  upstream = startDemoUpstream();
});
afterAll(() => upstream.stop());

const CONTENT = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] };

test("without alt=sse a content stream is a JSON array of the same chunks", async () => {
  const path = "/v1beta/models/gemini-3.5-flash:streamGenerateContent";
  const array = JSON.parse((await rawRequest(upstream.port, { target: path, body: CONTENT })).text);
  const sse = await rawRequest(upstream.port, { target: `${path}?alt=sse`, body: CONTENT });
  const events = readEvents(sse.text).map((event) => JSON.parse(event));
  const strip = (chunks: { responseId: string }[]) => chunks.map((chunk) => ({ ...chunk, responseId: "" }));
  expect(strip(array)).toEqual(strip(events));
  expect(sse.text).toContain("\r\n\r\n");
});

test("compressed bodies are read", async () => {
  const bytes = Buffer.from(JSON.stringify({ model: "gpt-5.4", input: "squeezed" }));
  for (const [encoding, compress] of [
    ["zstd", zstdCompressSync],
    ["gzip", gzipSync],
  ] as const) {
    const body = compress(bytes);
    const fields = { "content-encoding": encoding };
    const answer = await rawRequest(upstream.port, { target: "/v1/responses", fields, body });
    expect(answer.text).toContain("squeezed");
    expect(upstream.requests.at(-1)?.body.length).toBe(body.length);
  }
});

test("a base URL may have a path of its own, and a model's name slashes, colons and escapes", async () => {
  const target = "/any/prefix/v1beta/models/tuned%2Fmine:v2:generateContent";
  const answer = JSON.parse((await rawRequest(upstream.port, { target, body: CONTENT })).text);
  expect(answer.modelVersion).toBe("tuned/mine:v2");
});

test("GET /v1/models has the shape that the client expects", async () => {
  const ask = async (fields: Record<string, string>, target = "/v1/models") =>
    JSON.parse((await rawRequest(upstream.port, { target, fields })).text);
  expect((await ask({ "anthropic-version": "2023-06-01" })).data[0].type).toBe("model");
  expect((await ask({ "x-goog-api-key": "k" })).models[0].name).toStartWith("models/gemini");
  expect((await ask({}, "/v1/models?key=k")).models[0].name).toStartWith("models/gemini");
  expect((await ask({})).data[0].object).toBe("model");
});

test("a very unusual path is answered too", async () => {
  for (const target of ["//", "http://[", "/v1beta/models/%ff:generateContent", "/v1/models/%", "*"]) {
    expect((await rawRequest(upstream.port, { target, body: CONTENT })).complete).toBe(true);
  }
});

test("unknown paths and broken bodies get the native error", async () => {
  const unknown = await rawRequest(upstream.port, { target: "/v1/messages/nothing", body: {} });
  expect([unknown.status, JSON.parse(unknown.text).error.type]).toEqual([404, "not_found_error"]);
  const broken = await rawRequest(upstream.port, { target: "/v1beta/models/m:generateContent", body: "{" });
  expect([broken.status, JSON.parse(broken.text).error.status]).toEqual([400, "INVALID_ARGUMENT"]);
  const nameless = await rawRequest(upstream.port, { target: "/v1/responses", body: {} });
  expect([nameless.status, JSON.parse(nameless.text).error.type]).toEqual([400, "invalid_request_error"]);
});

test("a compaction trigger is answered with one sealed item", async () => {
  const body = { model: "gpt-5.4", stream: true, input: [{ type: "compaction_trigger" }] };
  const { text } = await rawRequest(upstream.port, { target: "/v1/responses", body });
  const completed = JSON.parse(readEvents(text).at(-1) ?? "");
  expect(completed.response.output.map(({ type }: { type: string }) => type)).toEqual(["compaction"]);
});
