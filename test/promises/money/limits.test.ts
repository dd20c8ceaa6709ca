// The contract's promises about limits and alerts.

import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type Dialect, USUAL_USD, whole } from "../world/answers.ts";
import type { Reply, Script } from "../world/upstream.ts";
import { eventually, type Group, openOwnWorld, type Line, useWorld, type World } from "../world/world.ts";

const world = useWorld();
const CLAUDE = { "user-agent": "claude-cli/2.1.0 (external, cli)" };
const session = (id: string) => ({ ...CLAUDE, "x-claude-code-session-id": id });

const shared = ["usd_per_day", "usd_per_month", "usd_total"].map((name) =>
  world.group(`shared-${name}`, { keys: { other: {} }, group: { limits: { [name]: "0.002" } } }),
);
const often = world.group("often", { keys: { other: {} }, group: { limits: { requests_per_minute: 2 } } });
const busy = world.group("busy", { keys: { other: {} }, group: { limits: { concurrent_requests: 2 } } });
const otherOf = (group: Group) => ({ "x-api-key": group.keyOf("other") });
const AMOUNTS = ["usd_per_day", "usd_per_month", "usd_total", "usd_per_session"] as const;
/** For each limit in USD, a group whose key has the limit, and a group that has the limit itself. */
const spent = AMOUNTS.flatMap((name) => {
  const limits = { [name]: "0.002" };
  return [
    [name, "key", world.group(`key-${name}`, { key: { limits } })] as const,
    [name, "group", world.group(`group-${name}`, { group: { limits } })] as const,
  ];
});
const exact = world.group("exact", { key: { limits: { usd_total: "0.00284" } } });
const many = world.group("many", { key: { limits: { usd_total: "0.05" } } });
const fresh = world.group("fresh", { key: { limits: { usd_total: "0.5" } } });
const unpriced = AMOUNTS.flatMap((name) => {
  const [channels, limits] = [{ main: { models: ["*"] } }, { [name]: 1 }];
  return [
    [name, "key", world.group(`unpriced-key-${name}`, { channels, key: { limits } })] as const,
    [name, "group", world.group(`unpriced-group-${name}`, { channels, group: { limits } })] as const,
  ];
});
const allowing = world.group("allowing", {
  channels: { main: { models: ["*"] } },
  key: { limits: { usd_per_day: 1, unpriced: "allow" } },
});
const permitting = world.group("permitting", {
  channels: { main: { models: ["*"] } },
  group: { limits: { usd_total: 1, unpriced: "allow" } },
});
const strolling = world.group("strolling", {
  channels: { main: { models: ["*"] } },
  key: { limits: { requests_per_minute: 5, concurrent_requests: 5, same_call: 5 } },
});
const reported = world.group("reported", {
  platform: "responses",
  channels: { main: { platform: "chat", bill: "reported", models: ["*"] } },
  key: { limits: { usd_per_day: 1 } },
});
const free = world.group("free", {
  channels: { main: { free: true, models: ["*"] } },
  key: { limits: { usd_per_day: 1 } },
});
const background = world.group("background", {
  platform: "responses",
  key: { limits: { usd_total: "0.01" } },
});
const loops = world.group("loops", { key: { limits: { same_call: 3 } } });
const loopsOf = {
  responses: world.group("loops-responses", { platform: "responses", key: { limits: { same_call: 3 } } }),
  content: world.group("loops-content", { platform: "content", group: { limits: { same_call: 3 } } }),
};
const sessions = world.group("sessions", { key: { limits: { usd_per_session: "0.002" } } });
const perSession = { limits: { requests_per_minute_per_session: 2 } };
const paces = [world.group("pace", { key: perSession }), world.group("joint", { group: perSession })];
const minute = world.group("minute", { key: { limits: { requests_per_minute: 2 } } });
const crowd = world.group("crowd", { key: { limits: { concurrent_requests: 2 } } });

const statuses = async (group: Group, count: number, fields = {}): Promise<number[]> => {
  const found: number[] = [];
  for (let index = 0; index < count; index += 1) found.push((await group.ask("messages", {}, fields)).status);
  return found;
};

test.each(shared)("P112: a limit of a group counts the requests of all its keys: $name", async (group) => {
  expect(await statuses(group, 1)).toEqual([200]);
  expect(await statuses(group, 2, otherOf(group))).toEqual([200, 429]);
  expect(await statuses(group, 1)).toEqual([429]);
});

test("P112: a group's requests_per_minute counts the requests of all its keys", async () => {
  expect([await statuses(often, 1), await statuses(often, 2, otherOf(often))]).toEqual([[200], [200, 429]]);
});

test("P112: a group's concurrent_requests counts the requests of all its keys", async () => {
  const held = Promise.withResolvers<void>();
  const wait = () => held.promise.then(() => ({}));
  busy.channel().next(wait, wait);
  const running = [busy.ask("messages"), busy.ask("messages", {}, otherOf(busy))];
  await busy.channel().got(2);
  expect(await statuses(busy, 1, otherOf(busy))).toEqual([429]);
  held.resolve();
  await Promise.all(running);
});

const dayOf = (month: number, day: number): string =>
  new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + month, day))
    .toISOString()
    .slice(0, 10);

test.each(spent)(
  "P86, P113: a spent limit refuses with 429, and the message names the limit and its reset: %s of a %s",
  async (name, _, group) => {
    expect(await statuses(group, 2, session(group.name))).toEqual([200, 200]);
    const sent = group.channel().seen.length;
    const answer = await group.ask("messages", {}, session(group.name));
    expect(answer.status).toBe(429);
    const reset =
      name === "usd_per_day"
        ? dayOf(0, new Date().getUTCDate() + 1)
        : name === "usd_per_month"
          ? dayOf(1, 1)
          : "";
    for (const part of [`(${name})`, "0.002", "0.00284", reset]) expect(answer.text).toContain(part);
    if (reset === "") expect(answer.field("retry-after")).toBe("86400");
    expect(group.channel().seen).toHaveLength(sent);
    const again = await group.ask("messages", {}, session(`${group.name}-b`));
    expect(again.status).toBe(name === "usd_per_session" ? 200 : 429);
  },
);

test("P113: requests_per_minute and concurrent_requests refuse with a 429 that names the limit", async () => {
  expect(await statuses(minute, 2)).toEqual([200, 200]);
  expect((await minute.ask("messages")).text).toContain("requests_per_minute");
  const held = Promise.withResolvers<void>();
  const wait = async () => {
    await held.promise;
    return {};
  };
  crowd.channel().next(wait, wait);
  const running = [crowd.ask("messages"), crowd.ask("messages")];
  await crowd.channel().got(2);
  const third = await crowd.ask("messages");
  held.resolve();
  expect([third.status, ...(await Promise.all(running)).map(({ status }) => status)]).toEqual([
    429, 200, 200,
  ]);
  expect(third.text).toContain("concurrent_requests");
  expect(await statuses(crowd, 1)).toEqual([200]);
});

test("P114: with no other request in flight, a request is let in as long as less than the limit is spent", async () => {
  expect(await statuses(exact, 1)).toEqual([200]);
  // This request is expected to cost more than is left.
  expect((await exact.ask("messages", { system: "x".repeat(40_000) })).status).toBe(200);
  // The two requests have spent all of the limit.
  expect(await statuses(exact, 1)).toEqual([429]);
});

test("P115: requests that run at the same time spend at most twice their limit", async () => {
  const counts = { input: 1000, read: 0, output: 10_000 };
  many.channel().always(async () => {
    await Bun.sleep(30);
    return { body: whole("messages", { counts }) };
  });
  const asked = Array.from({ length: 24 }, () => many.ask("messages", { max_tokens: 32_000 }));
  const answers = await Promise.all(asked);
  const charged = await Promise.all(
    answers.filter(({ status }) => status === 200).map((each) => world.line(each)),
  );
  const total = charged.reduce((sum, line) => sum + Number(line["charge_usd"]), 0);
  expect(charged.length).toBeGreaterThan(0);
  expect(total).toBeLessThanOrEqual(0.1);
});

test("P115: five agents that start at once with a limit of $0.50 are never refused, even before the model's first answer", async () => {
  const model = "claude-opus-5-5";
  const body = whole("messages", { model, counts: { input: 4000, read: 3500, output: 400 } });
  const answer = async (ms: number) => {
    await Bun.sleep(ms);
    return { body };
  };
  // The first answer takes longer than an agent waits after a refusal.
  fresh.channel().next(() => answer(5500));
  fresh.channel().always(() => answer(30));
  const prompt = { model, max_tokens: 32_000, system: "You are an agent. ".repeat(900) };
  const agents = Array.from({ length: 5 }, async (_, agent) => {
    const found: number[] = [];
    for (let turn = 0; turn < 5; turn += 1)
      found.push((await fresh.ask("messages", prompt, session(`agent-${agent}`))).status);
    return found;
  });
  expect((await Promise.all(agents)).flat()).toEqual(Array.from({ length: 25 }, () => 200));
  const { stdout } = await world.run("keys", "show", "fresh", "--json");
  expect(Number(JSON.parse(stdout).spent_total_usd)).toBeLessThanOrEqual(1);
}, 20_000);

test.each(unpriced)(
  "P116: %s of a %s refuses a model without a price, unless `unpriced: allow` is set",
  async (_, __, group) => {
    const refused = await group.ask("messages", { model: "mystery-9" }, session(group.name));
    expect(refused.status).toBe(403);
    expect(refused.text).toContain("mystery-9");
    expect(group.channel().seen).toEqual([]);
    expect((await group.ask("messages", {}, session(group.name))).status).toBe(200);
    const allowed = { "x-api-key": allowing.key };
    expect((await allowing.ask("messages", { model: "mystery-9" }, allowed)).status).toBe(200);
    expect((await permitting.ask("messages", { model: "mystery-9" })).status).toBe(200);
  },
);

test("P116: a limit in USD allows a model without a price on a channel with bill: reported", async () => {
  reported.channel().always({ body: whole("chat", { usage: { cost: 0.6 } }) });
  for (const status of [200, 200, 429])
    expect((await reported.ask("chat", { model: "mystery-9" })).status).toBe(status);
});

test("P116: a limit on requests allows a model without a price", async () => {
  expect((await strolling.ask("messages", { model: "mystery-9" })).status).toBe(200);
});

test("P117: a free channel costs nothing, whatever its model costs elsewhere", async () => {
  for (const model of ["mystery-9", "test-model", "claude-opus-4-5"])
    for (const stream of [true, false]) {
      const line = await world.line(await free.ask("messages", { model, stream }));
      expect(line).toMatchObject({
        basis: "exact",
        official_usd: "0",
        charge_usd: "0",
        price_source: "free",
      });
    }
});

test("P118: limits count the limit_usd of a request whose cost is unknown, until a later line replaces it", async () => {
  const queued = { ...whole("responses"), status: "queued", output: [], usage: null };
  background.channel().next({ body: queued });
  const first = await background.ask("responses", { background: true, max_output_tokens: 10_000 });
  const line = await world.line(first);
  expect(line).toMatchObject({ basis: "unknown", charge_usd: null });
  expect(Number(line["limit_usd"])).toBeGreaterThan(0.01);
  expect((await background.ask("responses")).status).toBe(429);
  const fetched = await world.request("/v1/responses/resp_1", { authorization: `Bearer ${background.key}` });
  expect(fetched.status).toBe(200);
  expect(await world.line(fetched)).toMatchObject({
    charge_usd: USUAL_USD,
    replaces: { id: line["id"], time: line["time"], limit_usd: line["limit_usd"] },
  });
  expect((await background.ask("responses")).status).toBe(200);
});

/** Upstreams whose answers have an unknown cost. */
const UNKNOWN: readonly (readonly [string, Script])[] = [
  ["names no usage", { body: { ...whole("messages"), usage: undefined } }],
  ["names an impossible usage", { body: whole("messages", { usage: { input_tokens: "5" } }) }],
  ["has not begun when the client has left", (_, out) => out.left],
];
const doubtful = UNKNOWN.flatMap(([how, script], index) =>
  AMOUNTS.map((name) => [how, name, script, `doubtful-${index}-${name}`] as const),
).map(([how, name, script, id]) => {
  const group = world.group(id, { key: { limits: { [name]: "0.0002" } } });
  return [how, name, script, group] as const;
});

test.each(doubtful)(
  "P118: if an answer %s, %s counts the limit_usd of the request's line",
  async (how, name, script, group) => {
    group.channel().next(script);
    const prompt = { max_tokens: 1000, messages: [{ role: "user", content: "words ".repeat(500) }] };
    if (how.includes("left")) {
      const client = await group.open("messages", prompt, session(group.name));
      await group.channel().got(1);
      client.close();
    } else await group.ask("messages", prompt, session(group.name));
    const line = await eventually(() => world.lines().find((each) => each["key"] === group.name));
    expect(line).toMatchObject({ basis: "unknown", charge_usd: null });
    expect(Number(line["limit_usd"])).toBeGreaterThan(0.0002);
    const refused = await group.ask("messages", {}, session(group.name));
    expect([refused.status, refused.text.includes(name), refused.text.includes(line["limit_usd"])]).toEqual([
      429,
      true,
      true,
    ]);
  },
);

/** Returns a conversation that ends with this many equal pairs of call and result. */
function conversation(dialect: Dialect, pairs: number, last: string, words = 1): Line {
  const each = Array.from({ length: pairs }, (_, index) => index);
  const input = (index: number) => ({ a: index === pairs - 1 ? words : 1 });
  const result = (index: number): string => (index === pairs - 1 ? last : "same result");
  switch (dialect) {
    case "messages":
      return {
        messages: [
          { role: "user", content: "Do it" },
          ...each.flatMap((index) => [
            {
              role: "assistant",
              content: [
                // The upstream's own tool, with its result, is between two calls.
                { type: "server_tool_use", id: `s${index}`, name: "web_search", input: { query: "x" } },
                { type: "web_search_tool_result", tool_use_id: `s${index}`, content: [] },
                { type: "tool_use", id: `t${index}`, name: "run", input: input(index) },
              ],
            },
            {
              role: "user",
              content: [{ type: "tool_result", tool_use_id: `t${index}`, content: result(index) }],
            },
          ]),
        ],
      };
    case "responses":
      return {
        input: [
          { role: "user", content: "Do it" },
          ...each.flatMap((index) => [
            {
              type: "function_call",
              call_id: `t${index}`,
              name: "run",
              arguments: JSON.stringify(input(index)),
            },
            { type: "function_call_output", call_id: `t${index}`, output: result(index) },
          ]),
        ],
      };
    case "chat":
      return {
        messages: [
          { role: "user", content: "Do it" },
          ...each.flatMap((index) => [
            {
              role: "assistant",
              tool_calls: [
                {
                  id: `t${index}`,
                  type: "function",
                  function: { name: "run", arguments: JSON.stringify(input(index)) },
                },
              ],
            },
            { role: "tool", tool_call_id: `t${index}`, content: result(index) },
          ]),
        ],
      };
    case "content":
      return {
        contents: [
          { role: "user", parts: [{ text: "Do it" }] },
          ...each.flatMap((index) => [
            { role: "model", parts: [{ functionCall: { id: null, name: "run", args: input(index) } }] },
            {
              role: "user",
              parts: [{ functionResponse: { id: null, name: "run", response: { x: result(index) } } }],
            },
          ]),
        ],
      };
  }
}

describe("P119: same_call refuses a conversation that ends with N equal pairs of call and result", () => {
  test.each<[Dialect, Group]>([
    ["messages", loops],
    ["responses", loopsOf.responses],
    ["chat", loopsOf.responses],
    ["content", loopsOf.content],
  ])("same_call refuses the third equal pair in %s", async (dialect, group) => {
    const ask = (pairs: number, last = "same result", words = 1) =>
      group.ask(dialect, conversation(dialect, pairs, last, words));
    expect((await ask(2)).status).toBe(200);
    expect((await ask(3, "another result")).status).toBe(200);
    expect((await ask(3, "same result", 2)).status).toBe(200);
    const refused = await ask(3);
    expect(refused.status).toBe(429);
    expect(refused.text).toContain("same_call");
  });
});

/** Returns an answer with one tool call: a stream, or whole. */
function call(id: string, streamed: boolean): Reply {
  const usage = { input_tokens: 5, output_tokens: 5 };
  const block = { type: "tool_use", id: `call-of-${id}`, name: "run", input: { a: 1 } };
  const message = { id, type: "message", role: "assistant", model: "test-model", stop_reason: "tool_use" };
  if (!streamed) return { body: { ...message, usage, content: [block] } };
  const events: object[] = [
    { type: "message_start", message: { ...message, stop_reason: null, usage, content: [] } },
    { type: "content_block_start", index: 0, content_block: { ...block, input: {} } },
    ...['{"a"', ": 1}"].map((json) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json: json },
    })),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage },
    { type: "message_stop" },
  ];
  return { pieces: events.map((event) => `data: ${JSON.stringify(event)}\n\n`) };
}

test.each([true, false])(
  "P119: same_call goes on counting in a thread that the provider keeps (stream: %p)",
  async (stream) => {
    const turn = async (number: number, result: string, is_error = false): Promise<number> => {
      const before = `msg_${stream}_${number - 1}`;
      loops.channel().always(call(`msg_${stream}_${number}`, stream));
      const content = [{ type: "tool_result", tool_use_id: `call-of-${before}`, content: result, is_error }];
      const next = {
        messages: [{ role: "user", content }],
        thread: { type: "continue", previous_message_id: before },
      };
      const body = number === 1 ? { thread: { type: "create" } } : next;
      return (await loops.ask("messages", { ...body, stream })).status;
    };
    expect(await turn(1, "")).toBe(200);
    expect(await turn(2, "same result")).toBe(200);
    expect(await turn(3, "same result")).toBe(200);
    expect(await turn(4, "same result", true)).toBe(200);
    const statuses: number[] = [];
    for (let number = 5; number <= 7; number += 1) statuses.push(await turn(number, "same result"));
    expect(statuses).toEqual([200, 200, 429]);
    loops.channel().always();
  },
);

test("P113, P119: usd_per_session and requests_per_minute_per_session count each session, and refusals name the limit", async () => {
  expect(await statuses(sessions, 3, session("a"))).toEqual([200, 200, 429]);
  expect(await statuses(sessions, 1, session("b"))).toEqual([200]);
  expect((await sessions.ask("messages", {}, session("a"))).text).toContain("usd_per_session");
  // These requests name no session: the gateway infers one.
  expect(await statuses(sessions, 3)).toEqual([200, 200, 429]);
  for (const pace of paces) {
    expect(await statuses(pace, 3, session("a"))).toEqual([200, 200, 429]);
    const slower = await pace.ask("messages", {}, session("a"));
    expect(slower.text).toContain("requests_per_minute_per_session");
    expect(await statuses(pace, 1, session("b"))).toEqual([200]);
  }
});

/** Makes a key and a group for each limit in USD. */
const restarted = (own: World) => {
  const limitOf = (name: string) => ({ limits: { [name]: "0.002" } });
  const keys = Object.fromEntries(AMOUNTS.map((name) => [name, limitOf(name)]));
  const group = own.group("spend", { key: limitOf("usd_total"), keys });
  const doubtful = own.group("doubtful", { key: { limits: { usd_total: "0.0002" } } });
  return {
    group,
    doubtful,
    others: AMOUNTS.map((name) => own.group(`of-${name}`, { group: limitOf(name) })),
  };
};

test("P120: spending counts after a restart, and a changed limit applies to the next request", async () => {
  const [own, { group, doubtful, others }] = await openOwnWorld({}, restarted);
  const keys = [group.key, ...AMOUNTS.map((name) => group.keyOf(name)), ...others.map(({ key }) => key)];
  const askAll = async (count: number): Promise<number[][]> => {
    const all: number[][] = [];
    for (const key of keys) all.push(await statuses(group, count, { "x-api-key": key, ...session(key) }));
    return all;
  };
  expect(await askAll(3)).toEqual(keys.map(() => [200, 200, 429]));
  doubtful.channel().next({ body: { ...whole("messages"), usage: undefined } });
  await doubtful.ask("messages", { messages: [{ role: "user", content: "words ".repeat(500) }] });
  await own.halt();
  await own.start();
  expect(await askAll(1)).toEqual(keys.map(() => [429]));
  expect(await statuses(doubtful, 1)).toEqual([429]);
  await own.kill();
  // A channel's amounts count after a restart even if the file about the channels is lost.
  rmSync(own.path("ledger.jsonl.channels.json"), { force: true });
  await own.start();
  const channels: Record<string, string>[] = await own.json("channels");
  for (const { name, charge_today_usd: usd } of channels) {
    const lines = own.lines().filter((line) => line["channel"] === name && line["basis"] !== "unknown");
    expect(Number(usd)).toBeCloseTo(lines.length * Number(USUAL_USD), 9);
  }
  expect(await askAll(1)).toEqual(keys.map(() => [429]));
  expect((await own.run("keys", "limit", "spend", "usd_total=0.003")).status).toBe(0);
  expect(await statuses(group, 2)).toEqual([200, 429]);
});

test("P121: at each percentage of alerts.at, a limit warns once in the log, in statusline and by alerts.command", async () => {
  const command = ["sh", "-c", 'echo "$GATEWAY_ALERT_NAME $GATEWAY_ALERT_PERCENT" >> "$RUNS"'];
  const set = (own: World) => {
    Object.assign(env, { RUNS: own.path("runs") });
    const team = own.group("team", {
      key: { limits: { usd_total: 9, usd_per_session: "0.006" } },
      group: { limits: { usd_per_day: "0.006" } },
    });
    return { team, group: own.group("alert", { key: { limits: { usd_total: "0.01" } } }) };
  };
  const env: Record<string, string> = {};
  const [own, { group, team }] = await openOwnWorld(
    { config: { alerts: { at: [20, 50], command } }, env },
    set,
  );
  const runs = () => {
    const text = existsSync(own.path("runs")) ? readFileSync(own.path("runs"), "utf8") : "";
    return text.split("\n").slice(0, -1);
  };
  const status = async () => (await own.runWith({ stdin: '{"session_id":"s"}' }, "statusline")).stdout;
  await own.line(await group.ask("messages", {}, session("s")));
  await own.line(await group.ask("messages", {}, session("s")));
  await eventually(() => runs().length === 1);
  expect(runs()).toEqual(["alert 20"]);
  expect(await status()).toContain("usd_total");
  for (let count = 0; count < 2; count += 1) await own.line(await group.ask("messages", {}, session("s")));
  await eventually(() => runs().length === 2);
  expect(own.log().match(/"percent":20/g)).toHaveLength(1);
  await own.halt();
  await own.start();
  await own.line(await group.ask("messages", {}, session("s")));
  await own.halt();
  expect(runs()).toEqual(["alert 20", "alert 50"]);
  // While no gateway runs, the key is removed and added again: there are warnings about it again.
  await own.run("keys", "remove", "alert", "--yes");
  const limits = ["--limit", "usd_total=0.01", "--limit", "requests_per_minute=2"];
  const add = () => own.run("keys", "add", "--name", "alert", "--group", "alert", ...limits);
  const added = await add();
  await own.start();
  for (let count = 0; count < 2; count += 1)
    await own.line(await group.ask("messages", {}, { "x-api-key": added.stdout.trim() }));
  await eventually(() => runs().length === 3);
  expect(runs().at(-1)).toBe("alert 20");
  await own.line(await team.ask("messages", {}, session("t")));
  await eventually(() => runs().length === 5);
  expect(runs().slice(-2).toSorted()).toEqual(["t 20", "team 20"]);
  // Now the file says that the warnings are from an earlier day.
  await own.halt();
  const known = own.path("ledger.jsonl.alerts.json");
  writeFileSync(known, readFileSync(known, "utf8").replaceAll(/"resets":\d+/g, '"resets":1'));
  await own.start();
  await own.line(await team.ask("messages", {}, session("t")));
  await eventually(() => runs().length === 6);
  expect(runs().at(-1)).toBe("team 20");
  await own.run("keys", "remove", "alert", "--yes");
  const again = await add();
  expect(await statuses(group, 3, { "x-api-key": again.stdout.trim() })).toEqual([200, 200, 429]);
});
