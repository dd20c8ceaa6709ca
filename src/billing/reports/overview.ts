// The page's overview: sums of a period by names and over time, and what they mean next to the period before.

import {
  addUsd,
  compareDecimals,
  type Decimal,
  decimalOf,
  estimateUsd,
  formatDecimal,
  formatUsd,
  parseDecimal,
  parseUsd,
  type Usd,
  ZERO_DECIMAL,
  ZERO_USD,
} from "../../lib/money.ts";
import { nameSpan, startOfNextSpan, startOfSpan, type TimeSpan, type Zone } from "../../lib/text/zone.ts";
import type { Table } from "../store/open.ts";
import { KIND_COLUMNS } from "../store/schema.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS } from "../usage.ts";
import { type Clock, readViewPeriod, toPeriod, type ViewRange } from "./period.ts";
import {
  ALL,
  columnOf,
  describeScope,
  type Filter,
  HAS_FAILED,
  type Scope,
  type SumRow,
  sumRequests,
  type SumsQuery,
} from "./sums.ts";
import { divideTime } from "./usage.ts";
import { type Measure, OTHERS, type Stack } from "./words.ts";

export interface OverviewQuery {
  readonly period: string;
  readonly only: Filter;
  readonly by: Stack;
  readonly show: Measure;
}

/** More colours are hard to distinguish. */
const MAX_SERIES = 7;
const FAILURES = `COUNT(line) FILTER (WHERE ${HAS_FAILED})`;

/** What the series of each measure need. */
const MEASURED: Readonly<Record<Measure, Pick<SumsQuery, "of" | "sums">>> = {
  cost: { of: ["requests", "charge"] },
  tokens: { of: ["requests", ...KIND_COLUMNS] },
  requests: { of: ["requests"] },
  errors: { of: ["requests"], sums: { failed: FAILURES } },
};
/** What the period before is compared by. */
const COMPARED = { of: ["requests", "charge", ...KIND_COLUMNS], sums: { failed: FAILURES } };

export function reportOverview(table: Table, query: OverviewQuery, clock: Clock) {
  const { period, only, by, show } = query;
  const { zone } = clock;
  const range = readViewPeriod(period, clock);
  const first = range.since ?? findFirst(table, clock);
  const divided = divideTime(chooseSpan(range.end - first), first, range.end - 1, zone);
  const spans = [...new Set(divided.map(([name]) => name))];
  const scope = { ...toPeriod(range), only };
  const column = `COALESCE(${columnOf(by)}, '')`;
  const cellsBy = { ...scope, ...MEASURED[show], spans: divided, bySecond: true };
  const byName = sumRequests(table, { ...cellsBy, by: ["span", column] });
  const { shown, isAll } = chooseSeries(byName.bySecond, show);
  const folded = `CASE WHEN ${column} IN (SELECT value FROM json_each($shown)) THEN ${column} ELSE '${OTHERS}' END`;
  const where = { sql: "TRUE", values: { $shown: JSON.stringify(shown) } };
  const cells = isAll ? byName : sumRequests(table, { ...cellsBy, by: ["span", folded], where });
  const before = findBefore(range, zone);
  const earlier =
    before && sumRequests(table, { ...toPeriod(before), ...COMPARED, only, by: [folded], where });
  const { total } = sumRequests(table, {
    ...scope,
    by: [],
    sums: { failed: FAILURES, saved: "SUM(saved)", missed: "SUM(missed)" },
  });
  const unpriced = total.totals.unpriced === 0 ? [] : listUnpriced(table, scope);
  const write = (row: SumRow | undefined): string => formatDecimal(measure(show, row));
  const series = (isAll ? shown : [...shown, OTHERS]).map((name) => {
    const own = new Map(
      cells.rows.flatMap((row) => (nameOf(row) === name ? [[row.names[0] ?? "", row]] : [])),
    );
    const sum = write(cells.bySecond.find((row) => nameOf(row) === name));
    return {
      name,
      /** Of the entire period. */
      total: sum,
      /** Of the period before. Null: there is none. */
      before: earlier && write(earlier.rows.find((row) => nameOf(row) === name)),
      /** For each span. */
      values: spans.map((span) => write(own.get(span))),
      /** A model without a price: its amounts of 0 say nothing. */
      unpriced:
        by === "model" && show === "cost" && sum === "0" && unpriced.some((each) => each.name === name),
    };
  });
  const { saved = ZERO_DECIMAL, missed = ZERO_DECIMAL } = total.sums;
  return {
    by,
    show,
    /** Local hours (`2026-11-20 14:00`), days (`2026-11-20`), weeks (`2026-W47`) or months (`2026-11`). */
    spans,
    /** The largest first. Amounts are decimals: dollars or counts. */
    series,
    total: total.totals,
    sums: describeSums(total),
    /** As far into the period before as this one has come. Null: there is none, or it has no request. */
    before: earlier === null || earlier.total.totals.requests === 0 ? null : describeSums(earlier.total),
    saved_usd: formatDecimal(saved),
    missed_usd: formatDecimal(missed),
    ...sumMonth(table, only, clock),
    /** Models without a price, and how many of their requests no amount includes. */
    unpriced,
    unreadable: table.unreadable,
  };
}

export type Overview = Readonly<ReturnType<typeof reportOverview>>;
export type Series = Readonly<Overview["series"][number]>;

/** The names of the largest sums. */
function chooseSeries(sums: readonly SumRow[], show: Measure) {
  const listed = sums
    .filter((row) => show === "cost" || measure(show, row).units > 0n)
    .toSorted(
      (a, b) =>
        compareDecimals(measure(show, b), measure(show, a)) ||
        b.totals.requests - a.totals.requests ||
        (nameOf(a) < nameOf(b) ? -1 : 1),
    );
  const names = listed.map(nameOf).filter((name) => name !== OTHERS);
  const isAll = listed.length <= MAX_SERIES && names.length === listed.length;
  return { shown: isAll ? names : names.slice(0, MAX_SERIES - 1), isAll };
}

function nameOf({ names }: SumRow): string {
  return names.at(-1) ?? "";
}

function measure(show: Measure, row: SumRow | undefined): Decimal {
  if (row === undefined) return ZERO_DECIMAL;
  const { charge_usd, requests, tokens, failed } = describeSums(row);
  return show === "cost" ? parseDecimal(charge_usd) : decimalOf({ tokens, requests, errors: failed }[show]);
}

function describeSums({ totals, sums }: SumRow) {
  const { charge_usd, requests, usage } = totals;
  // A count has no scale.
  const failed = Number(sums["failed"]?.units ?? 0n);
  return { charge_usd, requests, tokens: countTokens(usage, [...PROMPT_KINDS, ...OUTPUT_KINDS]), failed };
}

function listUnpriced(table: Table, scope: Scope) {
  const { sql, values } = describeScope(scope);
  const found = table.list(
    `SELECT model, COUNT(*) FROM requests WHERE basis = 'unpriced' AND official IS NULL AND ${sql}
     GROUP BY model ORDER BY MIN(line)`,
    values,
  );
  return found.map(([name, requests]) => ({ name: String(name ?? ""), requests: Number(requests) }));
}

function findFirst(table: Table, { now }: Clock): number {
  const [[first] = []] = table.list("SELECT MIN(at) FROM requests");
  return typeof first === "bigint" ? Math.min(Number(first), now.getTime()) : now.getTime();
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MAX_BARS = 92;

/** So that there are enough bars, and not too many. */
function chooseSpan(length: number): TimeSpan {
  if (length <= 2 * DAY_MS + HOUR_MS) return "hour";
  if (length <= MAX_BARS * DAY_MS) return "day";
  return length <= 7 * MAX_BARS * DAY_MS ? "week" : "month";
}

/** As far into the period before as this one has come: of a month, the month before; otherwise as many days. */
function findBefore({ since, until, end }: ViewRange, zone: Zone): ViewRange | null {
  if (since === null) return null;
  const [first, now, last] = [zone.toLocal(since), zone.toLocal(until), zone.toLocal(end)];
  const isMonth = startOfSpan("month", first) === first && startOfNextSpan("month", first) === last;
  const start = isMonth ? startOfSpan("month", first - DAY_MS) : first - (last - first);
  const stop = zone.fromLocal(Math.min(first, start + (now - first)));
  return { since: zone.fromLocal(start), until: stop, end: stop };
}

/** Today and this month, whatever the period of the view is. */
function sumMonth(table: Table, only: Filter, { zone, now }: Clock) {
  const local = zone.toLocal(now.getTime());
  const today = startOfSpan("day", local);
  const month = startOfSpan("month", today);
  const start = zone.fromLocal(Math.min(month, today - PAST_DAYS * DAY_MS));
  const end = zone.fromLocal(today + DAY_MS);
  const spans = divideTime("day", start, end - 1, zone);
  const { rows } = sumRequests(table, { ...ALL, only, of: ["charge"], by: ["span"], spans });
  const days = new Map(rows.map(({ names: [day = ""], totals }) => [day, parseUsd(totals.charge_usd)]));
  const first = nameSpan("day", month);
  const spent = [...days].reduce((sum, [day, usd]) => (day >= first ? addUsd(sum, usd) : sum), ZERO_USD);
  return {
    today_usd: formatUsd(days.get(nameSpan("day", today)) ?? ZERO_USD),
    month: { usd: formatUsd(spent), projection: projectMonth({ days, spent, today, local }) },
  };
}

const PAST_DAYS = 28;
/** Fewer days say too little. */
const MIN_DAYS = 7;
/** Standard deviations: eight of ten normal values are nearer to the mean. */
const EIGHT_OF_TEN = 1.2816;

interface MonthSoFar {
  /** By the name of the day. */
  readonly days: ReadonlyMap<string, Usd>;
  readonly spent: Usd;
  /** Local times: the beginning of the day, and now. */
  readonly today: number;
  readonly local: number;
}

/** What the month will have cost, if it goes on as the last four weeks did, with the 80 % interval of that: estimates in whole
 *  cents. Null: there are too few days to tell. */
function projectMonth({ days, spent, today, local }: MonthSoFar) {
  const past = Array.from({ length: PAST_DAYS }, (_, index) => nameSpan("day", today - (index + 1) * DAY_MS));
  const first = past.findLastIndex((day) => days.has(day));
  if (first + 1 < MIN_DAYS) return null;
  const daily = past.slice(0, first + 1).map((day) => estimateUsd(days.get(day) ?? ZERO_USD));
  const mean = daily.reduce((sum, each) => sum + each, 0) / daily.length;
  const variance = daily.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (daily.length - 1);
  const left = (startOfNextSpan("month", startOfSpan("month", today)) - local) / DAY_MS;
  const until = estimateUsd(spent);
  const more = mean * left;
  const range = EIGHT_OF_TEN * Math.sqrt(variance * left);
  return {
    usd: (until + more).toFixed(2),
    low_usd: (until + Math.max(0, more - range)).toFixed(2),
    high_usd: (until + more + range).toFixed(2),
  };
}
