// Every amount of the page is what the commands say, whatever the period and the filters are.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import type { LedgerIndex } from "../../../src/billing/index/ledger-index.ts";
import { encodeCorrection, encodeLine, GENESIS, hashLine } from "../../../src/billing/ledger/line.ts";
import { dropCache } from "../../../src/billing/miss.ts";
import { loadPriceBook } from "../../../src/billing/prices.ts";
import { reportMisses } from "../../../src/billing/report/cache-misses.ts";
import { sumLedger } from "../../../src/billing/report/report.ts";
import { sumSessions } from "../../../src/billing/report/sessions.ts";
import { compareLedger } from "../../../src/billing/report/what-if.ts";
import { addUsd, formatUsd, parseUsd, subtractUsd, ZERO_USD } from "../../../src/lib/money.ts";
import { createZone } from "../../../src/lib/text/zone.ts";
import { type Filters, MAX_ROWS, type Measure, type RequestRow } from "../../../src/web/api.ts";
import { sumOverview } from "../../../src/web/reports/overview.ts";
import { projectMonth } from "../../../src/web/reports/projection.ts";
import { listCauses, listNames, showRequests } from "../../../src/web/reports/requests.ts";
import { findBefore, findRange } from "../../../src/web/reports/scope.ts";
import { listSessions, showSession } from "../../../src/web/reports/sessions.ts";
import { draftOf, readIndex } from "../../billing/ledger/ledger-samples.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { makeMonth } from "../showcase-ledger.ts";

/** Half an hour beside UTC: no local day begins with a whole hour of the index. */
const ZONE = createZone("Asia/Kolkata");
const NOW = Date.parse("2026-11-20T12:00:00Z");
const CLOCK = { zone: ZONE, now: NOW };

let folder: TempFolder;
let index: LedgerIndex;
beforeAll(() => {
  folder = makeTempFolder();
  makeMonth(folder.join("ledger.jsonl"), NOW, { days: 40 });
  index = readIndex(folder.join("ledger.jsonl"));
});
afterAll(() => {
  index[Symbol.dispose]();
  folder.remove();
});

function listAll(period: string, only: Filters): RequestRow[] {
  const { total, rows } = showRequests(index, { period, only, most: 1_000_000 }, CLOCK);
  expect(rows).toHaveLength(total);
  return [...rows];
}

const sum = (rows: readonly { readonly charge_usd: string | null }[]): string =>
  formatUsd(rows.reduce((total, row) => addUsd(total, parseUsd(row.charge_usd ?? "0")), ZERO_USD));

function rangeOf(period: string): { since: string | null; until: string } {
  const { since, end } = findRange(period, CLOCK);
  return { since: since === null ? null : new Date(since).toISOString(), until: new Date(end).toISOString() };
}

const CASES: readonly (readonly [period: string, only: Filters])[] = [
  ["30d", {}],
  ["7d", { model: "claude-opus-4-5" }],
  ["month", { key: "laptop", label: "web-shop" }],
  ["2026-11-03..2026-11-09", { tool: "codex" }],
  ["2026-11-05", {}],
  ["all", { outcome: "upstream_error" }],
  ["30d", { session: "" }],
  ["last-month", { channel: "anthropic-spare" }],
];

test.each(CASES)("in %s with %j, all views have the sums of the commands", (period, only) => {
  const query = { ...rangeOf(period), only, zone: ZONE };
  const usage = sumLedger(index, { ...query, by: ["model"] }).total;
  const charge = formatUsd(usage.charge);
  const overview = sumOverview(index, { period, only, by: "key", show: "cost" }, CLOCK);
  expect(usage.requests).toBeGreaterThan(0);
  expect([overview.sums.charge_usd, overview.sums.requests]).toEqual([charge, usage.requests]);
  const rows = listAll(period, only);
  expect([rows.length, sum(rows)]).toEqual([usage.requests, charge]);
  expect(rows.map(({ time }) => time)).toEqual(
    rows
      .map(({ time }) => time)
      .toSorted()
      .toReversed(),
  );
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  const misses = reportMisses(index, query);
  const causes = listCauses(index, { period, only }, CLOCK);
  expect([causes.misses, causes.usd]).toEqual([misses.total.misses, formatUsd(misses.total.cost)]);
  expect(overview.missed_usd).toBe(causes.usd);
  const { sessions, isMore, total, unnamed } = listSessions(
    index,
    { period, only, order: "charge", most: MAX_ROWS },
    CLOCK,
  );
  expect([total.charge_usd, total.requests]).toEqual([charge, usage.requests]);
  const own = sumSessions(index, query).rows.filter(({ names }) => names[0] !== "");
  expect([isMore, sessions.length]).toEqual([false, own.length]);
  if (only.session === undefined) expect(sum([...sessions, unnamed])).toBe(charge);
});

test("the sum of requests that ended in one way has their later prices", () => {
  const own = makeTempFolder();
  const none = { basis: "unpriced", official_usd: null, charge_usd: null } as const;
  const late = draftOf("req_late", { ...none, time: "2026-11-20T09:00:00.000Z" });
  const other = draftOf("req_other", { time: "2026-11-20T09:01:00.000Z", charge_usd: "2" });
  const { key, group, platform, channel, model, usage, prices, price_source, tier, multiplier } = late;
  const named = { key, group, platform, channel, model, usage, prices, price_source, tier, multiplier };
  const amounts = { official_usd: "0.5", charge_usd: "0.5", was: { official_usd: null, charge_usd: null } };
  const about = { corrects: late.id, request_time: late.time, ...named, ...amounts };
  const lines = [encodeLine(late, GENESIS)];
  lines.push(encodeLine(other, hashLine(lines[0] ?? "")));
  const prev = hashLine(lines[1] ?? "");
  lines.push(encodeCorrection({ id: "req_fix", time: "2026-11-20T10:00:00.000Z", ...about }, prev));
  writeFileSync(own.join("ledger.jsonl"), lines.map((line) => `${line}\n`).join(""));
  using read = readIndex(own.join("ledger.jsonl"));
  const show = (only: Filters) => showRequests(read, { period: "7d", only, most: 9 }, CLOCK);
  for (const [only, ids, charge] of [
    [{ outcome: "complete" }, ["req_other", "req_late"], "2.5"],
    [{}, ["req_other", "req_late"], "2.5"],
  ] as const) {
    const { rows, charge_usd: all } = show(only);
    expect([rows.map(({ id }) => id), all, sum(rows)]).toEqual([[...ids], charge, charge]);
  }
  own.remove();
});

test("each measure of the chart adds up to the total of its requests", () => {
  const show = (measure: Measure) =>
    sumOverview(index, { period: "30d", only: {}, by: "model", show: measure }, CLOCK);
  for (const measure of ["tokens", "requests", "errors"] as const) {
    const { series, sums } = show(measure);
    const whole = { tokens: sums.tokens, requests: sums.requests, errors: sums.failed }[measure];
    const values = series.flatMap((each) => each.values.map(Number));
    expect([measure, series.reduce((total, each) => total + Number(each.total), 0)]).toEqual([
      measure,
      whole,
    ]);
    expect([measure, values.reduce((total, value) => total + value, 0)]).toEqual([measure, whole]);
  }
});

test("what the cache saved is what `usage --without-cache` says", () => {
  const { total } = compareLedger(
    folder.join("ledger.jsonl"),
    { ...rangeOf("30d"), by: ["model"] },
    {
      book: loadPriceBook(),
      overrides: new Map(),
      sellerOf: () => undefined,
      readCalls: () => [],
      change: { model: null, recount: dropCache, tier: null },
    },
  );
  const { saved_usd: saved } = sumOverview(
    index,
    { period: "30d", only: {}, by: "model", show: "cost" },
    CLOCK,
  );
  expect(total.compared).toBeGreaterThan(1000);
  expect(saved).toBe(formatUsd(subtractUsd(total.asCharge, total.charge)));
});

test("the names to choose from are those of the period, the most expensive first", () => {
  const {
    model = [],
    label = [],
    outcome = [],
  } = listNames(index, { period: "30d", only: { key: "ci" } }, CLOCK);
  expect(model.toSorted()).toEqual(["gpt-5-mini", "gpt-5.1-codex"]);
  expect(model[0]).toBe("gpt-5.1-codex");
  expect([label.toSorted(), outcome[0]]).toEqual([["nightly", "review"], "complete"]);
});

test("sessions with cache misses are those whose requests missed, the most tokens first", () => {
  const missed = new Map<string, number>();
  for (const { session, missed: miss } of listAll("30d", {}))
    if (session !== "" && miss !== undefined) missed.set(session, (missed.get(session) ?? 0) + miss.tokens);
  const query = { period: "30d", only: {}, order: "missed" } as const;
  const all = listSessions(index, { ...query, most: MAX_ROWS }, CLOCK);
  expect(new Map(all.sessions.map((row) => [row.session, row.missed]))).toEqual(missed);
  const counts = all.sessions.map((row) => row.missed);
  expect(counts).toEqual(counts.toSorted((a, b) => b - a));
  const first = listSessions(index, { ...query, most: 3 }, CLOCK);
  expect([first.isMore, first.sessions]).toEqual([true, all.sessions.slice(0, 3)]);
});

test("a session shows all its requests, whenever it was, and nothing of others", () => {
  const [first] = listSessions(
    index,
    { period: "all", only: {}, order: "charge", most: MAX_ROWS },
    CLOCK,
  ).sessions;
  const { session, agents } = showSession(index, first?.session ?? "");
  const rows = listAll("all", { session: first?.session ?? "" });
  expect([session?.requests, session?.charge_usd]).toEqual([rows.length, sum(rows)]);
  expect(new Set(agents.map(({ name }) => name))).toEqual(new Set(rows.map(({ agent }) => agent)));
  expect(showSession(index, "")).toEqual({ session: null, agents: [] });
});

describe("a period", () => {
  const iso = (range: { since: number | null; until: number } | null) =>
    range === null ? null : [new Date(range.since ?? 0).toISOString(), new Date(range.until).toISOString()];

  test("is compared with the one before, as far as that had come", () => {
    const before = (period: string) => iso(findBefore(findRange(period, CLOCK), ZONE));
    expect(before("today")).toEqual(["2026-11-18T18:30:00.000Z", "2026-11-19T12:00:00.000Z"]);
    expect(before("7d")).toEqual(["2026-11-06T18:30:00.000Z", "2026-11-13T12:00:00.000Z"]);
    expect(before("month")).toEqual(["2026-09-30T18:30:00.000Z", "2026-10-20T12:00:00.000Z"]);
    expect(before("2026-11-03..2026-11-04")).toEqual([
      "2026-10-31T18:30:00.000Z",
      "2026-11-02T18:30:00.000Z",
    ]);
    expect(before("all")).toBeNull();
  });

  test("that ends before it begins, or that nobody knows, is refused in words", () => {
    expect(() => findRange("2026-11-09..2026-11-03", CLOCK)).toThrow("ends before it begins");
    expect(() => findRange("99y", CLOCK)).toThrow('There is no period "99y"');
  });
});

test("a month is projected from at least seven days, and the range is empty if all days are alike", () => {
  const today = Date.parse("2026-11-21T00:00:00Z");
  const days = (count: number) =>
    new Map(
      Array.from({ length: count }, (_, back) => [
        new Date(today - (back + 1) * 86_400_000).toISOString().slice(0, 10),
        parseUsd("10"),
      ]),
    );
  const month = { spent: parseUsd("200"), today, local: today + 43_200_000 };
  expect(projectMonth({ ...month, days: days(6) })).toBeNull();
  expect(projectMonth({ ...month, days: days(20) })).toEqual({
    usd: "295.00",
    low_usd: "295.00",
    high_usd: "295.00",
  });
});
