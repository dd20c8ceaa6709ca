// The page's overview: a period by name and time, next to the period before.

import {
  compareDecimals,
  type Decimal,
  decimalOf,
  estimateUsd,
  formatDecimal,
  parseDecimal,
  ZERO_DECIMAL,
} from "../../lib/money.ts";
import { startOfNextSpan, startOfSpan, type TimeSpan, type Zone } from "../../lib/text/zone.ts";
import type { Table } from "../store/open.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS } from "../usage.ts";
import { type Clock, readViewPeriod, toPeriod, type ViewRange } from "./period.ts";
import {
  addSum,
  ALL,
  columnOf,
  type Filter,
  HAS_FAILED,
  type Scope,
  type SumRow,
  sumRequests,
} from "./sums.ts";
import { divideTime } from "./usage.ts";
import { type Measure, OTHERS, type Stack } from "./words.ts";

export interface OverviewQuery {
  readonly period: string;
  readonly only: Filter;
  readonly by: Stack;
  readonly show: Measure;
}

const MAX_SERIES = 7;
const FAILURES = { failed: `SUM(requests) FILTER (WHERE ${HAS_FAILED})` };

export function reportOverview(table: Table, query: OverviewQuery, clock: Clock) {
  const { period, only, by, show } = query;
  const range = readViewPeriod(period, clock);
  const oldest = table.list("SELECT MIN(at) FROM requests")[0]?.[0];
  const first = range.since ?? Math.min(Number(oldest ?? range.until), range.until);
  const spans = divideTime(chooseSpan(range.end - first), first, range.end - 1, clock.zone);
  const scope = { ...toPeriod(range), only };
  const asked = { ...scope, spans, sums: { ...FAILURES, missed: "SUM(missed)" } };
  const { rows, also, total } = sumRequests(table, { ...asked, by: ["span", by], also: [[by]] });
  const [names = []] = also;
  const shown = chooseNames(names, show);
  const cells = Map.groupBy(rows, ({ names: [, own = ""] }) => own);
  const spanNames = [...new Set(spans.map(([span]) => span))];
  const describeSeries = (name: string, all: SumRow, own: readonly SumRow[] = []) => {
    const bySpan = new Map(own.map((row) => [row.names[0], measure(row, show)]));
    return {
      name,
      total: formatDecimal(measure(all, show)),
      values: spanNames.map((span) => formatDecimal(bySpan.get(span) ?? ZERO_DECIMAL)),
      /** A model without a price: amounts of 0 mean nothing. */
      unpriced: by === "model" && show === "cost" && all.totals.charge_usd === "0" && all.totals.unpriced > 0,
    };
  };
  const series = shown.map((row) => describeSeries(nameOf(row), row, cells.get(nameOf(row))));
  if (shown.length < names.length) {
    const sql = `IFNULL(${columnOf(by)}, '') NOT IN (SELECT value FROM json_each($shown))`;
    const where = { sql, values: { $shown: JSON.stringify(shown.map(nameOf)) } };
    const others = sumRequests(table, { ...asked, by: ["span"], where });
    if (measure(others.total, show).units > 0n)
      series.push(describeSeries(OTHERS, others.total, others.rows));
  }
  const before = findBefore(range, clock.zone);
  const earlier = before && sumRequests(table, { ...toPeriod(before), only, by: [], sums: FAILURES }).total;
  return {
    by,
    show,
    spans: spanNames,
    /** The largest first. */
    series,
    total: total.totals,
    sums: describeSums(total),
    before: earlier === null || earlier.totals.requests === 0 ? null : describeSums(earlier),
    missed_usd: formatDecimal(addSum(total, "missed")),
    ...sumMonth(table, only, clock),
    unpriced: total.totals.unpriced === 0 ? [] : listUnpriced(table, scope),
    unreadable: table.unreadable,
  };
}

export type Overview = Readonly<ReturnType<typeof reportOverview>>;
export type Series = Readonly<Overview["series"][number]>;

function chooseNames(rows: readonly SumRow[], show: Measure): SumRow[] {
  const listed = rows
    .filter((row) => show === "cost" || measure(row, show).units > 0n)
    .toSorted(
      (a, b) =>
        compareDecimals(measure(b, show), measure(a, show)) ||
        b.totals.requests - a.totals.requests ||
        (nameOf(a) < nameOf(b) ? -1 : 1),
    );
  return listed.slice(0, listed.length > MAX_SERIES ? MAX_SERIES - 1 : MAX_SERIES);
}

function nameOf({ names: [name = ""] }: SumRow): string {
  return name;
}

function measure(row: SumRow, show: Measure): Decimal {
  const { charge_usd, requests, tokens, failed: errors } = describeSums(row);
  return show === "cost" ? parseDecimal(charge_usd) : decimalOf({ tokens, requests, errors }[show]);
}

function describeSums(row: SumRow) {
  const { charge_usd, requests, usage } = row.totals;
  const tokens = countTokens(usage, [...PROMPT_KINDS, ...OUTPUT_KINDS]);
  return { charge_usd, requests, tokens, failed: Number(row.sums["failed"]) };
}

function listUnpriced(table: Table, scope: Scope) {
  const { rows } = sumRequests(table, {
    ...scope,
    by: ["model"],
    of: ["unpriced"],
    values: ["MIN(first_line)"],
    where: { sql: "basis = 'unpriced' AND official IS NULL" },
  });
  return rows
    .toSorted((a, b) => Number(a.values[0]) - Number(b.values[0]))
    .map((row) => ({ name: nameOf(row), requests: row.totals.unpriced }));
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MAX_BARS = 92;

function chooseSpan(length: number): TimeSpan {
  if (length <= 2 * DAY_MS + HOUR_MS) return "hour";
  if (length <= MAX_BARS * DAY_MS) return "day";
  return length <= 7 * MAX_BARS * DAY_MS ? "week" : "month";
}

function findBefore({ since, until, end }: ViewRange, zone: Zone): ViewRange | null {
  if (since === null) return null;
  const [first, now, last] = [zone.toLocal(since), zone.toLocal(until), zone.toLocal(end)];
  const isMonth = startOfSpan("month", first) === first && startOfNextSpan("month", first) === last;
  const start = isMonth ? startOfSpan("month", first - DAY_MS) : first - (last - first);
  const stop = zone.fromLocal(Math.min(first, start + (now - first)));
  return { since: zone.fromLocal(start), until: stop, end: stop };
}

const PAST_DAYS = 28;
const MIN_DAYS = 7;
/** Eight of ten normal values are within this many standard deviations. */
const EIGHT_OF_TEN = 1.2816;

/** The charges of today and this month, and a projection from the last four weeks,
 *  with its 80 % interval. With too few days, the projection is null. */
function sumMonth(table: Table, only: Filter, { zone, now }: Clock) {
  const local = zone.toLocal(now.getTime());
  const today = startOfSpan("day", local);
  const month = startOfSpan("month", local);
  const [begin, start] = [zone.fromLocal(today), zone.fromLocal(month)];
  const first = zone.fromLocal(today - PAST_DAYS * DAY_MS);
  const days = divideTime("day", Math.min(start, first), begin - 1, zone);
  const { rows, also } = sumRequests(table, {
    ...ALL,
    only,
    of: ["charge"],
    spans: [...days, ["", begin, Number.MAX_SAFE_INTEGER]],
    by: ["span"],
    also: [[`since >= ${begin}`], [`since >= ${start}`]],
  });
  const [today_usd = "0", month_usd = "0"] = also.map(
    (sums) => sums.find(({ names: [isIn] }) => isIn === "1")?.totals.charge_usd,
  );
  const past = days.flatMap(([day, at]) => (at < first ? [] : day));
  const charges = new Map(rows.map(({ names: [day = ""], totals }) => [day, estimateUsd(totals.charge_usd)]));
  const daily = past.map((day) => charges.get(day));
  const left = (startOfNextSpan("month", month) - local) / DAY_MS;
  return { today_usd, month_usd, projection: projectMonth(daily, left, month_usd) };
}

function projectMonth(days: readonly (number | undefined)[], left: number, spent: string) {
  const start = days.findIndex((day) => day !== undefined);
  const daily = days.slice(start);
  if (start === -1 || daily.length < MIN_DAYS) return null;
  const mean = daily.reduce<number>((sum, day = 0) => sum + day, 0) / daily.length;
  const squares = daily.reduce<number>((sum, day = 0) => sum + (day - mean) ** 2, 0);
  const range = EIGHT_OF_TEN * Math.sqrt((squares / (daily.length - 1)) * left);
  const write = (more: number): string => (estimateUsd(spent) + more).toFixed(2);
  return {
    usd: write(mean * left),
    low_usd: write(Math.max(0, mean * left - range)),
    high_usd: write(mean * left + range),
  };
}
