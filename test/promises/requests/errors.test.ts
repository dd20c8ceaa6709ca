// The contract's promises about the gateway's own errors, and those of upstreams.

import { describe, expect, test } from "bun:test";
import { DIALECTS, type Dialect, ask } from "../world/answers.ts";
import { eventually, type Group, openOwnWorld, keyFields, useWorld, type World } from "../world/world.ts";

const world = useWorld({ config: { max_body: "64KiB" } });

/** Makes for each dialect a group of its platform. */
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
const two = { channels: { first: {}, last: { priority: 2 } } };
const down = [402, 408, 500, 502, 503, 504, 529].map(
  (status) => [status, forEach(`down-${status}`, two)] as const,
);
const pairs = forEach("about", two);
/** Each row has an answer with which an upstream refuses a credential: the status, and a part of the error. */
const refusing = (
  [
    [401, {}],
    [403, { type: "authentication_error" }],
    [403, { message: "The token has expired." }],
    [403, { code: "account_deactivated" }],
    [400, { details: [{ reason: "API_KEY_INVALID" }] }],
  ] as const
).map(([status, error], index) => {
  return [status, error, forEach(`pair-${index}`, two), forEach(`refusing-${index}`)] as const;
});
const off = forEach("off", { channels: { main: { disabled: true } } });
const down2 = forEach("down2");
/** Each row has an error at the beginning of a stream, and what the client gets. */
const named = (
  [
    ["overloaded_error", 529, "overloaded_error"],
    ["rate_limit_error", 503, "api_error"],
    ["timeout_error", 504, "timeout_error"],
    ["api_error", 502, "api_error"],
  ] as const
).map((row) => [...row, world.group(`named-${row[1]}`, two)] as const);
const slow = forEach("slow", { channels: { main: { timeouts: { first_byte: "100ms" } } } });
const exclusive = forEach("exclusive", { group: { exclusive: true } });
const disabled = forEach("disabled", { key: { disabled: true } });
const expired = forEach("expired", { key: { expires: "2026-01-01" } });
const fast = forEach("fast", { key: { limits: { requests_per_minute: 1 } } });
const alone = forEach("alone");
const resting = [429, 503, 529].map((status) => [status, world.group(`resting-${status}`)] as const);

interface Wire {
  readonly code: unknown;
  readonly message: string;
}

/** Reads an error in the shape of its dialect, and fails if the error has another shape. */
function readError(dialect: Dialect, { status, text }: Pick<Answer, "status" | "text">): Wire {
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
      expect([null, "model"]).toContain(body.error.param);
      return { code: body.error.code, message: body.error.message };
    case "content":
      expect(body.error.code).toBe(status);
      expect(Array.isArray(body.error.details)).toBe(true);
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

/** Each row has the cause of an error, its status, its codes, and a request that causes it. */
const CAUSES: readonly (readonly [string, number, Codes, (dialect: Dialect) => Promise<Answer>])[] = [
  ["a missing key", 401, UNAUTHENTICATED, (dialect) => send(dialect, {})],
  ["an unknown key", 401, UNAUTHENTICATED, (dialect) => send(dialect, keyFields(dialect, "sk-unknown-0123"))],
  ["a malformed key", 401, UNAUTHENTICATED, (dialect) => send(dialect, { authorization: "Basic YTpi" })],
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
    "a body that is not JSON",
    400,
    all("invalid_request_error", "", "INVALID_ARGUMENT"),
    (dialect) => send(dialect, keyFields(dialect, groups[dialect].key), "{ no json"),
  ],
  [
    "an unknown path",
    404,
    all("not_found_error", "model_not_found", "NOT_FOUND"),
    (dialect) =>
      world.request(
        `${ask(dialect).target.split("?")[0]}/a/strange`,
        keyFields(dialect, groups[dialect].key),
        {},
      ),
  ],
  [
    "a channel that is disabled, without another one",
    503,
    all("api_error", "server_error", "UNAVAILABLE"),
    (dialect) => off[dialect].ask(dialect),
  ],
  [
    "an upstream that is silent, without another channel",
    504,
    all("timeout_error", "server_error", "DEADLINE_EXCEEDED"),
    (dialect) => {
      slow[dialect].channel().next((_, out) => out.left);
      return slow[dialect].ask(dialect);
    },
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

function send(
  dialect: Dialect,
  fields: Readonly<Record<string, string>>,
  body: object | string = ask(dialect).body,
) {
  return world.request(ask(dialect).target, fields, body);
}

describe("P85, P86, P92: the gateway's errors have the dialect's shape, the contract's statuses and codes, and advice on retries", () => {
  const rows = CAUSES.flatMap((cause) => DIALECTS.map((dialect) => [cause[0], dialect, cause] as const));
  test.each(rows)("%s causes an error in the dialect %s", async (_, dialect, [, status, codes, request]) => {
    const answer = await request(dialect);
    const { code } = readError(dialect, answer);
    expect(answer.status).toBe(status);
    if (codes[dialect] !== "") expect(code).toBe(codes[dialect]);
    if (dialect === "messages") expect(JSON.parse(answer.text).request_id).toBe(answer.field("x-request-id"));
    if (status === 429 || status === 503) expect(Number(answer.field("retry-after"))).toBeGreaterThan(0);
    // A retry would not help in any of these cases: the spent limit is per day.
    if (answer.status < 500) expect(answer.field("x-should-retry")).toBe("false");
    expect(answer.field("retry-after-ms")).toBe(status === 429 ? "1" : undefined);
    if (status === 405) expect(answer.field("allow")).toBe("POST");
  });

  test("a request without a model gets a 400, and `param` in its error is model", async () => {
    const fields = keyFields("responses", groups.responses.key);
    const missing = await world.request("/v1/responses", fields, { input: "Hello" });
    expect([missing.status, JSON.parse(missing.text).error.param]).toEqual([400, "model"]);
  });

  test("if a spent limit never resets, the error has the code insufficient_quota and no resets_at, and tells Codex the limit", async () => {
    await total.responses.ask("responses");
    const answer = await total.responses.ask("responses");
    const { error } = JSON.parse(answer.text);
    expect(error).toMatchObject({ type: "usage_limit_reached", code: "insufficient_quota" });
    expect("resets_at" in error).toBe(false);
    expect(answer.field("x-codex-promo-message")).toContain("usd_total");
    expect(Number(answer.field("retry-after"))).toBe(86_400);
  });
});

test.each(named)(
  "P86: if the first channel's stream begins with %s and the last channel refuses its credential, the client gets %d with %s",
  async (type, status, code, group) => {
    const event = JSON.stringify({ type: "error", error: { type, message: "full" } });
    group.channel("first").next({ pieces: [`event: error\ndata: ${event}\n\n`] });
    group.channel("last").next({ status: 401, body: {} });
    const answer = await group.ask("messages", { stream: true });
    expect([answer.status, readError("messages", answer).code]).toEqual([status, code]);
    expect(answer.field("retry-after") !== undefined).toBe(status === 503);
  },
);

test("P86: if a spent limit resets, the error has the time of the reset in resets_at", async () => {
  await spent.responses.ask("responses");
  const answer = await spent.responses.ask("responses");
  expect(answer.field("x-codex-promo-message")).toContain("usd_per_day");
  const seconds = JSON.parse(answer.text).error.resets_at - Date.now() / 1000;
  expect(seconds).toBeWithin(0, 86_401);
  expect(Number(answer.field("retry-after"))).toBeWithin(seconds - 5, seconds + 5);
});

test.each<[Dialect, "messages" | "responses" | "content", string, string]>([
  ["messages", "responses", "messages", "/v1/responses"],
  ["responses", "content", "responses", "/v1beta/models"],
  ["chat", "messages", "responses", "/v1/messages"],
  ["content", "messages", "content", "/v1/messages"],
])(
  "P87: a %s request with a key of a %s group gets an error that names the endpoints for the key and the groups for the request",
  async (dialect, own, needed, endpoint) => {
    const answer = await send(dialect, { "x-gateway-key": groups[own].key });
    const { message } = readError(dialect, answer);
    for (const part of [`plain-${own}`, ` ${own}`, needed, endpoint, `plain-${needed}`])
      expect(message).toContain(part);
    expect(message).not.toContain("exclusive-");
  },
);

test.each([400, 403, 404, 413, 422, 429])(
  "P88: if an upstream answers %d because of the request, the client gets the answer as the upstream sent it",
  async (status) => {
    const body = `{ "type":"error", "error":{"type":"of_upstream","message":"as sent, API_KEY_INVALID or insufficient_quota"} }`;
    for (const dialect of ["messages", "responses", "content"] as const) {
      const group = (status === 429 ? alone : status === 404 ? groups : pairs)[dialect];
      group.channel().next({ status, body, fields: { "x-of-upstream": "1" } });
      const answer = await group.ask(dialect);
      expect([answer.status, answer.text, answer.field("x-of-upstream")]).toEqual([status, body, "1"]);
    }
  },
);

test.each(down)(
  "P89: if the last channel fails with %d, the client gets that status, code, retry-after and wording",
  async (status, of) => {
    for (const dialect of ["messages", "responses", "content"] as const) {
      const type = "of_upstream";
      const error = { type, code: type, message: "the wording of upstream", status: "X" };
      of[dialect].channel("first").next({ status, body: {} });
      of[dialect].channel("last").next({ status, body: { error }, fields: { "retry-after": "7" } });
      const answer = await of[dialect].ask(dialect);
      expect([answer.status, answer.field("retry-after")]).toEqual([status, "7"]);
      expect(answer.text).toContain("the wording of upstream");
      expect(answer.text).toContain(type);
    }
  },
);

test.each(refusing)(
  "P90: if a credential is refused with %d %j, another channel answers; if there is none, the client gets a 403 that names the channel",
  async (status, error, pairs, of) => {
    for (const dialect of DIALECTS) {
      const message = `not accepted: ${of[dialect].credentialOf()}`;
      const refusal = { status, body: { error: { message, ...error } } };
      pairs[dialect].channel("first").next(refusal);
      expect((await pairs[dialect].ask(dialect)).status).toBe(200);
      of[dialect].channel().next(refusal);
      const answer = await of[dialect].ask(dialect);
      expect(answer.status).toBe(403);
      expect(readError(dialect, answer).message).toContain(of[dialect].channelName());
      expect(answer.text).not.toContain(of[dialect].credentialOf());
    }
  },
);

test.each(resting)(
  "P91: while the only channel rests after a %d, the client gets that last error with the remaining time",
  async (status, group) => {
    const body = { type: "error", error: { type: "rate_limit_error", message: "too many of them" } };
    group.channel().next({ status, body, fields: { "retry-after": "100" } });
    expect((await group.ask("messages")).status).toBe(status);
    const again = await group.ask("messages");
    expect(again.status).toBe(status);
    expect(again.text).toContain("too many of them");
    expect(Number(again.field("retry-after"))).toBeWithin(61, 101);
    const wait = async () => Number((await group.ask("messages")).field("retry-after"));
    await eventually(async () => (await wait()) < 100);
    expect(group.channel().seen).toHaveLength(1);
  },
);

const ADVICE = ["x-should-retry", "retry-after-ms"];
const adviceOf = (answer: Answer) => [answer.status, ...ADVICE.map((name) => answer.field(name))];

test("P86, P92: a 429 whose retry-after is at most 60 seconds lets the client try again", async () => {
  const codes = all("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED");
  for (const dialect of DIALECTS) {
    await fast[dialect].ask(dialect);
    const soon = await fast[dialect].ask(dialect);
    expect(adviceOf(soon)).toEqual([429, undefined, undefined]);
    expect(readError(dialect, soon).code).toBe(codes[dialect]);
    expect(Number(soon.field("retry-after"))).toBeWithin(1, 61);
  }
});

test("P92: a 429 whose retry-after is longer than 60 seconds tells the client not to try again", async () => {
  // In this zone it is ten in the evening: the limit of the day resets within two hours.
  const hour = new Date().getUTCHours();
  const ahead = hour < 11 ? -hour - 2 : 22 - hour;
  const timezone = `Etc/GMT${ahead > 0 ? "-" : "+"}${Math.abs(ahead)}`;
  const set = (own: World) => own.group("day", { key: { limits: { usd_per_day: "0.0001" } } });
  const [, group] = await openOwnWorld({ config: { timezone } }, set);
  await group.ask("messages");
  const late = await group.ask("messages");
  expect(adviceOf(late)).toEqual([429, "false", "1"]);
  expect(Number(late.field("retry-after"))).toBeLessThanOrEqual(2 * 3600);
});
