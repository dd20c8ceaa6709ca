// Tests channels that speak Chat Completions in groups of the responses platform: what is sent on unchanged, what is metered, which
// channel comes first, and what is refused. The simulated server is as strict as a provider.

import { describe, expect, onTestFinished, test } from "bun:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { listIds } from "../../harness/model/models.ts";
import { answerJson, answerStream } from "../../harness/model/answers/answer.ts";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { CREDENTIAL, type InsideGateway, startGatewayHere } from "../../harness/gateway.ts";
import { type Exchanged, rawRequest } from "../../harness/raw.ts";
import { flushLedger, type Line } from "../world.ts";

type Section = Record<string, unknown>;

function startUpstream(platform: "chat" | "responses" = "chat"): DemoUpstream {
  const upstream = startDemoUpstream({ platform, credential: CREDENTIAL });
  onTestFinished(() => upstream.stop());
  return upstream;
}

interface World {
  readonly gateway: InsideGateway;
  readonly ask: (
    path: string,
    body: Section | Uint8Array,
    fields?: Record<string, string>,
  ) => Promise<Exchanged>;
  readonly listModels: () => Promise<string[]>;
  /** The line of the last request. */
  readonly line: () => Promise<Line | undefined>;
}

const channelAt = ({ url }: DemoUpstream, more: Section = {}): Section => ({
  platform: "chat",
  base_url: url,
  credential: CREDENTIAL,
  ...more,
});

const PRICES = { "qwen3-coder": { input: "1", cache_read: "0.1", output: "10" } };

function open(channels: Section, more: Section = {}, group: Section = {}): World {
  const gateway = startGatewayHere({
    config: {
      channels,
      groups: { g: { platform: "responses", channels: Object.keys(channels), ...group } },
      keys: [{ name: "k", group: "g", secret: "sk-test-chat" }],
      prices: PRICES,
      ...more,
    },
  });
  onTestFinished(() => gateway.stop());
  let count = 0;
  return {
    gateway,
    ask: async (target, body, fields = {}) => {
      count += 1;
      return rawRequest(gateway.port, {
        target,
        body,
        fields: { authorization: "Bearer sk-test-chat", ...fields },
      });
    },
    listModels: async () => {
      count += 1;
      const { text } = await rawRequest(gateway.port, {
        target: "/v1/models",
        fields: { authorization: "Bearer sk-test-chat" },
      });
      const { data }: { data: { id: string }[] } = JSON.parse(text);
      return data.map(({ id }) => id);
    },
    line: async () => {
      const record = (await gateway.recorded(count))[count - 1]!;
      await flushLedger();
      return gateway.ledger().find((line) => line["id"] === record.id);
    },
  };
}

const MESSAGES = [{ role: "user", content: "Hello" }];
const CHAT = "/v1/chat/completions";
const ASK = { model: "qwen3-coder", messages: MESSAGES };
const STREAM = { ...ASK, stream: true };
const ASKING = { ...STREAM, stream_options: { include_usage: true } };

describe("P109: a chat channel gets requests as its base URL and aliases say", () => {
  test.each([
    ["", CHAT],
    ["/v1", CHAT],
    ["/openai", "/openai/v1/chat/completions"],
    ["/api/paas/v4", "/api/paas/v4/chat/completions"],
    ["/v1beta/openai", "/v1beta/openai/chat/completions"],
    ["/v1beta", "/v1beta/chat/completions"],
  ])("a chat channel whose base URL ends in %p gets requests at %s", async (base, path) => {
    const upstream = startUpstream();
    upstream.always({ answer: answerJson("chat", { choices: [] }) });
    const { ask, listModels } = open({ local: channelAt(upstream, { base_url: upstream.url + base }) });
    await ask(CHAT, ASK);
    await listModels();
    expect(upstream.requests[0]?.target).toBe(path);
    expect(upstream.listRequests[0]?.target).toBe(path.replace("/chat/completions", "/models"));
  });

  test("in the body for a chat channel, the gateway replaces an alias and sets include_usage, and changes nothing else", async () => {
    const upstream = startUpstream();
    const { ask } = open({ local: channelAt(upstream, { aliases: { fast: "qwen3-coder" } }) });
    const texts = [
      `{"model":"fast","messages":[{"role":"user","content":"Hi"}],"stream":true}`,
      `{"stream_options":{"include_usage":false},"model":"fast","messages":[{"role":"user","content":"Hi"}],"stream":true}`,
      `{"messages":[{"role":"user","content":"Hi"}],"stream":true,"model":"fast","stream_options":null}`,
    ];
    for (const text of texts) {
      const answer = await ask(CHAT, Buffer.from(text));
      expect([answer.status, answer.text.includes('"usage"')]).toEqual([200, true]);
    }
    for (const { json } of upstream.requests)
      expect(json).toEqual({
        model: "qwen3-coder",
        messages: [{ role: "user", content: "Hi" }],
        stream: true,
        stream_options: { include_usage: true },
      });
    expect(upstream.requests).toHaveLength(texts.length);
  });
});

describe("P111: the gateway asks for a stream's usage, or estimates it", () => {
  test.each([
    ["gzip", gzipSync],
    ["zstd", zstdCompressSync],
  ])(
    "a compressed request (%s) is decompressed only if the gateway has to ask for usage",
    async (coding, compress) => {
      const upstream = startUpstream();
      const { ask } = open({ local: channelAt(upstream) });
      const fields = { "content-encoding": coding };
      const [quiet, asking] = [STREAM, ASKING].map((body) => compress(JSON.stringify(body)));
      expect((await ask(CHAT, quiet!, fields)).status).toBe(200);
      expect((await ask(CHAT, asking!, fields)).status).toBe(200);
      const [first, second] = upstream.requests;
      expect([first?.field("content-encoding"), first?.json]).toEqual([undefined, ASKING]);
      expect([second?.field("content-encoding"), Buffer.from(second!.body)]).toEqual([coding, asking]);
    },
  );

  test("with `ask_usage: false`, the gateway asks for no usage of a stream, and the line says that its counts are estimated", async () => {
    const upstream = startUpstream();
    const { ask, line } = open({ local: channelAt(upstream, { ask_usage: false }) });
    const answer = await ask(CHAT, STREAM);
    expect(upstream.requests[0]?.json).toEqual(STREAM);
    expect(answer.text).toEndWith("data: [DONE]\n\n");
    const billed = await line();
    expect(billed).toMatchObject({ outcome: "complete", basis: "partial", estimated: ["input", "output"] });
    expect(Number(billed!["charge_usd"])).toBeGreaterThan(0);
  });

  test("the gateway does not ask api.mistral.ai for a stream's usage, because that server refuses the question", async () => {
    const { catalog } = open({ local: channelAt(startUpstream()) }).gateway.running.gateway;
    const { quirksOf } = await import("../../../src/bridges/chat/quirks.ts");
    const at = (url: string) =>
      quirksOf({ ...catalog.channels.get("local")!, baseUrl: new URL(url) }).ask_usage;
    expect([at("https://api.mistral.ai/v1"), at("https://api.groq.com/openai/v1")]).toEqual([false, true]);
  });

  const chunk = (delta: object, more: object = {}): string =>
    `data: ${JSON.stringify({ id: "c", model: "qwen3-coder", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`;
  const finish = (more: object = {}, choice: object = {}): string =>
    `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop", ...choice }], ...more })}\n\n`;
  const TEXT = chunk({ role: "assistant", content: "Hello to you" });
  const COUNTS = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
  const DONE = "data: [DONE]\n\n";

  test.each<[string, string, Section]>([
    [
      "DeepSeek's fields for its cache",
      TEXT +
        finish({ usage: { ...COUNTS, prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 } }) +
        DONE,
      { usage: { input: 40, cache_read: 60, output: 20 }, basis: "exact", charge_usd: "0.000246" },
    ],
    [
      "a cached count next to the totals",
      TEXT + finish({}, { usage: { ...COUNTS, cached_tokens: 60 } }) + DONE,
      { usage: { input: 40, cache_read: 60, output: 20 }, basis: "exact" },
    ],
    [
      "DeepSeek's fields and details, of which the details count",
      TEXT +
        finish({
          usage: { ...COUNTS, prompt_cache_hit_tokens: 60, prompt_tokens_details: { cached_tokens: 50 } },
        }) +
        DONE,
      { usage: { input: 50, cache_read: 50, output: 20 }, basis: "exact" },
    ],
    [
      "usage in every chunk, of which the last counts",
      chunk({ content: "Hi" }, { usage: { ...COUNTS, completion_tokens: 1 } }) +
        finish({ usage: COUNTS }) +
        DONE,
      { usage: { input: 100, output: 20 }, basis: "exact" },
    ],
    [
      "usage in the field x_groq",
      TEXT + finish({ x_groq: { id: "r", usage: COUNTS } }) + DONE,
      { usage: { input: 100, output: 20 }, basis: "exact" },
    ],
    [
      "the chunk of usage before the end",
      TEXT + `data: ${JSON.stringify({ id: "c", choices: [], usage: COUNTS })}\n\n` + finish() + DONE,
      { usage: { input: 100, output: 20 }, suspect: expect.stringContaining("did not come again") },
    ],
    [
      "no usage at all",
      TEXT + finish() + DONE,
      { basis: "partial", outcome: "complete", estimated: ["input", "output"] },
    ],
    [
      "usage of zeros",
      TEXT + finish({ usage: { prompt_tokens: 0, completion_tokens: 0 } }) + DONE,
      { basis: "partial" },
    ],
    ["no [DONE]", TEXT + finish({ usage: COUNTS }), { basis: "exact", outcome: "complete" }],
    ["neither usage nor [DONE]", TEXT + finish(), { basis: "partial", outcome: "complete" }],
    ["no end at all", TEXT, { basis: "partial", outcome: "upstream_cut" }],
  ])("the gateway meters a stream with %s", async (_name, stream, expected) => {
    const upstream = startUpstream();
    upstream.next({ answer: answerStream("chat", [stream]) });
    const { ask, line } = open({ local: channelAt(upstream) });
    const answer = await ask(CHAT, STREAM);
    const shown = stream.replace(/data: \{"id":"c","choices":\[\],.*\n\n/, "");
    if (expected["outcome"] === "upstream_cut") expect(answer.text).toStartWith(`${shown}data: {"error"`);
    else expect(answer.text).toBe(shown);
    expect(await line()).toMatchObject(expected);
  });

  test("if a JSON answer reports no usage, the gateway estimates it", async () => {
    const upstream = startUpstream();
    const body = {
      id: "c",
      object: "chat.completion",
      model: "qwen3-coder",
      choices: [{ index: 0, message: { role: "assistant", content: "Hello to you" }, finish_reason: "stop" }],
    };
    upstream.next({ answer: answerJson("chat", body) });
    const { ask, line } = open({ local: channelAt(upstream) });
    expect(JSON.parse((await ask(CHAT, ASK)).text)).toEqual(body);
    expect(await line()).toMatchObject({ basis: "partial", estimated: ["input", "output"] });
  });
});

describe("a group with chat and responses channels converts only if necessary", () => {
  const both = (
    far: DemoUpstream,
    own: DemoUpstream,
    more: Section = {},
    ownMore: Section = {},
  ): Section => ({
    own: {
      ...ownMore,
      platform: "responses",
      base_url: own.url,
      credential: CREDENTIAL,
      price_provider: "openai",
    },
    far: channelAt(far, { priority: 2, ...more }),
  });

  test("P78: a group with chat and responses channels sends a request to the channel that lists its model, converted if necessary", async () => {
    const [far, own] = [startUpstream(), startUpstream("responses")];
    const { ask, line, listModels } = open(both(far, own));
    expect(await listModels()).toEqual([...listIds("responses"), ...listIds("chat")]);
    const answer = await ask(CHAT, { ...ASK, model: "gpt-5.4" });
    expect(answer.field("x-gateway-converted")).toBe("chat->responses");
    expect(await line()).toMatchObject({
      channel: "own",
      converted: "responses",
      attempts: [{ channel: "own" }],
    });
    expect(far.requests).toEqual([]);
  });

  test.each([false, true])(
    "a group with chat and responses channels fails over from the chat to the responses channel (stream: %p)",
    async (stream) => {
      const [far, own] = [startUpstream(), startUpstream("responses")];
      const { ask, line } = open(both(far, own));
      far.next("status-529");
      const answer = await ask(CHAT, { ...ASK, stream });
      expect([answer.status, answer.field("x-gateway-converted")]).toEqual([200, "chat->responses"]);
      expect(answer.text).toContain(stream ? "data: [DONE]" : '"chat.completion"');
      expect(await line()).toMatchObject({
        channel: "own",
        converted: "responses",
        attempts: [
          { channel: "far", status: 529 },
          { channel: "own", status: 200 },
        ],
      });
    },
  );

  test("a group with chat and responses channels fails over from the responses channel, which needs a conversion, to the chat channel", async () => {
    const [far, own] = [startUpstream(), startUpstream("responses")];
    const { ask, line, listModels } = open(both(far, own));
    await listModels();
    own.next("status-529");
    const answer = await ask(CHAT, { ...STREAM, model: "gpt-5.4" });
    expect([answer.status, answer.field("x-gateway-converted")]).toEqual([200, undefined]);
    const billed = await line();
    expect(billed).toMatchObject({
      channel: "far",
      attempts: [{ channel: "own", status: 529 }, { channel: "far" }],
    });
    expect(billed).not.toHaveProperty("converted");
    expect(answer.text).not.toContain('"choices":[]');
  });

  test("a group with chat and responses channels answers with the first channel's error if the request cannot be converted for the second", async () => {
    const [far, own] = [startUpstream(), startUpstream("responses")];
    const { ask } = open(both(far, own));
    far.next("status-529");
    const answer = await ask(CHAT, { ...ASK, logit_bias: { 1: 2 } });
    expect(answer.status).toBe(529);
    expect(own.requests).toEqual([]);
  });

  test("a group with chat and responses channels refuses /v1/responses for a model that only the chat channel may serve", async () => {
    const [far, own] = [startUpstream(), startUpstream("responses")];
    const { ask } = open(both(far, own, { models: ["qwen3-coder"] }, { models: ["gpt-*"] }));
    const answer = await ask("/v1/responses", { model: "qwen3-coder", input: "Hi" });
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([403, "model_not_found"]);
    expect(answer.text).toContain("convert: true");
  });
});
