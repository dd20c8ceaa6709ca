// The page's overview: sums of a period by name and time, next to the period before.

import {
  addDecimals,
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
import { KIND_COLUMNS } from "../store/schema.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS } from "../usage.ts";
import { type Clock, readViewPeriod, toPeriod, type ViewRange } from "./period.ts";
import {
  ALL,
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
const FAILURES = { failed: `SUM(requests) FILTER (WHERE ${HAS_FAILED})` };

const MEASURED: Readonly<Record<Measure, Pick<SumsQuery, "of" | "sums">>> = {
  cost: { of: ["requests", "charge", "unpriced"] },
  tokens: { of: ["requests", ...KIND_COLUMNS] },
  requests: { of: ["requests"] },
  errors: { of: ["requests"], sums: FAILURES },
};

export function reportOverview(table: Table, query: OverviewQuery, clock: Clock) {
  const { period, only, by, show } = query;
  const range = readViewPeriod(period, clock);
  const scope = { ...toPeriod(range), only };
  const { total } = sumRequests(table, { ...scope, by: [], sums: { ...FAILURES, missed: "SUM(missed)" } });
  const oldest = table.list("SELECT MIN(at) FROM requests")[0]?.[0];
  const first = range.since ?? Math.min(Number(oldest ?? range.until), range.until);
  const spans = divideTime(chooseSpan(range.end - first), first, range.end - 1, clock.zone);
  const cells = sumRequests(table, {
    ...scope,
    ...MEASURED[show],
    spans,
    by: ["span", by],
  }).rows;
  const shown = chooseNames(cells, show);
  const series = Map.groupBy(cells, ({ names: [, own = ""] }) => (shown.includes(own) ? own : OTHERS));
  const before = findBefore(range, clock.zone);
  const earlier = before && sumRequests(table, { ...toPeriod(before), only, by: [], sums: FAILURES }).total;
  const month = sumSince(table, only, "month", clock);
  const spanNames = [...new Set(spans.map(([span]) => span))];
  return {
    by,
    show,
    spans: spanNames,
    /** The largest first, then the others. Amounts are decimals: dollars or counts. */
    series: [...shown, OTHERS].flatMap((own) => {
      const parts = series.get(own) ?? [];
      const size = add(parts, show);
      if (own === OTHERS && size.units === 0n) return [];
      const bySpan = Map.groupBy(parts, ({ names: [span] }) => span);
      return {
        name: own,
        total: formatDecimal(size),
        values: spanNames.map((span) => formatDecimal(add(bySpan.get(span) ?? [], show))),
        /** A model without a price: amounts of 0 mean nothing. */
        unpriced:
          by === "model" &&
          show === "cost" &&
          size.units === 0n &&
          parts.some(({ totals }) => totals.unpriced > 0),
      };
    }),
    total: total.totals,
    sums: describeSums(total),
    /** The same stretch of the period before. Null: none, or without requests. */
    before: earlier === null || earlier.totals.requests === 0 ? null : describeSums(earlier),
    missed_usd: formatDecimal(total.sums["missed"] ?? ZERO_DECIMAL),
    today_usd: sumSince(table, only, "day", clock),
    month_usd: month,
    projection: projectMonth(table, only, clock, month),
    /** Models without a price, with the number of requests that no amount includes. */
    unpriced: total.totals.unpriced === 0 ? [] : listUnpriced(table, scope),
    unreadable: table.unreadable,
  };
}

export type Overview = Readonly<ReturnType<typeof reportOverview>>;
export type Series = Readonly<Overview["series"][number]>;

function chooseNames(cells: readonly SumRow[], show: Measure): string[] {
  const listed = [...Map.groupBy(cells, ({ names: [, name = ""] }) => name)]
    .map(([name, own]) => ({ name, requests: add(own, "requests"), size: add(own, show) }))
    .filter(({ size }) => show === "cost" || size.units > 0n)
    .toSorted(
      (a, b) =>
        compareDecimals(b.size, a.size) ||
        compareDecimals(b.requests, a.requests) ||
        (a.name < b.name ? -1 : 1),
    );
  const most = listed.length > MAX_SERIES ? MAX_SERIES - 1 : MAX_SERIES;
  return listed.slice(0, most).map(({ name }) => name);
}

function add(rows: readonly SumRow[], show: Measure): Decimal {
  const sizes = rows.map((row) => {
    const { charge_usd, requests, tokens, failed: errors } = describeSums(row);
    return show === "cost" ? parseDecimal(charge_usd) : decimalOf({ tokens, requests, errors }[show]);
  });
  return sizes.reduce(addDecimals, ZERO_DECIMAL);
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

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MAX_BARS = 92;

function chooseSpan(length: number): TimeSpan {
  if (length <= 2 * DAY_MS + HOUR_MS) return "hour";
  if (length <= MAX_BARS * DAY_MS) return "day";
  return length <= 7 * MAX_BARS * DAY_MS ? "week" : "month";
}

/** The same stretch of the period before: of the previous month, or of as many days. */
function findBefore({ since, until, end }: ViewRange, zone: Zone): ViewRange | null {
  if (since === null) return null;
  const [first, now, last] = [zone.toLocal(since), zone.toLocal(until), zone.toLocal(end)];
  const isMonth = startOfSpan("month", first) === first && startOfNextSpan("month", first) === last;
  const start = isMonth ? startOfSpan("month", first - DAY_MS) : first - (last - first);
  const stop = zone.fromLocal(Math.min(first, start + (now - first)));
  return { since: zone.fromLocal(start), until: stop, end: stop };
}

function sumSince(table: Table, only: Filter, span: TimeSpan, { zone, now }: Clock): string {
  const start = zone.fromLocal(startOfSpan(span, zone.toLocal(now.getTime())));
  const since = new Date(start).toISOString();
  return sumRequests(table, { since, until: null, only, of: ["charge"], by: [] }).total.totals.charge_usd;
}

const PAST_DAYS = 28;
const MIN_DAYS = 7;
/** In standard deviations: eight of ten normal values are nearer to the mean. */
const EIGHT_OF_TEN = 1.2816;

/** The month's cost, projected from four weeks, with its 80 % interval. Null: too few days. */
function projectMonth(table: Table, only: Filter, { zone, now }: Clock, spent: string) {
  const local = zone.toLocal(now.getTime());
  const today = startOfSpan("day", local);
  const spans = divideTime(
    "day",
    zone.fromLocal(today - PAST_DAYS * DAY_MS),
    zone.fromLocal(today) - 1,
    zone,
  );
  const { rows } = sumRequests(table, { ...ALL, only, of: ["charge"], by: ["span"], spans });
  const known = new Map(rows.map(({ names: [day = ""], totals }) => [day, estimateUsd(totals.charge_usd)]));
  const daily = spans.map(([day]) => known.get(day)).slice(spans.findIndex(([day]) => known.has(day)));
  if (known.size === 0 || daily.length < MIN_DAYS) return null;
  const mean = daily.reduce<number>((sum, day = 0) => sum + day, 0) / daily.length;
  const squares = daily.reduce<number>((sum, day = 0) => sum + (day - mean) ** 2, 0);
  const left = (startOfNextSpan("month", startOfSpan("month", today)) - local) / DAY_MS;
  const range = EIGHT_OF_TEN * Math.sqrt((squares / (daily.length - 1)) * left);
  const write = (more: number): string => (estimateUsd(spent) + more).toFixed(2);
  return {
    usd: write(mean * left),
    low_usd: write(Math.max(0, mean * left - range)),
    high_usd: write(mean * left + range),
  };
}
