// What upstreams say is left: in fields of their answers, and at the endpoints for a balance.

import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { openTlsHosts } from "../../harness/upstreams/tls-hosts.ts";
import type { Channel } from "../../../src/config/catalog.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import {
  Allowances,
  hasAllowance,
  readRates,
  readWindows,
} from "../../../src/gateway/channels/allowances.ts";
import { writeAllowance } from "../../../src/lib/text/allowance.ts";
import { findSource } from "../../../src/gateway/channels/balance.ts";
import { createClient } from "../../../src/lib/http1/client/client.ts";
import { Fields } from "../../../src/lib/http/fields.ts";
import type { Exchange } from "../../../src/lib/http/exchange.ts";
import { UTC } from "../../../src/lib/text/zone.ts";
import { makeTempFolder } from "../../harness/temp.ts";

const SEEN = Date.parse("2026-11-23T12:00:00Z");
const RESET = "2026-11-23T15:00:00.000Z";
const seconds = String(Date.parse(RESET) / 1000);

/** What Claude Code gets with a plan. */
const UNIFIED = Fields.of([
  ["anthropic-ratelimit-unified-status", "allowed"],
  ["anthropic-ratelimit-unified-5h-status", "allowed"],
  ["anthropic-ratelimit-unified-5h-utilization", "0.42"],
  ["anthropic-ratelimit-unified-5h-reset", seconds],
  ["anthropic-ratelimit-unified-7d-utilization", "0.185"],
  ["anthropic-ratelimit-unified-7d_oi-utilization", "0.29"],
  ["anthropic-ratelimit-unified-overage-status", "rejected"],
]);
/** What Codex gets with ChatGPT. */
const CODEX = Fields.of([
  ["x-codex-primary-used-percent", "61"],
  ["x-codex-primary-window-minutes", "300"],
  ["x-codex-primary-reset-at", seconds],
  ["x-codex-secondary-used-percent", "9.5"],
  ["x-codex-secondary-window-minutes", "10080"],
  ["x-codex-secondary-reset-after-seconds", "10800"],
  ["x-codex-bengalfox-primary-used-percent", "97"],
]);

describe("what answers say", () => {
  const rows = (fields: Fields) =>
    [...readWindows(fields, SEEN), ...readRates(fields, SEEN)].map((each) => [
      writeAllowance(each),
      each.resets,
    ]);

  test("the windows of a Claude plan, with their resets", () => {
    expect(hasAllowance(UNIFIED)).toBe(true);
    expect(rows(UNIFIED)).toEqual([
      ["5h 42%", RESET],
      ["7d 18.5%", null],
      ["7d oi 29%", null],
    ]);
  });

  test("the windows of ChatGPT, also that of a single model", () => {
    expect(rows(CODEX)).toEqual([
      ["5h 61%", RESET],
      ["7d 9.5%", RESET],
      ["primary bengalfox 97%", null],
    ]);
  });

  test.each([
    [
      "Anthropic",
      [
        ["anthropic-ratelimit-requests-limit", "50"],
        ["anthropic-ratelimit-requests-remaining", "49"],
        ["anthropic-ratelimit-requests-reset", "2026-11-23T15:00:00Z"],
        ["anthropic-ratelimit-input-tokens-limit", "30000"],
        ["anthropic-ratelimit-input-tokens-remaining", "29873"],
      ],
      [
        ["49 of 50 requests", RESET],
        ["29873 of 30000 input tokens", null],
      ],
    ],
    [
      "OpenAI",
      [
        ["x-ratelimit-limit-tokens", "150000"],
        ["x-ratelimit-remaining-tokens", "149984"],
        ["x-ratelimit-reset-tokens", "2h59m60s"],
      ],
      [["149984 of 150000 tokens", RESET]],
    ],
  ] as const)("the rate of an API key: %s", (_, fields, expected) => {
    expect(rows(Fields.of(fields))).toEqual(expected.map(([shown, resets]) => [shown, resets]));
  });

  test.each([
    ["anthropic-ratelimit-unified-5h-utilization", "nobody"],
    ["anthropic-ratelimit-unified-5h-utilization", "1e9"],
    ["anthropic-ratelimit-unified-5h-utilization", "-0.5"],
    ["anthropic-ratelimit-unified-5h-utilization", ""],
    ["anthropic-ratelimit-unified-5h-utilization", "9".repeat(5000)],
    ["anthropic-ratelimit-unified-5h_$'-utilization", "0.5"],
    [`anthropic-ratelimit-unified-5h_${"a".repeat(100)}-utilization`, "0.5"],
    ["anthropic-ratelimit-unified-overage-utilization", "0.5"],
    ["x-codex-primary-used-percent", "NaN"],
    ["anthropic-ratelimit-requests-remaining", "5"],
  ])("a field of another form says nothing: %s: %.20s", (name, value) => {
    expect(rows(Fields.of([[name, value]]))).toEqual([]);
  });

  test.each(["1", "99999999999", "tomorrow", "9999-01-01T00:00:00Z", "1".repeat(60), "-5"])(
    "a reset that no limit has is left out: %s",
    (reset) => {
      const fields = Fields.of([
        ["anthropic-ratelimit-unified-5h-utilization", "0.5"],
        ["anthropic-ratelimit-unified-5h-reset", reset],
      ]);
      expect(rows(fields)).toEqual([["5h 50%", null]]);
    },
  );

  test("an upstream that names a thousand windows gets six", () => {
    const many = Array.from(
      { length: 900 },
      (_, index) => [`anthropic-ratelimit-unified-${index}h-utilization`, "0.5"] as const,
    );
    expect(rows(Fields.of(many))).toHaveLength(6);
  });
});

const HOSTS = ["api.deepseek.com", "api.moonshot.cn", "openrouter.ai"];
const folder = makeTempFolder();
const asked: string[] = [];
let reply: (exchange: Exchange) => void;
const hosts = await openTlsHosts(HOSTS, (exchange) => {
  asked.push(`${exchange.field("host")}${exchange.target} ${exchange.field("authorization")}`);
  reply(exchange);
});
await Bun.write(folder.join("ca.pem"), hosts.authority);
const client = createClient();
afterAll(() => {
  client.close();
  hosts.close();
  folder.remove();
});

function makeChannel(more: object): Channel {
  const channel = {
    platform: "responses",
    base_url: "https://api.deepseek.com/v1",
    credential: "sk-of-seller",
  };
  const config = {
    channels: { a: { ...channel, proxy: hosts.url, ca: "ca.pem", ...more } },
  };
  const { catalog } = checkConfigText(JSON.stringify(config), folder.join("gateway.yaml"), {});
  return catalog.channels.get("a")!;
}

let now = SEEN;
let spent = "0";
const warnings: unknown[] = [];
let allowances: Allowances;
beforeEach(() => {
  now = SEEN;
  asked.length = 0;
  warnings.length = 0;
  reply = (exchange) =>
    exchange.answer(200, [], '{"balance_infos":[{"currency":"CNY","total_balance":"110.00"}]}');
  allowances = new Allowances({
    client,
    alerts: () => ({ checkShare: (use) => void warnings.push(use) }),
    now: () => now,
    ledger: () => ({
      sumSpent: ({ since }) => Promise.resolve(since === "2026-11-14T00:00:00.000Z" ? spent : "999"),
    }),
  });
});
const look = (channel: Channel) => allowances.look({ channels: new Map([["a", channel]]), zone: UTC });
const list = (channel: Channel): string[] => allowances.list(channel).map(writeAllowance);

describe("a balance", () => {
  test.each([
    [
      "https://api.deepseek.com/anthropic",
      "/user/balance",
      '{"balance_infos":[{"currency":"USD","total_balance":"12.34"}]}',
      "12.34 USD",
    ],
    [
      "https://api.moonshot.cn/v1",
      "/v1/users/me/balance",
      '{"data":{"available_balance":49.58894}}',
      "49.58894 CNY",
    ],
    [
      "https://openrouter.ai/api/v1",
      "/api/v1/key",
      '{"data":{"limit_remaining":0.30000000000000004}}',
      "0.30000000000000004 USD",
    ],
  ])("%s is asked at its own host, with the ordinary key", async (base_url, path, body, shown) => {
    reply = (exchange) => exchange.answer(200, [], body);
    const channel = makeChannel({ base_url });
    await look(channel);
    expect(asked).toEqual([`${new URL(base_url).host}${path} Bearer sk-of-seller`]);
    expect(list(channel)).toEqual([shown]);
  });

  test("it is asked at most every five minutes, and its age is known", async () => {
    const channel = makeChannel({});
    await look(channel);
    now += 4 * 60_000;
    await look(channel);
    expect(asked).toHaveLength(1);
    expect(allowances.list(channel)[0]?.seen).toBe(new Date(SEEN).toISOString());
    now += 2 * 60_000;
    reply = (exchange) => exchange.answer(500, [], "");
    await look(channel);
    expect(asked).toHaveLength(2);
    // It stays what it was, with its age.
    expect(allowances.list(channel)[0]).toMatchObject({ left: "110.00", seen: new Date(SEEN).toISOString() });
  });

  test.each([
    ["balance: off", { balance: "off" }],
    ["a channel of another host", { base_url: "https://api.example.com" }],
    ["a host that only begins so", { base_url: "https://api.deepseek.com.example.com" }],
    ["another port", { base_url: "https://api.deepseek.com:8443" }],
    ["plain HTTP", { base_url: "http://api.deepseek.com" }],
    ["a disabled channel", { disabled: true }],
  ])("nobody is asked: %s", async (_, more) => {
    const channel = makeChannel(more);
    expect(findSource(channel)).toBeNull();
    await look(channel);
    expect([asked, list(channel)]).toEqual([[], []]);
  });

  test.each([
    ["no JSON", "<html>"],
    ["an amount that is text", '{"balance_infos":[{"currency":"USD","total_balance":"<b>"}]}'],
    ["a currency that is none", '{"balance_infos":[{"currency":"sk-of-seller","total_balance":"1"}]}'],
    ["a list that is none", '{"balance_infos":7}'],
    [
      "a body of megabytes",
      `{"balance_infos":[{"currency":"USD","total_balance":"1"}],"x":"${"x".repeat(1 << 20)}"}`,
    ],
  ])("an answer of another form says nothing: %s", async (_, body) => {
    reply = (exchange) => exchange.answer(200, [], body);
    const channel = makeChannel({});
    await look(channel);
    expect(list(channel)).toEqual([]);
  });

  test("a redirect is not followed", async () => {
    reply = (exchange) => exchange.answer(302, [["location", "https://openrouter.ai/api/v1/key"]], "");
    await look(makeChannel({}));
    expect(asked).toHaveLength(1);
  });
});

describe("a declared credit", () => {
  const credit = { usd: "200", renews: 14 };

  test("its rest is what the channel's requests left of it since it was renewed", async () => {
    spent = "49.8";
    const channel = makeChannel({ credit, balance: "off" });
    await look(channel);
    expect(list(channel)).toEqual(["$150.2 of $200"]);
    expect(allowances.list(channel)[0]).toMatchObject({ used: 24.9, resets: "2026-12-14T00:00:00.000Z" });
    expect(warnings).toEqual([
      {
        holder: { kind: "channel", name: "a" },
        limit: "credit",
        used: 24.9,
        resets: Date.parse("2026-12-14T00:00:00Z"),
      },
    ]);
  });

  test("no more is left than nothing", async () => {
    spent = "250";
    const channel = makeChannel({ credit, balance: "off" });
    await look(channel);
    expect(list(channel)).toEqual(["$0 of $200"]);
  });

  test("the ledger is asked at most once a minute, however many requests end", async () => {
    let asks = 0;
    allowances = new Allowances({
      client,
      alerts: () => ({ checkShare: () => {} }),
      now: () => now,
      ledger: () => ({ sumSpent: () => Promise.resolve(String((asks += 1))) }),
    });
    const channel = makeChannel({ credit, balance: "off" });
    for (let count = 0; count < 50; count += 1) allowances.note(channel, Fields.of([]), now, UTC);
    await look(channel);
    expect(asks).toBe(1);
    now += 61_000;
    await look(channel);
    expect(asks).toBe(2);
  });
});

describe("what is kept of answers", () => {
  test("only the last one of a channel, and nothing after its address has changed", () => {
    const channel = makeChannel({ balance: "off" });
    allowances.note(channel, CODEX, SEEN, UTC);
    allowances.note(channel, UNIFIED, SEEN, UTC);
    expect(list(channel)).toEqual(["5h 42%", "7d 18.5%", "7d oi 29%"]);
    expect(list(makeChannel({ balance: "off", base_url: "https://openrouter.ai/api/v1" }))).toEqual([]);
  });

  test("a window that has begun anew is not known any more", () => {
    const channel = makeChannel({ balance: "off" });
    allowances.note(channel, UNIFIED, SEEN, UTC);
    now = Date.parse(RESET) + 1;
    expect(list(channel)).toEqual(["7d 18.5%", "7d oi 29%"]);
  });

  test("windows warn their owner only where a plan pays", () => {
    const key = makeChannel({ balance: "off" });
    expect(allowances.note(key, UNIFIED, SEEN, UTC)).toEqual([]);
    expect(warnings).toEqual([]);
    const plan = makeChannel({
      platform: "messages",
      base_url: "https://api.anthropic.com",
      credential: "client",
      proxy: "http://127.0.0.1:9",
    });
    expect(allowances.note(plan, UNIFIED, SEEN, UTC).map(({ name, used }) => [name, used])).toEqual([
      ["5h", 42],
      ["7d", 18.5],
      ["7d oi", 29],
    ]);
    expect(warnings).toHaveLength(3);
  });
});
