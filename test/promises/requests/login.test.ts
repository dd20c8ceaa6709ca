// The contract's promises about requests with a tool's own login, for which a plan pays.

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { whole } from "../world/answers.ts";
import { readFiles } from "../world/seen.ts";
import type { Fields } from "../world/upstream.ts";
import {
  type Group,
  openOwnWorld,
  runIn,
  serveIn,
  makeFolder,
  removeFolder,
  type Section,
  useWorld,
} from "../world/world.ts";

const world = useWorld();
const CLIENT = { credential: "client" };
const claude = world.group("claude", { channels: { main: CLIENT }, group: { multiplier: 0 } });
const limited = world.group("limited", {
  channels: { main: CLIENT },
  group: { multiplier: 0 },
  key: { limits: { usd_total: "0.001" } },
});
const half = world.group("half", { channels: { main: CLIENT }, group: { multiplier: "0.5" } });
const codex = world.group("codex", { platform: "responses", channels: { main: CLIENT } });
const metered = world.group("metered");
const page = world.group("page", { platform: "content" });
const chats = world.group("chats", { platform: "responses" });
const crossed = world.group("crossed", {
  channels: { main: { platform: "chat" } },
  group: { convert: true },
});

const LOGIN = "sk-ant-oat01-INVENTED0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uVwXyZ";
const CODEX_LOGIN = `eyJhbGciOiJSUzI1NiJ9.${Buffer.from("invented claims of nobody").toString("base64url")}.${"s1gN".repeat(20)}`;
const ACCOUNT = "0f9e8d7c-6b5a-4321-8fed-cba987654321";

const claudeFields = (group: Group, more: Fields = {}): Fields => ({
  authorization: `Bearer ${LOGIN}`,
  "user-agent": "claude-cli/2.1.330 (external, cli)",
  "anthropic-beta": "claude-code-20250219,oauth-2025-04-20",
  "x-claude-code-session-id": "5b1c2d3e-0000-4000-8000-000000000001",
  "x-gateway-key": group.key,
  ...more,
});
const codexFields = (group: Group): Fields => ({
  authorization: `Bearer ${CODEX_LOGIN}`,
  "chatgpt-account-id": ACCOUNT,
  "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown",
  "session-id": "5b1c2d3e-0000-4000-8000-000000000002",
  "x-gateway-key": group.key,
});
const BODY = { model: "test-model", max_tokens: 500, messages: [{ role: "user", content: "Hello" }] };
const send = (group: Group, more: Fields = {}) =>
  world.request("/v1/messages", claudeFields(group, more), BODY);

test("P145: a login channel forwards Authorization and chatgpt-account-id untouched, and not the key", async () => {
  expect((await send(claude)).status).toBe(200);
  const seen = claude.channel().seen.at(-1)!;
  expect(seen.fields.filter(([name]) => name === "authorization")).toEqual([
    ["authorization", `Bearer ${LOGIN}`],
  ]);
  const body = { model: "test-model", input: "Hello", stream: true };
  expect((await world.request("/v1/responses", codexFields(codex), body)).status).toBe(200);
  const sent = codex.channel().seen.at(-1)!;
  expect([sent.field("authorization"), sent.field("chatgpt-account-id")]).toEqual([
    `Bearer ${CODEX_LOGIN}`,
    ACCOUNT,
  ]);
  for (const each of [seen, sent]) {
    expect(each.field("x-gateway-key")).toBeUndefined();
    expect(JSON.stringify(each.fields)).not.toContain("sk-test-");
  }
});

test("P146: on other channels, the client's Authorization never goes upstream", async () => {
  for (const [group, dialect] of [
    [metered, "messages"],
    [page, "content"],
    [crossed, "messages"],
    [chats, "chat"],
    [chats, "responses"],
  ] as const) {
    const fields = { authorization: `Bearer ${LOGIN}`, "x-gateway-key": group.key };
    expect((await group.ask(dialect, {}, fields)).status).toBe(200);
    expect(JSON.stringify(group.channel().seen.at(-1)!.fields)).not.toContain(LOGIN);
  }
});

test.each([
  ["no login", {}, "Authorization"],
  ["another group's key", { authorization: `Bearer ${metered.key}` }, "x-gateway-key"],
  ["this group's key", { authorization: `Bearer ${claude.key}` }, "x-gateway-key"],
  ["a key in another scheme", { authorization: `Basic ${btoa(`x:${metered.key}`)}` }, "x-gateway-key"],
])(
  "P147: with %s in Authorization, a login channel answers 401, and says where the login or the key belongs",
  async (_, change, place) => {
    const { authorization: _login, ...others } = claudeFields(claude);
    const before = claude.channel().seen.length;
    const answer = await world.request("/v1/messages", { ...others, ...change }, BODY);
    expect([answer.status, claude.channel().seen.length - before]).toEqual([401, 0]);
    expect(answer.text).toContain(place);
    expect(JSON.parse(answer.text).error.type).toBe("authentication_error");
    for (const name of ["authorization", "chatgpt-account-id"]) {
      const fields = { ...codexFields(codex), [name]: `Bearer ${metered.key}` };
      const { status, text } = await world.request("/v1/responses", fields, { model: "m", input: "Hi" });
      expect([status, text.includes(name === "authorization" ? "Authorization" : name)]).toEqual([401, true]);
    }
  },
);

test("P148: a login channel with another address than its vendor's is a config error", async () => {
  const folder = makeFolder();
  const main = { ...CLIENT, platform: "messages", base_url: "https://api.anthropic.com.evil.example" };
  const groups = { claude: { platform: "messages", channels: ["main"] } };
  const config = { channels: { main }, groups };
  writeFileSync(join(folder, "gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
  const { status, stderr } = await runIn(folder, ["serve"]);
  expect([status, stderr]).toEqual([2, expect.stringContaining("channels.main.base_url")]);
  removeFolder(folder);
});

test("P149: a gateway with a login channel does not listen beyond loopback, whatever a flag says", async () => {
  const started = serveIn(world.folder, ["--host", "0.0.0.0", "--port", "0"]);
  expect(started).rejects.toThrow("loopback");
  await started.catch(() => {});
});

test.each([
  ["user-agent", "curl/8.0"],
  ["session-id", ""],
  ["chatgpt-account-id", ""],
])("P151: without the %s of Codex, a login channel answers 403 with the reason", async (name, value) => {
  const before = codex.channel().seen.length;
  const body = { model: "test-model", input: "Hello", stream: true };
  const answer = await world.request("/v1/responses", { ...codexFields(codex), [name]: value }, body);
  expect([answer.status, codex.channel().seen.length - before]).toEqual([403, 0]);
  expect(answer.text).toContain(name);
  expect(JSON.parse(answer.text).error.code).toBe("model_not_found");
});

test.each([
  ["user-agent", "anthropic-sdk"],
  ["user-agent", "claude-cli/0.9 (external, cli)"],
  ["x-claude-code-session-id", ""],
  ["anthropic-beta", "claude-code-20250219"],
])("P151: without Claude Code's %s, a login channel answers 403 with the reason", async (name, value) => {
  const before = claude.channel().seen.length;
  const answer = await send(claude, { [name]: value });
  expect([answer.status, claude.channel().seen.length - before]).toEqual([403, 0]);
  expect(answer.text).toContain(name);
  expect(JSON.parse(answer.text).error.type).toBe("permission_error");
});

test.each([401, 402, 403, 429, 500, 529])(
  "P152: if the provider answers a login with %d, the client gets that answer, and no cooldown starts",
  async (status) => {
    const body =
      '{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}}';
    claude.channel().next({ status, body, fields: { "retry-after": "3600" } });
    const answer = await send(claude);
    expect([answer.status, answer.text]).toEqual([status, body]);
    expect((await send(claude)).status).toBe(200);
    codex.channel().next({ status, body });
    const ask = () => world.request("/v1/responses", codexFields(codex), { model: "m", input: "Hi" });
    expect([(await ask()).status, (await ask()).status]).toEqual([status, 200]);
  },
);

test("P153: the login is in no file, no log and no error", async () => {
  for (const status of [200, 401, 500]) {
    const body = { type: "error", error: { type: LOGIN, message: `your login ${LOGIN}` } };
    claude.channel().next({ status, ...(status !== 200 && { body }), fields: { "request-id": LOGIN } });
    const answer = await send(claude);
    expect(answer.bytes.toString()).not.toContain(LOGIN);
    expect(answer.bytes.toString()).not.toContain(LOGIN.slice(20));
  }
  await world.line(await send(claude));
  expect(world.log() + readFiles(world.folder)).not.toContain(LOGIN.slice(20));
});

test("P144: a line says how full the plan's windows are", async () => {
  claude.channel().next({ fields: { "anthropic-ratelimit-unified-5h-utilization": "0.42" } });
  expect(await world.line(await send(claude))).toMatchObject({ windows: { "5h": 42 } });
});

describe("P154: a line of a login channel says who paid", () => {
  test.each<[string, Fields, string]>([
    ["the plan", { status: "allowed", "overage-status": "allowed" }, "plan"],
    ["the plan, without overage", { status: "rejected", "overage-status": "rejected" }, "plan"],
    ["the account", { status: "rejected", "overage-status": "allowed" }, "plan_overage"],
    ["the account, by overage-in-use", { status: "allowed", "overage-in-use": "true" }, "plan_overage"],
  ])("a line of a login channel says who paid: %s", async (_, words, paid_by) => {
    const named = Object.entries(words).map(([name, word]) => [`anthropic-ratelimit-unified-${name}`, word]);
    claude.channel().next({ fields: Object.fromEntries(named) });
    expect(await world.line(await send(claude))).toMatchObject({
      paid_by,
      official_usd: "0.00142",
      multiplier: "0",
      charge_usd: "0",
      limit_usd: "0.00142",
    });
  });

  test("the ChatGPT account pays when a window of the plan is used up and the account has credits", async () => {
    for (const [window, used, paid_by] of [
      ["primary", "100", "plan_overage"],
      ["secondary", "100", "plan_overage"],
      ["primary", "99", "plan"],
    ] as const) {
      const fields = { [`x-codex-${window}-used-percent`]: used, "x-codex-credits-has-credits": "true" };
      codex.channel().next({ fields });
      const body = { model: "test-model", input: "Hello" };
      const answer = await world.request("/v1/responses", codexFields(codex), body);
      expect(await world.line(answer)).toMatchObject({ paid_by });
    }
  });

  test("the multiplier of a login channel's group counts, and is 0 if none is set", async () => {
    expect(await world.line(await send(half))).toMatchObject({ multiplier: "0.5", charge_usd: "0.00071" });
    const set = (own: typeof world) =>
      own.group("default", { channels: { main: CLIENT }, group: { multiplier: undefined } });
    const [own, group] = await openOwnWorld({}, set);
    const answer = await own.request("/v1/messages", claudeFields(group), BODY);
    expect(await own.line(answer)).toMatchObject({ multiplier: "0", charge_usd: "0" });
  });
});

test("P155: limits in USD count the official amount of a login channel's line", async () => {
  await world.line(await send(limited));
  const refused = await send(limited);
  expect(refused.status).toBe(429);
  expect(refused.text).toContain("0.00142");
  claude.channel().next({ body: { ...whole("messages"), usage: undefined } });
  const { basis, limit_usd: estimated } = await world.line(await send(claude));
  expect([basis, Number(estimated) > 0]).toEqual(["unknown", true]);
});

test("P156: reports show a plan's payments separately and never add them to the charge", async () => {
  const own = await world.line(await send(claude));
  expect(own["paid_by"]).toBe("plan");
  const group = "claude";
  const usage = await world.json("usage", "--by", "group", "--group", group);
  const lines = world.lines().filter((line) => line["group"] === group);
  const sum = (payer: string): number =>
    lines
      .filter((line) => line["paid_by"] === payer)
      .reduce((all, line) => all + Number(line["official_usd"]), 0);
  expect(usage.total.charge_usd).toBe("0");
  expect(Number(usage.total.paid_by_plan_usd)).toBeCloseTo(sum("plan"), 10);
  expect(Number(usage.total.plan_overage_usd ?? 0)).toBeCloseTo(sum("plan_overage"), 10);
  const channels = await world.json("channels");
  const channel = channels.find(({ name }: Section) => name === "claude-main");
  expect(channel.charge_today_usd).toBe("0");
  expect(Number(channel.paid_by_plan_today_usd)).toBeCloseTo(sum("plan"), 10);
  const { sessions } = await world.json("sessions");
  const session = sessions.find(
    (each: Section) => each["session"] === "5b1c2d3e-0000-4000-8000-000000000001",
  );
  expect(Number(session.paid_by_plan_usd)).toBeGreaterThan(0);
});
