// Groups that convert.

import { describe, expect, test } from "bun:test";
import { parseAnswer } from "../../harness/raw.ts";
import { DIALECTS, type Dialect, stream, TEXT, whole } from "../world/answers.ts";
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

/** A group whose clients speak one dialect and whose only channel another. */
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

const ordered = world.group("ordered", {
  channels: {
    foreign: { platform: "chat", priority: 1 },
    own: { platform: "messages", priority: 9 },
  },
  group: { convert: true },
});
const plain = world.group("plain");
const looped = world.group("looped", { key: { limits: { same_call: 3 } } });

/** The text that an answer says, read as its client reads it. */
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
  test.each(each)("%s on a channel of %s, streamed: %p", async (client, channel, streamed) => {
    const answer = await groupOf(client, channel).ask(client, { stream: streamed });
    expect(answer.status).toBe(200);
    expect(textOf(client, answer.text, streamed)).toBe(TEXT);
    expect(answer.complete).toBe(true);
  });
});

async function check(channels: Section, group: Section): Promise<{ status: number; stderr: string }> {
  const folder = makeFolder();
  try {
    const own = { base_url: "http://127.0.0.1:1", credential: "some-credential" };
    const all = Object.fromEntries(
      Object.entries(channels).map(([name, platform]) => [name, { ...own, platform }]),
    );
    const config = { channels: all, groups: { g: { channels: Object.keys(channels), ...group } } };
    writeFileSync(join(folder, "gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
    return await runIn(folder, ["groups", "list"]);
  } finally {
    removeFolder(folder);
  }
}

test("P159: without convert: true, a channel of another platform is a config error, except chat in responses", async () => {
  const refused = await check({ main: "chat" }, { platform: "messages" });
  expect([refused.status, refused.stderr.includes("convert: true")]).toEqual([2, true]);
  expect((await check({ main: "responses" }, { platform: "content" })).status).toBe(2);
  expect((await check({ main: "chat" }, { platform: "responses" })).status).toBe(0);
  expect((await check({ main: "chat" }, { platform: "messages", convert: true })).status).toBe(0);
});

test("P160: a relay channel in a group with convert: true is a config error", async () => {
  expect((await check({ main: "relay" }, { platform: "messages", convert: true })).status).toBe(2);
});

test("P161: among channels that list the model, those of the client's dialect come first", async () => {
  await world.request("/v1/models", { "x-api-key": ordered.key });
  await ordered.ask("messages");
  expect([ordered.channel("foreign").seen.length, ordered.channel("own").seen.length]).toEqual([0, 1]);
});

test("P162: a converted answer has x-gateway-converted, and its line converted", async () => {
  for (const [client, channel] of crossed) {
    const answer = await groupOf(client, channel).ask(client);
    expect(answer.field("x-gateway-converted")).toBe(`${client}->${channel}`);
    expect((await world.line(answer))["converted"]).toBe(channel);
  }
  const passed = await plain.ask("messages");
  expect(passed.field("x-gateway-converted")).toBeUndefined();
  expect((await world.line(passed))["converted"]).toBeUndefined();
});

test("P163: a field that was left out or changed is named in x-gateway-adjusted", async () => {
  const answer = await groupOf("messages", "chat").ask("messages", { top_k: 5 });
  expect(answer.status).toBe(200);
  expect(answer.field("x-gateway-adjusted")).toContain("top_k");
  expect(groupOf("messages", "chat").channel().seen.at(-1)!.text).not.toContain("top_k");
  expect((await groupOf("messages", "chat").ask("messages")).field("x-gateway-adjusted")).toBeUndefined();
});

test.each<[Dialect, ChannelPlatform, Section, string]>([
  ["chat", "messages", { logit_bias: { 50256: -100 } }, "logit_bias"],
  ["responses", "messages", { previous_response_id: "resp_0" }, "previous_response_id"],
  ["chat", "content", { logit_bias: { 1: 1 } }, "logit_bias"],
])(
  "P164: a field that a %s request needs gets 400 on %s that names it, before anything is billed",
  async (client, channel, more, name) => {
    const group = groupOf(client, channel);
    const before = group.channel().seen.length;
    const answer = await group.ask(client, more);
    expect([answer.status, group.channel().seen.length - before]).toEqual([400, 0]);
    expect(answer.text).toContain(name);
    expect(world.lines().some(({ id }) => id === answer.field("x-request-id"))).toBe(false);
  },
);

test("P165: thread of a messages request gets 400 where it would be converted, and passes elsewhere", async () => {
  const thread = { thread: { type: "continue" } };
  const refused = await groupOf("messages", "chat").ask("messages", thread);
  expect([refused.status, refused.text.includes("thread")]).toEqual([400, true]);
  expect((await plain.ask("messages", thread)).status).toBe(200);
  expect(JSON.parse(plain.channel().seen.at(-1)!.text).thread).toEqual(thread.thread);
  // Also with a key whose limit reads the conversation.
  expect((await looped.ask("messages", thread)).status).toBe(200);
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

test("P167: an estimated count of tokens is named in x-gateway-estimated", async () => {
  const count = { model: "test-model", messages: [{ role: "user", content: "Hello" }] };
  const group = groupOf("messages", "chat");
  const answer = await world.request("/v1/messages/count_tokens", { "x-api-key": group.key }, count);
  expect([answer.status, answer.field("x-gateway-estimated")]).toEqual([200, "input_tokens"]);
  expect(JSON.parse(answer.text).input_tokens).toBeGreaterThan(0);
});

describe("P168: an answer that the upstream cut is an error in the client's dialect", () => {
  const ERROR: Readonly<Record<Dialect, readonly [RegExp, RegExp]>> = {
    messages: [/event: error\ndata: /, /message_stop/],
    responses: [/event: response\.failed\ndata: /, /response\.completed/],
    chat: [/data: \{"error":/, /\[DONE\]/],
    content: [/data: \{"error":/, /"finishReason":"STOP"/],
  };
  test.each(crossed)("%s on %s", async (client, channel) => {
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
});

test("P169: a converted body above 32 MiB gets 413", async () => {
  const group = groupOf("messages", "chat");
  const before = group.channel().seen.length;
  const content = "x".repeat(33 << 20);
  const answer = await group.ask("messages", { messages: [{ role: "user", content }] });
  expect([answer.status, group.channel().seen.length - before]).toEqual([413, 0]);
  expect(whole("messages")["role"]).toBe("assistant");
});
