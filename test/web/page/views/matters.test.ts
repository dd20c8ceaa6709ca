// What the status strip says, and in which order.

import { expect, test } from "bun:test";
import type { RequestRecord, ChannelView, LimitRow } from "../../../../src/web/api.ts";
import { listMatters, type LiveParts } from "../../../../src/web/page/views/matters.ts";

const NOW = Date.parse("2026-11-20T12:00:00Z");

const limitOf = (name: string, spent: string, warning: number | null): LimitRow => ({
  holder: { kind: "key", name },
  limit: "usd_per_month",
  usd: "100",
  spent_usd: spent,
  left_usd: Number(spent) < 100 ? "1" : "0",
  resets: "2026-11-20T14:30:00Z",
  warning,
});

const CHANNEL: ChannelView = {
  name: "main",
  platform: "messages",
  groups: [],
  state: "available",
  since: null,
  reason: null,
  until: null,
  success_rate: null,
  latency_ms: null,
  latency_p95_ms: null,
  requests_hour: 0,
  errors_hour: 0,
  charge_today_usd: "0",
  connections: { open: 0, idle: 0 },
  hour: [],
  day: [],
};
const UNTIL = "2026-11-20T12:05:00Z";
const windowOf = (used: number) => ({
  kind: "window" as const,
  name: "5h",
  used,
  left: null,
  of: null,
  resets: "2026-11-20T13:00:00Z",
  seen: "2026-11-20T11:59:00Z",
});

const requestOf = (id: string, outcome: string, ago = 60_000): RequestRecord => ({
  id,
  time: NOW - ago,
  key: "laptop",
  group: "claude",
  model: "m",
  channel: "main",
  client: null,
  endpoint: "/v1/messages",
  status: 200,
  outcome,
  firstByteMs: null,
  durationMs: 5,
  usage: null,
  chargeUsd: null,
  problem: outcome === "complete" ? null : `why ${id}`,
});

function list({
  limits = [],
  unpriced = [],
  channels = [],
  requests = [requestOf("req_1", "complete")],
}: Partial<Parameters<typeof listMatters>[0] & LiveParts>): string[] {
  return listMatters({ limits, unpriced }, { channels, requests }, NOW).map(
    ({ tone, title, text, to: [path, query] }) =>
      `${tone}: ${title} ${text} > ${path.join("/")}?${new URLSearchParams(query).toString()}`,
  );
}

test("nothing needs attention where no limit is near and no channel fails", () => {
  expect(list({ limits: [limitOf("far", "10", null)], channels: [CHANNEL] })).toEqual([]);
  expect(listMatters({ limits: [], unpriced: [] }, { channels: [], requests: [] }, NOW)).toEqual([]);
});

test("limits are there from their first warning on, the nearest first, and lead to their key", () => {
  const limits = [
    limitOf("far", "10", null),
    limitOf("near", "82", 80),
    limitOf("nearer", "96.5", 95),
    limitOf("spent", "104", 95),
  ];
  expect(list({ limits })).toEqual([
    "bad: spent $104.00 of $100.00 per month is spent: requests are refused, resets in 2 h 30 min > keys?key=spent",
    "warn: nearer $96.50 of $100.00 per month 96 % spent, resets in 2 h 30 min > keys?key=nearer",
    "warn: near $82.00 of $100.00 per month 82 % spent, resets in 2 h 30 min > keys?key=near",
  ]);
});

test("channels that fail or are in cooldown are there; one that is idle or disabled is not", () => {
  const channels: ChannelView[] = [
    { ...CHANNEL, name: "slow", state: "degraded", reason: "4 of 9 failed" },
    { ...CHANNEL, name: "idle", state: "resting" },
    { ...CHANNEL, name: "off", state: "disabled" },
    { ...CHANNEL, name: "down", state: "unavailable", until: UNTIL, reason: "refused" },
    { ...CHANNEL, name: "rests", state: "resting", until: UNTIL },
  ];
  expect(list({ channels })).toEqual([
    "bad: down is unavailable for 5 min more: refused > channels?channel=down",
    "warn: slow often fails: 4 of 9 failed > channels?channel=slow",
    "warn: rests is in cooldown for 5 min more > channels?channel=rests",
  ]);
});

test("a plan's window is there from 80 percent on", () => {
  const channels = [79, 80, 100].map((used) => ({
    ...CHANNEL,
    name: `used-${used}`,
    allowance: [windowOf(used)],
  }));
  expect(list({ channels })).toEqual([
    "bad: used-100 the plan's window of 5h is 100 % used, resets in 1 h > channels?channel=used-100",
    "warn: used-80 the plan's window of 5h is 80 % used, resets in 1 h > channels?channel=used-80",
  ]);
});

test("failures and refusals of the last hour and models without a price lead to what they are about", () => {
  const requests = [
    requestOf("req_f", "upstream_error"),
    requestOf("req_r", "refused"),
    requestOf("req_e", "upstream_cut"),
    requestOf("req_1", "complete"),
    requestOf("req_old", "upstream_error", 3_700_000),
  ];
  expect(list({ requests, unpriced: [{ name: "house", requests: 1 }] })).toEqual([
    "warn: 2 of 4 requests failed in the last hour, at last: why req_f > requests/req_f?period=today",
    "warn: 1 of 4 requests refused in the last hour, at last: why req_r > requests/req_r?period=today",
    "warn: house has no price: 1 request is in no amount > ?period=30d&model=house",
  ]);
});
