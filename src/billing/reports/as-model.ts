// `gateway usage --as MODEL`: what the requests of a ledger would have cost with another model. A request is compared only
// if both amounts are known. Each line is priced again, which the database cannot do.

import {
  addDecimals,
  type Decimal,
  formatDecimal,
  parseDecimal,
  subtractDecimals,
  ZERO_DECIMAL,
} from "../../lib/money.ts";
import { createNamer } from "../../lib/text/zone.ts";
import type { Line } from "../ledger/line.ts";
import type { Table } from "../store/open.ts";
import { chargeLine, type CurrentPrices } from "./line-charge.ts";
import { type CurrentAmounts, listRequestLines } from "./reprice.ts";
import { columnOf, describeHead, describeScope, type Head } from "./sums.ts";
import {
  type Names,
  compareNames,
  compareCharges,
  describeNames,
  isSpan,
  listSpans,
  type UsageQuery,
} from "./usage.ts";

/** Amounts of the requests that could be compared, as they were and as they would have been. */
export type Comparison = Readonly<Counts & Amounts<string>> & { readonly difference_usd: string };

/** Requests that could not be compared, all for the same reason. */
export interface LeftOut {
  readonly model: string;
  readonly because: string;
  readonly requests: number;
  /** What they were charged, if it is known. */
  readonly charge_usd: string;
}

export interface AsModelReport extends Head {
  readonly by: string;
  readonly as: { readonly model: string };
  readonly rows: readonly (Comparison & Names)[];
  readonly total: Comparison;
  /** Whose prices the other amounts have. */
  readonly price_sources: readonly string[];
  /** Most requests first. */
  readonly not_compared: readonly LeftOut[];
  readonly unreadable: number;
}

const AMOUNTS = ["official_usd", "charge_usd", "as_official_usd", "as_charge_usd"] as const;
type Amounts<T> = Record<(typeof AMOUNTS)[number], T>;

function mapAmounts<T>(make: (name: (typeof AMOUNTS)[number]) => T): Amounts<T> {
  const [official_usd, charge_usd] = [make("official_usd"), make("charge_usd")];
  return {
    official_usd,
    charge_usd,
    as_official_usd: make("as_official_usd"),
    as_charge_usd: make("as_charge_usd"),
  };
}

/** Partial: the compared ones that broke off. Part of their usage may be estimated. */
type Counts = Record<"requests" | "compared" | "partial", number>;
type Sum = Counts & Amounts<Decimal>;

type Priced = Readonly<Amounts<string>> & { readonly source: string | null };

type Query = UsageQuery & { readonly model: string };

export function reportAsModel(table: Table, query: Query, prices: CurrentPrices): AsModelReport {
  const { by, zone, model } = query;
  const { rows, total, sources, leftOut } = compareRequests(table, query, prices);
  const byNames = compareNames(by);
  const hasSpan = by.some(isSpan);
  return {
    by: by.join(","),
    ...describeHead(query, zone),
    as: { model },
    rows: Array.from(rows.values(), ({ names, sum }) => ({ names, totals: describeSum(sum) }))
      .toSorted((a, b) => (hasSpan ? byNames(a.names, b.names) : compareCharges(a, b)))
      .map(({ names, totals }) => ({ ...describeNames(by, names), ...totals })),
    total: describeSum(total),
    price_sources: [...sources],
    not_compared: [...leftOut.values()]
      .toSorted((a, b) => b.requests - a.requests)
      .map(({ charge, ...each }) => ({ ...each, charge_usd: formatDecimal(charge) })),
    unreadable: table.unreadable,
  };
}

interface OpenLeftOut extends Pick<LeftOut, "model" | "because"> {
  requests: number;
  charge: Decimal;
}

const TIME = "strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch')";

function compareRequests(table: Table, query: Query, prices: CurrentPrices) {
  const { by, zone, model } = query;
  const { sql, values } = describeScope(query);
  const span = by.find(isSpan);
  const nameTime = span === undefined ? () => "" : createNamer(span, zone);
  const rows = new Map<string, { readonly names: readonly string[]; readonly sum: Sum }>();
  const open = (names: readonly string[]): Sum =>
    rows.getOrInsertComputed(JSON.stringify(names), () => ({ names, sum: openSum() })).sum;
  if (span !== undefined && by.length === 1) for (const [name] of listSpans(table, query, span)) open([name]);
  const total = openSum();
  const sources = new Set<string>();
  const leftOut = new Map<string, OpenLeftOut>();
  const columns = by.map((name) => (isSpan(name) ? TIME : `COALESCE(${columnOf(name)}, '')`));
  for (const { line, now, values: found } of listRequestLines(table, sql, values, ["model", ...columns])) {
    const [own = "", ...texts] = found.map((value) => String(value ?? ""));
    const names = texts.map((text, index) => (isSpan(by[index] ?? "") ? nameTime(text) : text));
    const priced = priceAs(line, now, model, prices);
    for (const sum of [open(names), total]) addLine(sum, priced, line);
    if ("because" in priced) {
      const { because } = priced;
      const none = { model: own, because, requests: 0, charge: ZERO_DECIMAL };
      const entry = leftOut.getOrInsert(`${own}\n${because}`, none);
      entry.requests += 1;
      entry.charge = addDecimals(entry.charge, parseDecimal(now.charge_usd ?? "0"));
    } else if (priced.source !== null) sources.add(priced.source);
  }
  return { rows, total, sources, leftOut };
}

function openSum(): Sum {
  return { requests: 0, compared: 0, partial: 0, ...mapAmounts(() => ZERO_DECIMAL) };
}

function priceAs(
  line: Line | null,
  { official_usd, charge_usd }: CurrentAmounts,
  model: string,
  prices: CurrentPrices,
): Priced | { readonly because: string } {
  if (line === null) return { because: "its line cannot be read" };
  if (line.basis === "unknown") return { because: "its usage is not known" };
  if (official_usd === null || charge_usd === null) return { because: "what it cost is not known" };
  const other = chargeLine(line, prices, { model, recount: null });
  if (other === null) return { because: "its usage has a kind that this version does not know" };
  const { official, charge, priceSource: source, unpricedBecause } = other;
  if (official === null || charge === null) return { because: unpricedBecause ?? "there is no price" };
  return { official_usd, charge_usd, as_official_usd: official, as_charge_usd: charge, source };
}

function addLine(sum: Sum, priced: ReturnType<typeof priceAs>, line: Line | null): void {
  sum.requests += 1;
  if ("because" in priced) return;
  sum.compared += 1;
  if (line?.basis === "partial") sum.partial += 1;
  for (const name of AMOUNTS) sum[name] = addDecimals(sum[name], parseDecimal(priced[name]));
}

function describeSum(sum: Sum): Comparison {
  const { requests, compared, partial, ...amounts } = sum;
  const texts = mapAmounts((name) => formatDecimal(amounts[name]));
  const difference = subtractDecimals(sum.as_charge_usd, sum.charge_usd);
  return { requests, compared, partial, ...texts, difference_usd: formatDecimal(difference) };
}
