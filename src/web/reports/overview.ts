// The overview: sums of one period, divided by names and over time, and what they mean beside others. All of it is the one
// query of the index, asked for several periods. Runs in the worker.

import { findFirstMoment, type Group } from "../../billing/index/groups.ts";
import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import { toIso } from "../../billing/report/period.ts";
import {
  addGroup,
  describeTotals,
  type Dimension,
  openTotals,
  selectGroups,
} from "../../billing/report/report.ts";
import { FAILED_OUTCOMES } from "../../billing/ledger/line.ts";
import { OUTPUT_KINDS, PROMPT_KINDS } from "../../billing/usage.ts";
import { addUsd, formatUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { nameSpan, startOfSpan } from "../../lib/text/zone.ts";
import {
  type Filters,
  type Measure,
  OTHERS,
  type Overview,
  type PeriodSums,
  type Series,
  type Stack,
} from "../api.ts";
import { PAST_DAYS, projectMonth } from "./projection.ts";
import {
  chooseSpan,
  type Clock,
  describePeriod,
  findBefore,
  findRange,
  listStarts,
  type Range,
  type Scope,
} from "./scope.ts";

/** More colours are hard to distinguish. */
const MAX_SERIES = 7;

export interface OverviewQuery extends Scope {
  readonly by: Stack;
  readonly show: Measure;
}

export function sumOverview(
  index: LedgerIndex,
  { period, only, by, show }: OverviewQuery,
  clock: Clock,
): Omit<Overview, "read"> {
  const { zone, now } = clock;
  const range = findRange(period, clock);
  const before = findBefore(range, zone);
  const first = Math.min(now, findFirstMoment(index) ?? now);
  const span = chooseSpan(range, first);
  const spans = listStarts(span, range, first, zone).map((start) => nameSpan(span, start));
  const select = (of: Range, dimensions: readonly Dimension[]): Group[] =>
    selectGroups(index, { ...describePeriod(of), by: dimensions, zone, only });
  // Groups have one outcome each, whatever is asked for.
  const names = by === "outcome" ? [] : [by];
  const cells = divideCells(select(range, [span, ...names]), by);
  const earlier = before === null ? null : select(before, names);
  const whole = select(range, ["label", "model"]);
  const unpriced = listUnpriced(whole);
  const totals = openTotals();
  for (const group of whole) addGroup(totals, group);
  const total = sumCells(whole);
  const past = sumCells(earlier ?? []);
  return {
    by,
    show,
    spans,
    series: measureSums({ cells, earlier, spans, by, show, unpriced }),
    total: describeTotals(totals),
    sums: describeSums(total),
    before: past.requests === 0 ? null : describeSums(past),
    saved_usd: formatUsd(total.saved),
    missed_usd: formatUsd(totals.missed),
    ...sumMonth(index, only, clock),
    unpriced,
    unreadable: index.progress.unreadable,
    as_of: toIso(now),
  };
}

/** What the page shows of a name in a span. There are thousands of these, so that they are few numbers. */
type Sums = Record<"charge" | "saved", Usd> & Record<"requests" | "failed" | "tokens", number>;

function sumCells(groups: readonly Group[]): Sums {
  return joinSums(groups.map((group) => sumGroup(group)));
}

function sumGroup({ traits, charge, saved, requests, counts }: Group): Sums {
  // A correction is not a request: it changes the amounts of one.
  if (traits.type !== "request") return { charge, saved: ZERO_USD, requests: 0, failed: 0, tokens: 0 };
  const failed = FAILED_OUTCOMES.has(traits.outcome) ? requests : 0;
  const tokens = traits.kinds.reduce(
    (sum, kind, at) => sum + (TOKEN_KINDS.has(kind) ? (counts[at] ?? 0) : 0),
    0,
  );
  return { charge, saved, requests, failed, tokens };
}

const TOKEN_KINDS: ReadonlySet<string> = new Set([...PROMPT_KINDS, ...OUTPUT_KINDS]);

/** Of each name, its totals by span. Each group is added up once, because a year by key has many. */
type Cells = ReadonlyMap<string, ReadonlyMap<string, Sums>>;

function divideCells(groups: readonly Group[], by: Stack): Cells {
  const byName = Map.groupBy(groups, ({ traits }) => traits[by] ?? "");
  const divided = Array.from(byName, ([name, own]) => {
    const bySpan = Map.groupBy(own, ({ span }) => span);
    return [name, new Map(Array.from(bySpan, ([span, each]) => [span, sumCells(each)]))] as const;
  });
  return new Map(divided);
}

function joinSums(parts: Iterable<Sums>): Sums {
  const sum: Sums = { charge: ZERO_USD, saved: ZERO_USD, requests: 0, failed: 0, tokens: 0 };
  for (const { charge, saved, requests, failed, tokens } of parts) {
    sum.charge = addUsd(sum.charge, charge);
    sum.saved = addUsd(sum.saved, saved);
    sum.requests += requests;
    sum.failed += failed;
    sum.tokens += tokens;
  }
  return sum;
}

function sumSpan(parts: readonly ReadonlyMap<string, Sums>[], span: string): Sums {
  return joinSums(parts.flatMap((part) => part.get(span) ?? []));
}

function describeSums({ charge, requests, tokens, failed }: Sums): PeriodSums {
  return { charge_usd: formatUsd(charge), requests, tokens, failed };
}

const READ: Readonly<Record<Measure, (sums: Sums) => bigint>> = {
  cost: ({ charge }) => charge,
  tokens: ({ tokens }) => BigInt(tokens),
  requests: ({ requests }) => BigInt(requests),
  errors: ({ failed }) => BigInt(failed),
};

function writeMeasure(show: Measure, sums: Sums): string {
  return show === "cost" ? formatUsd(sums.charge) : `${READ[show](sums)}`;
}

interface SumsQuery {
  readonly cells: Cells;
  /** Null: there is no period before. */
  readonly earlier: readonly Group[] | null;
  readonly spans: readonly string[];
  readonly by: Stack;
  readonly show: Measure;
  readonly unpriced: readonly Unpriced[];
}

function measureSums({ cells, earlier, spans, by, show, unpriced }: SumsQuery): Series[] {
  const past = Map.groupBy(earlier ?? [], ({ traits }) => traits[by] ?? "");
  const rows = Array.from(cells, ([name, own]) => ({ name, parts: [own], sum: joinSums(own.values()) }))
    .filter(({ sum }) => show === "cost" || READ[show](sum) > 0n)
    .toSorted((a, b) => compareRows(a, b, show));
  const named = rows.filter(({ name }) => name !== OTHERS);
  const isAll = rows.length <= MAX_SERIES && named.length === rows.length;
  const shown = isAll ? rows : named.slice(0, MAX_SERIES - 1);
  const rest = isAll ? [] : rows.filter((row) => !shown.includes(row));
  const others = {
    name: OTHERS,
    parts: rest.flatMap(({ parts }) => parts),
    sum: joinSums(rest.map((each) => each.sum)),
  };
  const isShown = new Set(shown.map(({ name }) => name));
  const pastOthers = [...past].flatMap(([name, own]) => (isShown.has(name) ? [] : own));
  const isUnpriced = new Set(by === "model" ? unpriced.map(({ name }) => name) : []);
  return (rest.length === 0 ? shown : [...shown, others]).map(({ name, parts, sum }) => {
    const before = isShown.has(name) ? (past.get(name) ?? []) : pastOthers;
    return {
      name,
      total: writeMeasure(show, sum),
      before: earlier === null ? null : writeMeasure(show, sumCells(before)),
      values: spans.map((span) => writeMeasure(show, sumSpan(parts, span))),
      unpriced: show === "cost" && sum.charge === ZERO_USD && isUnpriced.has(name),
    };
  });
}

interface Row {
  readonly name: string;
  readonly sum: Sums;
}

function compareRows(a: Row, b: Row, show: Measure): number {
  const [one, other] = [READ[show](a.sum), READ[show](b.sum)];
  if (one !== other) return one > other ? -1 : 1;
  if (a.sum.requests !== b.sum.requests) return b.sum.requests - a.sum.requests;
  return a.name < b.name ? -1 : 1;
}

interface Unpriced {
  readonly name: string;
  readonly requests: number;
}

function listUnpriced(cells: readonly Group[]): Unpriced[] {
  const unpriced = new Map<string, number>();
  for (const { traits, requests } of cells) {
    const { type, model, basis } = traits;
    const isOne = type === "request" && basis === "unpriced";
    if (isOne || type === "priced")
      unpriced.set(model, (unpriced.get(model) ?? 0) + (isOne ? requests : -requests));
  }
  return [...unpriced].flatMap(([name, requests]) => (requests > 0 ? [{ name, requests }] : []));
}

const DAY_MS = 86_400_000;

/** Today and this month, whatever the period of the view is. */
function sumMonth(index: LedgerIndex, only: Filters, clock: Clock): Pick<Overview, "today_usd" | "month"> {
  const { zone, now } = clock;
  const today = startOfSpan("day", zone.toLocal(now));
  const start = Math.min(startOfSpan("month", today), today - PAST_DAYS * DAY_MS);
  const range = { since: zone.fromLocal(start), until: now, end: now + DAY_MS };
  const days = new Map<string, Usd>();
  const query = { ...describePeriod(range), by: ["day"], zone, only } as const;
  for (const { span, charge } of selectGroups(index, query))
    days.set(span, addUsd(days.get(span) ?? ZERO_USD, charge));
  const month = nameSpan("month", today);
  const own = [...days].filter(([day]) => day.startsWith(month));
  const spent = own.reduce((sum, [, charge]) => addUsd(sum, charge), ZERO_USD);
  return {
    today_usd: formatUsd(days.get(nameSpan("day", today)) ?? ZERO_USD),
    month: {
      usd: formatUsd(spent),
      projection: projectMonth({ days, spent, today, local: zone.toLocal(now) }),
    },
  };
}
