// What is sent through both executables: each scenario has its own channels, group and key.

import { gzipSync, zstdCompressSync } from "node:zlib";
import {
  answer,
  answered,
  type Dialect,
  DIALECTS,
  errorEvent,
  events,
  failure,
  JSON_TYPE,
  MODELS,
  request,
  SSE_TYPE,
} from "./dialects.ts";
import { type Scenario, type Section, secretOf, type Step } from "./side.ts";
import type { Fields, Script } from "./wire.ts";

/** An endpoint with the platform that serves it, and the platform of its channel. */
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

/** The dialect that the upstream of a front speaks. */
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

/** One channel named `a`, unless others are given. */
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

/** Who asks in which dialect, served by a channel of another. */
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

/** What the upstream's own counts say. */
function* bills(): Generator<Scenario> {
  const [messages, responses, chat, content] = FRONTS;
  const say = (dialect: Dialect, usage: object, model?: string, more: object = {}): Script => {
    const name = dialect === "content" ? "usageMetadata" : "usage";
    return {
      fields: JSON_TYPE,
      pieces: [JSON.stringify({ ...answer(dialect, model), [name]: usage, ...more })],
    };
  };
  const of = (front: Front, usages: readonly Script[]): Step[] =>
    usages.map((script) => ask(front, false, [script]));
  yield scene(
    "bill-messages",
    messages!,
    of(messages!, [
      say("messages", { input_tokens: 1e6, output_tokens: 1 }),
      say("messages", { input_tokens: 10, output_tokens: 5, service_tier: "priority" }, "claude-sonnet-4-5"),
      say(
        "messages",
        { input_tokens: 10, output_tokens: 5, service_tier: "batch", inference_geo: "us" },
        "claude-sonnet-4-6",
      ),
      say("messages", { input_tokens: 250_000, output_tokens: 5 }, "claude-sonnet-4-5"),
      say("messages", {
        input_tokens: 9,
        output_tokens: 5,
        server_tool_use: { web_search_requests: 3, web_fetch_requests: 1 },
      }),
      say("messages", { input_tokens: -1, output_tokens: 5 }),
      say("messages", { input_tokens: 1.5, output_tokens: 5 }),
      say("messages", { input_tokens: 1, output_tokens: 5, moon_tokens: 7 }),
      say("messages", { input_tokens: "3", output_tokens: 5 }),
      say("messages", {}),
      say("messages", { input_tokens: 3, output_tokens: 5 }, "claude-unheard-of"),
    ]),
    { group: { multiplier: 0.37 } },
  );
  yield scene(
    "bill-responses",
    responses!,
    of(responses!, [
      say("responses", { input_tokens: 90, input_tokens_details: { cached_tokens: 100 }, output_tokens: 1 }),
      say("responses", {
        input_tokens: 90,
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 9 },
      }),
      say("responses", { input_tokens: 90, output_tokens: 7 }, "gpt-5.4", { service_tier: "priority" }),
      say("responses", { input_tokens: 300_000, output_tokens: 7 }, "gpt-5.4", { service_tier: "flex" }),
      say("responses", { input_tokens: 9, output_tokens: 7 }, "gpt-5.4", {
        output: [{ type: "web_search_call", id: "w", status: "completed", action: { type: "search" } }],
      }),
    ]),
    { group: { multiplier: "1.25" } },
  );
  yield scene(
    "bill-reported",
    chat!,
    of(chat!, [
      say("chat", { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14, cost: 0.0123 }),
      say("chat", { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 }),
      say("chat", { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14, cost: "x" }),
    ]),
    { channels: { a: { bill: "reported" } } },
  );
  yield scene("bill-free", chat!, of(chat!, [answered("chat", false)]), { channels: { a: { free: true } } });
  yield scene(
    "bill-content",
    content!,
    of(content!, [
      say(
        "content",
        { promptTokenCount: 250_000, candidatesTokenCount: 9, totalTokenCount: 250_009 },
        "gemini-2.5-pro",
      ),
      say("content", {
        promptTokenCount: 100,
        candidatesTokenCount: 9,
        toolUsePromptTokenCount: 30,
        totalTokenCount: 139,
      }),
      say("content", {
        promptTokenCount: 100,
        promptTokensDetails: [
          { modality: "AUDIO", tokenCount: 60 },
          { modality: "TEXT", tokenCount: 40 },
        ],
        candidatesTokenCount: 9,
      }),
      say("content", { promptTokenCount: 100, candidatesTokenCount: 9, trafficType: "ON_DEMAND_FLEX" }),
    ]),
  );
  const unasked = [{}, { stream_options: { include_usage: true } }].map((more) =>
    ask(chat!, true, [answered("chat", true)], {}, more),
  );
  yield scene("bill-usage-chunk", chat!, unasked);
}

const UUID = "5b1c2d3e-0000-4000-8000-00000000000";

function* limits(): Generator<Scenario> {
  const [front, responses] = FRONTS;
  const good = answered("messages", false);
  const asks = (count: number, more: Partial<Step> = {}): Step[] =>
    Array.from({ length: count }, () => ask(front!, false, [good], more));
  const limited = (
    name: string,
    limits: Section,
    steps: readonly Step[],
    more: Partial<Scenario> = {},
  ): Scenario => scene(name, front!, steps, { key: { limits }, ...more });
  yield limited("limit-total", { usd_total: "0.0002" }, asks(3));
  yield limited("limit-day", { usd_per_day: "0.0002" }, asks(2));
  yield limited("limit-month", { usd_per_month: "0.0002" }, asks(2));
  yield limited("limit-minute", { requests_per_minute: 2 }, asks(3));
  const session = (from: string, id: number): Partial<Step> => ({
    fields: [["x-gateway-session", `session-${from}-${id}`]],
  });
  yield limited("limit-session", { usd_per_session: "0.0002" }, [
    ...asks(2, session("a", 1)),
    ...asks(1, session("a", 2)),
  ]);
  yield limited("limit-session-minute", { requests_per_minute_per_session: 1 }, [
    ...asks(2, session("b", 1)),
    ...asks(1, session("b", 2)),
  ]);
  yield limited("limit-unpriced", { usd_total: "1" }, [
    ask(front!, false, [good], {}, { model: "claude-unheard-of" }),
  ]);
  yield limited("limit-unpriced-allow", { usd_total: "1", unpriced: "allow" }, [
    ask(
      front!,
      false,
      [answered("messages", false, "claude-unheard-of")],
      {},
      { model: "claude-unheard-of" },
    ),
  ]);
  yield scene("limit-group", front!, asks(2), { group: { limits: { usd_total: "0.0001" } } });
  const spent = { usd_total: "0.0002" };
  const twice = [0, 1].map(() => ask(responses!, false, [answered("responses", false)]));
  yield scene("limit-responses", responses!, twice, { key: { limits: spent } });
  yield scene(
    "limit-content",
    FRONTS[3]!,
    [0, 1].map(() => ask(FRONTS[3]!, false, [answered("content", false)])),
    { key: { limits: spent } },
  );
  const turns = (count: number): object[] =>
    Array.from({ length: count }, (_, at) => [
      {
        role: "assistant",
        content: [{ type: "tool_use", id: `t${at}`, name: "weather", input: { city: "Bonn" } }],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: `t${at}`, content: "rain" }] },
    ]).flat();
  const loop = (count: number): Step =>
    ask(front!, false, [good], {}, { messages: [{ role: "user", content: "Go" }, ...turns(count)] });
  yield limited("limit-same-call", { same_call: 3 }, [loop(2), loop(3), loop(4)]);
  const twoModels = JSON.stringify(request("messages", false).body).replace(
    "{",
    '{"model":"claude-opus-4-5",',
  );
  yield limited("limit-two-models", { usd_total: "1" }, [
    { target: "/v1/messages", body: twoModels, scripts: [good] },
  ]);
}

/** Who may ask, how, and for which path. */
function* access(): Generator<Scenario> {
  const [messages, responses, chat, content] = FRONTS;
  const good = (dialect: Dialect): Script[] => [answered(dialect, false)];
  const refused = (name: string, key: Section, group: Section = {}): Scenario =>
    scene(name, messages!, [ask(messages!, false, good("messages"))], { key, group });
  yield refused("key-disabled", { disabled: true });
  yield refused("key-expired", { expires: "2020-01-01" });
  for (const front of FRONTS) {
    const fields = ["authorization", "x-api-key", "x-goog-api-key", "x-gateway-key", null].map((keyIn) =>
      ask(front, false, good(spoken(front)), { keyIn }),
    );
    const odd: Fields[] = [
      [["authorization", "Bearer sk-wrong"]],
      [
        ["x-api-key", "sk-wrong"],
        ["authorization", `Bearer ${secretOf(`access-${front.name}`)}`],
      ],
    ];
    yield scene(`access-${front.name}`, front, [
      ...fields,
      ...odd.map((each) => ask(front, false, good(spoken(front)), { keyIn: null, fields: each })),
    ]);
  }
  for (const front of FRONTS) {
    const paths = [
      "/v1/messages",
      "/v1/responses",
      "/v1/chat/completions",
      "/v1beta/models/gemini-2.5-flash:generateContent",
      "/relay/v1/messages",
    ];
    yield scene(
      `wrong-${front.name}`,
      front,
      paths.map((target) => ({
        target,
        body: { model: MODELS[front.dialect], max_tokens: 9 },
        keyIn: "x-gateway-key",
        scripts: [],
      })),
    );
    const lists = [
      "/v1/models",
      "/v1beta/models",
      "/relay/models",
      "/relay/v1/models",
      "/relay/v1beta/models",
      "/v1/models/claude-haiku-4-5",
      "/v1beta/models/gemini-2.5-flash",
      "/v1/models/none",
    ];
    yield scene(
      `lists-${front.name}`,
      front,
      [
        ...lists.map((target) => ({ target, keyIn: "x-gateway-key" })),
        { target: "/v1/models", method: "HEAD", keyIn: "x-gateway-key" },
      ],
      {
        channels: {
          a: { aliases: { fast: MODELS[front.dialect] } },
          b: { models: [MODELS[front.dialect], "own-*"] },
        },
      },
    );
  }
  yield scene("own-paths", messages!, [
    ...[
      "/",
      "/api/hello",
      "/healthz",
      "/nothing",
      "/v1/nothing",
      "/v1beta/nothing",
      "/relay",
      "/relay/api/hello",
      "/console",
    ].map((target) => ({ target })),
    ...["/", "/healthz", "/v1/models"].map((target) => ({ target, keyIn: null })),
    { target: "/v1/messages" },
    { target: "/v1/messages", method: "DELETE" },
    { target: "/v1/models", body: {} },
    { target: "/v1/responses", method: "PUT", body: {} },
    {
      target: "/v1/messages",
      method: "OPTIONS",
      keyIn: null,
      fields: [
        ["origin", "https://page.example"],
        ["access-control-request-method", "POST"],
      ],
    },
    {
      target: "/v1/messages",
      body: request("messages", false).body,
      fields: [["origin", "https://page.example"]],
      scripts: good("messages"),
    },
    { target: "/v1/messages", body: request("messages", false).body, fields: [["host", "evil.example"]] },
  ]);
  const variants = [
    "/v1/messages/",
    "//v1/messages",
    "/v1/v1/messages",
    "/messages",
    "/v1/messages?beta=true",
    "/v1/./messages",
    "/v1/x/../messages",
    "/v1/%6dessages",
    "/V1/messages",
  ];
  yield scene(
    "path-messages",
    messages!,
    variants.map((target) => ask(messages!, false, good("messages"), { target })),
  );
  const models = ["gemini-2.5-flash", "models%2Fgemini", "a/b:c", "x%20y", "tuned/x"];
  yield scene(
    "path-content",
    content!,
    models.flatMap((model) => [
      ask(content!, false, good("content"), { target: `/v1beta/models/${model}:generateContent` }),
      ask(content!, false, good("content"), { target: `/v1/models/${model}:countTokens?alt=json` }),
    ]),
  );
  yield scene("path-key-in-query", content!, [
    ask(content!, false, good("content"), {
      keyIn: null,
      target: `/v1beta/models/gemini-2.5-flash:generateContent?key=${secretOf("path-key-in-query")}&alt=json`,
    }),
  ]);
  const bodies = [
    "",
    "{",
    "[]",
    '"x"',
    "{}",
    '{"model":5}',
    '{"model":""}',
    `{"model":"x","pad":"${"x".repeat(2_200_000)}"}`,
  ];
  for (const front of [messages!, responses!, chat!]) {
    const target = request(front.dialect, false).target;
    yield scene(
      `body-${front.name}`,
      front,
      bodies.map((body) => ({ target, body, scripts: good(front.dialect) })),
    );
  }
  yield scene(
    "body-content",
    content!,
    ["", "{", "[]", "{}"].map((body) => ask(content!, false, good("content"), { body })),
  );
  const more = [
    "/v1/responses/compact",
    "/v1/responses/input_tokens",
    "/v1/embeddings",
    "/v1/alpha/search",
    "/v1/images/generations",
  ];
  const usage = { prompt_tokens: 8, total_tokens: 8 };
  const embedded: Script = {
    fields: JSON_TYPE,
    pieces: [JSON.stringify({ object: "list", data: [], model: "text-embedding-3-small", usage })],
  };
  yield scene("more-responses", responses!, [
    ...more.map((target) => ({
      target,
      body: { model: "gpt-5.4", input: "x" },
      scripts: [target.endsWith("embeddings") ? embedded : answered("responses", false)],
    })),
    { target: "/v1/responses/resp_01ABC", scripts: good("responses") },
    { target: "/v1/responses/resp_01ABC/input_items?limit=5", scripts: good("responses") },
    { target: "/v1/responses/resp_01ABC/cancel", method: "POST", scripts: good("responses") },
    { target: "/v1/responses/resp_01ABC", method: "DELETE", scripts: good("responses") },
  ]);
  const verbs = ["countTokens", "embedContent", "batchEmbedContents", "predict", "streamGenerateContent"];
  yield scene(
    "more-content",
    content!,
    verbs.map((verb) => ({
      target: `/v1beta/models/gemini-2.5-flash:${verb}`,
      body: { contents: [] },
      keyIn: "x-goog-api-key",
      scripts: good("content"),
    })),
  );
  yield scene("count-tokens", messages!, [
    ask(messages!, false, [{ fields: JSON_TYPE, pieces: ['{"input_tokens":14}'] }], {
      target: "/v1/messages/count_tokens",
    }),
  ]);
  const other = ["/v1/files", "/v1/files/f1/content?x=1", "/v1/other", "/v1/files/../messages"];
  yield scene(
    "other-paths",
    messages!,
    other.flatMap((target) => [
      { target, scripts: [{ pieces: ["file"] }] },
      { target, body: { a: 1 }, scripts: [{ status: 201, pieces: ["made"] }] },
    ]),
    { group: { other_paths: ["/v1/files"] } },
  );
}

/** Fields, bodies and names on their way. */
function* passing(): Generator<Scenario> {
  const [messages, responses, chat, content] = FRONTS;
  const good = (dialect: Dialect): Script[] => [answered(dialect, false)];
  const many: Fields = [
    ["accept", "application/json"],
    ["accept-encoding", "gzip, br"],
    ["anthropic-version", "2023-06-01"],
    ["anthropic-beta", "a, b"],
    ["anthropic-beta", "c"],
    ["user-agent", "odd/1.0"],
    ["cookie", "a=b"],
    ["origin", "http://localhost:4141"],
    ["referer", "http://x"],
    ["sec-fetch-mode", "cors"],
    ["traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
    ["x-stainless-lang", "js"],
    ["x-odd", ""],
    ["X-ODD", "twice"],
    ["x-gateway-tool", "my-tool"],
    ["x-forwarded-for", "1.2.3.4"],
    ["openai-organization", "org-1"],
    ["te", "trailers"],
    ["via", "1.1 x"],
    ["x-goog-user-project", "p"],
  ];
  const back: Fields = [
    ["request-id", "req_upstream"],
    ["set-cookie", "a=b"],
    ["set-cookie", "c=d"],
    ["alt-svc", "h3"],
    ["strict-transport-security", "max-age=1"],
    ["anthropic-ratelimit-requests-remaining", "5"],
    ["anthropic-organization-id", "org"],
    ["access-control-allow-origin", "*"],
    ["x-odd", "1"],
    ["x-odd", "2"],
    ["server", "x"],
    ["cf-ray", "y"],
    ["retry-after", "3"],
    ["x-request-id", "up-1"],
    ["openai-organization", "org"],
    ["vary", "accept"],
    ["x-should-retry", "true"],
  ];
  for (const front of [messages!, responses!, chat!, content!]) {
    const script = answered(front.dialect, false);
    yield scene(
      `fields-${front.name}`,
      front,
      [ask(front, false, [{ ...script, fields: [...(script.fields ?? []), ...back] }], { fields: many })],
      { channels: { a: { headers: { "x-team": "research" } } } },
    );
  }
  const body = JSON.stringify(request("messages", false).body);
  const odd = `  {"big":12345678901234567890, "model" : "claude-haiku-4-5","u":"\\u00e9\\ud83d\\ude00","e":1.0e-7,"messages":[],"max_tokens":1}\n`;
  const packed = (bytes: Buffer, how: string): Step => ({
    target: "/v1/messages",
    body: bytes,
    fields: [["content-encoding", how]],
    scripts: good("messages"),
  });
  yield scene("bodies", messages!, [
    { target: "/v1/messages", body: odd, scripts: good("messages") },
    packed(gzipSync(body), "gzip"),
    packed(zstdCompressSync(body), "zstd"),
    packed(Buffer.from("no gzip"), "gzip"),
    packed(Buffer.from(body), "lzma"),
    packed(gzipSync(Buffer.alloc(8_000_000, 32)), "gzip"),
    {
      target: "/v1/messages",
      body,
      fields: [["accept-encoding", "gzip"]],
      scripts: [
        {
          fields: [...JSON_TYPE, ["content-encoding", "gzip"]],
          pieces: [gzipSync(JSON.stringify(answer("messages")))],
        },
      ],
    },
    {
      target: "/v1/messages",
      body: request("messages", true).body,
      scripts: [
        {
          fields: [...SSE_TYPE, ["content-encoding", "gzip"]],
          pieces: [gzipSync(events("messages").join(""))],
        },
      ],
    },
  ]);
  const aliases = {
    fast: "claude-haiku-4-5",
    "claude-2*": "claude-sonnet-4-5",
    "claude-2.1-*": "claude-opus-4-5",
  };
  const named = (front: Front, model: string): Step => ask(front, false, good(spoken(front)), {}, { model });
  yield scene(
    "aliases",
    messages!,
    [
      ...["fast", "claude-2.0", "claude-2.1-x", "claude-haiku-4-5", "else"].map((model) =>
        named(messages!, model),
      ),
      packed(gzipSync(body.replace("claude-haiku-4-5", "fast")), "gzip"),
      { target: "/v1/messages", body: body.replace("{", '{"model":"fast",'), scripts: good("messages") },
      {
        target: "/v1/messages",
        body: body.replace('"model":"claude-haiku-4-5"', '"mod\\u0065l":"f\\u0061st"'),
        scripts: good("messages"),
      },
    ],
    { channels: { a: { aliases } } },
  );
  yield scene(
    "aliases-content",
    content!,
    [ask(content!, false, good("content"), { target: "/v1beta/models/fast:generateContent" })],
    { channels: { a: { aliases: { fast: "gemini-2.5-flash" } } } },
  );
  yield scene("aliases-bridged", FRONTS[4]!, [named(FRONTS[4]!, "fast")], {
    channels: { a: { aliases: { fast: "gpt-5.4" } } },
  });
  const list: Step = { target: "/v1/models" };
  yield scene(
    "default-model",
    messages!,
    [list, ...["unheard", "claude-haiku-4-5", "own-x"].map((model) => named(messages!, model))],
    {
      group: { default_model: "claude-sonnet-4-5" },
      channels: { a: { priority: 1 }, b: { models: ["own-*"], priority: 2 } },
    },
  );
  yield scene(
    "models",
    messages!,
    [list, ...["claude-haiku-4-5", "own-1", "none"].map((model) => named(messages!, model))],
    { channels: { a: { models: ["claude-haiku-*"], priority: 2 }, b: { models: ["own-*"], priority: 1 } } },
  );
  const credential = secretOf("redaction-a");
  const key = secretOf("redaction");
  const texts = [
    credential,
    JSON.stringify(`"${credential}"`).slice(1, -1),
    encodeURIComponent(`${credential}/ä`),
    key,
    credential.slice(0, 9),
  ];
  const saying = (text: string): string =>
    JSON.stringify({ ...answer("messages"), content: [{ type: "text", text }] });
  const split = (text: string): string[] => {
    const at = text.search(/sk-[0-9a-f]{6}/) + 9;
    return [text.slice(0, at), text.slice(at)];
  };
  yield scene("redaction", messages!, [
    ...texts.map((text) =>
      ask(messages!, false, [{ fields: [...JSON_TYPE, ["x-echo", text]], pieces: split(saying(text)) }]),
    ),
    ask(messages!, true, [
      {
        fields: SSE_TYPE,
        pieces: events("messages").flatMap((event) => split(event.replace("world", credential))),
      },
    ]),
    ask(messages!, false, [failure("messages", 400, `the key ${credential} is wrong`)]),
    ask(messages!, false, [failure("messages", 500, `the key ${credential} is wrong`)]),
  ]);
}

/** Conversations of agents: who asks, sessions, caches. */
function* agents(): Generator<Scenario> {
  const [messages, responses, , content] = FRONTS;
  const claude: Fields = [
    ["user-agent", "claude-cli/2.1.332 (external, cli)"],
    ["x-claude-code-session-id", `${UUID}1`],
    ["anthropic-beta", "claude-code-20250219"],
  ];
  const mark = { cache_control: { type: "ephemeral" } };
  const usage = (read: number, write: number): Script => ({
    fields: JSON_TYPE,
    pieces: [
      JSON.stringify({
        ...answer("messages"),
        usage: {
          input_tokens: 5,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: write,
          output_tokens: 9,
        },
      }),
    ],
  });
  const turn = (count: number, system: string, script: Script, more: object = {}): Step =>
    ask(
      messages!,
      false,
      [script],
      { fields: claude },
      {
        system: [{ type: "text", text: system.repeat(400), ...mark }],
        messages: Array.from({ length: count }, (_, at) => ({
          role: at % 2 === 0 ? "user" : "assistant",
          content: [{ type: "text", text: `turn ${at} `.repeat(60), ...(at === count - 1 ? mark : {}) }],
        })),
        metadata: { user_id: `user_x_account_y_session_${UUID}1` },
        ...more,
      },
    );
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
  const codex: Fields = [
    ["user-agent", "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown"],
    ["session-id", `${UUID}2`],
    ["originator", "codex_exec"],
    ["thread-id", "t1"],
  ];
  yield scene(
    "codex",
    responses!,
    [1, 2].map(() =>
      ask(
        responses!,
        true,
        [answered("responses", true)],
        { fields: codex },
        { prompt_cache_key: "k", store: false },
      ),
    ),
  );
  const gemini: Fields = [["user-agent", "GeminiCLI/0.40.1/gemini-2.5-flash (linux; x64)"]];
  yield scene("gemini", content!, [ask(content!, true, [answered("content", true)], { fields: gemini })]);
  const background = { background: true, store: true };
  const queued: Script = {
    fields: JSON_TYPE,
    pieces: [JSON.stringify({ ...answer("responses"), status: "queued", output: [], usage: null })],
  };
  yield scene("background", responses!, [
    ask(responses!, false, [queued], {}, background),
    { target: "/v1/responses/resp_01ABC", scripts: [answered("responses", false)] },
  ]);
}

const LOGIN = `sk-ant-oat01-${"Invented0".repeat(6)}`;

function* logins(): Generator<Scenario> {
  const [messages, responses] = FRONTS;
  const client = { channels: { a: { credential: "client" } } };
  const windows: Fields = [
    ["anthropic-ratelimit-unified-status", "allowed"],
    ["anthropic-ratelimit-unified-5h-utilization", "0.42"],
    ["anthropic-ratelimit-unified-5h-reset", "2099999999"],
  ];
  const over: Fields = [
    ["anthropic-ratelimit-unified-status", "allowed"],
    ["anthropic-ratelimit-unified-overage-status", "allowed"],
    ["anthropic-ratelimit-unified-overage-in-use", "true"],
  ];
  const claude: Fields = [
    ["authorization", `Bearer ${LOGIN}`],
    ["user-agent", "claude-cli/2.1.332 (external, cli)"],
    ["anthropic-beta", "claude-code-20250219,oauth-2025-04-20"],
    ["x-claude-code-session-id", `${UUID}3`],
  ];
  const good = answered("messages", false);
  const asks = (scripts: readonly Script[], fields: Fields, keyIn: string | null = "x-gateway-key"): Step =>
    ask(messages!, false, scripts, { fields, keyIn });
  yield scene(
    "login-claude",
    messages!,
    [
      asks([{ ...good, fields: [...JSON_TYPE, ...windows] }], claude),
      asks([{ ...good, fields: [...JSON_TYPE, ...over] }], claude),
      ...[401, 403, 429, 529].map((status) => asks([failure("messages", status)], claude)),
      asks([good], claude.slice(1)),
      asks(
        [good],
        claude.filter(([name]) => name !== "user-agent"),
      ),
      asks(
        [good],
        claude.filter(([name]) => name !== "anthropic-beta"),
      ),
      asks(
        [good],
        claude.filter(([name]) => name !== "x-claude-code-session-id"),
      ),
      asks([good], claude.slice(1), "authorization"),
      asks([good], claude, null),
      { target: "/v1/models", fields: claude, keyIn: "x-gateway-key" },
      ask(messages!, true, [answered("messages", true)], { fields: claude, keyIn: "x-gateway-key" }),
    ],
    client,
  );
  const codex: Fields = [
    ["authorization", `Bearer ${LOGIN}`],
    ["chatgpt-account-id", "0f9e8d7c-6b5a-4321-8fed-cba987654321"],
    ["user-agent", "codex_exec/0.169.0 (Debian)"],
    ["session-id", `${UUID}5`],
  ];
  yield scene(
    "login-codex",
    responses!,
    [
      ask(
        responses!,
        true,
        [
          {
            ...answered("responses", true),
            fields: [
              ...SSE_TYPE,
              ["x-codex-primary-used-percent", "12"],
              ["x-codex-primary-window-minutes", "300"],
            ],
          },
        ],
        { fields: codex, keyIn: "x-gateway-key" },
      ),
      ask(responses!, true, [answered("responses", true)], {
        fields: codex.slice(0, 1),
        keyIn: "x-gateway-key",
      }),
    ],
    client,
  );
  yield scene("login-elsewhere", messages!, [
    asks([good], claude),
    { ...asks([good], codex), fields: codex },
  ]);
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
