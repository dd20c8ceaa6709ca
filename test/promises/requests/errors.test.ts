// The gateway's own errors, and those of upstreams.

import { describe, expect, test } from "bun:test";
import { DIALECTS, type Dialect, ask } from "../world/answers.ts";
import { bearer, type Group, keyFields, useWorld } from "../world/world.ts";

const world = useWorld({ config: { max_body: "64KiB" } });

/** For each dialect a group of its platform. */
function forEach(name: string, options: Parameters<typeof world.group>[1] = {}): Record<Dialect, Group> {
  const make = (platform: "messages" | "responses" | "content") =>
    world.group(`${name}-${platform}`, { platform, ...options });
  const [messages, responses, content] = [make("messages"), make("responses"), make("content")];
  return { messages, responses, chat: responses, content };
}

const groups = forEach("plain");
const spent = forEach("spent", { key: { limits: { usd_per_day: "0.0001" } } });
const total = forEach("total", { key: { limits: { usd_total: "0.0001" } } });
const unpriced = forEach("unpriced", {
  key: { limits: { usd_per_day: 5 } },
  channels: { main: { models: ["*"] } },
});
const allowed = forEach("allowed", { channels: { main: { models: ["test-model"] } } });
const down = forEach("down");
const down2 = forEach("down2");
const exclusive = forEach("exclusive", { group: { exclusive: true } });
const disabled = forEach("disabled", { key: { disabled: true } });
const expired = forEach("expired", { key: { expires: "2026-01-01" } });
const fast = world.group("fast", { key: { limits: { requests_per_minute: 1 } } });
const pair = world.group("pair", { channels: { first: {}, second: { priority: 2 } } });
const alone = world.group("alone");
const resting = world.group("resting");
const login = world.group("login");

interface Wire {
  readonly code: unknown;
  readonly message: string;
}

/** Reads an error in the shape of its dialect, and fails if it has another. */
function readError(dialect: Dialect, text: string): Wire {
  const body = JSON.parse(text);
  switch (dialect) {
    case "messages":
      expect(Object.keys(body)).toEqual(["type", "error", "request_id"]);
      expect([body.type, Object.keys(body.error)]).toEqual(["error", ["type", "message"]]);
      expect(body.request_id).toMatch(/^req_/);
      return { code: body.error.type, message: body.error.message };
    case "responses":
    case "chat":
      expect(Object.keys(body.error)).toEqual(expect.arrayContaining(["message", "type", "param", "code"]));
      return { code: body.error.code, message: body.error.message };
    case "content":
      expect(body.error.code).toBeGreaterThanOrEqual(400);
      expect(Array.isArray(body.error.details ?? [])).toBe(true);
      return { code: body.error.status, message: body.error.message };
  }
}

type Codes = Readonly<Record<Dialect, string>>;
const all = (messages: string, responses: string, content: string): Codes => ({
  messages,
  responses,
  chat: responses,
  content,
});

const UNAUTHENTICATED = all("authentication_error", "invalid_api_key", "UNAUTHENTICATED");
const FORBIDDEN = all("permission_error", "model_not_found", "PERMISSION_DENIED");

/** The cause, its status, its codes, and a request. */
const CAUSES: readonly (readonly [string, number, Codes, (dialect: Dialect) => Promise<Answer>])[] = [
  ["a missing key", 401, UNAUTHENTICATED, (dialect) => send(dialect, {})],
  ["an unknown key", 401, UNAUTHENTICATED, (dialect) => send(dialect, keyFields(dialect, "sk-unknown-0123"))],
  ["a disabled key", 401, UNAUTHENTICATED, (dialect) => disabled[dialect].ask(dialect)],
  ["an expired key", 401, UNAUTHENTICATED, (dialect) => expired[dialect].ask(dialect)],
  [
    "a key of another platform",
    403,
    FORBIDDEN,
    (dialect) =>
      send(dialect, { "x-gateway-key": groups[dialect === "content" ? "messages" : "content"].key }),
  ],
  [
    "a plan that is not active",
    403,
    all("permission_error", "plan_inactive", "PERMISSION_DENIED"),
    (dialect) => exclusive[dialect].ask(dialect),
  ],
  [
    "a spent limit",
    429,
    all("rate_limit_error", "insufficient_quota", "RESOURCE_EXHAUSTED"),
    async (dialect) => {
      await spent[dialect].ask(dialect);
      return spent[dialect].ask(dialect);
    },
  ],
  [
    "a limit and a model without a price",
    403,
    all("rate_limit_error", "model_not_found", "RESOURCE_EXHAUSTED"),
    (dialect) => unpriced[dialect].ask(dialect, { model: "mystery-9" }),
  ],
  [
    "an unknown model",
    404,
    all("not_found_error", "model_not_found", "NOT_FOUND"),
    (dialect) => allowed[dialect].ask(dialect, { model: "mystery-9" }),
  ],
  [
    "a wrong method",
    405,
    all("invalid_request_error", "model_not_found", "UNIMPLEMENTED"),
    (dialect) => world.request(ask(dialect).target, keyFields(dialect, groups[dialect].key), {}, "PATCH"),
  ],
  [
    "a body above max_body",
    413,
    all("request_too_large", "", "INVALID_ARGUMENT"),
    (dialect) => groups[dialect].ask(dialect, { padding: "x".repeat(70_000) }),
  ],
  [
    "an upstream that breaks off, without another channel",
    502,
    all("api_error", "server_error", "UNAVAILABLE"),
    (dialect) => {
      down2[dialect].channel().next((_, out) => out.end("reset"));
      return down2[dialect].ask(dialect);
    },
  ],
];

type Answer = Awaited<ReturnType<Group["ask"]>>;

function send(dialect: Dialect, fields: Readonly<Record<string, string>>, body: object = ask(dialect).body) {
  return world.request(ask(dialect).target, fields, body);
}

describe("P85, P86: the gateway's errors have the dialect's shape, and the table's statuses and codes", () => {
  const rows = CAUSES.flatMap((cause) => DIALECTS.map((dialect) => [cause[0], dialect, cause] as const));
  test.each(rows)("%s, in %s", async (_, dialect, [, status, codes, request]) => {
    const answer = await request(dialect);
    const { code } = readError(dialect, answer.text);
    expect(answer.status).toBe(status);
    if (codes[dialect] !== "") expect(code).toBe(codes[dialect]);
    if (status === 429) expect(Number(answer.field("retry-after"))).toBeGreaterThan(0);
  });

  test("a body that is not JSON gets 400", async () => {
    for (const dialect of ["messages", "responses", "chat"] as const) {
      const fields = keyFields(dialect, groups[dialect].key);
      const answer = await world.request(ask(dialect).target, fields, "{ no json");
      expect(answer.status).toBe(400);
      expect(readError(dialect, answer.text).message).toContain("JSON");
    }
  });

  test("a missing model gets 400 with param", async () => {
    const fields = keyFields("responses", groups.responses.key);
    const missing = await world.request("/v1/responses", fields, { input: "Hello" });
    expect([missing.status, JSON.parse(missing.text).error.param]).toEqual([400, "model"]);
  });

  test("a limit in USD without a reset has insufficient_quota without resets_at, and tells Codex", async () => {
    await total.responses.ask("responses");
    const answer = await total.responses.ask("responses");
    const { error } = JSON.parse(answer.text);
    expect(error).toMatchObject({ type: "usage_limit_reached", code: "insufficient_quota" });
    expect("resets_at" in error).toBe(false);
    expect(answer.field("x-codex-promo-message")).toContain("usd_total");
    expect(Number(answer.field("retry-after"))).toBe(86_400);
  });
});

test("P86: a spent limit with a reset has resets_at", async () => {
  await spent.responses.ask("responses");
  const { error } = JSON.parse((await spent.responses.ask("responses")).text);
  expect(error.resets_at * 1000).toBeGreaterThan(Date.now());
});

test("P87: a wrong-platform message names group, platform, needed platform, a fitting endpoint and groups", async () => {
  const answer = await send("messages", bearer(groups.responses.key));
  const { message } = readError("messages", answer.text);
  for (const part of ["plain-responses", "responses", "messages", "/v1/responses", "plain-messages"])
    expect(message).toContain(part);
});

test.each([400, 403, 404, 413, 422, 429])(
  "P88: an upstream's %d about the request comes back as sent",
  async (status) => {
    const body = `{ "type":"error", "error":{"type":"of_upstream","message":"as sent ${status}"} }`;
    const group = status === 429 ? alone : groups.messages;
    group.channel().next({ status, body, fields: { "x-of-upstream": "1" } });
    const answer = await group.ask("messages");
    expect([answer.status, answer.text, answer.field("x-of-upstream")]).toEqual([status, body, "1"]);
  },
);

const LAST: readonly (readonly [number, Dialect])[] = [
  [500, "messages"],
  [503, "content"],
  [529, "responses"],
];

test.each(LAST)(
  "P89: if the last channel fails with %d, the client gets its status and wording",
  async (status, dialect) => {
    const group = down[dialect];
    const error = {
      type: "overloaded_error",
      code: "of_upstream",
      message: "the wording of upstream",
      status: "X",
    };
    group.channel().next({ status, body: { error }, fields: { "retry-after": "7" } });
    const answer = await group.ask(dialect);
    expect([answer.status, answer.field("retry-after")]).toEqual([status, "7"]);
    expect(answer.text).toContain("the wording of upstream");
  },
);

test("P90: a refused credential gets another channel, or 403 that names the channel, and never 401", async () => {
  const refusal = {
    status: 401,
    body: { error: { message: "bad credential", type: "authentication_error" } },
  };
  pair.channel("first").next(refusal);
  expect((await pair.ask("messages")).status).toBe(200);
  login.channel().next(refusal);
  const answer = await login.ask("messages");
  expect(answer.status).toBe(403);
  expect(readError("messages", answer.text).message).toContain("login-main");
  expect(answer.text).not.toContain(login.credentialOf());
});

test("P91: while the only channel rests, the client gets its last error with the remaining time", async () => {
  const body = { type: "error", error: { type: "rate_limit_error", message: "too many of them" } };
  resting.channel().next({ status: 429, body, fields: { "retry-after": "100" } });
  expect((await resting.ask("messages")).status).toBe(429);
  const again = await resting.ask("messages");
  expect(again.status).toBe(429);
  expect(again.text).toContain("too many of them");
  const wait = Number(again.field("retry-after"));
  expect(wait).toBeGreaterThan(60);
  expect(wait).toBeLessThanOrEqual(100);
  expect(resting.channel().seen).toHaveLength(1);
});

test("P92: own 4xx have x-should-retry: false, except for a 429 that frees up soon", async () => {
  const never = [
    await send("messages", {}),
    await allowed.messages.ask("messages", { model: "mystery-9" }),
    await exclusive.messages.ask("messages"),
  ];
  for (const answer of never) expect(answer.field("x-should-retry")).toBe("false");
  await spent.messages.ask("messages");
  const late = await spent.messages.ask("messages");
  expect([late.field("x-should-retry"), late.field("retry-after-ms")]).toEqual(["false", "1"]);
  await fast.ask("messages");
  const soon = await fast.ask("messages");
  expect(soon.status).toBe(429);
  expect(soon.field("x-should-retry")).not.toBe("false");
  expect(Number(soon.field("retry-after"))).toBeLessThanOrEqual(60);
  expect(soon.field("retry-after-ms")).not.toBe("1");
});
