// What the requests of a ledger would have cost with another model, without a cache, or in another service tier.
// A request is compared only if both amounts are known. It only reads.

import {
  addDecimals,
  addUsd,
  type Decimal,
  decimalOf,
  formatDecimal,
  formatUsd,
  parseDecimal,
  parseUsd,
  subtractUsd,
  type Usd,
  ZERO_USD,
} from "../../lib/money.ts";
import { createNamer, UTC } from "../../lib/text/zone.ts";
import { REPORTED } from "../charge.ts";
import { type Line, lineSchema } from "../ledger/line.ts";
import { readRows, type Row } from "../ledger/row.ts";
import { type Change, chargeLine, type CurrentPrices } from "./line-charge.ts";
import { type CurrentAmounts, readCorrected } from "./reprice.ts";
import {
  type Dimension,
  isClientName,
  isSpan,
  NAMES,
  type Report,
  type ReportQuery,
  sumRows,
} from "./report.ts";

export interface WhatIf extends CurrentPrices {
  readonly change: Change;
}

/** Amounts of the requests that could be compared, as they were and as they would have been. */
export interface Comparison {
  requests: number;
  compared: number;
  /** Of the compared ones, those that broke off: part of their usage may be estimated. */
  partial: number;
  official: Decimal;
  charge: Usd;
  asOfficial: Decimal;
  asCharge: Usd;
}

/** Requests that could not be compared, all for the same reason. */
export interface LeftOut {
  readonly model: string;
  readonly because: string;
  requests: number;
  /** What they were charged, as far as it is known. */
  charge: Usd;
}

export interface WhatIfReport extends Report<Comparison> {
  /** Most requests first. */
  readonly leftOut: readonly LeftOut[];
  /** Whose prices the other amounts have. */
  readonly priceSources: readonly string[];
}

/** Each line is priced again, so that the ledger itself is read. */
export function compareLedger(path: string, query: ReportQuery, whatIf: WhatIf): WhatIfReport {
  const corrected = readCorrected(path);
  const leftOut = new Map<string, LeftOut>();
  const priceSources = new Set<string>();
  const lines = new WantedLines(path, query);
  const report = sumRows<Comparison, Row, Dimension>(lines.list(), query.by, lines.name, {
    open: openComparison,
    addTotals,
    add(sum, row) {
      // Corrections are in `corrected`.
      if (row.was !== null) return;
      sum.requests += 1;
      const result = compareLine(row, corrected, whatIf);
      if ("because" in result) {
        leaveOut(leftOut, row.model, result);
        return;
      }
      for (const source of result.sources) priceSources.add(source);
      addCompared(sum, result);
    },
  });
  const byRequests = [...leftOut.values()].sort((a, b) => b.requests - a.requests);
  const { unreadable } = lines;
  return { ...report, unreadable, leftOut: byRequests, priceSources: [...priceSources] };
}

/** The lines of a ledger that a report is of. */
class WantedLines {
  unreadable = 0;
  readonly #path: string;
  readonly #query: ReportQuery;
  readonly #nameTime: (time: string) => string;

  constructor(path: string, query: ReportQuery) {
    this.#path = path;
    this.#query = query;
    const span = query.by.find(isSpan);
    this.#nameTime = span === undefined ? () => "" : createNamer(span, query.zone ?? UTC);
  }

  *list(): Generator<Row, void> {
    const { since, until, only = {} } = this.#query;
    for (const row of readRows(this.#path)) {
      if (row === null) this.unreadable += 1;
      else if (since !== null && row.time < since) continue;
      else if (until !== null && row.time >= until) continue;
      else if (NAMES.every((name) => only[name] === undefined || only[name] === this.name(row, name)))
        yield row;
    }
  }

  readonly name = (row: Row, dimension: Dimension): string => {
    if (isSpan(dimension)) return this.#nameTime(row.time);
    return isClientName(dimension) ? (row.client?.[dimension] ?? "") : row[dimension];
  };
}

interface LineComparison {
  readonly official: string;
  readonly charge: string;
  readonly asOfficial: string;
  readonly asCharge: string;
  readonly sources: readonly string[];
  readonly partial: boolean;
}

interface NoComparison {
  readonly because: string;
  readonly charge: string | null;
}

function compareLine(
  row: Row,
  corrected: ReadonlyMap<string, CurrentAmounts>,
  whatIf: WhatIf,
): LineComparison | NoComparison {
  const { success, data: line } = lineSchema.safeParse(row.line);
  if (!success) return { because: "its line cannot be read", charge: null };
  const { official_usd: official, charge_usd: charge } = corrected.get(line.id) ?? line;
  if (line.basis === "unknown") return { because: "its usage is not known", charge };
  if (official === null || charge === null) return { because: "what it cost is not known", charge };
  const other = priceOtherwise(line, whatIf);
  if ("because" in other) return { ...other, charge };
  return { official, charge, ...other, partial: line.basis === "partial" };
}

function priceOtherwise(
  line: Line,
  whatIf: WhatIf,
): Pick<LineComparison, "asOfficial" | "asCharge" | "sources"> | Pick<NoComparison, "because"> {
  if (line.price_source === REPORTED && whatIf.change.model === null)
    return { because: "its seller named the amount, and no price" };
  const other = chargeLine(line, whatIf, whatIf.change);
  if (other === null) return { because: "its usage has a kind that this version does not know" };
  const { official, charge, priceSource, unpricedBecause } = other;
  if (official === null || charge === null) return { because: unpricedBecause ?? "there is no price" };
  return { asOfficial: official, asCharge: charge, sources: priceSource === null ? [] : [priceSource] };
}

function leaveOut(known: Map<string, LeftOut>, model: string, { because, charge }: NoComparison): void {
  const id = `${model}\n${because}`;
  const entry = known.getOrInsertComputed(id, () => ({ model, because, requests: 0, charge: ZERO_USD }));
  entry.requests += 1;
  if (charge !== null) entry.charge = addUsd(entry.charge, parseUsd(charge));
}

export function openComparison(): Comparison {
  return {
    requests: 0,
    compared: 0,
    partial: 0,
    official: decimalOf(0),
    charge: ZERO_USD,
    asOfficial: decimalOf(0),
    asCharge: ZERO_USD,
  };
}

function addCompared(
  sum: Comparison,
  { official, charge, asOfficial, asCharge, partial }: LineComparison,
): void {
  sum.compared += 1;
  if (partial) sum.partial += 1;
  sum.official = addDecimals(sum.official, parseDecimal(official));
  sum.charge = addUsd(sum.charge, parseUsd(charge));
  sum.asOfficial = addDecimals(sum.asOfficial, parseDecimal(asOfficial));
  sum.asCharge = addUsd(sum.asCharge, parseUsd(asCharge));
}

function addTotals(sum: Comparison, more: Comparison): void {
  sum.requests += more.requests;
  sum.compared += more.compared;
  sum.partial += more.partial;
  sum.official = addDecimals(sum.official, more.official);
  sum.charge = addUsd(sum.charge, more.charge);
  sum.asOfficial = addDecimals(sum.asOfficial, more.asOfficial);
  sum.asCharge = addUsd(sum.asCharge, more.asCharge);
}

/** For scripts: counts as numbers, amounts as exact decimals. */
export function describeComparison(sum: Comparison): Record<string, unknown> {
  return {
    requests: sum.requests,
    compared: sum.compared,
    partial: sum.partial,
    official_usd: formatDecimal(sum.official),
    charge_usd: formatUsd(sum.charge),
    as_official_usd: formatDecimal(sum.asOfficial),
    as_charge_usd: formatUsd(sum.asCharge),
    difference_usd: formatUsd(subtractUsd(sum.asCharge, sum.charge)),
  };
}
