// Sums of a ledger for people: requests, tokens by kind and amounts between two
// moments, by one property of the requests. It only reads.

import {
  addDecimals,
  addUsd,
  decimalOf,
  type Decimal,
  formatDecimal,
  formatUsd,
  type Usd,
  ZERO_USD,
} from "../../lib/money.ts";
import { type TimeSpan, SPANS, UTC, type Zone } from "../../lib/text/zone.ts";
import type { Fold } from "../index/cells.ts";
import { type Group, listGroups } from "../index/groups.ts";
import { FAILED_OUTCOMES } from "../ledger/line.ts";
import type { LedgerIndex } from "../index/ledger-index.ts";
import { canBeOf, type Traits } from "../index/traits.ts";
import { CACHE_READ_KINDS, computeShare, OUTPUT_KINDS, PROMPT_KINDS } from "../usage.ts";

const ROUTE_NAMES = ["key", "group", "model", "channel"] as const;
/** What the line says about the client. */
const CLIENT_NAMES = ["tool", "session", "agent", "label"] as const;
export const NAMES = [...ROUTE_NAMES, ...CLIENT_NAMES] as const;
export const DIMENSIONS = [...SPANS, ...NAMES] as const;
export type Dimension = (typeof DIMENSIONS)[number];

const TRAIT_NAMES = [...ROUTE_NAMES, "tool", "label"] as const;
const FILTERED = [...NAMES, "outcome"] as const;
/** Only requests with these names. */
export type Filter = Readonly<Partial<Record<(typeof FILTERED)[number], string>>>;

export interface ReportQuery {
  /** Commands and the page ask for one or two. */
  readonly by: readonly Dimension[];
  /** Requests that came at this ISO time or later; null: all. */
  readonly since: string | null;
  /** Requests that came before this ISO time; null: all. */
  readonly until: string | null;
  readonly only?: Filter;
  /** Only requests of these. */
  readonly sessions?: readonly string[];
  /** The time zone of hours, days, weeks and months. Without one: UTC. */
  readonly zone?: Zone;
}

export interface Totals {
  requests: number;
  /** Kind → count, in the order of first appearance. */
  readonly usage: Map<string, number>;
  official: Decimal;
  charge: Usd;
  /** The official amounts of what a plan paid, and of what its account is billed for beyond it. Never part of a charge. */
  plan: Decimal;
  overage: Decimal;
  /** Basis → requests. */
  readonly bases: Map<string, number>;
  /** Requests that failed at an upstream. */
  failed: number;
  /** What the cache saved, and what it missed, at each request's own prices. */
  saved: Usd;
  missed: Usd;
}

/** An outcome that stands for several. */
export const FAILED = "failed";

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

/** What a report sums, and how. `Item`: a group of the index, or a line. */
export interface Summing<T extends WithCharge, Item> {
  readonly open: () => T;
  readonly add: (totals: T, item: Item) => void;
  readonly addTotals: (sum: T, totals: T) => void;
}

export function sumLedger(index: LedgerIndex, query: ReportQuery): Report {
  return sumGroups(index, query, { open: openTotals, add: addGroup, addTotals });
}

export function sumGroups<T extends WithCharge>(
  index: LedgerIndex,
  query: ReportQuery,
  summing: Summing<T, Group>,
): Report<T> {
  const { unreadable } = index.progress;
  return { ...sumRows(selectGroups(index, query), query.by, nameGroup, summing), unreadable };
}

/** The groups of the index for a report, in the order of their first lines. They have the names of `by` only. */
export function selectGroups(index: LedgerIndex, { by, only = {}, ...query }: ReportQuery): Group[] {
  const { session } = only;
  // Who sent them is not known of whole hours, but whether a session did.
  const bySender = by.some(isSenderName) || (session ?? "") !== "" || only.agent !== undefined;
  const groups = listGroups(index, {
    ...query,
    zone: query.zone ?? UTC,
    span: by.find(isSpan),
    bySender,
    sessions: query.sessions ?? (bySender && session !== undefined ? [session] : undefined),
    fold: foldNames(by, only),
  });
  return groups.filter((group) => isReported(group.traits) && hasNames(group, only));
}

function isSenderName(name: string): boolean {
  return name === "session" || name === "agent";
}

/** What every report tells apart. */
const ALWAYS = ["type", "basis", "outcome", "kinds", "paidBy"] as const;

/** A session and its agent are no traits. */
function foldNames(by: readonly Dimension[], only: Filter): Fold {
  const { session, agent: _, ...others } = only;
  return {
    wants: (traits) => isReported(traits) && canBeOf(traits, session) && hasTraits(traits, others),
    keeps: [...ALWAYS, ...TRAIT_NAMES.filter((name) => by.includes(name) || name in only)],
  };
}

/** Limits count the others. */
export function isReported({ type }: Traits): boolean {
  return type !== "estimate" && type !== "mark";
}

type Named = Pick<Group, "traits" | "sender" | "span">;

export function hasNames(named: Named, only: Filter = {}): boolean {
  return FILTERED.every((name) => {
    const wanted = only[name];
    if (name === "outcome" && wanted === FAILED) return FAILED_OUTCOMES.has(named.traits.outcome);
    return wanted === undefined || wanted === nameGroup(named, name);
  });
}

export function hasTraits(traits: Traits, only: Filter): boolean {
  return hasNames({ traits, sender: null, span: "" }, only);
}

function nameGroup({ traits, sender, span }: Named, dimension: Dimension | "outcome"): string {
  if (isSpan(dimension)) return span;
  if (dimension === "session" || dimension === "agent") return sender?.[dimension] ?? "";
  return traits[dimension] ?? "";
}

/** Sums items by the names that they have in these dimensions. */
export function sumRows<T extends WithCharge, Item, Name extends string>(
  items: Iterable<Item>,
  by: readonly Name[],
  nameItem: (item: Item, dimension: Name) => string,
  summing: Summing<T, Item>,
): Pick<Report<T>, "rows" | "total"> {
  const rows = new Map<string, ReportRow<T>>();
  const total = summing.open();
  for (const item of items) {
    const names = by.map((dimension) => nameItem(item, dimension));
    const open = (): ReportRow<T> => ({ names, totals: summing.open() });
    summing.add(rows.getOrInsertComputed(JSON.stringify(names), open).totals, item);
  }
  const listed = [...rows.values()];
  for (const { totals } of listed) summing.addTotals(total, totals);
  return { rows: listed.sort(by.some(isSpan) ? byNames(by) : byCharge), total };
}

export function isSpan(dimension: string): dimension is TimeSpan {
  return SPANS.some((span) => span === dimension);
}

/** Not every request has a name of this kind. */
export function isClientName(name: string): name is (typeof CLIENT_NAMES)[number] {
  return CLIENT_NAMES.some((each) => each === name);
}

/** Times first, whichever place they have. */
function byNames(
  by: readonly string[],
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
    plan: decimalOf(0),
    overage: decimalOf(0),
    bases: new Map(),
    failed: 0,
    saved: ZERO_USD,
    missed: ZERO_USD,
  };
}

/** Estimates are not in it. */
export function addGroup(totals: Totals, group: Group): void {
  const { traits, requests, counts, official, charge } = group;
  totals.official = addDecimals(totals.official, official);
  totals.charge = addUsd(totals.charge, charge);
  if (traits.paidBy === "plan") totals.plan = addDecimals(totals.plan, official);
  else if (traits.paidBy !== undefined) totals.overage = addDecimals(totals.overage, official);
  // A correction is not a request: it changes the amounts of one.
  if (traits.type === "priced") count(totals.bases, "unpriced", -requests);
  if (traits.type !== "request") return;
  totals.requests += requests;
  if (FAILED_OUTCOMES.has(traits.outcome)) totals.failed += requests;
  totals.saved = addUsd(totals.saved, group.saved);
  totals.missed = addUsd(totals.missed, group.missed);
  for (const [index, kind] of traits.kinds.entries()) count(totals.usage, kind, counts[index] ?? 0);
  count(totals.bases, traits.basis, requests);
}

export function addTotals(sum: Totals, totals: Totals): void {
  sum.requests += totals.requests;
  sum.failed += totals.failed;
  sum.saved = addUsd(sum.saved, totals.saved);
  sum.missed = addUsd(sum.missed, totals.missed);
  for (const [kind, tokens] of totals.usage) count(sum.usage, kind, tokens);
  for (const [basis, requests] of totals.bases) count(sum.bases, basis, requests);
  sum.official = addDecimals(sum.official, totals.official);
  sum.charge = addUsd(sum.charge, totals.charge);
  sum.plan = addDecimals(sum.plan, totals.plan);
  sum.overage = addDecimals(sum.overage, totals.overage);
}

function count(counts: Map<string, number>, name: string, more: number): void {
  counts.set(name, (counts.get(name) ?? 0) + more);
}

/** For scripts and for the console's page: counts as numbers, amounts as exact decimals. */
export interface DescribedTotals extends Gaps {
  readonly requests: number;
  readonly usage: Readonly<Record<string, number>>;
  readonly official_usd: string;
  readonly charge_usd: string;
  /** What a plan paid, by official prices, and what its account is billed for beyond it; absent: nothing. */
  readonly paid_by_plan_usd?: string;
  readonly plan_overage_usd?: string;
  readonly cache_hit_rate: number | null;
}

export function describeTotals(totals: Totals): DescribedTotals {
  return {
    requests: totals.requests,
    usage: Object.fromEntries(totals.usage),
    official_usd: formatDecimal(totals.official),
    charge_usd: formatUsd(totals.charge),
    ...(totals.plan.units > 0n && { paid_by_plan_usd: formatDecimal(totals.plan) }),
    ...(totals.overage.units > 0n && { plan_overage_usd: formatDecimal(totals.overage) }),
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
