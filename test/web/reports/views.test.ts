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
import { type Filters, type Measure, type RequestRow, SESSIONS } from "../../../src/web/api.ts";
import { findPercentile, sumOverview } from "../../../src/web/reports/overview.ts";
import { projectMonth } from "../../../src/web/reports/projection.ts";
import { findReached } from "../../../src/web/reports/reached.ts";
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
  const rows: RequestRow[] = [];
  for (;;) {
    const { total, rows: more } = showRequests(index, { period, only, from: rows.length, most: 700 }, CLOCK);
    rows.push(...more);
    if (rows.length >= total || more.length === 0) return rows;
  }
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
    { period, only, order: "charge", most: SESSIONS },
    CLOCK,
  );
  expect([total.charge_usd, total.requests]).toEqual([charge, usage.requests]);
  const own = sumSessions(index, query).rows.filter(({ names }) => names[0] !== "");
  expect(isMore ? 200 : own.length).toBe(sessions.length);
  if (!isMore && only.session === undefined) expect(sum([...sessions, unnamed])).toBe(charge);
});

test("an amount leads to its requests: of a cause, a kind of tokens, an agent, and those that failed", () => {
  const period = "2026-11-03..2026-11-09";
  const all = listAll(period, {});
  const total = (only: Filters): string =>
    showRequests(index, { period, only, from: 0, most: 1 }, CLOCK).charge_usd;
  const overview = sumOverview(index, { period, only: {}, by: "key", show: "cost" }, CLOCK);
  for (const { cause, misses, tokens } of listCauses(index, { period, only: {} }, CLOCK).causes) {
    const rows = listAll(period, { cause });
    expect([cause, rows.length]).toEqual([cause, misses]);
    expect(rows.reduce((missed, row) => missed + (row.missed?.tokens ?? 0), 0)).toBe(tokens);
    expect(total({ cause })).toBe(sum(rows));
  }
  for (const kind of ["reasoning", "cache_write_5m"]) {
    const rows = listAll(period, { kind });
    const platform = kind === "reasoning" ? "codex" : "claude";
    expect(rows).toEqual(all.filter(({ group, output }) => group === platform && output > 0));
    expect(total({ kind, key: "ci" })).toBe(sum(rows.filter(({ key }) => key === "ci")));
  }
  const failed = listAll(period, { outcome: "failed" });
  expect([failed.length, failed.length > 0]).toEqual([overview.sums.failed, true]);
  expect(listAll(period, { basis: "unpriced" })).toHaveLength(overview.total.unpriced);
  const { session, agent } = all.find((row) => row.agent !== "") ?? { session: "", agent: "" };
  for (const own of [agent, ""]) {
    const rows = all.filter((row) => row.session === session && row.agent === own);
    expect(listAll(period, { session, agent: own })).toEqual(rows);
    expect(total({ session, agent: own })).toBe(sum(rows));
  }
});

test("the sum of requests that ended or were counted in one way has their later prices", () => {
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
  const show = (only: Filters) => showRequests(read, { period: "7d", only, from: 0, most: 9 }, CLOCK);
  for (const [only, ids, charge] of [
    [{ basis: "unpriced" }, ["req_late"], "0.5"],
    [{ outcome: "complete" }, ["req_other", "req_late"], "2.5"],
    [{}, ["req_other", "req_late"], "2.5"],
  ] as const) {
    const { rows, charge_usd: all } = show(only);
    expect([rows.map(({ id }) => id), all, sum(rows)]).toEqual([[...ids], charge, charge]);
  }
  own.remove();
});

/** In the order of time. */
function findLargest(key: string): RequestRow[] {
  const query = { period: "30d", only: { key }, order: "charge", most: 1 } as const;
  const [{ session } = { session: "" }] = listSessions(index, query, CLOCK).sessions;
  return listAll("all", { session }).toReversed();
}

test("a limit was reached with the request that made its day, its month, or the session itself too expensive", () => {
  const all = listAll("all", {}).toReversed();
  const own = findLargest("laptop");
  const { session = "", time: first = "" } = own[0] ?? {};
  const local = (time: string): string => new Date(ZONE.toLocal(Date.parse(time))).toISOString();
  const day = local(first).slice(0, 10);
  const middle = own[Math.floor(own.length / 2)]?.time ?? "";
  for (const [kind, name, limit, start] of [
    ["key", "laptop", "usd_per_day", day],
    ["group", "claude", "usd_per_month", day.slice(0, 7)],
    ["key", "laptop", "usd_total", ""],
    ["session", session, "usd_per_session", ""],
  ] as const) {
    const counted = all.filter((row) => row[kind] === name && local(row.time).startsWith(start));
    const until = counted.findIndex(({ time }) => time > middle);
    const usd = sum(counted.slice(0, until));
    const reached = (amount: string) =>
      findReached(index, { session, limits: [{ holder: { kind, name }, limit, usd: amount }] }, CLOCK);
    expect(reached(usd).map(({ time }) => time)).toEqual([counted[until - 1]?.time ?? ""]);
    // Before it began, or not at all.
    for (const amount of start === day || kind === "session" ? ["1000000"] : ["1000000", "0.000001"])
      expect(reached(amount)).toEqual([]);
  }
});

test("the small names together have a chart of their own", () => {
  const query = { period: "30d", only: {}, by: "label", show: "cost" } as const;
  const all = sumOverview(index, query, CLOCK);
  const rest = sumOverview(index, { ...query, skip: 2 }, CLOCK);
  expect(rest.series).toEqual(all.series.slice(2));
  expect(rest.sums).toEqual(all.sums);
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

test("a latency of the chart is within a fifth of the one in the lines, also where a day begins within an hour", () => {
  const only = { model: "claude-opus-4-5" };
  const { series, spans } = sumOverview(index, { period: "7d", only, by: "model", show: "latency" }, CLOCK);
  const rows = listAll("7d", only).filter((row) => row.first_byte_ms !== null);
  const day = (row: RequestRow): string =>
    new Date(ZONE.toLocal(Date.parse(row.time))).toISOString().slice(0, 10);
  for (const [at, span] of spans.entries()) {
    const own = rows.filter((row) => day(row) === span).map((row) => row.first_byte_ms ?? 0);
    const value = series[0]?.values[at] ?? null;
    if (own.length === 0) expect(value).toBeNull();
    else {
      const median = own.toSorted((a, b) => a - b)[Math.ceil(own.length / 2) - 1] ?? 0;
      expect(Math.abs(Number(value) / median - 1)).toBeLessThan(0.2);
    }
  }
  expect(series[0]?.requests).toBe(rows.length);
  expect(findPercentile(new Map(), 0.5)).toBe(0);
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

test("an hour of work is six tens of minutes in which a request of the label began", () => {
  const { work } = sumOverview(index, { period: "30d", only: {}, by: "model", show: "cost" }, CLOCK);
  const rows = listAll("30d", { label: "web-shop" });
  const slots = new Set(rows.map(({ time }) => time.slice(0, 15)));
  const own = work.find(({ label }) => label === "web-shop");
  expect([own?.slots, own?.charge_usd]).toEqual([slots.size, sum(rows)]);
  expect(Number(own?.usd_per_hour)).toBeCloseTo((6 * Number(sum(rows))) / slots.size, 9);
});

test("sessions with cache misses are those whose requests missed, the most tokens first", () => {
  const missed = new Map<string, number>();
  for (const { session, missed: miss } of listAll("30d", {}))
    if (session !== "" && miss !== undefined) missed.set(session, (missed.get(session) ?? 0) + miss.tokens);
  const query = { period: "30d", only: {}, order: "missed" } as const;
  const all = listSessions(index, { ...query, most: SESSIONS }, CLOCK);
  expect(new Map(all.sessions.map((row) => [row.session, row.missed]))).toEqual(missed);
  const counts = all.sessions.map((row) => row.missed);
  expect(counts).toEqual(counts.toSorted((a, b) => b - a));
  const first = listSessions(index, { ...query, most: 3 }, CLOCK);
  expect([first.isMore, first.sessions]).toEqual([true, all.sessions.slice(0, 3)]);
});

test("a session shows all its requests, whenever it was, and nothing of others", () => {
  const [first] = listSessions(
    index,
    { period: "all", only: {}, order: "charge", most: SESSIONS },
    CLOCK,
  ).sessions;
  const { session, agents } = showSession(index, first?.session ?? "");
  const rows = listAll("all", { session: first?.session ?? "" });
  expect([session?.requests, session?.charge_usd]).toEqual([rows.length, sum(rows)]);
  expect(new Set(agents.map(({ name }) => name))).toEqual(new Set(rows.map(({ agent }) => agent)));
  expect(showSession(index, "")).toEqual({ session: null, agents: [], context: [] });
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

  test("of each bar has the requests of that bar", () => {
    for (const period of ["today", "7d", "90d", "all"]) {
      const { spans, periods, trend } = sumOverview(
        index,
        { period, only: {}, by: "key", show: "cost" },
        CLOCK,
      );
      expect(periods).toHaveLength(spans.length);
      for (const at of [0, spans.length >> 1, spans.length - 1]) {
        const { total } = showRequests(
          index,
          { period: periods[at] ?? "", only: {}, from: 0, most: 1 },
          CLOCK,
        );
        expect([period, at, total]).toEqual([period, at, trend.requests[at] ?? -1]);
      }
    }
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
