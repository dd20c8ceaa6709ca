// `gateway usage`: sums of requests by one or two of their properties.

import { compareDecimals, type Decimal, parseDecimal } from "../../lib/money.ts";
import {
  findNextSpan,
  nameSpan,
  SPANS,
  startOfNextSpan,
  startOfSpan,
  type TimeSpan,
  type Zone,
} from "../../lib/text/zone.ts";
import type { Questions, Table } from "../store/open.ts";
import {
  addAmount,
  columnOf,
  describeHead,
  describeScope,
  type Head,
  NAMES,
  readList,
  type Scope,
  type Span,
  sumRequests,
  type Totals,
} from "./sums.ts";

export const DIMENSIONS = [...SPANS, ...NAMES] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export interface UsageQuery extends Scope {
  /** One or two. */
  readonly by: readonly Dimension[];
  /** The time zone of hours, days, weeks and months. */
  readonly zone: Zone;
  readonly now: Date;
}

/** By which a row is told apart. Null: its requests do not have one. */
export type Names<N extends string = Dimension> = Readonly<Partial<Record<N, string | null>>>;

export interface UsageReport extends Head {
  readonly by: string;
  /** By time, or the largest charge first. */
  readonly rows: readonly (Totals & Names)[];
  readonly total: Totals;
  /** How many lines could not be read. `gateway ledger verify` says why. */
  readonly unreadable: number;
}

export function reportUsage(table: Table, query: UsageQuery): UsageReport {
  const { by, since, until, only, zone } = query;
  const span = by.find(isSpan);
  const names = by.map((dimension) => (isSpan(dimension) ? "span" : `COALESCE(${columnOf(dimension)}, '')`));
  const divided =
    span === undefined ? {} : { spans: listSpans(table, query, span), hasEmpty: by.length === 1 };
  const { rows, total } = sumRequests(table, { since, until, ...(only && { only }), by: names, ...divided });
  const byNames = compareNames(by);
  const sorted = rows.toSorted(span === undefined ? compareCharges : (a, b) => byNames(a.names, b.names));
  return {
    by: by.join(","),
    ...describeHead(query, zone),
    rows:
      total.totals.requests === 0
        ? []
        : sorted.map((row) => ({ ...describeNames(by, row.names), ...row.totals })),
    total: total.totals,
    unreadable: table.unreadable,
  };
}

export function isSpan(dimension: string): dimension is TimeSpan {
  return SPANS.some((span) => span === dimension);
}

/** What the line says about the client. Not every request has it. */
const CLIENT_NAMES: ReadonlySet<string> = new Set(["tool", "version", "session", "agent", "label"]);

/** The names of a row. */
export function describeNames<N extends string>(by: readonly N[], texts: readonly string[]): Names<N> {
  const names: Partial<Record<N, string | null>> = {};
  for (const [index, dimension] of by.entries()) {
    const text = texts[index] ?? "";
    names[dimension] = text === "" && CLIENT_NAMES.has(dimension) ? null : text;
  }
  return names;
}

interface Named {
  readonly names: readonly string[];
  readonly totals: Pick<Totals, "charge_usd">;
}

export function compareCharges(a: Named, b: Named): number {
  const more = compareDecimals(parseDecimal(b.totals.charge_usd), parseDecimal(a.totals.charge_usd));
  if (more !== 0) return more;
  return a.names.join(" ") < b.names.join(" ") ? -1 : 1;
}

/** Times first, whichever place they have. */
export function compareNames(by: readonly string[]) {
  const order = [...by.keys()].toSorted((a, b) => Number(isSpan(by[b] ?? "")) - Number(isSpan(by[a] ?? "")));
  return (a: readonly string[], b: readonly string[]): number => {
    const index = order.find((each) => a[each] !== b[each]);
    return index === undefined ? 0 : (a[index] ?? "") < (b[index] ?? "") ? -1 : 1;
  };
}

/** From the beginning of the period to its end or now. A report without a period begins and ends with its requests. */
export function listSpans(
  table: Questions,
  query: Scope & Pick<UsageQuery, "zone" | "now">,
  span: TimeSpan,
): Span[] {
  const { since, until, zone, now } = query;
  const { sql, values } = describeScope(query);
  const [[first, last] = []] = table.list(
    `SELECT (SELECT at FROM requests WHERE ${sql} ORDER BY at LIMIT 1),
       (SELECT at FROM requests WHERE ${sql} ORDER BY at DESC LIMIT 1)`,
    values,
  );
  if (typeof first !== "bigint" || typeof last !== "bigint") return [];
  if (since === null) return divideTime(span, Number(first), Number(last), zone);
  const end = Math.min(now.getTime(), until === null ? Number.POSITIVE_INFINITY : Date.parse(until) - 1);
  return divideTime(span, Date.parse(since), Math.max(end, Number(last)), zone);
}

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;

/** The local hours, days, weeks or months from the one of a moment to the one of another. */
export function divideTime(span: TimeSpan, first: number, last: number, zone: Zone): Span[] {
  if (span === "hour") return divideDays(first, last, zone);
  const spans: Span[] = [];
  for (let start = startOfSpan(span, zone.toLocal(first)); ; start = startOfNextSpan(span, start)) {
    const at = zone.fromLocal(start);
    if (at > last) return spans;
    spans.push([nameSpan(span, start), at, findNextSpan(span, zone, at)]);
  }
}

function divideDays(first: number, last: number, zone: Zone): Span[] {
  const hours = divideTime("day", first, last, zone).flatMap(([, day, nextDay]) => {
    const isEven = nextDay - day === DAY_HOURS * HOUR_MS;
    const spans: Span[] = [];
    for (let at = day; at < nextDay;) {
      // On most days no clock changes, and reading it takes long.
      const next = isEven ? at + HOUR_MS : findNextSpan("hour", zone, at);
      spans.push([isEven ? "" : nameSpan("hour", zone.toLocal(at)), at, next]);
      at = next;
    }
    const start = zone.toLocal(day);
    return isEven ? spans.map(([, at, next]): Span => [nameSpan("hour", start + at - day), at, next]) : spans;
  });
  return hours.filter(([, at, next]) => next > first && at <= last);
}

/** What sellers named as their own amounts, next to what the ledger makes of the same requests. */
export interface SellerSums {
  readonly requests: number;
  readonly named: Decimal;
  readonly charged: Decimal;
  /** How many requests the ledger makes more or less of. */
  readonly differ: number;
}

/** By more than a millionth of a dollar and one percent. */
const DIFFERS =
  "official IS NULL OR (ABS(official - named) > 1000000 AND ABS(official - named) * 100 > named)";

export function sumSellers(table: Table, scope: Scope): SellerSums {
  const { sql, values } = describeScope(scope);
  const [[requests, named = null, charged = null, differ, text = null] = []] = table.list(
    `SELECT COUNT(*), SUM(named), SUM(charge), COUNT(*) FILTER (WHERE ${DIFFERS}),
       group_concat(exact)
     FROM requests WHERE named IS NOT NULL AND ${sql}`,
    values,
  );
  const exact = readList(text);
  return {
    requests: Number(requests),
    named: addAmount(named, exact, "named"),
    charged: addAmount(charged, exact, "charge"),
    differ: Number(differ),
  };
}
