// Amounts, rates and times on the page.

import { expect, test } from "bun:test";
import {
  formatDay,
  formatMs,
  formatRate,
  formatSpan,
  formatSpanName,
  formatUsd,
  listMonths,
  localize,
  nameKind,
  nameLimit,
  nameOf,
  setZone,
  writeLimit,
} from "../../../../src/web/page/parts/format.ts";

test.each([
  ["0", "$0.0000"],
  ["0.00004", "$0.0000"],
  ["0.00005", "$0.0001"],
  ["0.999949", "$0.9999"],
  ["1", "$1.00"],
  ["1.005", "$1.01"],
  ["12.3449", "$12.34"],
  ["1234567.5", "$1,234,567.50"],
  // A float would round it.
  ["9007199254740993.25", "$9,007,199,254,740,993.25"],
])("%s is %s", (amount, shown) => {
  expect(formatUsd(amount)).toBe(shown);
});

test("amounts in a column have the same places", () => {
  expect([formatUsd("0.5", 6), formatUsd("12", 6)]).toEqual(["$0.500000", "$12.000000"]);
});

test.each([
  [null, "–"],
  [0, "0 %"],
  [0.005, "0 %"],
  [0.5, "50 %"],
  [0.9999, "99 %"],
  [1, "100 %"],
])("a rate of %p is %s: it is rounded down", (rate, shown) => {
  expect(formatRate(rate)).toBe(shown);
});

test.each([
  [null, "–"],
  [0.4, "0 ms"],
  [999, "999 ms"],
  [1000, "1.0 s"],
  [59_940, "59.9 s"],
  [61_000, "1 min"],
])("%p milliseconds are %s", (ms, shown) => {
  expect(formatMs(ms)).toBe(shown);
});

test.each([
  [-5, "0 s"],
  [45_000, "45 s"],
  [60_000, "1 min"],
  [3_599_000, "59 min"],
  [3_600_000, "1 h"],
  [11_100_000, "3 h 5 min"],
  [172_740_000, "47 h 59 min"],
  [172_800_000, "2 d"],
])("a span of %p milliseconds is %s", (ms, shown) => {
  expect(formatSpan(ms)).toBe(shown);
});

test("names are words, also those that the page does not know", () => {
  expect(formatSpanName("2026-11-20 14:00", "short")).toBe("14:00");
  expect([nameKind("cache_write_1h"), nameKind("web_search")]).toEqual([
    "Written to cache, 1 h",
    "web search",
  ]);
  expect([nameLimit("usd_per_day"), nameLimit("usd_per_week")]).toEqual(["per day", "usd per week"]);
  expect([writeLimit("strict", "true"), writeLimit("unpriced", "allow"), writeLimit("agents", "3")]).toEqual([
    "strict",
    "models without a price allowed",
    "3 agents at once in a session",
  ]);
  expect([nameOf(""), nameOf("laptop")]).toEqual(["not stated", "laptop"]);
});

test("a limit in dollars looks like one, others are counts", () => {
  expect(writeLimit("usd_per_session", "0.06")).toBe("$0.06 per session");
  expect(writeLimit("requests_per_minute", "60")).toBe("60 requests per minute");
});

test("times in texts of the gateway are those of the config's zone, and a day of the config stays that day", () => {
  setZone("America/New_York");
  expect(localize("It resets at 2026-12-01T05:00:00Z.")).toMatch(/^It resets at .*\b1\b.* 00:00:00\.$/);
  expect(localize("model 2026-12-01")).toBe("model 2026-12-01");
  expect(formatDay("2026-10-02T00:00:00Z")).toMatch(/\b2\b/);
  expect(formatDay("2026-10-02T01:00:00Z")).toMatch(/\b1\b/);
  setZone("UTC");
});

test("months go back over the turn of a year", () => {
  const months = listMonths(14);
  expect(months[0]).toBe(new Date().toISOString().slice(0, 7));
  expect(new Set(months).size).toBe(14);
  expect(months.toSorted().toReversed()).toEqual(months);
  expect(months.every((month) => /^\d{4}-(0[1-9]|1[0-2])$/.test(month))).toBe(true);
});
