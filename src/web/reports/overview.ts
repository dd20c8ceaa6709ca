// The overview: sums of one period, stacked over time. Runs in the worker.

import type { Group } from "../../billing/index/groups.ts";
import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import { addGroup, describeTotals, openTotals, selectGroups } from "../../billing/report/report.ts";
import { formatUsd, type Usd, addUsd, ZERO_USD } from "../../lib/money.ts";
import { nameSpan, startOfNextSpan, startOfSpan, type Zone } from "../../lib/text/zone.ts";
import { type Overview, type PeriodName, PERIODS, type Stack } from "../api.ts";

const DAYS: Readonly<Record<PeriodName, number>> = { today: 1, "7d": 7, "30d": 30 };
const DAY_MS = 86_400_000;
/** More colours are hard to distinguish. */
const MAX_SERIES = 7;
const OTHERS = "others";

export interface OverviewQuery {
  readonly period: PeriodName;
  readonly by: Stack;
}

export interface Clock {
  readonly zone: Zone;
  readonly now: number;
}

export function sumOverview(
  index: LedgerIndex,
  { period, by }: OverviewQuery,
  clock: Clock,
): Omit<Overview, "read"> {
  const spans = listSpans(period, clock);
  const places = new Map(spans.map((name, place) => [name, place]));
  const days = listSums(index, "day", findStart("30d", clock), clock);
  const start = nameStart(period, clock);
  const cells =
    period === "today"
      ? listSums(index, "hour", findStart(period, clock), clock)
      : days.filter(({ span }) => span >= start);
  const total = openTotals();
  const unpriced = new Map<string, number>();
  const rows = new Map<string, Row>();
  for (const cell of cells) {
    addGroup(total, cell);
    noteUnpriced(unpriced, cell);
    const place = places.get(cell.span);
    if (place !== undefined) addToRow(rows, cell.traits[by] ?? "", { cell, place, length: spans.length });
  }
  return {
    period,
    by,
    spans,
    series: mergeSmall([...rows.values()].sort(byCharge), spans.length).map((row) => ({
      ...describeRow(row),
      unpriced: by === "model" && row.charge === ZERO_USD && (unpriced.get(row.name) ?? 0) > 0,
    })),
    total: describeTotals(total),
    spent: readSpent(days, clock),
    unpriced: [...unpriced].flatMap(([name, requests]) => (requests > 0 ? [{ name, requests }] : [])),
    unreadable: index.progress.unreadable,
  };
}

function listSums(index: LedgerIndex, span: "hour" | "day", since: number, { zone }: Clock): Group[] {
  return selectGroups(index, { by: [span], since: new Date(since).toISOString(), until: null, zone });
}

/** The name of the local day on which a period begins. */
function nameStart(period: PeriodName, clock: Clock): string {
  return nameSpan("day", findLocalStart(period, clock));
}

/** The moment at which a period begins. */
export function findStart(period: PeriodName, clock: Clock): number {
  return clock.zone.fromLocal(findLocalStart(period, clock));
}

function findLocalStart(period: PeriodName, { zone, now }: Clock): number {
  return startOfSpan("day", zone.toLocal(now)) - (DAYS[period] - 1) * DAY_MS;
}

function listSpans(period: PeriodName, { zone, now }: Clock): string[] {
  const span = period === "today" ? "hour" : "day";
  const today = startOfSpan("day", zone.toLocal(now));
  const end = startOfNextSpan("day", today);
  const names: string[] = [];
  for (let at = today - (DAYS[period] - 1) * DAY_MS; at < end; at = startOfNextSpan(span, at))
    names.push(nameSpan(span, at));
  return names;
}

interface Row {
  readonly name: string;
  charge: Usd;
  requests: number;
  readonly charges: Usd[];
}

function openRow(name: string, length: number): Row {
  return { name, charge: ZERO_USD, requests: 0, charges: Array.from({ length }, () => ZERO_USD) };
}

function addToRow(
  rows: Map<string, Row>,
  name: string,
  { cell, place, length }: { cell: Group; place: number; length: number },
): void {
  const row = rows.get(name) ?? openRow(name, length);
  rows.set(name, row);
  const { charge, requests, traits } = cell;
  row.charge = addUsd(row.charge, charge);
  // A correction is not a request.
  if (traits.type === "request") row.requests += requests;
  row.charges[place] = addUsd(row.charges[place] ?? ZERO_USD, charge);
}

function byCharge(a: Row, b: Row): number {
  if (a.charge !== b.charge) return a.charge > b.charge ? -1 : 1;
  if (a.requests !== b.requests) return b.requests - a.requests;
  return a.name < b.name ? -1 : 1;
}

function mergeSmall(rows: readonly Row[], length: number): readonly Row[] {
  const named = rows.filter(({ name }) => name !== OTHERS);
  if (rows.length <= MAX_SERIES && named.length === rows.length) return rows;
  const shown = named.slice(0, MAX_SERIES - 1);
  const others = openRow(OTHERS, length);
  for (const row of rows.filter((each) => !shown.includes(each))) {
    others.charge = addUsd(others.charge, row.charge);
    others.requests += row.requests;
    row.charges.forEach((charge, index) => {
      others.charges[index] = addUsd(others.charges[index] ?? ZERO_USD, charge);
    });
  }
  return [...shown, others];
}

function describeRow({ name, charge, requests, charges }: Row): Omit<Overview["series"][number], "unpriced"> {
  return { name, charge_usd: formatUsd(charge), requests, charges: charges.map(formatUsd) };
}

function noteUnpriced(unpriced: Map<string, number>, { traits, requests }: Group): void {
  const { type, model, basis } = traits;
  const isOne = type === "request" && basis === "unpriced";
  if (isOne || type === "priced")
    unpriced.set(model, (unpriced.get(model) ?? 0) + (isOne ? requests : -requests));
}

function readSpent(days: readonly Group[], clock: Clock): Record<PeriodName, string> {
  const spent = { today: ZERO_USD, "7d": ZERO_USD, "30d": ZERO_USD };
  const starts = PERIODS.map((period) => [period, nameStart(period, clock)] as const);
  for (const { span, charge } of days)
    for (const [period, start] of starts) if (span >= start) spent[period] = addUsd(spent[period], charge);
  return { today: formatUsd(spent.today), "7d": formatUsd(spent["7d"]), "30d": formatUsd(spent["30d"]) };
}
