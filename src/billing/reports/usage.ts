// `gateway usage`: sums of requests by one or two properties.

import { formatDecimal } from "../../lib/money.ts";
import { findNextSpan, nameSpan, SPANS, startOfSpan, type TimeSpan, type Zone } from "../../lib/text/zone.ts";
import type { Questions, Table } from "../store/open.ts";
import {
  addAmount,
  CLIENT_NAMES,
  describeHead,
  describeScope,
  NAMES,
  orderUsd,
  readList,
  type Scope,
  type Span,
  sumRequests,
  type Totals,
} from "./sums.ts";

export const DIMENSIONS = [...SPANS, ...NAMES] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export interface UsageQuery extends Scope {
  readonly by: readonly Dimension[];
  readonly zone: Zone;
  readonly now: Date;
}

/** The names that rows are grouped by. Null: the requests lack this property. */
export type Names<N extends string = Dimension> = Readonly<Partial<Record<N, string | null>>>;

export function reportUsage(table: Table, query: UsageQuery) {
  const { by, zone } = query;
  const span = by.find(isSpan);
  const { rows, total } = sumRequests(table, {
    ...query,
    by: by.map((name) => (isSpan(name) ? "span" : name)),
    as: by,
    sums: { charged: "SUM(charge)" },
    order: orderRows(by, orderUsd("charged", "charge")),
    ...(span && { spans: listSpans(table, query, span), hasEmpty: by.length === 1 }),
  });
  const named = rows.map(({ totals }): Totals & Names => totals);
  return {
    by: by.join(","),
    ...describeHead(query, zone),
    rows: total.totals.requests === 0 ? [] : named,
    total: total.totals,
    unreadable: table.unreadable,
  };
}

export function orderRows(by: readonly string[], amount: string): string {
  const names = by.map((_, at) => `IFNULL(n${at}, '')`);
  const span = by.findIndex((name) => SPANS.some((each) => each === name));
  return span < 0 ? `${amount}, ${names.join(" || ' ' || ")}` : [names[span], ...names].join(", ");
}

export function isSpan(dimension: string): dimension is TimeSpan {
  return SPANS.some((span) => span === dimension);
}

export function describeNames<N extends string>(by: readonly N[], texts: readonly string[]): Names<N> {
  const names: Partial<Record<N, string | null>> = {};
  let index = 0;
  for (const dimension of by) {
    const text = texts[index++] ?? "";
    names[dimension] = text === "" && (CLIENT_NAMES as readonly string[]).includes(dimension) ? null : text;
  }
  return names;
}

/** Lists the spans from the period's start to its end or now.
 *  Without a period, they reach from the first request to the last. */
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
  const end = Math.min(now.getTime(), until === null ? Infinity : Date.parse(until) - 1);
  return divideTime(span, Date.parse(since), Math.max(end, Number(last)), zone);
}

export function divideTime(span: TimeSpan, first: number, last: number, zone: Zone): Span[] {
  const spans: Span[] = [];
  let at = zone.fromLocal(startOfSpan(span, zone.toLocal(first)));
  while (at <= last) {
    const next = findNextSpan(span, zone, at);
    spans.push([nameSpan(span, zone.toLocal(at)), at, next]);
    at = next;
  }
  return spans;
}

const DIFFERS =
  "official IS NULL OR (ABS(official - named) > 1000000 AND ABS(official - named) * 100 > named)";

export function sumSellers(table: Table, { since, until }: Scope) {
  const { sql, values } = describeScope({ since, until });
  const [[requests = 0, named = 0n, charge = 0n, differ = 0, exact = null] = []] = table.list(
    `SELECT COUNT(*), SUM(named), SUM(charge), COUNT(*) FILTER (WHERE ${DIFFERS}), group_concat(exact)
     FROM lines INDEXED BY by_seller WHERE named IS NOT NULL AND ${sql}`,
    values,
  );
  const rare = readList(exact, table);
  return {
    requests: Number(requests),
    named_usd: formatDecimal(addAmount(named, rare, "named")),
    charge_usd: formatDecimal(addAmount(charge, rare, "charge")),
    differ: Number(differ),
  };
}
