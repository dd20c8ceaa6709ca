// The traffic that both compared executables get. Each scenario has its own channels, group and key.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import {
  answer,
  answered,
  type Dialect,
  DIALECTS,
  errorEvent,
  events,
  failure,
  json,
  JSON_TYPE,
  MODELS,
  request,
  SSE_TYPE,
} from "./dialects.ts";
import { type Scenario, type Section, secretOf, type Step } from "./side.ts";
import type { Fields, Script } from "./wire.ts";

/** An endpoint, the platform of the group that serves it, and the platform of the group's channel. */
interface Front {
  readonly name: string;
  readonly dialect: Dialect;
  readonly platform: string;
  readonly channel: string;
  readonly prefix: string;
}

const FRONTS: readonly Front[] = [
  ...DIALECTS.map((dialect) => ({
    name: dialect,
    dialect,
    platform: dialect === "chat" ? "responses" : dialect,
    channel: dialect,
    prefix: "",
  })),
  { name: "bridged", dialect: "chat", platform: "responses", channel: "responses", prefix: "" },
  { name: "relay-m", dialect: "messages", platform: "relay", channel: "relay", prefix: "/relay" },
  { name: "relay-c", dialect: "content", platform: "relay", channel: "relay", prefix: "/relay" },
];

/** Reads `name: value | name: value`. */
const fieldsOf = (text: string): Fields =>
  text.split(" | ").map((field) => {
    const [name = "", value = ""] = field.split(/: ?(.*)/);
    return [name, value];
  });

const wordsOf = (text: string): string[] => text.split(" ");

/** Returns the dialect that the upstream of a front speaks. */
const spoken = ({ dialect, channel }: Front): Dialect => (channel === "responses" ? "responses" : dialect);

function ask(
  front: Front,
  stream: boolean,
  scripts: readonly Script[],
  more: Partial<Step> = {},
  body: object = {},
): Step {
  const asked = request(front.dialect, stream, body);
  const target = `${front.prefix}${asked.target}`;
  return {
    target,
    body: asked.body,
    keyIn: front.platform === "content" ? "x-goog-api-key" : "authorization",
    scripts,
    ...more,
  };
}

/** Makes a scenario. It has one channel named `a`, unless `more` has other channels. */
function scene(name: string, front: Front, steps: readonly Step[], more: Partial<Scenario> = {}): Scenario {
  const { channels = { a: {} }, group = {} } = more;
  const whole = Object.fromEntries(
    Object.entries(channels).map(([short, section]) => [short, { platform: front.channel, ...section }]),
  );
  return { name, steps, ...more, group: { platform: front.platform, ...group }, channels: whole };
}

/** Everything that an upstream can do with one request. */
function doings(dialect: Dialect, stream: boolean): Readonly<Record<string, Script>> {
  const list = events(dialect);
  const whole = JSON.stringify(answer(dialect));
  const good = stream ? { fields: SSE_TYPE, pieces: list } : { fields: JSON_TYPE, pieces: [whole] };
  const begun = stream ? list.slice(0, 3) : [whole.slice(0, 40)];
  const retry = (script: Script, after: string): Script => ({
    ...script,
    fields: [...(script.fields ?? []), ["retry-after", after]],
  });
  const bad: Record<string, Script> = {};
  for (const status of [400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 503, 529])
    bad[`s${status}`] = failure(dialect, status);
  return {
    ...bad,
    "s429-later": retry(failure(dialect, 429), "30"),
    "s503-later": retry(failure(dialect, 503), "7"),
    redirect: { status: 302, fields: [["location", "http://127.0.0.1:9/elsewhere"]] },
    empty: { status: 200, fields: good.fields, pieces: [], framing: "length" },
    html: { status: 200, fields: [["content-type", "text/html"]], pieces: ["<html>Log in</html>"] },
    "not-json": { status: 200, fields: JSON_TYPE, pieces: ["{not json"] },
    "other-json": { status: 200, fields: JSON_TYPE, pieces: ['{"fine":true}'] },
    "error-text": { status: 500, fields: [["content-type", "text/plain"]], pieces: ["out of order"] },
    closes: { ending: "close" },
    garbage: { raw: "SMTP ready\r\n\r\n" },
    "half-head": { raw: "HTTP/1.1 200 OK\r\ncontent-ty" },
    "cut-at-start": { ...good, pieces: [], ending: "cut" },
    "cut-in-body": { ...good, pieces: begun, ending: "cut" },
    "cut-at-length": { ...good, pieces: begun, framing: "length", ending: "cut" },
    "ends-early": { ...good, pieces: begun },
    close: { ...good, framing: "close" },
    pieces: { ...good, pieces: good.pieces.join("").match(/[^]{1,7}/g) ?? [] },
    ...(stream
      ? {
          "error-first": { fields: SSE_TYPE, pieces: [errorEvent(dialect)] },
          "error-later": { fields: SSE_TYPE, pieces: [...begun, errorEvent(dialect)] },
          "cut-before-end": { ...good, pieces: list.slice(0, -1), ending: "cut" },
          crlf: { fields: SSE_TYPE, pieces: list.map((event) => event.replaceAll("\n", "\r\n")) },
          comments: { fields: SSE_TYPE, pieces: list.flatMap((event) => [": ping\n\n", event]) },
        }
      : {}),
  };
}

function* outcomes(): Generator<Scenario> {
  for (const front of FRONTS)
    for (const stream of [false, true]) {
      const way = stream ? "stream" : "whole";
      const dialect = spoken(front);
      // The second request shows whether the channel rests.
      for (const [doing, script] of Object.entries(doings(dialect, stream)))
        yield scene(`${front.name}-${way}-${doing}`, front, [
          ask(front, stream, [script]),
          ask(front, stream, [answered(dialect, stream)]),
        ]);
      yield scene(`${front.name}-${way}-fine`, front, [ask(front, stream, [answered(dialect, stream)])]);
      const silent: Script = { ending: "silence" };
      yield scene(`${front.name}-${way}-leaves-early`, front, [
        ask(front, stream, [silent], { leave: "asked" }),
      ]);
      if (!stream) continue;
      const list = events(dialect);
      const until = list.findIndex((event) => event.includes("Hello")) + 1;
      const held: Script = { fields: SSE_TYPE, pieces: list.slice(0, until), ending: "hold" };
      yield scene(`${front.name}-leaves`, front, [ask(front, true, [held], { leave: { text: "Hello" } })]);
      const channels = { a: { timeouts: { idle: "1s", first_byte: "1s" } } };
      yield scene(`${front.name}-idle`, front, [ask(front, true, [held])], { channels });
      yield scene(`${front.name}-silent`, front, [ask(front, true, [silent])], { channels });
    }
}

function* failovers(): Generator<Scenario> {
  const channels = { a: { priority: 1 }, b: { priority: 2 } };
  for (const front of FRONTS.filter(({ name }) => name !== "relay-c"))
    for (const stream of [false, true]) {
      const dialect = spoken(front);
      for (const [doing, script] of Object.entries(doings(dialect, stream)))
        yield scene(
          `over-${front.name}-${stream ? "stream" : "whole"}-${doing}`,
          front,
          [
            ask(front, stream, [script, answered(dialect, stream)]),
            ask(front, stream, [answered(dialect, stream)]),
          ],
          { channels },
        );
    }
  const [front] = FRONTS;
  const good = answered("messages", false);
  const nobody = { a: { at: "nobody", priority: 1 }, b: { priority: 2 } };
  yield scene("over-nobody", front!, [ask(front!, false, [good])], { channels: nobody });
  yield scene("only-nobody", front!, [ask(front!, false, [])], { channels: { a: { at: "nobody" } } });
  const three = { a: { priority: 1 }, b: { priority: 2 }, c: { priority: 3 }, d: { priority: 4 } };
  const failing = [failure("messages", 500), failure("messages", 401), failure("messages", 429), good];
  yield scene("over-three", front!, [ask(front!, false, failing), ask(front!, false, [good])], {
    channels: three,
  });
  const off = { a: { disabled: true }, b: {} };
  yield scene("over-disabled", front!, [ask(front!, false, [good])], { channels: off });
  yield scene("all-disabled", front!, [ask(front!, false, [good])], { channels: { a: { disabled: true } } });
}

/** Scenarios for each dialect of a client with each other dialect of a channel. */
function* conversions(): Generator<Scenario> {
  for (const client of DIALECTS)
    for (const dialect of DIALECTS) {
      if (client === dialect) continue;
      const front = {
        name: client,
        dialect: client,
        platform: client === "chat" ? "responses" : client,
        channel: dialect,
        prefix: "",
      };
      const group = { convert: true };
      for (const stream of [false, true]) {
        const name = `${client}-by-${dialect}-${stream ? "stream" : "whole"}`;
        yield scene(name, front, [ask(front, stream, [answered(dialect, stream)])], { group });
        for (const [doing, script] of Object.entries(doings(dialect, stream)))
          yield scene(`${name}-${doing}`, front, [ask(front, stream, [script])], { group });
      }
      const unknown = [
        { seed: 7, logit_bias: { 5: 1 } },
        { stop: ["a"], stop_sequences: ["b"], temperature: 1.7, top_k: 3 },
        { service_tier: "flex", metadata: { user_id: "u" } },
      ];
      const steps = unknown.map((more) => ask(front, false, [answered(dialect, false)], {}, more));
      yield scene(`${client}-by-${dialect}-options`, front, steps, { group });
    }
  const [front] = FRONTS;
  const count: Step = { ...ask(front!, false, []), target: "/v1/messages/count_tokens" };
  yield scene("count-by-chat", { ...front!, channel: "chat" }, [count], { group: { convert: true } });
  yield scene("no-convert", { ...FRONTS[1]!, channel: "chat" }, [ask(FRONTS[1]!, false, [])]);
}

/** Answers that the gateway bills. What makes each of them special is in answers/bills.jsonl. */
function* bills(): Generator<Scenario> {
  const told: [name: string, dialect: Dialect, usage: object, model: string | null, more: object][] =
    readFileSync(join(import.meta.dir, "answers/bills.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  const settings: Readonly<Record<string, Partial<Scenario>>> = {
    messages: { group: { multiplier: 0.37 } },
    responses: { group: { multiplier: "1.25" } },
    reported: { channels: { a: { bill: "reported" } } },
    free: { channels: { a: { free: true } } },
  };
  for (const [name, list] of Map.groupBy(told, ([each]) => each)) {
    const front = FRONTS.find((each) => each.name === list[0]![1])!;
    const steps = list.map(([, dialect, usage, model, more]) => {
      const counts = { [dialect === "content" ? "usageMetadata" : "usage"]: usage };
      return ask(front, false, [json({ ...answer(dialect, model ?? undefined), ...counts, ...more })]);
    });
    yield scene(`bill-${name}`, front, steps, settings[name] ?? {});
  }
  const [, , chat] = FRONTS;
  const asked = [{}, { stream_options: { include_usage: true } }];
  const chunks = asked.map((more) => ask(chat!, true, [answered("chat", true)], {}, more));
  yield scene("bill-usage-chunk", chat!, chunks);
}

const UUID = "5b1c2d3e-0000-4000-8000-00000000000";

function* limits(): Generator<Scenario> {
  const [front, responses] = FRONTS;
  const good = answered("messages", false);
  const asks = (count: number, more: Partial<Step> = {}): Step[] =>
    Array.from({ length: count }, () => ask(front!, false, [good], more));
  const limited = (name: string, limits: Section, steps: readonly Step[]): Scenario =>
    scene(`limit-${name}`, front!, steps, { key: { limits } });
  yield limited("total", { usd_total: "0.0002" }, asks(3));
  yield limited("day", { usd_per_day: "0.0002" }, asks(2));
  yield limited("month", { usd_per_month: "0.0002" }, asks(2));
  yield limited("minute", { requests_per_minute: 2 }, asks(3));
  const session = (from: string, id: number): Partial<Step> => ({
    fields: [["x-gateway-session", `session-${from}-${id}`]],
  });
  yield limited("session", { usd_per_session: "0.0002" }, [
    ...asks(2, session("a", 1)),
    ...asks(1, session("a", 2)),
  ]);
  yield limited("session-minute", { requests_per_minute_per_session: 1 }, [
    ...asks(2, session("b", 1)),
    ...asks(1, session("b", 2)),
  ]);
  const model = "claude-unheard-of";
  const unpriced = [ask(front!, false, [answered("messages", false, model)], {}, { model })];
  yield limited("unpriced", { usd_total: "1" }, unpriced);
  yield limited("unpriced-allow", { usd_total: "1", unpriced: "allow" }, unpriced);
  yield scene("limit-group", front!, asks(2), { group: { limits: { usd_total: "0.0001" } } });
  for (const each of [responses!, FRONTS[3]!]) {
    const twice = [0, 1].map(() => ask(each, false, [answered(each.dialect, false)]));
    yield scene(`limit-${each.name}`, each, twice, { key: { limits: { usd_total: "0.0002" } } });
  }
  const call = { type: "tool_use", id: "t", name: "weather", input: { city: "Bonn" } };
  const result = { type: "tool_result", tool_use_id: "t", content: "rain" };
  const turn = [
    { role: "assistant", content: [call] },
    { role: "user", content: [result] },
  ];
  const turns = (count: number): object[] => Array.from({ length: count }, () => turn).flat();
  const loop = (count: number): Step =>
    ask(front!, false, [good], {}, { messages: [{ role: "user", content: "Go" }, ...turns(count)] });
  yield limited("same-call", { same_call: 3 }, [loop(2), loop(3), loop(4)]);
  const text = JSON.stringify(request("messages", false).body);
  const body = text.replace("{", '{"model":"claude-opus-4-5",');
  yield limited("two-models", { usd_total: "1" }, [{ target: "/v1/messages", body, scripts: [good] }]);
}

/** Scenarios about who may ask, how, and for which path. */
function* access(): Generator<Scenario> {
  const [messages, responses, chat, content] = FRONTS;
  const good = (dialect: Dialect): Script[] => [answered(dialect, false)];
  const one = [ask(messages!, false, good("messages"))];
  yield scene("key-disabled", messages!, one, { key: { disabled: true } });
  yield scene("key-expired", messages!, one, { key: { expires: "2020-01-01" } });
  const placed = "x-gateway-key";
  for (const front of FRONTS) {
    const places = ["authorization", "x-api-key", "x-goog-api-key", placed, null];
    const right = `authorization: Bearer ${secretOf(`access-${front.name}`)}`;
    const odd = ["authorization: Bearer sk-wrong", `x-api-key: sk-wrong | ${right}`].map(fieldsOf);
    yield scene(`access-${front.name}`, front, [
      ...places.map((keyIn) => ask(front, false, good(spoken(front)), { keyIn })),
      ...odd.map((fields) => ask(front, false, good(spoken(front)), { keyIn: null, fields })),
    ]);
    const paths = wordsOf("/v1/messages /v1/responses /v1/chat/completions /relay/v1/messages");
    const body = { model: MODELS[front.dialect], max_tokens: 9 };
    const other = [...paths, "/v1beta/models/gemini-2.5-flash:generateContent"];
    yield scene(
      `wrong-${front.name}`,
      front,
      other.map((target) => ({ target, body, keyIn: placed })),
    );
    const lists = wordsOf(
      "/v1/models /v1beta/models /relay/models /relay/v1/models /relay/v1beta/models /v1/models/claude-haiku-4-5 /v1beta/models/gemini-2.5-flash /v1/models/none",
    ).map((target): Step => ({ target, keyIn: placed }));
    const channels = {
      a: { aliases: { fast: MODELS[front.dialect] } },
      b: { models: [MODELS[front.dialect], "own-*"] },
    };
    const head: Step = { target: "/v1/models", method: "HEAD", keyIn: placed };
    yield scene(`lists-${front.name}`, front, [...lists, head], { channels });
  }
  const own = "/ /api/hello /healthz /nothing /v1/nothing /v1beta/nothing /relay /relay/api/hello /console";
  const page = "origin: https://page.example";
  const hello = request("messages", false).body;
  yield scene("own-paths", messages!, [
    ...wordsOf(own).map((target) => ({ target })),
    ...wordsOf("/ /healthz /v1/models").map((target) => ({ target, keyIn: null })),
    { target: "/v1/messages" },
    { target: "/v1/messages", method: "DELETE" },
    { target: "/v1/models", body: {} },
    { target: "/v1/responses", method: "PUT", body: {} },
    {
      target: "/v1/messages",
      method: "OPTIONS",
      keyIn: null,
      fields: fieldsOf(`${page} | access-control-request-method: POST`),
    },
    { target: "/v1/messages", body: hello, fields: fieldsOf(page), scripts: good("messages") },
    { target: "/v1/messages", body: hello, fields: fieldsOf("host: evil.example") },
  ]);
  const variants = wordsOf(
    "/v1/messages/ //v1/messages /v1/v1/messages /messages /v1/messages?beta=true /v1/./messages /v1/x/../messages /v1/%6dessages /V1/messages",
  ).map((target) => ask(messages!, false, good("messages"), { target }));
  yield scene("path-messages", messages!, variants);
  const models = wordsOf("gemini-2.5-flash models%2Fgemini a/b:c x%20y tuned/x").flatMap((model) =>
    [`/v1beta/models/${model}:generateContent`, `/v1/models/${model}:countTokens?alt=json`].map((target) =>
      ask(content!, false, good("content"), { target }),
    ),
  );
  yield scene("path-content", content!, models);
  const query = `/v1beta/models/gemini-2.5-flash:generateContent?key=${secretOf("path-query")}&alt=json`;
  const inQuery = ask(content!, false, good("content"), { keyIn: null, target: query });
  yield scene("path-query", content!, [inQuery]);
  const long = `{"model":"x","pad":"${"x".repeat(2_200_000)}"}`;
  const bodies = ["", "{", "[]", '"x"', "{}", '{"model":5}', '{"model":""}', long];
  for (const front of [messages!, responses!, chat!, content!]) {
    const steps = bodies.map((body) => ask(front, false, good(front.dialect), { body }));
    yield scene(`body-${front.name}`, front, steps);
  }
  const usage = { prompt_tokens: 8, total_tokens: 8 };
  const embedded = json({ object: "list", data: [], model: "text-embedding-3-small", usage });
  const more = wordsOf("responses/compact responses/input_tokens alpha/search images/generations");
  const simple = { model: "gpt-5.4", input: "x" };
  yield scene("more-responses", responses!, [
    ...more.map((path) => ({ target: `/v1/${path}`, body: simple, scripts: good("responses") })),
    { target: "/v1/embeddings", body: simple, scripts: [embedded] },
    { target: "/v1/responses/resp_01ABC", scripts: good("responses") },
    { target: "/v1/responses/resp_01ABC/input_items?limit=5", scripts: good("responses") },
    { target: "/v1/responses/resp_01ABC/cancel", method: "POST", scripts: good("responses") },
    { target: "/v1/responses/resp_01ABC", method: "DELETE", scripts: good("responses") },
  ]);
  const verbs = wordsOf("countTokens embedContent batchEmbedContents predict streamGenerateContent").map(
    (verb) => ask(content!, false, good("content"), { target: `/v1beta/models/gemini-2.5-flash:${verb}` }),
  );
  yield scene("more-content", content!, verbs);
  const counted = json({ input_tokens: 14 });
  const count = ask(messages!, false, [counted], { target: "/v1/messages/count_tokens" });
  yield scene("count-tokens", messages!, [count]);
  const files = wordsOf("/v1/files /v1/files/f1/content?x=1 /v1/other /v1/files/../messages").flatMap(
    (target): Step[] => [
      { target, scripts: [{ pieces: ["file"] }] },
      { target, body: { a: 1 }, scripts: [{ status: 201, pieces: ["made"] }] },
    ],
  );
  yield scene("other-paths", messages!, files, { group: { other_paths: ["/v1/files"] } });
}

/** Scenarios about what the gateway passes on: header fields, bodies and names. */
function* passing(): Generator<Scenario> {
  const [messages, responses, chat, content] = FRONTS;
  const good = (dialect: Dialect): Script[] => [answered(dialect, false)];
  const many = fieldsOf(
    "accept: application/json | accept-encoding: gzip, br | anthropic-version: 2023-06-01 | anthropic-beta: a, b | anthropic-beta: c | user-agent: odd/1.0 | cookie: a=b | origin: http://localhost:4141 | referer: http://x | sec-fetch-mode: cors | traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 | x-stainless-lang: js | x-odd:  | X-ODD: twice | x-gateway-tool: my-tool | x-forwarded-for: 1.2.3.4 | openai-organization: org-1 | te: trailers | via: 1.1 x | x-goog-user-project: p",
  );
  const back = fieldsOf(
    "request-id: req_upstream | set-cookie: a=b | set-cookie: c=d | alt-svc: h3 | strict-transport-security: max-age=1 | anthropic-ratelimit-requests-remaining: 5 | anthropic-organization-id: org | access-control-allow-origin: * | x-odd: 1 | x-odd: 2 | server: x | cf-ray: y | retry-after: 3 | x-request-id: up-1 | openai-organization: org | vary: accept | x-should-retry: true",
  );
  for (const front of [messages!, responses!, chat!, content!]) {
    const script = answered(front.dialect, false);
    const fields = [...(script.fields ?? []), ...back];
    const step = ask(front, false, [{ ...script, fields }], { fields: many });
    const channels = { a: { headers: { "x-team": "research" } } };
    yield scene(`fields-${front.name}`, front, [step], { channels });
  }
  const target = "/v1/messages";
  const scripts = good("messages");
  const body = JSON.stringify(request("messages", false).body);
  const odd = `  {"big":12345678901234567890, "model" : "claude-haiku-4-5","u":"\\u00e9\\ud83d\\ude00","e":1.0e-7,"messages":[],"max_tokens":1}\n`;
  const packed = (bytes: Buffer, how: string): Step => ({
    target,
    body: bytes,
    fields: [["content-encoding", how]],
    scripts,
  });
  const gzip = (type: Fields, text: string): Script[] => [
    { fields: [...type, ["content-encoding", "gzip"]], pieces: [gzipSync(text)] },
  ];
  const zipped = gzip(JSON_TYPE, JSON.stringify(answer("messages")));
  const zippedStream = gzip(SSE_TYPE, events("messages").join(""));
  yield scene("bodies", messages!, [
    { target, body: odd, scripts },
    packed(gzipSync(body), "gzip"),
    packed(zstdCompressSync(body), "zstd"),
    packed(Buffer.from("no gzip"), "gzip"),
    packed(Buffer.from(body), "lzma"),
    packed(gzipSync(Buffer.alloc(8_000_000, 32)), "gzip"),
    { target, body, fields: [["accept-encoding", "gzip"]], scripts: zipped },
    { target, body: request("messages", true).body, scripts: zippedStream },
  ]);
  const named = (front: Front, names: string): Step[] =>
    wordsOf(names).map((model) => ask(front, false, good(spoken(front)), {}, { model }));
  const aliases = {
    fast: "claude-haiku-4-5",
    "claude-2*": "claude-sonnet-4-5",
    "claude-2.1-*": "claude-opus-4-5",
  };
  const aliased = [
    ...named(messages!, "fast claude-2.0 claude-2.1-x claude-haiku-4-5 else"),
    packed(gzipSync(body.replace("claude-haiku-4-5", "fast")), "gzip"),
    { target, body: body.replace("{", '{"model":"fast",'), scripts },
    { target, body: body.replace('"model":"claude-haiku-4-5"', '"mod\\u0065l":"f\\u0061st"'), scripts },
  ];
  yield scene("aliases", messages!, aliased, { channels: { a: { aliases } } });
  const inPath = ask(content!, false, good("content"), { target: "/v1beta/models/fast:generateContent" });
  const flash = { channels: { a: { aliases: { fast: "gemini-2.5-flash" } } } };
  yield scene("aliases-content", content!, [inPath], flash);
  const gpt = { channels: { a: { aliases: { fast: "gpt-5.4" } } } };
  yield scene("aliases-bridged", FRONTS[4]!, named(FRONTS[4]!, "fast"), gpt);
  const list: Step = { target: "/v1/models" };
  yield scene("default-model", messages!, [list, ...named(messages!, "unheard claude-haiku-4-5 own-x")], {
    group: { default_model: "claude-sonnet-4-5" },
    channels: { a: { priority: 1 }, b: { models: ["own-*"], priority: 2 } },
  });
  yield scene("models", messages!, [list, ...named(messages!, "claude-haiku-4-5 own-1 none")], {
    channels: { a: { models: ["claude-haiku-*"], priority: 2 }, b: { models: ["own-*"], priority: 1 } },
  });
  const credential = secretOf("redaction-a");
  const escaped = JSON.stringify(`"${credential}"`).slice(1, -1);
  const encoded = encodeURIComponent(`${credential}/ä`);
  const texts = [credential, escaped, encoded, secretOf("redaction"), credential.slice(0, 9)];
  const split = (text: string): string[] => {
    const at = text.search(/sk-[0-9a-f]{6}/) + 9;
    return [text.slice(0, at), text.slice(at)];
  };
  const saying = (text: string): Script => ({
    fields: [...JSON_TYPE, ["x-echo", text]],
    pieces: split(JSON.stringify({ ...answer("messages"), content: [{ type: "text", text }] })),
  });
  const echo = events("messages").flatMap((event) => split(event.replace("world", credential)));
  const failures = [400, 500].map((status) => failure("messages", status, `the key ${credential} is wrong`));
  yield scene("redaction", messages!, [
    ...[...texts.map(saying), ...failures].map((script) => ask(messages!, false, [script])),
    ask(messages!, true, [{ fields: SSE_TYPE, pieces: echo }]),
  ]);
}

/** Scenarios in which agents converse. The ledger notes who asked, the session, and what caches missed. */
function* agents(): Generator<Scenario> {
  const [messages, responses, , content] = FRONTS;
  const claude = fieldsOf(
    `user-agent: claude-cli/2.1.332 (external, cli) | x-claude-code-session-id: ${UUID}1 | anthropic-beta: claude-code-20250219`,
  );
  const mark = { cache_control: { type: "ephemeral" } };
  const usage = (read: number, written: number): Script => {
    const cached = { cache_read_input_tokens: read, cache_creation_input_tokens: written };
    return json({ ...answer("messages"), usage: { input_tokens: 5, ...cached, output_tokens: 9 } });
  };
  const turn = (count: number, system: string, script: Script, more: object = {}): Step => {
    const body = {
      system: [{ type: "text", text: system.repeat(400), ...mark }],
      messages: Array.from({ length: count }, (_, at) => ({
        role: at % 2 === 0 ? "user" : "assistant",
        content: [{ type: "text", text: `turn ${at} `.repeat(60), ...(at === count - 1 ? mark : {}) }],
      })),
      metadata: { user_id: `user_x_account_y_session_${UUID}1` },
      ...more,
    };
    return ask(messages!, false, [script], { fields: claude }, body);
  };
  yield scene("cache-misses", messages!, [
    turn(1, "You help. ", usage(0, 1500)),
    turn(3, "You help. ", usage(1500, 300)),
    turn(5, "You helped. ", usage(0, 2000)),
    turn(7, "You helped. ", usage(100, 2000), { model: "claude-sonnet-4-5" }),
    turn(9, "You helped. ", usage(100, 2000), { model: "claude-sonnet-4-5", tools: [] }),
    turn(11, "You helped. ", usage(0, 2600), {
      model: "claude-sonnet-4-5",
      tools: [],
      thinking: { type: "enabled", budget_tokens: 2000 },
    }),
  ]);
  const codex = fieldsOf(
    `user-agent: codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown | session-id: ${UUID}2 | originator: codex_exec | thread-id: t1`,
  );
  const kept = { prompt_cache_key: "k", store: false };
  const turnOfCodex = ask(responses!, true, [answered("responses", true)], { fields: codex }, kept);
  yield scene("codex", responses!, [turnOfCodex, turnOfCodex]);
  const fields = fieldsOf("user-agent: GeminiCLI/0.40.1/gemini-2.5-flash (linux; x64)");
  yield scene("gemini", content!, [ask(content!, true, [answered("content", true)], { fields })]);
  const queued = json({ ...answer("responses"), status: "queued", output: [], usage: null });
  yield scene("background", responses!, [
    ask(responses!, false, [queued], {}, { background: true, store: true }),
    { target: "/v1/responses/resp_01ABC", scripts: [answered("responses", false)] },
  ]);
}

const LOGIN = `sk-ant-oat01-${"Invented0".repeat(6)}`;

function* logins(): Generator<Scenario> {
  const [messages, responses] = FRONTS;
  const client = { channels: { a: { credential: "client" } } };
  const windows = fieldsOf(
    "anthropic-ratelimit-unified-status: allowed | anthropic-ratelimit-unified-5h-utilization: 0.42 | anthropic-ratelimit-unified-5h-reset: 2099999999",
  );
  const over = fieldsOf(
    "anthropic-ratelimit-unified-status: allowed | anthropic-ratelimit-unified-overage-status: allowed | anthropic-ratelimit-unified-overage-in-use: true",
  );
  const claude = fieldsOf(
    `authorization: Bearer ${LOGIN} | user-agent: claude-cli/2.1.332 (external, cli) | anthropic-beta: claude-code-20250219,oauth-2025-04-20 | anthropic-version: 2023-06-01 | x-claude-code-session-id: ${UUID}3`,
  );
  const good = answered("messages", false);
  const keyIn = "x-gateway-key";
  const asks = (script: Script, fields: Fields, place: string | null = keyIn): Step =>
    ask(messages!, false, [script], { fields, keyIn: place });
  const steps = [
    ...[windows, over].map((more) => asks({ ...good, fields: [...JSON_TYPE, ...more] }, claude)),
    ...[401, 403, 429, 529].map((status) => asks(failure("messages", status), claude)),
    ...claude.map((missing) => asks(good, claude.toSpliced(claude.indexOf(missing), 1))),
    asks(good, claude.slice(1), "authorization"),
    asks(good, claude, null),
    { target: "/v1/models", fields: claude, keyIn },
    ask(messages!, true, [answered("messages", true)], { fields: claude, keyIn }),
  ];
  yield scene("login-claude", messages!, steps, client);
  const codex = fieldsOf(
    `authorization: Bearer ${LOGIN} | chatgpt-account-id: 0f9e8d7c-6b5a-4321-8fed-cba987654321 | user-agent: codex_exec/0.169.0 (Debian) | session-id: ${UUID}5`,
  );
  const used = fieldsOf("x-codex-primary-used-percent: 12 | x-codex-primary-window-minutes: 300");
  const stream: Script = { ...answered("responses", true), fields: [...SSE_TYPE, ...used] };
  const asked = [codex, codex.slice(0, 1)].map((fields) =>
    ask(responses!, true, [stream], { fields, keyIn }),
  );
  yield scene("login-codex", responses!, asked, client);
  yield scene("login-elsewhere", messages!, [asks(good, claude), asks(good, codex)]);
}

export function listScenarios(): Scenario[] {
  return [
    ...outcomes(),
    ...failovers(),
    ...conversions(),
    ...bills(),
    ...limits(),
    ...access(),
    ...passing(),
    ...agents(),
    ...logins(),
  ];
}
