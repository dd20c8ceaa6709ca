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
import { createNamer, createZone, type TimeSpan, SPANS, type Zone } from "../../lib/text/zone.ts";
import { eachRow, type Row } from "../ledger/row.ts";
import { CACHE_READ_KINDS, computeShare, OUTPUT_KINDS, PROMPT_KINDS } from "../usage.ts";

const ROUTE_NAMES = ["key", "group", "model", "channel"] as const;
/** What the line says about the client. */
const CLIENT_NAMES = ["tool", "session", "agent", "label"] as const;
const NAMES = [...ROUTE_NAMES, ...CLIENT_NAMES] as const;
type Name = (typeof NAMES)[number];
export const DIMENSIONS = [...SPANS, ...NAMES] as const;
export type Dimension = (typeof DIMENSIONS)[number];

/** Only requests with these names. */
export type Filter = Readonly<Partial<Record<Name, string>>>;

export interface ReportQuery {
  /** One or two. */
  readonly by: readonly Dimension[];
  /** Requests that came at this ISO time or later; null: all. */
  readonly since: string | null;
  /** Requests that came before this ISO time; null: all. */
  readonly until: string | null;
  readonly only?: Filter;
  /** The time zone of hours, days, weeks and months. Without one: UTC. */
  readonly zone?: Zone;
  /** Called after each line, and after each row. */
  readonly pause?: () => void;
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

/** What has at least a charge, by which rows are sorted. */
export interface WithCharge {
  readonly charge: Usd;
}

export interface ReportRow<T extends WithCharge = Totals> {
  /** One for each dimension. Empty: the requests do not have it. */
  readonly names: readonly string[];
  readonly totals: T;
}

export interface Report<T extends WithCharge = Totals> {
  /** By time, or the largest charge first. */
  readonly rows: readonly ReportRow<T>[];
  readonly total: T;
  /** How many lines could not be read. `gateway ledger verify` says why. */
  readonly unreadable: number;
}

/** What a report sums, and how. */
export interface Summing<T extends WithCharge> {
  readonly open: () => T;
  readonly addRow: (totals: T, row: Row) => void;
  readonly addTotals: (sum: T, totals: T) => void;
}

export function sumLedger(path: string, query: ReportQuery): Report {
  return sumRows(path, query, { open: openTotals, addRow, addTotals });
}

export function sumRows<T extends WithCharge>(
  path: string,
  query: ReportQuery,
  summing: Summing<T>,
): Report<T> {
  const { by, zone = createZone("UTC") } = query;
  const readers = by.map((dimension) => createNameReader(dimension, zone));
  const rows = new NestedRows(summing.open);
  const total = summing.open();
  let unreadable = 0;
  eachRow(path, (row) => {
    if (row === null) unreadable += 1;
    else if (isInPeriod(row, query) && fits(row, query.only))
      summing.addRow(rows.totalsOf(row, readers), row);
    query.pause?.();
  });
  const listed = rows.list();
  for (const { totals } of listed) {
    summing.addTotals(total, totals);
    query.pause?.();
  }
  return { rows: listed.sort(by.some(isSpan) ? byNames(by) : byCharge), total, unreadable };
}

type ReadName = (row: Row) => string;

/** Rows by one name, or by one name after the other. */
class NestedRows<T extends WithCharge> {
  readonly #rows = new Map<string, { readonly row: ReportRow<T>; readonly inner: NestedRows<T> | null }>();
  readonly #open: () => T;
  readonly #before: readonly string[];

  constructor(open: () => T, before: readonly string[] = []) {
    this.#open = open;
    this.#before = before;
  }

  totalsOf(row: Row, readers: readonly ReadName[]): T {
    const depth = this.#before.length;
    const name = readers[depth]?.(row) ?? "";
    let found = this.#rows.get(name);
    if (found === undefined) {
      const names = [...this.#before, name];
      const isLast = names.length === readers.length;
      const inner = isLast ? null : new NestedRows(this.#open, names);
      found = { row: { names, totals: this.#open() }, inner };
      this.#rows.set(name, found);
    }
    return found.inner === null ? found.row.totals : found.inner.totalsOf(row, readers);
  }

  list(): ReportRow<T>[] {
    return [...this.#rows.values()].flatMap(({ row, inner }) => (inner === null ? [row] : inner.list()));
  }
}

export function isSpan(dimension: Dimension): dimension is TimeSpan {
  return SPANS.some((span) => span === dimension);
}

function createNameReader(dimension: Dimension, zone: Zone): ReadName {
  if (!isSpan(dimension)) return (row) => readName(row, dimension);
  const nameTime = createNamer(dimension, zone);
  return ({ time }) => nameTime(time);
}

function readName(row: Row, name: Name): string {
  return isClientName(name) ? (row.client?.[name] ?? "") : row[name];
}

/** Not every request has a name of this kind. */
export function isClientName(name: Dimension): name is (typeof CLIENT_NAMES)[number] {
  return CLIENT_NAMES.some((each) => each === name);
}

function isInPeriod({ time }: Row, { since, until }: ReportQuery): boolean {
  return (since === null || time >= since) && (until === null || time < until);
}

function fits(row: Row, only: Filter | undefined): boolean {
  if (only === undefined) return true;
  return NAMES.every((name) => only[name] === undefined || only[name] === readName(row, name));
}

/** Times first, whichever place they have. */
function byNames(
  by: readonly Dimension[],
): (a: Pick<ReportRow, "names">, b: Pick<ReportRow, "names">) => number {
  const order = [...by.keys()].sort(
    (a, b) => Number(isSpan(by[b] ?? "key")) - Number(isSpan(by[a] ?? "key")),
  );
  return (a, b) => {
    const index = order.find((each) => a.names[each] !== b.names[each]);
    if (index === undefined) return 0;
    return (a.names[index] ?? "") < (b.names[index] ?? "") ? -1 : 1;
  };
}

function byCharge(a: ReportRow<WithCharge>, b: ReportRow<WithCharge>): number {
  if (a.totals.charge !== b.totals.charge) return a.totals.charge > b.totals.charge ? -1 : 1;
  return a.names.join(" ") < b.names.join(" ") ? -1 : 1;
}

export function openTotals(): Totals {
  return {
    requests: 0,
    usage: new Map(),
    official: decimalOf(0),
    charge: ZERO_USD,
    bases: new Map(),
  };
}

export function addRow(totals: Totals, row: Row): void {
  if (row.was !== null) {
    addCorrection(totals, row, row.was);
    return;
  }
  totals.requests += 1;
  for (const [kind, tokens] of row.usage) count(totals.usage, kind, tokens);
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

export function addTotals(sum: Totals, totals: Totals): void {
  sum.requests += totals.requests;
  for (const [kind, tokens] of totals.usage) count(sum.usage, kind, tokens);
  for (const [basis, requests] of totals.bases) count(sum.bases, basis, requests);
  sum.official = addDecimals(sum.official, totals.official);
  sum.charge = addUsd(sum.charge, totals.charge);
}

function count(counts: Map<string, number>, name: string, more: number): void {
  counts.set(name, (counts.get(name) ?? 0) + more);
}

/** For scripts and for the console's page: counts as numbers, amounts as exact decimals. */
interface DescribedTotals extends Gaps {
  readonly requests: number;
  readonly usage: Readonly<Record<string, number>>;
  readonly official_usd: string;
  readonly charge_usd: string;
  readonly cache_hit_rate: number | null;
}

export function describeTotals(totals: Totals): DescribedTotals {
  return {
    requests: totals.requests,
    usage: Object.fromEntries(totals.usage),
    official_usd: formatDecimal(totals.official),
    charge_usd: formatUsd(totals.charge),
    cache_hit_rate: computeHitRate(totals),
    ...countGaps(totals),
  };
}

/** The share of all input that was read from the cache, to four places. Null without input. */
export function computeHitRate(totals: Totals): number | null {
  return computeShare(countCached(totals), countInput(totals));
}

export function countInput(totals: Totals): number {
  return sumKinds(totals, PROMPT_KINDS);
}

export function countCached(totals: Totals): number {
  return sumKinds(totals, CACHE_READ_KINDS);
}

export function countOutput(totals: Totals): number {
  return sumKinds(totals, OUTPUT_KINDS);
}

function sumKinds({ usage }: Totals, kinds: readonly string[]): number {
  return kinds.reduce((total, kind) => total + (usage.get(kind) ?? 0), 0);
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
