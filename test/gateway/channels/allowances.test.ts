// What upstreams say is left, in fields of their answers.

import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import type { Channel } from "../../../src/config/catalog.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import {
  Allowances,
  hasAllowance,
  readRates,
  readWindows,
} from "../../../src/gateway/channels/allowances.ts";
import { writeAllowance } from "../../../src/lib/text/allowance.ts";
import { Fields } from "../../../src/lib/http/fields.ts";
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

const folder = makeTempFolder();
afterAll(() => folder.remove());

function makeChannel(more: object = {}): Channel {
  const channel = {
    platform: "responses",
    base_url: "https://api.deepseek.com/v1",
    credential: "sk-of-seller",
  };
  const config = { channels: { a: { ...channel, ...more } } };
  const { catalog } = checkConfigText(JSON.stringify(config), folder.join("gateway.yaml"), {});
  return catalog.channels.get("a")!;
}

let now = SEEN;
const warnings: unknown[] = [];
let allowances: Allowances;
beforeEach(() => {
  now = SEEN;
  warnings.length = 0;
  allowances = new Allowances({
    alerts: () => ({ checkShare: (use) => void warnings.push(use) }),
    now: () => now,
  });
});
const list = (channel: Channel): string[] => allowances.list(channel).map(writeAllowance);

describe("what is kept of answers", () => {
  test("only the last one of a channel, and nothing after its address has changed", () => {
    const channel = makeChannel();
    allowances.note(channel, CODEX, SEEN);
    allowances.note(channel, UNIFIED, SEEN);
    expect(list(channel)).toEqual(["5h 42%", "7d 18.5%", "7d oi 29%"]);
    expect(list(makeChannel({ base_url: "https://openrouter.ai/api/v1" }))).toEqual([]);
  });

  test("a window that has begun anew is not known any more", () => {
    const channel = makeChannel();
    allowances.note(channel, UNIFIED, SEEN);
    now = Date.parse(RESET) + 1;
    expect(list(channel)).toEqual(["7d 18.5%", "7d oi 29%"]);
  });

  test("windows warn their owner only where a plan pays", () => {
    const key = makeChannel();
    expect(allowances.note(key, UNIFIED, SEEN)).toEqual([]);
    expect(warnings).toEqual([]);
    const plan = makeChannel({
      platform: "messages",
      base_url: "https://api.anthropic.com",
      credential: "client",
    });
    expect(allowances.note(plan, UNIFIED, SEEN).map(({ name, used }) => [name, used])).toEqual([
      ["5h", 42],
      ["7d", 18.5],
      ["7d oi", 29],
    ]);
    expect(warnings).toHaveLength(3);
  });
});
