// The contract's promises about channels: their order, failover, rests, and Chat Completions.

import { describe, expect, test } from "bun:test";
import { ask, type Dialect, DIALECTS, stream, whole } from "../world/answers.ts";
import type { Fields, Script } from "../world/upstream.ts";
import {
  bearer,
  eventually,
  type Group,
  openOwnWorld,
  type Line,
  type Platform,
  useWorld,
} from "../world/world.ts";

const world = useWorld();
/** A group with two channels. Each row of a test has a group of its own, because a failed channel rests. */
const pairFor = (name: string, platform: Platform = "messages", more = {}): Group =>
  world.group(name, { platform, channels: { first: more, second: { priority: 2, ...more } } });

const order = world.group("order", {
  channels: { last: { priority: 3 }, first: { priority: 1 }, middle: { priority: 2 } },
});
const weights = world.group("weights", {
  channels: { light: { weight: 1 }, heavy: { weight: 4 }, later: { weight: 9, priority: 2 } },
});
const ones = { one: {}, two: {} };
const sticky = (["messages", "responses", "content"] as const).map(
  (dialect) =>
    [dialect, world.group(`sticky-${dialect}`, { platform: dialect, channels: ones }), true] as const,
);
const atOnce = world.group("at-once", { channels: ones });
const moving = world.group("moving", { platform: "responses", channels: ones });
const stores = world.group("stores", { platform: "responses", channels: ones });
const owners = [429, 503].map((status) => {
  return [status, world.group(`owner-${status}`, { platform: "responses", channels: ones })] as const;
});
const unnamed = world.group("sticky-unnamed", { channels: ones });
const PROBE = { probe: "1s" };
const off = world.group("off", {
  channels: { first: { disabled: true, ...PROBE }, second: { priority: 2 } },
});
const watched = world.group("watched", { channels: { main: PROBE } });
const alone = world.group("alone", { channels: { main: { disabled: true } } });
const dead = world.group("dead", { channels: { main: { base_url: "http://127.0.0.1:1" } } });
const led = pairFor("led");
const mixed = world.group("mixed", {
  platform: "responses",
  channels: { chat: { platform: "chat" }, responses: { priority: 2 } },
});
const later = world.group("later", {
  platform: "responses",
  channels: { responses: {}, chat: { platform: "chat", priority: 2 } },
});
const onlyChat = world.group("only-chat", {
  platform: "responses",
  channels: { main: { platform: "chat" } },
});
const probed = world.group("probed");

const error = { type: "error", error: { type: "api_error", message: "of upstream" } };
const FAILURES: readonly (readonly [string, Script])[] = [
  ["refuses its credential", { status: 401, body: error }],
  ["refuses its credential by 403", { status: 403, body: { error: { message: "Invalid API key" } } }],
  ["refuses its credential by 400", { status: 400, body: { details: [{ reason: "API_KEY_INVALID" }] } }],
  ...[402, 408, 429, 500, 501, 502, 503, 504, 520, 529, 599].map(
    (status) => [`answers ${status}`, { status, body: error }] as const,
  ),
  ...[301, 302, 303, 307, 308].map(
    (status) =>
      [
        `answers the redirect ${status}`,
        { status, fields: { location: "http://127.0.0.1:9/" }, body: "" },
      ] as const,
  ),
  ["answers 200 with a page", { body: "<html>sign in</html>", fields: { "content-type": "text/html" } }],
  ["answers 200 with words", { body: "ok", fields: { "content-type": "text/plain" } }],
  ["answers 200 with nothing", { body: "" }],
  ["answers 200 with blanks", { body: " \n " }],
  ["closes the connection", (_, out) => out.end("cut")],
  ["resets the connection", (_, out) => out.end("reset")],
];
const failing = FAILURES.flatMap(([how, script], index) =>
  [true, false].map((streamed) => [how, streamed, script, pairFor(`fail-${index}-${streamed}`)] as const),
);
const STREAM = stream("messages").join("");

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const overloaded = { message: "full", type: "overloaded_error", code: 503, status: "UNAVAILABLE" };
/** Streams that begin with an error. */
const ERRORS: Readonly<Record<Dialect, readonly string[][]>> = {
  messages: [
    [`event: error\n${event({ type: "error", error: overloaded })}`],
    [": sign of life\n\n", "data:\n\n", event({ type: "ping" }), event({ type: "error", error: overloaded })],
    ...[
      "authentication_error",
      "billing_error",
      "rate_limit_error",
      "api_error",
      "timeout_error",
      "overloaded_error",
    ].map((type) => [event({ type: "error", error: { type, message: "full" } })]),
    // This error is not framed as an event.
    [JSON.stringify({ error: overloaded })],
  ],
  responses: [
    [event({ type: "error", code: "server_error", message: "full" })],
    [
      stream("responses")[0]!,
      event({
        type: "response.failed",
        response: { status: "failed", error: { code: "server_error", message: "full" } },
      }),
    ],
  ],
  chat: [[event({ error: { ...overloaded, code: 503 } })]],
  content: [[event({ error: overloaded })]],
};
const beginning = DIALECTS.flatMap((dialect) =>
  ERRORS[dialect].map((pieces, index) => {
    const name = `begin-${dialect}-${index}`;
    const chats = { first: { platform: "chat" }, second: { platform: "chat", priority: 2 } };
    const group =
      dialect === "chat"
        ? world.group(name, { platform: "responses", channels: chats })
        : pairFor(name, dialect);
    return [dialect, pieces, group] as const;
  }),
);
const paged = (["responses", "content"] as const).map(
  (dialect) => [dialect, pairFor(`paged-${dialect}`, dialect)] as const,
);
const unreachable = world.group("unreachable", {
  channels: { first: { base_url: "http://127.0.0.1:1" }, second: { priority: 2 } },
});
const unknown = (["messages", "responses", "content"] as const).map(
  (dialect) => [dialect, pairFor(`unknown-${dialect}`, dialect)] as const,
);
const [counting, embedding] = [pairFor("counting"), pairFor("embedding", "responses")];
const wrong = [400, 403, 405, 406, 409, 410, 413, 415, 418, 422, 424, 425, 426, 431, 451].map(
  (status) => [status, pairFor(`wrong-${status}`)] as const,
);
const CREDIT = "Your credit balance is too low to access the API.";
/** Each row has an answer with 4xx after which no other channel is tried: what it says, and the request that gets it. */
const said = (
  [
    ["nothing", "messages", "/v1/messages", 404, ""],
    ["nothing to count_tokens", "messages", "/v1/messages/count_tokens", 404, ""],
    ["the model's name inside a word", "messages", "/v1/messages", 404, "photo1.png"],
    ["that a file is unknown", "responses", "/v1/responses", 404, "File not found: file-1"],
    ["that there is no page", "content", "/v1beta/models/test-model:generateContent", 404, "<p>/models/"],
    ["that a stored response is unknown", "responses", "/v1/responses/resp_0", 404, "no model response"],
    ["that the response before is unknown", "responses", "/v1/responses", 400, "previous_response_not_found"],
    ["that a model is not allowed", "responses", "/v1/responses", 403, "model_not_found"],
    ["that a model is unknown", "messages", "/v1/messages", 400, "model_not_found"],
    ["that the credit is used up", "messages", "/v1/messages", 400, CREDIT],
    ["that the quota is used up", "responses", "/v1/responses", 403, "insufficient_quota"],
  ] as const
).map(([what, platform, ...row], at) => {
  return [what, ...row, pairFor(`said-${at}`, platform, { aliases: { "test-model": "o1" } })] as const;
});
const [begun, odd, breaking] = [pairFor("begun"), pairFor("odd"), pairFor("breaking")];
/** Each row has a form of retry-after, with header fields, a `retryDelay`, and the seconds of rest. */
const waits = (
  [
    ["seconds", { "retry-after": "90000" }, "", 3600],
    ["date", { "retry-after": new Date(Date.now() + 1_800_000).toUTCString() }, "", 1800],
    ["milliseconds", { "retry-after-ms": "1800000", "retry-after": "90" }, "", 1800],
    ["details", {}, "1800s", 1800],
  ] as const
).map(([form, ...row]) => [form, ...row, pairFor(`wait-${form}`)] as const);
const brief = pairFor("brief");
/** Each row has a status, and how often a channel answers with it before the channel rests. */
const rests = (
  [
    [401, 1],
    [402, 1],
    [408, 1],
    [429, 1],
    [503, 1],
    [529, 1],
    [500, 3],
    [302, 3],
  ] as const
).map(([status, strikes]) => [status, strikes, pairFor(`rest-${status}`)] as const);

/** The first message of each `talk`. Its role is behind its text, as some clients write it. */
const opening = { content: "a".repeat(800), role: "assistant" };
const talk = (content: string) => ({ messages: [opening, { role: "user", content }] });
const used = (group: Group, ...names: string[]): number[] =>
  names.map((name) => group.channel(name).seen.length);

test("P100: a request tries its group's channels by priority, each once, until one answers", async () => {
  await order.ask("messages");
  expect(used(order, "first", "middle", "last")).toEqual([1, 0, 0]);
  for (const name of ["first", "middle"]) order.channel(name).next({ status: 500, body: error });
  const line = await world.line(await order.ask("messages"));
  expect(used(order, "first", "middle", "last")).toEqual([2, 1, 1]);
  expect(line["attempts"].map(({ channel }: Line) => channel)).toEqual([
    "order-first",
    "order-middle",
    "order-last",
  ]);
  for (const name of ["first", "middle", "last"]) order.channel(name).next({ status: 500, body: error });
  expect((await order.ask("messages")).status).toBe(500);
  expect(used(order, "first", "middle", "last")).toEqual([3, 2, 2]);
});

test("P100: channels of one priority share requests by weight, and channels of the next priority get none", async () => {
  for (let count = 0; count < 200; count += 1) await weights.ask("messages", talk(`number ${count}`));
  const [light = 0, heavy = 0, later] = used(weights, "light", "heavy", "later");
  expect([light + heavy, later]).toEqual([200, 0]);
  // One in five is 40. The bounds are more than six standard deviations away from 40.
  expect(light).toBeWithin(5, 76);
});

test("P100: failover.attempts limits how many channels are tried", async () => {
  const config = { failover: { attempts: 2 } };
  const set = (own: typeof world) =>
    own.group("bound", { channels: { first: {}, second: { priority: 2 }, third: { priority: 3 } } });
  const [, group] = await openOwnWorld({ config }, set);
  for (const name of ["first", "second", "third"]) group.channel(name).always({ status: 500, body: error });
  expect((await group.ask("messages")).status).toBe(500);
  expect(used(group, "first", "second", "third")).toEqual([1, 1, 0]);
});

test("P100: once failover.total has passed, the running attempt goes on, but no other channel is tried", async () => {
  const config = { failover: { total: "1ms" } };
  const set = (own: typeof world) => own.group("slow", { channels: { first: {}, second: { priority: 2 } } });
  const [, group] = await openOwnWorld({ config }, set);
  expect((await group.ask("messages")).status).toBe(200);
  group.channel("first").next({ status: 500, body: error });
  expect((await group.ask("messages")).status).toBe(500);
  expect(used(group, "first", "second")).toEqual([2, 0]);
});

describe("P101: the next channel is tried after a failure, an early error or a web page", () => {
  test.each(failing)(
    "the next channel is tried if a channel %s (streamed: %p)",
    async (_, streamed, script, group) => {
      group.channel("first").next(script);
      const answer = await group.ask("messages", { stream: streamed });
      expect([answer.status, answer.text]).toEqual([
        200,
        streamed ? STREAM : JSON.stringify(whole("messages")),
      ]);
      expect(used(group, "first", "second")).toEqual([1, 1]);
    },
  );

  test.each(beginning)(
    "the next channel is tried after an early error, in %s",
    async (dialect, pieces, group) => {
      group.channel("first").next({ pieces });
      const answer = await group.ask(dialect, { stream: true });
      expect([answer.status, answer.text]).toEqual([200, stream(dialect, {}, false).join("")]);
      expect((await world.line(answer))["attempts"]).toHaveLength(2);
      expect(used(group, "first", "second")).toEqual([1, 1]);
    },
  );

  test.each(paged)("the next channel is tried after a 200 with a web page, in %s", async (dialect, group) => {
    group.channel("first").next({ body: "<html>sign in</html>" });
    expect((await group.ask(dialect)).status).toBe(200);
    expect(used(group, "first", "second")).toEqual([1, 1]);
  });

  test("the next channel is tried if the first one is unreachable", async () => {
    expect((await unreachable.ask("messages")).status).toBe(200);
    expect(used(unreachable, "second")).toEqual([1]);
  });
});

const UNKNOWN = {
  status: 404,
  body: { type: "error", error: { type: "not_found_error", message: "model: test-model" } },
};
const UNKNOWN_IN = {
  messages: UNKNOWN,
  responses: { status: 404, body: { error: { code: "model_not_found", message: "test-model" } } },
  content: { status: 404, body: { error: { code: 404, status: "NOT_FOUND", message: "test-model" } } },
};

test.each(unknown)(
  "P102: a 404 for an unknown model leads to the next channel, without a cooldown: %s",
  async (dialect, group) => {
    for (let count = 0; count < 3; count += 1) group.channel("first").next(UNKNOWN_IN[dialect]);
    const asked = [1, 2, 3].map(() => group.ask(dialect, { stream: dialect === "responses" }));
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(used(group, "first", "second")).toEqual([3, 3]);
    const { find } = await stateOf(group, "first");
    expect(find["state"]).not.toBe("resting");
    expect((await group.ask(dialect, { model: "other-model" })).status).toBe(200);
    expect(used(group, "first", "second")).toEqual([4, 3]);
  },
);

test("P102: a 404 for an unknown model leads to the next channel also for count_tokens and embeddings", async () => {
  counting.channel("first").next(UNKNOWN);
  embedding.channel("first").next(UNKNOWN);
  embedding.channel("second").next({ body: { object: "list", data: [], usage: { prompt_tokens: 3 } } });
  const [count, embed] = ["/v1/messages/count_tokens", "/v1/embeddings"];
  const counted = await world.request(count, bearer(counting.key), ask("messages").body);
  const embedded = await world.request(embed, bearer(embedding.key), { model: "test-model", input: "Hi" });
  expect([counted.status, embedded.status]).toEqual([200, 200]);
  expect([counting, embedding].map((group) => used(group, "first", "second"))).toEqual([
    [1, 1],
    [1, 1],
  ]);
});

test.each(wrong)("P103: after a %d, no other channel is tried", async (status, group) => {
  group.channel("first").next({ status, body: error });
  expect((await group.ask("messages")).status).toBe(status);
  expect(used(group, "first", "second")).toEqual([1, 0]);
});

test.each(said)(
  "P103: after a 4xx that says %s, no other channel is tried",
  async (_, path, status, message, group) => {
    const about = message.startsWith("<") || message === "" ? message : { error: { message, code: message } };
    const send = () => {
      const body = path.includes("resp_") ? undefined : { ...talk("Hello"), model: "test-model", input: "x" };
      return world.request(path, bearer(group.key), body);
    };
    group.channel("first").next({ status, body: about });
    expect([(await send()).status, ...used(group, "first", "second")]).toEqual([status, 1, 0]);
    if (/credit|quota/.test(message))
      expect([(await send()).status, ...used(group, "first", "second")]).toEqual([200, 1, 1]);
  },
);

test("P104: failover ends with the first byte of the answer", async () => {
  begun.channel("first").next({ pieces: stream("messages").slice(0, 3), ending: "cut" });
  const answer = await begun.ask("messages", { stream: true });
  expect(answer.text).toContain("event: error");
  begun.channel("first").next({ body: whole("messages"), ending: "cut" });
  expect((await begun.ask("messages")).status).toBe(502);
  // One answer is not HTTP, and one is too short to be judged.
  odd.channel("first").next({ body: "", fields: { "content-length": "x" } });
  expect((await odd.ask("messages")).status).toBe(502);
  odd.channel("first").next({ pieces: ["eve"], ending: "cut" });
  expect((await odd.ask("messages", { stream: true })).text).toContain("event: error");
  for (const group of [begun, odd]) expect(used(group, "first", "second")).toEqual([2, 0]);
});

test("P105: a channel that is unreachable, or whose answers break off, rests", async () => {
  await unreachable.ask("messages");
  const pieces = stream("messages").slice(0, 3);
  for (let count = 0; count < 3; count += 1) {
    breaking.channel("first").next({ pieces, ending: "cut" });
    await breaking.ask("messages", { stream: true });
  }
  for (const group of [unreachable, breaking])
    expect((await stateOf(group, "first")).find["state"]).toMatch(/unavailable|resting/);
});

async function stateOf(group: Group, name: string): Promise<{ find: Line; all: Line[] }> {
  const all: Line[] = await world.json("channels");
  return { find: all.find((channel) => channel["name"] === group.channelName(name))!, all };
}

test.each(waits)(
  "P105: a failed channel rests for its retry-after, at most an hour: %s",
  async (_, fields, retryDelay, seconds, group) => {
    group.channel("first").next({ status: 429, body: { error: { ...error.error, retryDelay } }, fields });
    for (let count = 0; count < 2; count += 1) await group.ask("messages");
    expect(used(group, "first", "second")).toEqual([1, 2]);
    const { find } = await stateOf(group, "first");
    expect(find["state"]).toBe("resting");
    expect((Date.parse(find["until"]) - Date.now()) / 1000).toBeWithin(seconds - 599, seconds + 0.001);
  },
);

test.each(rests)(
  "P105: a channel that answers %d (%d times) without retry-after rests for seconds to minutes",
  async (status, strikes, group) => {
    const at = Date.now();
    for (let count = 0; count < strikes; count += 1) group.channel("first").next({ status, body: error });
    for (let count = 0; count <= strikes; count += 1)
      expect((await group.ask("messages", talk(`number ${count}`))).status).toBe(200);
    expect(used(group, "first", "second")).toEqual([strikes, strikes + 1]);
    // The command may take longer than the channel rests: then `until` is null.
    const { find } = await stateOf(group, "first");
    if (find["until"] !== null) expect(Date.parse(find["until"]) - at).toBeWithin(200, 300_001);
  },
);

test("P105: a channel is used again after its retry-after", async () => {
  brief.channel("first").next({ status: 503, body: error, fields: { "retry-after": "1" } });
  await brief.ask("messages");
  expect(used(brief, "first", "second")).toEqual([1, 1]);
  await eventually(async () => {
    await brief.ask("messages", talk(crypto.randomUUID()));
    await Bun.sleep(50);
    return brief.channel("first").seen.length > 1;
  });
});

/** The field that names the session, by dialect. */
const SESSIONS: Readonly<Record<Exclude<Platform, "relay">, (name: string) => Fields>> = {
  messages: (name) => ({
    "x-claude-code-session-id": name,
    "user-agent": "claude-cli/2.1.0 (external, cli)",
  }),
  responses: (name) => ({ "session-id": name, "user-agent": "codex_exec/0.169.0 (x)" }),
  content: (name) => ({ "x-gateway-session": name }),
};

const conversations = [...sticky, ["messages", unnamed, false] as const];
test.each(conversations)("P106: a conversation stays on its channel: %s", async (dialect, group, isNamed) => {
  const findChannel = async (session: string): Promise<string> => {
    const [before] = used(group, "one");
    if (isNamed) await group.ask(dialect, {}, SESSIONS[dialect](`session-${session}`));
    else await group.ask(dialect, talk(session));
    return group.channelName(used(group, "one")[0] === before ? "two" : "one");
  };
  const channelsOf = new Map<string, Set<string>>();
  for (let turn = 0; turn < 3; turn += 1) {
    // Chance gives each session its channel. That all sessions get the same channel happens less than once in millions of runs.
    for (const session of "abcdefghijklmnopqrstuvwx")
      channelsOf.set(session, (channelsOf.get(session) ?? new Set()).add(await findChannel(session)));
  }
  for (const [session, channels] of channelsOf) expect([session, channels.size]).toEqual([session, 1]);
  expect(Math.min(...used(group, "one", "two"))).toBeGreaterThan(0);
  // A session leaves a channel that cannot be used.
  expect((await world.run("channels", "disable", group.channelName("one"))).status).toBe(0);
  for (const session of channelsOf.keys()) expect(await findChannel(session)).toBe(group.channelName("two"));
});

test("P106: a conversation stays on the channel to which failover has led it", async () => {
  led.channel("first").next({ status: 500, body: error });
  for (let turn = 0; turn < 3; turn += 1) await led.ask("messages", {}, SESSIONS.messages("session-led"));
  expect(used(led, "first", "second")).toEqual([1, 3]);
});

test("P106: a session's first requests go to one channel, also if they are sent at the same time", async () => {
  for (const session of "abcdefgh") {
    const before = used(atOnce, "one")[0]!;
    const fields = SESSIONS.messages(session);
    await Promise.all([1, 2, 3].map(() => atOnce.ask("messages", {}, fields)));
    expect([0, 3]).toContain(used(atOnce, "one")[0]! - before);
  }
});

test("P106: a session does not stay on a channel that never answers it", async () => {
  for (const name of ["one", "two"]) atOnce.channel(name).always((_, out) => out.left);
  for (const session of "abcdefgh") {
    const places = new Set<boolean>();
    for (let attempt = 0; attempt < 40 && places.size < 2; attempt += 1) {
      const [one = 0, two = 0] = used(atOnce, "one", "two");
      const client = await atOnce.open("messages", {}, SESSIONS.messages(`silent-${session}`));
      await Promise.race([atOnce.channel("one").got(one + 1), atOnce.channel("two").got(two + 1)]);
      client.close();
      places.add(used(atOnce, "one")[0] === one);
    }
    expect(places.size).toBe(2);
  }
});

test("P106: a request for another model moves its session only when the request is answered", async () => {
  for (const name of ["one", "two"])
    moving.channel(name).always(({ text }, out) => (text.includes("other-model") ? out.left : {}));
  for (const session of "abcdefgh") {
    const fields = SESSIONS.responses(session);
    const [one = 0] = used(moving, "one");
    await moving.ask("responses", {}, fields);
    const [own, sum] = [used(moving, "one")[0] === one ? "two" : "one", used(moving, "one", "two")];
    const client = await moving.open("responses", { model: "other-model" }, fields);
    await eventually(() => String(used(moving, "one", "two")) !== String(sum));
    client.close();
    const [before = 0] = used(moving, own);
    await world.request("/v1/responses/resp_0", { ...bearer(moving.key), ...fields });
    expect(used(moving, own)).toEqual([before + 1]);
  }
});

test("P60, P106: requests that continue or name a response go to the response's channel, also while the response streams", async () => {
  let end = Promise.withResolvers<void>();
  // A stream's comment lines are not events, however many come before the first event.
  const comments = Array.from({ length: 10 }, () => Promise.withResolvers<void>());
  for (const name of ["one", "two"])
    stores.channel(name).always(async ({ text }, out) => {
      const id = `resp_${name}_${stores.channel(name).seen.length}`;
      if (!text.includes('"stream":true')) return { body: { ...whole("responses"), id } };
      const pieces = stream("responses").map((piece) => piece.replaceAll("resp_1", id));
      out.head(200, { "content-type": "text/event-stream" });
      for (const [at, { promise }] of comments.entries()) {
        out.write(`: ${at}.\n\n`);
        await promise;
      }
      // The gateway holds back the beginning of a stream until an event shows that it is not an error.
      out.write(pieces.slice(0, 2).join(""));
      await end.promise;
      out.write(pieces.slice(2).join(""));
      return out.end();
    });
  for (let turn = 0; turn < 24; turn += 1) {
    end = Promise.withResolvers();
    const client = await stores.open("responses", { input: `Hello ${turn}`, stream: turn % 2 === 0 });
    for (const [at, { resolve }] of turn === 0 ? comments.entries() : []) {
      await client.until(`: ${at}.`);
      resolve();
    }
    const [id = "", name = ""] = /resp_(one|two)_\d+/.exec(String(await client.until("resp_"))) ?? [];
    const before = stores.channel(name).seen.length;
    await stores.ask("responses", { input: "Go on", previous_response_id: id });
    for (const session of "abcd")
      await world.request(`/v1/responses/${id}`, { ...bearer(stores.key), "session-id": session + turn });
    await world.request(`/v1/responses/${id}/cancel`, bearer(stores.key), {});
    expect([id, stores.channel(name).seen.length - before]).toEqual([id, 6]);
    end.resolve();
    client.close();
  }
});

test("P106: a session stays on its channel when the gateway starts again", async () => {
  const [own, { group, lone }] = await openOwnWorld({}, (own) => ({
    group: own.group("again", { channels: ones }),
    lone: own.group("lone"),
  }));
  for (let start = 0; start < 2; start += 1) {
    lone.channel().next({ status: 400, body: error });
    await lone.ask("messages");
    for (const session of "abcdefgh") await group.ask("messages", {}, SESSIONS.messages(session));
    await own.halt();
    await own.start();
  }
  for (const name of ["one", "two"]) group.channel(name).always((_, out) => out.left);
  for (const session of "ijklmnopqrstuvwxyz") {
    const count = used(group, "one", "two").reduce((sum, each) => sum + each);
    const client = await group.open("messages", {}, SESSIONS.messages(session));
    await eventually(() => used(group, "one", "two").reduce((sum, each) => sum + each) > count);
    client.close();
  }
  await own.halt();
  await own.start();
  for (const name of ["one", "two"]) group.channel(name).always();
  for (const session of "ijklmnopqrstuvwxyz") await group.ask("messages", {}, SESSIONS.messages(session));
  await own.halt();
  const inferred = own.lines('"key":"lone"').map(({ client }) => client.session);
  expect([inferred.length, new Set(inferred).size]).toEqual([2, 1]);
  const places = own.lines('"key":"again"').map((line) => line["channel"]);
  expect(places.slice(8, 16)).toEqual(places.slice(0, 8));
  // A session does not stay on a channel that did not answer.
  expect(places.slice(34)).not.toEqual(places.slice(16, 34));
});

test.each(owners)(
  "P103: after a %d from the channel that holds a response, no other channel is asked for that response",
  async (status, group) => {
    for (const name of ["one", "two"])
      group.channel(name).always({ body: { ...whole("responses"), id: `resp_${name}` } });
    const [id, name = ""] = /resp_(one|two)/.exec((await group.ask("responses")).text)!;
    const goOn = () => group.ask("responses", { previous_response_id: id });
    const failure = { status, body: { error: { message: "of upstream" } }, fields: { "retry-after": "30" } };
    group.channel(name).next(failure);
    // After the first failure, the channel rests for the model. A DELETE names no model.
    const answers = [await goOn(), await goOn()];
    group.channel(name).next(failure);
    answers.push(await world.request(`/v1/responses/${id}`, bearer(group.key), undefined, "DELETE"));
    const told = answers.map((answer) => [answer.status, answer.field("retry-after"), answer.text]);
    expect(told).toEqual(answers.map(() => [status, "30", expect.stringContaining("of upstream")]));
    expect((await world.run("channels", "disable", group.channelName(name))).status).toBe(0);
    expect((await goOn()).text).toContain(`${group.channelName(name)}\\" is disabled`);
    expect(used(group, name, name === "one" ? "two" : "one")).toEqual([3, 0]);
  },
);

test("P107: a channel's state comes from real requests and from `channels probe`, which only fetches the model list", async () => {
  probed.channel().next({ status: 500, body: error });
  await probed.ask("messages");
  expect((await stateOf(probed, "main")).find["state"]).not.toBe("available");
  const before = probed.channel().seen.length;
  const lists = probed.channel().lists.length;
  expect((await world.run("channels", "probe", "probed-main")).status).toBe(0);
  expect(probed.channel().seen).toHaveLength(before);
  expect(probed.channel().lists.length).toBeGreaterThan(lists);
  expect((await stateOf(probed, "main")).find["state"]).toBe("available");
  await eventually(() => watched.channel().lists.length > 0);
  expect([used(watched, "main"), (await stateOf(watched, "main")).find["state"]]).toEqual([[0], "available"]);
  // A rest that the upstream asked for (`retry-after`) goes on after a probe.
  probed.channel().next({ status: 500, body: error, fields: { "retry-after": "100" } });
  await probed.ask("messages");
  await world.run("channels", "probe", "probed-main");
  expect((await stateOf(probed, "main")).find["state"]).toBe("resting");
  expect((await world.run("channels", "probe", "dead-main")).status).toBe(1);
  expect((await stateOf(dead, "main")).find["state"]).toBe("unavailable");
});

test("P108: a disabled channel gets no requests", async () => {
  for (let count = 0; count < 3; count += 1) expect((await off.ask("messages")).status).toBe(200);
  expect(used(off, "first", "second")).toEqual([0, 3]);
  expect(off.channel("first").lists).toEqual([]);
  expect((await world.run("channels", "disable", off.channelName("second"))).status).toBe(0);
  await world.kill();
  await world.start();
  await world.run("keys", "limit", "off", "requests_per_minute=900");
  expect([(await off.ask("messages")).status, (await alone.ask("messages")).status]).toEqual([503, 503]);
  const { length } = off.channel("second").lists;
  const list = await world.request("/v1/models", bearer(off.key));
  expect([JSON.parse(list.text).data, off.channel("second").lists.length]).toEqual([[], length]);
  expect(used(off, "first", "second")).toEqual([0, 3]);
});

test("P109: Chat Completions pass byte for byte to a chat channel of a responses group", async () => {
  const body = '{ "model":"test-model","messages":[{"role":"user","content":"\\u00e9"}], "strange":1.0 }';
  const answer = `{ "id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}, "y":1.0}`;
  mixed.channel("chat").next({ body: answer });
  const got = await world.request("/v1/chat/completions", { authorization: `Bearer ${mixed.key}` }, body);
  expect([mixed.channel("chat").seen.at(-1)!.text, got.text]).toEqual([body, answer]);
  const streaming = body.replace("{ ", '{ "stream": true, "stream_options":{"include_usage" :true},');
  const pieces = stream("chat").map((piece) => piece.replace("data: {", 'data: { "x":1.0, '));
  mixed.channel("chat").next({ pieces });
  const streamed = await world.request("/v1/chat/completions", bearer(mixed.key), streaming);
  expect([mixed.channel("chat").seen.at(-1)!.text, streamed.text]).toEqual([streaming, pieces.join("")]);
  const embeddings = '{"model":"test-model", "input":"x"}';
  const vectors = '{ "object":"list", "data":[], "usage":{"prompt_tokens":1.0}}';
  mixed.channel("chat").next({ body: vectors });
  const embedded = await world.request("/v1/embeddings", bearer(mixed.key), embeddings);
  expect(mixed.channel("chat").seen.at(-1)!).toMatchObject({ path: "/v1/embeddings", text: embeddings });
  expect(embedded.text).toBe(vectors);
  expect(used(mixed, "responses")).toEqual([0]);
  await later.ask("chat");
  expect(used(later, "responses", "chat")).toEqual([0, 1]);
});

test("P110: POST /v1/responses to a group of only chat channels gets a 403 that names `convert: true`", async () => {
  const answer = await onlyChat.ask("responses");
  expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([403, "model_not_found"]);
  expect(answer.text).toContain("convert: true");
  const others = "POST compact,POST input_tokens,GET r,DELETE r,GET r/input_items,POST r/cancel";
  for (const [method, path] of others.split(",").map((words) => words.split(" "))) {
    const body = method === "POST" ? ask("responses").body : undefined;
    const other = await world.request(`/v1/responses/${path}`, bearer(onlyChat.key), body, method);
    expect([path, other.status, other.text.includes("convert: true")]).toEqual([path, 403, true]);
  }
  expect(onlyChat.channel().seen).toEqual([]);
});

test("P111: a chat channel is asked for a stream's usage, and a client that did not ask gets no chunk with usage", async () => {
  const silent = await onlyChat.ask("chat", { stream: true });
  expect(JSON.parse(onlyChat.channel().seen.at(-1)!.text)).toMatchObject({
    stream_options: { include_usage: true },
  });
  expect(silent.text).toBe(stream("chat", {}, false).join(""));
  expect(await world.line(silent)).toMatchObject({ basis: "exact", charge_usd: "0.00142" });
  const declined = await onlyChat.ask("chat", { stream: true, stream_options: { include_usage: false } });
  expect([declined.text, (await world.line(declined))["basis"]]).toEqual([silent.text, "exact"]);
  const asked = await onlyChat.ask("chat", { stream: true, stream_options: { include_usage: true } });
  expect(asked.text).toBe(stream("chat").join(""));
  // The upstream leaves without the blank line that ends the chunk.
  onlyChat.channel().next({ pieces: [stream("chat").slice(0, -1).join("").trimEnd()] });
  const unended = await onlyChat.ask("chat", { stream: true });
  expect(unended.text).not.toContain('"prompt_tokens"');
});
