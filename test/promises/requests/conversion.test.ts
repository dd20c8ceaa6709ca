// The contract's promises about groups with `convert: true`.

import { describe, expect, test } from "bun:test";
import { parseAnswer } from "../../harness/raw.ts";
import { ask, DIALECTS, type Dialect, stream, TEXT, whole } from "../world/answers.ts";
import {
  eventually,
  type Group,
  makeFolder,
  removeFolder,
  runIn,
  type Section,
  useWorld,
} from "../world/world.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const world = useWorld();
type ChannelPlatform = "messages" | "responses" | "content" | "chat";
const CHANNELS: readonly ChannelPlatform[] = ["messages", "responses", "chat", "content"];
const PLATFORM_OF: Readonly<Record<Dialect, "messages" | "responses" | "content">> = {
  messages: "messages",
  responses: "responses",
  chat: "responses",
  content: "content",
};

/** For each platform of clients and each platform of channels, a group with `convert: true`. */
const groups = new Map<string, Group>();
for (const client of ["messages", "responses", "content"] as const)
  for (const platform of CHANNELS)
    groups.set(
      `${client}>${platform}`,
      world.group(`${client}-${platform}`, {
        platform: client,
        channels: { main: { platform } },
        group: { convert: true },
      }),
    );
const groupOf = (client: Dialect, channel: ChannelPlatform): Group =>
  groups.get(`${PLATFORM_OF[client]}>${channel}`)!;

const mixed = {
  channels: {
    foreign: { platform: "chat", priority: 1 },
    own: { platform: "messages", priority: 9 },
  },
  group: { convert: true },
};
const ordered = world.group("ordered", mixed);
const lacking = world.group("lacking", mixed);
const returning = world.group("returning", mixed);
const plain = world.group("plain");
const looped = world.group("looped", { key: { limits: { same_call: 3 } } });

/** Returns the model's words in an answer of the client's dialect. */
function textOf(dialect: Dialect, text: string, streamed: boolean): string {
  const parts = streamed
    ? [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = "{}"]) => JSON.parse(data))
    : [JSON.parse(text)];
  // oxlint-disable-next-line typescript/no-explicit-any -- answers are JSON of any shape
  const read: Record<Dialect, (part: any) => any> = {
    messages: (part) => (streamed ? part.delta?.text : part.content[0].text),
    responses: (part) =>
      streamed
        ? part.type === "response.output_text.delta" && part.delta
        : part.output.at(-1).content[0].text,
    chat: (part) => (streamed ? part.choices[0]?.delta.content : part.choices[0].message.content),
    content: (part) => part.candidates?.[0]?.content?.parts?.map(({ text: each }: Section) => each).join(""),
  };
  return parts.map((part) => read[dialect](part) || "").join("");
}

const rows = DIALECTS.flatMap((client) => CHANNELS.map((channel) => [client, channel] as const));
const crossed = rows.filter(([client, channel]) => client !== channel);

describe("P158: in a group with convert: true, every generating endpoint works on channels of every dialect", () => {
  const each = rows.flatMap(([client, channel]) =>
    [false, true].map((streamed) => [client, channel, streamed] as const),
  );
  test.each(each)("a %s client gets a %s channel's answer, stream: %p", async (client, channel, streamed) => {
    const answer = await groupOf(client, channel).ask(client, { stream: streamed });
    expect(answer.status).toBe(200);
    expect(textOf(client, answer.text, streamed)).toBe(TEXT);
    expect(answer.complete).toBe(true);
  });
});

test("P159: a channel of another platform is a config error without convert: true, and allowed with it", async () => {
  const folder = makeFolder();
  const own = { base_url: "http://127.0.0.1:1", credential: "some-credential", platform: "chat" };
  const write = (group: Section): void => {
    const groups = { g: { platform: "messages", channels: ["main"], ...group } };
    const config = { channels: { main: own }, groups };
    writeFileSync(join(folder, "gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
  };
  write({});
  const refused = await runIn(folder, ["groups", "list"]);
  expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining("convert: true")]);
  write({ convert: true });
  expect((await runIn(folder, ["groups", "list"])).status).toBe(0);
  removeFolder(folder);
});

test("P161: among channels that list the model, those of the client's dialect come first", async () => {
  await world.request("/v1/models", { "x-api-key": ordered.key });
  await ordered.ask("messages");
  expect([ordered.channel("foreign").seen.length, ordered.channel("own").seen.length]).toEqual([0, 1]);
  lacking.channel("own").models = ["other-model"];
  await world.request("/v1/models", { "x-api-key": lacking.key });
  await lacking.ask("messages");
  expect([lacking.channel("foreign").seen.length, lacking.channel("own").seen.length]).toEqual([1, 0]);
});

test("P161: after a converted answer, a conversation returns to the channel of its dialect", async () => {
  returning.channel("own").next({ status: 404, body: { error: { message: "no such model" } } });
  for (let count = 0; count < 2; count += 1) await returning.ask("messages");
  expect(["own", "foreign"].map((name) => returning.channel(name).seen.length)).toEqual([2, 1]);
});

test("P162: a converted answer has the header x-gateway-converted, and its line has the field `converted`", async () => {
  for (const [client, channel] of crossed) {
    for (const streamed of [false, true]) {
      const answer = await groupOf(client, channel).ask(client, { stream: streamed });
      expect(answer.field("x-gateway-converted")).toBe(`${client}->${channel}`);
      expect((await world.line(answer))["converted"]).toBe(channel);
    }
  }
  const group = groupOf("messages", "chat");
  group.channel().next({ status: 400, body: { error: { message: "no" } } });
  const refused = await group.ask("messages");
  expect(refused.field("x-gateway-converted")).toBe("messages->chat");
  expect((await world.line(refused))["converted"]).toBe("chat");
  const passed = await plain.ask("messages");
  expect(passed.field("x-gateway-converted")).toBeUndefined();
  expect((await world.line(passed))["converted"]).toBeUndefined();
});

const NAMED: readonly (readonly [Dialect, ChannelPlatform, Section, string])[] = [
  ["messages", "chat", { top_k: 5 }, "top_k"],
  ["chat", "messages", { temperature: 1.5, seed: 1 }, "temperature=1"],
  ["responses", "chat", { truncation: "auto" }, "truncation"],
  // From here on, each row has a field that no dialect knows: first at the top of the body, then inside.
  ...crossed
    .filter((pair) => !pair.every((each) => each === "chat" || each === "responses"))
    .map(([client, channel]) => [client, channel, { strangeField: 1 }, "strangeField"] as const),
  [
    "messages",
    "chat",
    { tools: [{ name: "f", input_schema: { type: "object" }, strange: 1 }] },
    "tools[].strange",
  ],
  [
    "messages",
    "content",
    { messages: [{ role: "user", content: [{ type: "text", text: "Hi", strange: 1 }] }] },
    "strange",
  ],
];

test.each(NAMED)(
  "P163: a request is converted from %s to %s, and x-gateway-adjusted names what was changed or left out of %j",
  async (client, channel, more, name) => {
    const group = groupOf(client, channel);
    const plain = (await group.ask(client)).field("x-gateway-adjusted");
    expect(plain).toBeUndefined();
    for (const streamed of [false, true]) {
      const answer = await group.ask(client, { ...more, stream: streamed });
      expect(answer.status).toBe(200);
      expect(answer.field("x-gateway-adjusted")).toContain(name);
      const [field = ""] = /\w+$/.exec(name.replace(/=.*/, "")) ?? [];
      if (!name.includes("=")) expect(group.channel().seen.at(-1)!.text).not.toContain(`"${field}"`);
    }
  },
);

const JSON_OBJECT = { type: "json_object" };
const WORDS = { role: "assistant", content: "I begin" };
const config = (name: string, value: unknown) => [{ generationConfig: { [name]: value } }, name] as const;
/** Each row has a client's dialect, channels' dialects, and fields of the client that these channels lack. */
const REFUSED: readonly (readonly [
  Dialect,
  readonly ChannelPlatform[],
  readonly (readonly [Section, string])[],
])[] = [
  [
    "messages",
    ["responses", "chat", "content"],
    [
      [{ mcp_servers: [{}] }, "mcp_servers"],
      [{ container: "c" }, "container"],
      [{ messages: [{ role: "user", content: "Hi" }, WORDS] }, "messages"],
    ],
  ],
  ["messages", ["responses"], [[{ stop_sequences: ["a"] }, "stop_sequences"]]],
  [
    "responses",
    ["messages", "chat", "content"],
    [
      [{ previous_response_id: "resp_0" }, "previous_response_id"],
      [{ conversation: "conv_1" }, "conversation"],
      [{ background: true }, "background"],
      [{ prompt: { id: "pmpt_1" } }, "prompt"],
      [{ max_tool_calls: 3 }, "max_tool_calls"],
      [{ top_logprobs: 3 }, "top_logprobs"],
    ],
  ],
  ["responses", ["messages"], [[{ text: { format: JSON_OBJECT } }, "text.format"]]],
  [
    "chat",
    ["messages", "responses", "content"],
    [
      [{ logit_bias: { 50256: -100 } }, "logit_bias"],
      [{ frequency_penalty: 1 }, "frequency_penalty"],
      [{ presence_penalty: 1 }, "presence_penalty"],
      [{ n: 2 }, "n:"],
      [{ modalities: ["audio"] }, "modalities"],
      [{ prediction: { type: "content", content: "x" } }, "prediction"],
    ],
  ],
  ["chat", ["responses"], [[{ stop: ["a"] }, "stop"]]],
  [
    "chat",
    ["messages"],
    [
      [{ response_format: JSON_OBJECT }, "response_format"],
      [{ logprobs: true }, "logprobs"],
    ],
  ],
  [
    "content",
    ["messages", "responses", "chat"],
    [
      [{ cachedContent: "cachedContents/1" }, "cachedContent"],
      config("frequencyPenalty", 1),
      config("presencePenalty", 1),
      config("responseLogprobs", true),
      config("candidateCount", 2),
      config("responseModalities", ["IMAGE"]),
      config("speechConfig", { voiceConfig: {} }),
    ],
  ],
  ["content", ["responses"], [config("stopSequences", ["a"])]],
  ["content", ["messages"], [config("responseMimeType", "application/json")]],
];
const refused = REFUSED.flatMap(([client, channels, fields]) =>
  channels.flatMap((channel) => fields.map(([more, name]) => [client, channel, name, more] as const)),
);

const refusedIds: unknown[] = [];
test.each(refused)(
  "P164: a %s request with a field that %s lacks gets a 400 that names the field, and does not go upstream: %s",
  async (client, channel, name, more) => {
    const group = groupOf(client, channel);
    const before = group.channel().seen.length;
    for (const streamed of [false, true]) {
      const answer = await group.ask(client, { ...more, stream: streamed });
      expect([answer.status, group.channel().seen.length - before]).toEqual([400, 0]);
      expect(answer.text).toContain(name);
      if (client === "responses" || client === "chat")
        expect(JSON.parse(answer.text).error.param).toStartWith(name.replace(":", ""));
      refusedIds.push(answer.field("x-request-id"));
    }
  },
);

test("P164: a channel gets the whole list of stop sequences, and refused requests have no line", async () => {
  const stop_sequences = ["a", "b", "c", "d", "e", "f"];
  const group = groupOf("messages", "chat");
  const answer = await group.ask("messages", { stop_sequences });
  expect(answer.field("x-gateway-adjusted")).toBeUndefined();
  // Lines are written in order: a line of a refused request would be in the ledger by now.
  await world.line(answer);
  expect(world.lines().filter(({ id }) => refusedIds.includes(id))).toEqual([]);
  expect(JSON.parse(group.channel().seen.at(-1)!.text).stop).toEqual(stop_sequences);
});

test("P165: a messages request with the field `thread` gets 400 if it would be converted, and goes upstream otherwise", async () => {
  const turns = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello" },
    { role: "user", content: "Go on" },
  ];
  for (const thread of [{ type: "continue" }, { type: "continue", previous_message_id: "msg_1" }])
    for (const messages of [turns, turns.slice(0, 1)])
      for (const streamed of [false, true]) {
        const more = { thread, messages, stream: streamed };
        for (const channel of ["responses", "chat", "content"] as const) {
          const group = groupOf("messages", channel);
          const before = group.channel().seen.length;
          const answer = await group.ask("messages", more);
          expect([channel, answer.status, answer.text.includes("thread")]).toEqual([channel, 400, true]);
          expect(group.channel().seen).toHaveLength(before);
        }
        // None of these groups converts the request. `looped` has a limit that reads the conversation.
        for (const group of [plain, looped, groupOf("messages", "messages")]) {
          expect((await group.ask("messages", more)).status).toBe(200);
          expect(JSON.parse(group.channel().seen.at(-1)!.text)).toMatchObject({ thread, messages });
        }
      }
});

/** The counts of an answer, as its client reads them. */
const COUNTS: Readonly<Record<Dialect, readonly RegExp[]>> = {
  messages: [/"input_tokens":800\b/, /"cache_read_input_tokens":200\b/, /"output_tokens":300\b/],
  responses: [/"input_tokens":1000\b/, /"cached_tokens":200\b/, /"output_tokens":300\b/],
  chat: [/"prompt_tokens":1000\b/, /"cached_tokens":200\b/, /"completion_tokens":300\b/],
  content: [/"promptTokenCount":1000\b/, /"cachedContentTokenCount":200\b/, /"candidatesTokenCount":300\b/],
};

test("P166: usage is metered before conversion, and the client sees the same counts", async () => {
  for (const [client, channel] of crossed) {
    const asked = client === "chat" ? { stream_options: { include_usage: true } } : {};
    for (const more of [{}, { stream: true, ...asked }]) {
      const answer = await groupOf(client, channel).ask(client, more);
      const compact = answer.text.replaceAll(": ", ":");
      for (const count of COUNTS[client])
        expect([client, channel, count.test(compact)]).toEqual([client, channel, true]);
      const line = await world.line(answer);
      expect(line).toMatchObject({
        charge_usd: "0.00142",
        usage: { input: 800, cache_read: 200, output: 300 },
      });
    }
  }
});

const THOUGHTS = /"(?:reasoning_tokens|thoughtsTokenCount)": ?120\b/;
const DETAILS = [
  ["responses", { output_tokens_details: { reasoning_tokens: 120 } }, ["chat", "content"], THOUGHTS],
  ["chat", { completion_tokens_details: { reasoning_tokens: 120 } }, ["responses", "content"], THOUGHTS],
  ["content", { thoughtsTokenCount: 120 }, ["responses", "chat"], THOUGHTS],
  ["messages", { cache_creation_input_tokens: 50 }, ["responses", "chat"], /"cache_write_tokens": ?50\b/],
] as const;

test.each(DETAILS)("P166: clients see a %s channel's counts: %j", async (channel, usage, clients, count) => {
  for (const client of clients) {
    const group = groupOf(client, channel);
    group.channel().next({ body: whole(channel, { usage }) });
    expect((await group.ask(client)).text).toMatch(count);
  }
});

const COUNTED: readonly (readonly ["messages" | "responses" | "content", string, string])[] = [
  ["messages", "/v1/messages/count_tokens", "input_tokens"],
  ["responses", "/v1/responses/input_tokens", "input_tokens"],
  ["content", "/v1beta/models/test-model:countTokens", "totalTokens"],
];

test.each(COUNTED)(
  "P167: x-gateway-estimated tells a %s client when its count of tokens is an estimate",
  async (client, path, name) => {
    for (const channel of CHANNELS) {
      const group = groupOf(client, channel);
      const answer = await world.request(path, { "x-gateway-key": group.key }, ask(client).body);
      expect([channel, answer.status, JSON.parse(answer.text)[name] > 0]).toEqual([channel, 200, true]);
      const estimated = channel === client ? undefined : "input_tokens";
      expect([channel, answer.field("x-gateway-estimated")]).toEqual([channel, estimated]);
    }
  },
);

describe("P168: an answer that the upstream cut is an error in the client's dialect", () => {
  const ERROR: Readonly<Record<Dialect, readonly [RegExp, RegExp]>> = {
    messages: [/event: error\ndata: /, /message_stop/],
    responses: [/event: response\.failed\ndata: /, /response\.completed/],
    chat: [/data: \{"error":/, /\[DONE\]/],
    content: [/data: \{"error":/, /"finishReason":"STOP"/],
  };
  test.each(crossed)("a %s client of a %s channel sees that an answer is cut", async (client, channel) => {
    const group = groupOf(client, channel);
    const pieces = stream(channel, { text: "the beginning of it" });
    const upTo = pieces.findIndex((piece) => piece.includes("the beginning of it")) + 1;
    const held = Promise.withResolvers<void>();
    group.channel().next(async (_, out) => {
      out.head(200, { "content-type": "text/event-stream" });
      for (const piece of pieces.slice(0, upTo)) out.write(piece);
      await held.promise;
      out.end("cut");
    });
    const connection = await group.open(client, { stream: true });
    await connection.until("the beginning of it");
    held.resolve();
    const over = connection.until((all) => parseAnswer(all)?.complete === true);
    await Promise.race([over.catch(() => {}), connection.ended]);
    const text = connection.bytes().toString();
    const [present, absent] = ERROR[client];
    expect(text).toMatch(present);
    expect(text).not.toMatch(absent);
    connection.close();
    const [, id] = /x-request-id: (\w+)/i.exec(text)!;
    expect(await eventually(() => world.lines().find((line) => line["id"] === id))).toMatchObject({
      outcome: "upstream_cut",
    });
  });

  test.each(crossed.filter(([, channel]) => channel === "chat"))(
    "an answer that was cut before its usage came is an error for a %s client of a %s channel",
    async (client, channel) => {
      const group = groupOf(client, channel);
      group.channel().next({ pieces: stream(channel).slice(0, 3), ending: "cut" });
      expect((await group.ask(client, { stream: true })).text).toMatch(ERROR[client][0]);
    },
  );
});

test.each(crossed)(
  "P168: a JSON answer that the upstream cut is an error for a %s client of a %s channel",
  async (client, channel) => {
    const group = groupOf(client, channel);
    group.channel().next({ body: whole(channel), ending: "cut" });
    const answer = await group.ask(client);
    expect([answer.status, JSON.parse(answer.text).error !== undefined]).toEqual([502, true]);
  },
);

test("P169: a converted body above 32 MiB gets 413", async () => {
  const group = groupOf("messages", "chat");
  const before = group.channel().seen.length;
  // Each character has two bytes: 34 MiB.
  const content = "é".repeat(17 << 20);
  const answer = await group.ask("messages", { messages: [{ role: "user", content }] });
  expect([answer.status, group.channel().seen.length - before]).toEqual([413, 0]);
  const below = { messages: [{ role: "user", content: "x".repeat(31 << 20) }] };
  expect((await group.ask("messages", below)).status).toBe(200);
});
