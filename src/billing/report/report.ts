// Sums of a ledger for people: requests, tokens by kind and amounts between two
// moments, by one property of the requests. It only reads.

import {
  addDecimals,
  addUsd,
  decimalOf,
  type Decimal,
  formatDecimal,
  formatUsd,
  subtractDecimals,
  subtractUsd,
  type Usd,
  ZERO_USD,
} from "../../lib/money.ts";
import { holdLedgerFiles } from "../ledger/rotation.ts";
import { eachLine, readFile } from "../ledger/reader.ts";
import { readRow, type Row } from "../ledger/scan/row.ts";
import { LineScanner } from "../ledger/scan/scan.ts";

export const DIMENSIONS = ["day", "key", "group", "model", "channel"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export interface ReportQuery {
  readonly by: Dimension;
  /** Requests that came at this ISO time or later; null: all. */
  readonly since: string | null;
  /** Requests that came before this ISO time; null: all. */
  readonly until: string | null;
}

export interface Totals {
  requests: number;
  /** Kind → count, in the order of first appearance. */
  readonly usage: Map<string, number>;
  official: Decimal;
  charge: Usd;
  /** Basis → requests. */
  readonly bases: Map<string, number>;
}

export interface Report {
  readonly rows: ReadonlyMap<string, Totals>;
  readonly total: Totals;
  /** How many lines could not be read. `gateway ledger verify` says why. */
  readonly unreadable: number;
}

export function sumLedger(path: string, query: ReportQuery): Report {
  const rows = new Map<string, Totals>();
  const total = openTotals();
  const scanner = new LineScanner();
  let unreadable = 0;
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    for (const { bytes, whole } of readFile(source)) {
      if (!whole) continue;
      eachLine(bytes, (from, to) => {
        const row = readRow(bytes, from, to, scanner);
        if (row === null) unreadable += 1;
        else if (isInPeriod(row, query)) addRow(totalsOf(row, query, rows), row);
      });
    }
  }
  for (const totals of rows.values()) addTotals(total, totals);
  return { rows: new Map([...rows].sort(query.by === "day" ? byName : byCharge)), total, unreadable };
}

function totalsOf(row: Row, { by }: ReportQuery, rows: Map<string, Totals>): Totals {
  const name = by === "day" ? row.time.slice(0, 10) : row[by];
  const known = rows.get(name);
  if (known !== undefined) return known;
  const totals = openTotals();
  rows.set(name, totals);
  return totals;
}

function isInPeriod({ time }: Row, { since, until }: ReportQuery): boolean {
  return (since === null || time >= since) && (until === null || time < until);
}

function byName([a]: [string, Totals], [b]: [string, Totals]): number {
  return a < b ? -1 : 1;
}

function byCharge(a: [string, Totals], b: [string, Totals]): number {
  if (a[1].charge !== b[1].charge) return a[1].charge > b[1].charge ? -1 : 1;
  return byName(a, b);
}

function openTotals(): Totals {
  return {
    requests: 0,
    usage: new Map(),
    official: decimalOf(0),
    charge: ZERO_USD,
    bases: new Map(),
  };
}

function addRow(totals: Totals, row: Row): void {
  if (row.was !== null) {
    addCorrection(totals, row, row.was);
    return;
  }
  totals.requests += 1;
  for (const [index, kind] of row.kinds.entries()) count(totals.usage, kind, row.counts[index] ?? 0);
  if (row.official !== null) totals.official = addDecimals(totals.official, row.official);
  if (row.charge !== null) totals.charge = addUsd(totals.charge, row.charge);
  count(totals.bases, row.basis, 1);
}

/** A correction is not a request: it changes the amounts of one. */
function addCorrection(totals: Totals, row: Row, was: NonNullable<Row["was"]>): void {
  if (row.official !== null) totals.official = addDecimals(totals.official, row.official);
  if (was.official !== null) totals.official = subtractDecimals(totals.official, was.official);
  totals.charge = addUsd(totals.charge, subtractUsd(row.charge ?? ZERO_USD, was.charge ?? ZERO_USD));
  if (was.official === null && row.official !== null) count(totals.bases, "unpriced", -1);
}

function addTotals(sum: Totals, totals: Totals): void {
  sum.requests += totals.requests;
  for (const [kind, tokens] of totals.usage) count(sum.usage, kind, tokens);
  for (const [basis, requests] of totals.bases) count(sum.bases, basis, requests);
  sum.official = addDecimals(sum.official, totals.official);
  sum.charge = addUsd(sum.charge, totals.charge);
}

function count(counts: Map<string, number>, name: string, more: number): void {
  counts.set(name, (counts.get(name) ?? 0) + more);
}

/** For scripts: counts as numbers, amounts as exact decimals. */
export function describeTotals(totals: Totals): Record<string, unknown> {
  return {
    requests: totals.requests,
    usage: Object.fromEntries(totals.usage),
    official_usd: formatDecimal(totals.official),
    charge_usd: formatUsd(totals.charge),
    ...countGaps(totals),
  };
}

export interface Gaps {
  /** Requests whose usage is known but has no price: no amount includes them. */
  readonly unpriced: number;
  /** Requests whose usage is not known. */
  readonly unknown: number;
  /** Requests that broke off: part of their usage may be estimated. */
  readonly partial: number;
}

export function countGaps({ bases }: Totals): Gaps {
  return {
    unpriced: bases.get("unpriced") ?? 0,
    unknown: bases.get("unknown") ?? 0,
    partial: bases.get("partial") ?? 0,
  };
}
