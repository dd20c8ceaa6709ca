// `gateway usage`: totals as a table with bars, as JSON, or as CSV.

import {
  type WithCharge,
  computeHitRate,
  countGaps,
  describeTotals,
  type Dimension,
  DIMENSIONS,
  type Filter,
  type Gaps,
  isClientName,
  isSpan,
  openTotals,
  type Report,
  type ReportRow,
  sumLedger,
  type Totals,
} from "../../../billing/report/report.ts";
import { CALL_KINDS, USAGE_KINDS } from "../../../billing/usage.ts";
import type { LedgerIndex } from "../../../billing/index/ledger-index.ts";
import { findLastSession, listSessions } from "../../../billing/report/find.ts";
import { sumSellers } from "../../../billing/report/sellers.ts";
import { suggestNearest } from "../../../config/nearest.ts";
import { formatDecimal, formatUsd } from "../../../lib/money.ts";
import { escapeUnprintable } from "../../../lib/text/printable.ts";
import {
  createZone,
  nameSpan,
  nameSystemZone,
  type TimeSpan,
  startOfNextSpan,
  startOfSpan,
  type Zone,
} from "../../../lib/text/zone.ts";
import { openConfigUnless } from "../../access/config.ts";
import { appendBars } from "./bars.ts";
import { findLedgerOrEmpty, type LedgerFlags, openLedgerIndex } from "../ledger-place.ts";
import {
  type Clock,
  type ReportPeriod,
  type PeriodFlags,
  readPeriod,
  readPeriodWord,
} from "../../../billing/report/period.ts";
import { type Column, createTable, number } from "../../terminal/table.ts";
import {
  fail,
  print,
  printJson,
  printLines,
  readRoom,
  refuseUsage,
  printNote,
} from "../../terminal/terminal.ts";
import { formatAmount, formatCount, lengthenSession } from "../../terminal/text.ts";

export interface UsageFlags extends LedgerFlags, PeriodFlags {
  readonly period?: string;
  readonly by: string;
  readonly key?: string;
  readonly group?: string;
  readonly model?: string;
  readonly channel?: string;
  readonly tool?: string;
  readonly session?: string;
  readonly label?: string;
  readonly csv?: true;
  readonly json?: true;
}

export function showUsage(flags: UsageFlags): void {
  const query = readUsageQuery(flags);
  const { index, by, period, only, clock } = query;
  const summed = sumLedger(index(), { by, ...period, only, zone: clock.zone });
  const report = { ...summed, rows: addEmptySpans(summed.rows, query, openTotals) };
  if (flags.json === true) printReportJson(report, query);
  else if (flags.csv === true) printCsv(by, report);
  else if (summed.rows.length === 0) printNote("No requests in this period.");
  else {
    printUsage(by, report);
    reportSellers(query);
  }
  if (flags.json !== true) reportUnreadable(report);
}

export interface UsageQuery {
  readonly path: string;
  readonly index: () => LedgerIndex;
  readonly by: readonly Dimension[];
  readonly period: ReportPeriod;
  readonly only: Filter;
  readonly clock: Clock;
}

export function readUsageQuery(flags: UsageFlags): UsageQuery {
  if (flags.csv === true && flags.json === true) refuseUsage("--csv and --json cannot be combined.");
  const by = readDimensions(flags.by, DIMENSIONS);
  const path = findLedgerOrEmpty(flags);
  const clock = { zone: findZone(flags), now: new Date() };
  const period = readUsagePeriod(flags, clock);
  let opened: LedgerIndex | null = null;
  const index = (): LedgerIndex => (opened ??= openLedgerIndex(path));
  return { path, index, by, period, only: readFilter(flags, index), clock };
}

/** A ledger without its config has the days of this machine. */
function findZone(flags: LedgerFlags): Zone {
  const loaded = openConfigUnless(flags.ledger !== undefined, flags);
  return loaded?.catalog.zone ?? createZone(nameSystemZone());
}

export function reportUnreadable({ unreadable }: Pick<Report, "unreadable">): void {
  if (unreadable > 0)
    printNote(`${formatCount(unreadable, "line")} could not be read. \`gateway ledger verify\` shows why.`);
}

export function readDimensions<T extends string>(text: string, known: readonly T[]): T[] {
  const names = text.split(",").map((name) => name.trim());
  const by = names.map(
    (name) =>
      known.find((dimension) => dimension === name) ??
      refuseUsage(`--by: there is no "${name}"${suggestNearest(name, known)}. Known: ${known.join(", ")}.`),
  );
  if (by.length > 2 || new Set(by).size < by.length)
    refuseUsage("--by: expected one or two different words, such as key,model.");
  return by;
}

export function readUsagePeriod(flags: UsageFlags, clock: Clock): ReportPeriod {
  if (flags.period === undefined) return readPeriod(flags, clock);
  if (flags.since !== undefined || flags.until !== undefined)
    refuseUsage("A period cannot be combined with --since and --until.");
  return readPeriodWord(flags.period, clock);
}

function readFilter(flags: UsageFlags, index: UsageQuery["index"]): Filter {
  const { key, group, model, channel, tool, label } = flags;
  const session = flags.session === undefined ? undefined : findSession(index(), flags.session);
  return Object.fromEntries(
    Object.entries({ key, group, model, channel, tool, session, label }).filter(
      ([, name]) => name !== undefined,
    ),
  );
}

const MAX_CANDIDATES = 10;

/** `words`: the id, its beginning, or `last`. */
export function findSession(index: LedgerIndex, words: string): string {
  const { path } = index;
  if (words === "last") return findLastSession(path) ?? fail(`No request in ${path} has a session yet.`);
  const [id, ...others] = listSessions(index, lengthenSession(words), MAX_CANDIDATES);
  if (id === undefined) return fail(`There is no session ${words} in ${path}.`);
  if (others.length === 0) return id;
  return fail(`Several sessions begin with ${words}. Use more of the id:\n  ${[id, ...others].join("\n  ")}`);
}

/** For scripts: the names of a row. Null: its requests do not have it. */
export function describeNames(
  by: readonly string[],
  names: readonly string[],
): Record<string, string | null> {
  return Object.fromEntries(
    by.map((dimension, index) => {
      const name = names[index] ?? "";
      return [dimension, name === "" && isClientName(dimension) ? null : name];
    }),
  );
}

interface Frame extends Pick<UsageQuery, "period" | "clock"> {
  readonly by: readonly string[];
}

/** A picture of spending over time needs the days without requests too. */
export function addEmptySpans<T extends WithCharge>(
  rows: readonly ReportRow<T>[],
  frame: Frame,
  open: () => T,
): readonly ReportRow<T>[] {
  const { by } = frame;
  const [span] = by;
  if (span === undefined || by.length > 1 || !isSpan(span) || rows.length === 0) return rows;
  const known = new Map(rows.map((row) => [row.names[0] ?? "", row]));
  return listSpans(span, [...known.keys()], frame).map(
    (name) => known.get(name) ?? { names: [name], totals: open() },
  );
}

/** From the beginning of the period to its end or now. A report without a period begins and ends with its requests. */
function listSpans(span: TimeSpan, known: readonly string[], { period, clock }: Frame): string[] {
  const { zone, now } = clock;
  const last = Math.min(now.getTime(), period.until === null ? now.getTime() : Date.parse(period.until) - 1);
  const [first = "", lastKnown = first] = [known[0], known.at(-1)];
  if (period.since === null) return enumerateSpans(span, findSpanStart(span, first), lastKnown);
  const end = nameSpan(span, zone.toLocal(last));
  return enumerateSpans(span, zone.toLocal(Date.parse(period.since)), end > lastKnown ? end : lastKnown);
}

/** From the span of this local time to the one with this name. */
function enumerateSpans(span: TimeSpan, from: number, end: string): string[] {
  const names: string[] = [];
  for (let at = startOfSpan(span, from); nameSpan(span, at) <= end; at = startOfNextSpan(span, at))
    names.push(nameSpan(span, at));
  return names;
}

/** The local time at which a span with this name begins. */
function findSpanStart(span: TimeSpan, name: string): number {
  if (span !== "week") return Date.parse(`${name.replace(" ", "T")}${span === "hour" ? "Z" : ""}`);
  const [year = "", week = ""] = name.split("-W");
  // The fourth of January is always in the first week.
  return startOfSpan("week", Date.UTC(Number(year), 0, 4)) + (Number(week) - 1) * WEEK_MS;
}

const WEEK_MS = 7 * 86_400_000;

function printReportJson(report: Report, query: UsageQuery): void {
  const { by } = query;
  const rows = report.rows.map(({ names, totals }) => ({
    ...describeNames(by, names),
    ...describeTotals(totals),
  }));
  const { total, unreadable } = report;
  printJson({ ...describeQuery(query), rows, total: describeTotals(total), unreadable });
}

/** For scripts: what the report is of. */
export function describeQuery({ by, period, only, clock }: UsageQuery): Record<string, unknown> {
  const filter = Object.keys(only).length === 0 ? {} : { only };
  return { by: by.join(","), ...period, timezone: clock.zone.name, ...filter };
}

export const KINDS = [...USAGE_KINDS, ...CALL_KINDS];

/** Kinds that are newer than version 0.1. Their columns stand at the end, because scripts may read columns by number. */
const LATER_KINDS = new Set<string>(["x_search", "x_posts", "x_users", "document_search", "call"]);
const FIRST_KINDS = KINDS.filter((kind) => !LATER_KINDS.has(kind));

/** The columns are always the same, so that scripts can rely on them. */
function printCsv(by: readonly Dimension[], { rows }: Report): void {
  const sums = ["official_usd", "charge_usd", "unpriced", "unknown", "partial", "cache_hit_rate"];
  const plans = ["paid_by_plan_usd", "plan_overage_usd"];
  print([...by, "requests", ...FIRST_KINDS, ...sums, ...LATER_KINDS, ...plans].join(","));
  for (const { names, totals } of rows) {
    const count = (kind: string): number => totals.usage.get(kind) ?? 0;
    const amounts = [formatDecimal(totals.official), formatUsd(totals.charge)];
    const { unpriced, unknown, partial } = countGaps(totals);
    const rate = computeHitRate(totals) ?? "";
    const first = [...names.map(quote), totals.requests, ...FIRST_KINDS.map(count)];
    const gaps = [unpriced, unknown, partial, rate];
    const later = [...[...LATER_KINDS].map(count), formatDecimal(totals.plan), formatDecimal(totals.overage)];
    print([...first, ...amounts, ...gaps, ...later].join(","));
  }
}

/** A spreadsheet takes a cell that begins like this for a formula, and runs it. In some countries, a semicolon begins the
 *  next cell, and wide signs count, too. */
const FORMULA = /(?<=^|;)(?= *[=+\-@＝＋－＠])/g;

/** A cell of CSV. */
export function quote(text: string): string {
  const cell = escapeUnprintable(text.replaceAll(FORMULA, "'"));
  return /^'|[",;]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

const CACHE_WRITE_KINDS = ["cache_write_5m", "cache_write_1h", "cache_write"];
const USUAL_KINDS = ["input", "cache_read", "output", "reasoning", ...CACHE_WRITE_KINDS];

/** The columns of the table. Rare kinds have a column only if they were used. */
const KIND_COLUMNS: ReadonlyArray<{ title: string; kinds: readonly string[]; spare: number }> = [
  { title: "INPUT", kinds: ["input"], spare: 5 },
  { title: "CACHE READ", kinds: ["cache_read"], spare: 6 },
  { title: "CACHE WRITE", kinds: CACHE_WRITE_KINDS, spare: 7 },
  { title: "OUTPUT", kinds: ["output"], spare: 3 },
  ...KINDS.filter((kind) => !USUAL_KINDS.includes(kind)).map((kind) => ({
    title: kind.replaceAll("_", " ").toUpperCase(),
    kinds: [kind],
    spare: 8,
  })),
];

function printUsage(by: readonly Dimension[], report: Report): void {
  printTotals(by, report, [
    number("OFFICIAL $", ({ totals }) => formatAmount(formatDecimal(totals.official)), 2),
    number("CHARGED $", ({ totals }) => formatAmount(formatUsd(totals.charge))),
    ...listPlanColumns([{ totals: report.total }]),
  ]);
  reportGaps(countGaps(report.total));
}

/** A table with bars. `money`: the columns of amounts. */
export function printTotals<T extends Totals>(
  by: readonly string[],
  { rows, total }: Pick<Report<T>, "rows" | "total">,
  money: ReadonlyArray<Column<ReportRow<T>>>,
): void {
  const kinds = KIND_COLUMNS.filter(({ kinds }) => countOf(total, kinds) > 0);
  const table = createTable<ReportRow<T>>([
    ...listNameColumns<T>(by),
    number("REQUESTS", ({ totals }) => totals.requests.toLocaleString("en-US"), 1),
    ...kinds.map(({ title, kinds, spare }) =>
      number<ReportRow<T>>(title, ({ totals }) => countOf(totals, kinds).toLocaleString("en-US"), spare),
    ),
    number("CACHED", ({ totals }) => formatRate(computeHitRate(totals)), 4),
    ...money,
  ]);
  const [head = "", ...lines] = table.draw(addTotalRow(rows, total), readRoom());
  const charges = rows.map(({ totals }) => totals.charge);
  const body = process.stdout.isTTY ? appendBars(lines, charges, readRoom()) : lines;
  printLines([head, ...body]);
}

const PLAN_COLUMNS = [
  ["PAID BY PLAN $", "plan"],
  ["PLAN OVERAGE $", "overage"],
] as const;

/** What was not charged, because a plan or its account pays. The columns are there only if something was paid so. */
export function listPlanColumns<T extends { readonly totals: Totals | null }>(
  rows: readonly T[],
): ReadonlyArray<Column<T>> {
  return PLAN_COLUMNS.filter(([, name]) => rows.some(({ totals }) => (totals?.[name].units ?? 0n) > 0n)).map(
    ([title, name]) =>
      number<T>(title, ({ totals }) => (totals === null ? "" : formatAmount(formatDecimal(totals[name]))), 1),
  );
}

export function listNameColumns<T extends WithCharge>(
  by: readonly string[],
): ReadonlyArray<Column<ReportRow<T>>> {
  return by.map((dimension, index) => ({
    title: dimension.toUpperCase(),
    name: true,
    read: ({ names }) => {
      const name = names[index] ?? "";
      // The row of the total has one name.
      return name === "" && index < names.length && isClientName(dimension) ? `no ${dimension}` : name;
    },
  }));
}

export function addTotalRow<T extends WithCharge>(
  rows: ReadonlyArray<ReportRow<T>>,
  total: T,
): Array<ReportRow<T>> {
  return [...rows, { names: ["total"], totals: total }];
}

/** Rounded down: 100% means all of it. */
export function formatRate(rate: number | null): string {
  return rate === null ? "" : `${Math.floor(rate * 100)}%`;
}

function countOf(totals: Totals, kinds: readonly string[]): number {
  return kinds.reduce((sum, kind) => sum + (totals.usage.get(kind) ?? 0), 0);
}

/** In a report of all requests. */
function reportSellers({ path, period, only }: UsageQuery): void {
  if (Object.keys(only).length > 0) return;
  const { requests, named, charged, differ } = sumSellers(path, period);
  if (requests > 0)
    printNote(
      `Sellers named $${formatAmount(formatDecimal(named))} for ${formatCount(requests, "request")}; charged $${formatAmount(formatUsd(charged))}; ${differ} ${differ === 1 ? "differs" : "differ"}.`,
    );
}

/** Reports requests that the amounts do not include. */
function reportGaps({ unpriced, unknown, partial }: Gaps): void {
  if (unpriced > 0)
    printNote(
      `${formatCount(unpriced, "request")} ${unpriced === 1 ? "has" : "have"} no price and ${unpriced === 1 ? "is" : "are"} not in the amounts. ` +
        "`gateway prices set MODEL input=… output=…` gives it one, and `gateway ledger reprice --since DAY` corrects the lines.",
    );
  if (unknown > 0)
    printNote(`The usage of ${formatCount(unknown, "request")} is not known and not in the amounts.`);
  if (partial > 0)
    printNote(`${formatCount(partial, "request")} ended early. Part of the usage is estimated.`);
}
