// `gateway usage --as MODEL`: what requests would cost with another model.

import {
  addDecimals,
  compareDecimals,
  type Decimal,
  formatDecimal,
  parseDecimal,
  subtractDecimals,
  ZERO_DECIMAL,
} from "../../lib/money.ts";
import type { Table } from "../store/open.ts";
import { chargeLine, type CurrentPrices, listRequestLines, type RequestLine } from "./reprice.ts";
import { columnOf, describeHead, describeScope } from "./sums.ts";
import { describeNames, isSpan, listSpans, type UsageQuery } from "./usage.ts";

const SPAN = "(SELECT span FROM spans WHERE since <= at ORDER BY since DESC LIMIT 1)";

export function reportAsModel(
  table: Table,
  query: UsageQuery & { readonly model: string },
  prices: CurrentPrices,
) {
  const { by, zone, model } = query;
  const [span] = by.filter(isSpan);
  const spans = span === undefined ? [] : listSpans(table, query, span);
  const rows = new Map<string, Row>();
  const open = (names: readonly string[]): Sum =>
    rows.getOrInsertComputed(JSON.stringify(names), () => ({ names, sum: openSum() })).sum;
  if (by.length === 1) for (const [name] of spans) open([name]);
  const total = openSum();
  const sources = new Set<string>();
  const leftOut = new Map<string, { model: string; because: string; requests: number; charge: Decimal }>();
  const columns = by.map((name) => (isSpan(name) ? SPAN : columnOf(name)));
  /** Rows are sorted by time first. */
  const nameOf = ({ names }: Row): string => [...(by[1] === span ? names.toReversed() : names)].join(" ");
  const { sql, values } = describeScope(query);
  const where = { sql, values: { ...values, $spans: JSON.stringify(spans) } };
  for (const found of listRequestLines(table, where, ["model", ...columns])) {
    const [own = "", ...names] = found.values.map((value) => String(value ?? ""));
    const compared = compareLine(found, model, prices);
    for (const sum of [open(names), total]) addLine(sum, compared, found);
    const { because, source } = compared;
    if (source) sources.add(source);
    if (because === undefined) continue;
    const none = { model: own, because, requests: 0, charge: ZERO_DECIMAL };
    const left = leftOut.getOrInsert(`${own}\n${because}`, none);
    left.requests += 1;
    left.charge = addDecimals(left.charge, parseDecimal(found.now.charge_usd ?? "0"));
  }
  const charge = ({ sum }: Row): Decimal => sum.amounts[1] ?? ZERO_DECIMAL;
  const named = [...rows.values()].toSorted((a, b) => {
    const byCharge = span === undefined ? compareDecimals(charge(b), charge(a)) : 0;
    return byCharge || (nameOf(a) < nameOf(b) ? -1 : 1);
  });
  return {
    by: by.join(","),
    ...describeHead(query, zone),
    as: { model },
    rows: named.map(({ names, sum }) => ({ ...describeNames(by, names), ...describeSum(sum) })),
    total: describeSum(total),
    price_sources: [...sources],
    not_compared: [...leftOut.values()]
      .toSorted((a, b) => b.requests - a.requests)
      .map(({ charge, ...each }) => ({ ...each, charge_usd: formatDecimal(charge) })),
    unreadable: table.unreadable,
  };
}

interface Row {
  readonly names: readonly string[];
  readonly sum: Sum;
}

function openSum() {
  const amounts = Array.from({ length: 4 }, () => ZERO_DECIMAL);
  return { requests: 0, compared: 0, partial: 0, amounts };
}

type Sum = ReturnType<typeof openSum>;

function compareLine({ line, now }: RequestLine, model: string, prices: CurrentPrices) {
  if (line === null) return { because: "its line cannot be read" };
  if (line.basis === "unknown") return { because: "its usage is not known" };
  if (now.official_usd === null || now.charge_usd === null) return { because: "what it cost is not known" };
  const other = chargeLine(line, prices, model);
  if (other === null) return { because: "its usage has a kind that this version does not know" };
  const { official, charge, priceSource: source, unpricedBecause } = other;
  if (official === null || charge === null) return { because: unpricedBecause ?? "there is no price" };
  const amounts = [now.official_usd, now.charge_usd, official, charge].map(parseDecimal);
  return { amounts, source };
}

function addLine(sum: Sum, compared: ReturnType<typeof compareLine>, { line }: RequestLine): void {
  sum.requests += 1;
  if (compared.amounts === undefined) return;
  sum.compared += 1;
  if (line?.basis === "partial") sum.partial += 1;
  sum.amounts = compared.amounts.map((amount, index) =>
    addDecimals(amount, sum.amounts[index] ?? ZERO_DECIMAL),
  );
}

function describeSum({ amounts, ...counts }: Sum) {
  const [official = ZERO_DECIMAL, charge = ZERO_DECIMAL, asOfficial = ZERO_DECIMAL, asCharge = ZERO_DECIMAL] =
    amounts;
  return {
    ...counts,
    official_usd: formatDecimal(official),
    charge_usd: formatDecimal(charge),
    as_official_usd: formatDecimal(asOfficial),
    as_charge_usd: formatDecimal(asCharge),
    difference_usd: formatDecimal(subtractDecimals(asCharge, charge)),
  };
}
