// `gateway usage`: totals as a table with bars, as JSON, or as CSV.

import { findLastSession, findSessions } from "../../billing/reports/sessions.ts";
import { type Filter, listNames, type Totals } from "../../billing/reports/sums.ts";
import {
  type Names,
  type Dimension,
  DIMENSIONS,
  reportUsage,
  sumSellers,
  type UsageReport,
} from "../../billing/reports/usage.ts";
import {
  type Clock,
  type PeriodFlags,
  readPeriod,
  readPeriodWord,
  type ReportPeriod,
} from "../../billing/reports/period.ts";
import type { Table } from "../../billing/store/open.ts";
import { CALL_KINDS, USAGE_KINDS } from "../../billing/usage.ts";
import { suggestNearest } from "../../config/nearest.ts";
import { formatDecimal, parseUsd } from "../../lib/money.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { createZone, nameSystemZone } from "../../lib/text/zone.ts";
import { openConfigUnless } from "../access/config.ts";
import { findLedgerOrEmpty, type LedgerFlags, openTable } from "./ledger-place.ts";
import { createColumns, type ListColumn } from "../terminal/listing.ts";
import { createTable } from "../terminal/table.ts";
import {
  fail,
  paint,
  print,
  printJson,
  printLines,
  printNote,
  readRoom,
  refuseUsage,
} from "../terminal/terminal.ts";
import { formatAmount, formatCount, lengthenSession, measure } from "../terminal/text.ts";

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
  const { by, period, only, clock } = query;
  using table = query.table;
  const report = reportUsage(table, { by, ...period, only, ...clock });
  if (report.rows.length === 0) refuseUnknownNames(query, flags);
  if (flags.json === true) return printJson(report);
  if (flags.csv === true) printCsv(by, report);
  else if (report.rows.length === 0) printNote("No requests in this period.");
  else {
    printUsage(by, report);
    if (Object.keys(only).length === 0) printSellers(table, period);
  }
  reportUnreadable(report);
}

export interface UsageQuery {
  readonly table: Table;
  readonly by: readonly Dimension[];
  readonly period: ReportPeriod;
  readonly only: Filter;
  readonly clock: Clock;
}

export function readUsageQuery(flags: UsageFlags): UsageQuery {
  if (flags.csv === true && flags.json === true) refuseUsage("--csv and --json cannot be combined.");
  const by = readDimensions(flags.by, DIMENSIONS);
  const path = findLedgerOrEmpty(flags);
  // A ledger without its config has the days of this machine.
  const loaded = openConfigUnless(flags.ledger !== undefined, flags);
  const clock = { zone: loaded?.catalog.zone ?? createZone(nameSystemZone()), now: new Date() };
  const period = readUsagePeriod(flags, clock);
  const table = openTable(path, flags);
  return { table, by, period, only: readFilter(flags, table), clock };
}

/** A mistyped name must not look like one that has spent nothing. */
function refuseUnknownNames({ table, only }: UsageQuery, flags: UsageFlags): void {
  const { keys, groups, channels } = openConfigUnless(flags.ledger !== undefined, flags)?.catalog ?? {};
  for (const [name, known] of [
    ["key", keys],
    ["group", groups],
    ["channel", channels],
  ] as const) {
    const wanted = only[name];
    if (wanted === undefined || known?.has(wanted) === true) continue;
    const seen = listNames(table, name);
    if (!seen.includes(wanted))
      fail(`There is no ${name} "${wanted}"${suggestNearest(wanted, [...seen, ...(known?.keys() ?? [])])}.`);
  }
}

export function reportUnreadable({ unreadable }: Pick<UsageReport, "unreadable">): void {
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

function readFilter(flags: UsageFlags, table: Table): Filter {
  const { key, group, model, channel, tool, label } = flags;
  const session = flags.session === undefined ? undefined : findSession(table, flags.session);
  return Object.fromEntries(
    Object.entries({ key, group, model, channel, tool, session, label }).filter(
      ([, name]) => name !== undefined,
    ),
  );
}

/** `words`: the id, its beginning, or `last`. */
export function findSession(table: Table, words: string): string {
  const { path } = table;
  if (words === "last") return findLastSession(table) ?? fail(`No request in ${path} has a session yet.`);
  const [id, ...others] = findSessions(table, lengthenSession(words));
  if (id === undefined) return fail(`There is no session ${words} in ${path}.`);
  if (others.length === 0) return id;
  return fail(`Several sessions begin with ${words}. Use more of the id:\n  ${[id, ...others].join("\n  ")}`);
}

export const KINDS = [...USAGE_KINDS, ...CALL_KINDS];

/** Kinds that are newer than version 0.1. Their columns stand at the end, because scripts may read columns by number. */
const LATER_KINDS = new Set<string>(["x_search", "x_posts", "x_users", "document_search", "call"]);
const FIRST_KINDS = KINDS.filter((kind) => !LATER_KINDS.has(kind));

/** The columns are always the same, so that scripts can rely on them. */
function printCsv(by: readonly Dimension[], { rows }: UsageReport): void {
  const sums = ["official_usd", "charge_usd", "unpriced", "unknown", "partial", "cache_hit_rate"];
  const plans = ["paid_by_plan_usd", "plan_overage_usd"];
  print([...by, "requests", ...FIRST_KINDS, ...sums, ...LATER_KINDS, ...plans].join(","));
  for (const row of rows) {
    const { requests, usage, official_usd, charge_usd, unpriced, unknown, partial, cache_hit_rate } = row;
    const count = (kind: string): number => usage[kind] ?? 0;
    const first = [...by.map((name) => quote(row[name] ?? "")), requests, ...FIRST_KINDS.map(count)];
    const own = [official_usd, charge_usd, unpriced, unknown, partial, cache_hit_rate ?? ""];
    const later = [...LATER_KINDS].map(count);
    print([...first, ...own, ...later, row.paid_by_plan_usd ?? "0", row.plan_overage_usd ?? "0"].join(","));
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

function printUsage(by: readonly Dimension[], { rows, total }: UsageReport): void {
  const money: ReadonlyArray<ListColumn<Totals & Names>> = [
    ["OFFICIAL $", "official_usd", "usd", { spare: 2 }],
    ["CHARGED $", "charge_usd", "usd"],
    ...listPlanColumns([total]),
  ];
  printTotals(by, { rows, total: nameTotal(by, total) }, money);
  reportGaps(total);
}

/** What each row of a table of sums has. */
export type Summed = Pick<Totals, "requests" | "usage" | "cache_hit_rate" | "official_usd"> &
  Partial<Pick<Totals, "charge_usd">>;

/** A table with bars. `money`: the columns of amounts. */
export function printTotals<N extends string, T extends Summed & Names<N>>(
  by: readonly N[],
  { rows, total }: { readonly rows: readonly T[]; readonly total: T },
  money: ReadonlyArray<ListColumn<T>>,
): void {
  const kinds = KIND_COLUMNS.filter(({ kinds }) => countOf(total, kinds) > 0);
  const table = createTable<T>(
    createColumns<T>([
      ...listNameColumns(by),
      ["REQUESTS", "requests", "count", { spare: 1 }],
      ...kinds.map(({ title, kinds, spare }): ListColumn<T> => {
        return [title, (row) => countOf(row, kinds), "count", { spare }];
      }),
      ["CACHED", "cache_hit_rate", "rate", { spare: 4 }],
      ...money,
    ]),
  );
  const [head = "", ...lines] = table.draw([...rows, total], readRoom());
  const charges = rows.map((row) => parseUsd(row.charge_usd ?? row.official_usd));
  const body = process.stdout.isTTY ? appendBars(lines, charges, readRoom()) : lines;
  printLines([head, ...body]);
}

/** The row of a total has one name. */
export function nameTotal<N extends string, T extends object>(by: readonly N[], total: T): T & Names<N> {
  const names: Partial<Record<N, string>> = {};
  for (const [index, name] of by.entries()) names[name] = index === 0 ? "total" : "";
  return { ...total, ...names };
}

type PlanAmounts = Partial<Pick<Totals, "paid_by_plan_usd" | "plan_overage_usd">>;
const PLAN_COLUMNS = [
  ["PAID BY PLAN $", "paid_by_plan_usd"],
  ["PLAN OVERAGE $", "plan_overage_usd"],
] as const;

/** What was not charged, because a plan or its account pays. The columns are there only if something was paid so. */
export function listPlanColumns(rows: readonly PlanAmounts[]): ListColumn<PlanAmounts>[] {
  const used = PLAN_COLUMNS.filter(([, name]) => rows.some((row) => row[name] !== undefined));
  return used.map(([title, name]) => [title, (row) => row[name] ?? "0", "usd", { spare: 1 }]);
}

export function listNameColumns<N extends string>(by: readonly N[]): ListColumn<Names<N>>[] {
  return by.map((dimension) => {
    return [dimension.toUpperCase(), (row) => row[dimension] ?? `no ${dimension}`, "text", { name: true }];
  });
}

function countOf({ usage }: Summed, kinds: readonly string[]): number {
  return kinds.reduce((sum, kind) => sum + (usage[kind] ?? 0), 0);
}

function printSellers(table: Table, period: ReportPeriod): void {
  const { requests, named, charged, differ } = sumSellers(table, period);
  if (requests > 0)
    printNote(
      `Sellers named $${formatAmount(formatDecimal(named))} for ${formatCount(requests, "request")}; charged $${formatAmount(formatDecimal(charged))}; ${differ} ${differ === 1 ? "differs" : "differ"}.`,
    );
}

/** Reports requests that the amounts do not include. */
function reportGaps({ unpriced, unknown, partial }: Totals): void {
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

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** An amount of `most` fills all cells. */
function drawBar(part: bigint, most: bigint, cells: number): string {
  if (most <= 0n || part <= 0n || cells <= 0) return "";
  const eighths = Number((part * BigInt(cells) * 8n) / most);
  return "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? "");
}

const GAP = 2;
/** Shorter bars would not compare anything. */
const MIN_CELLS = 4;
/** The length where lines have no limit. */
const ENDLESS_CELLS = 40;

/** Appends a bar to each line, in the cells that the longest line leaves free. */
export function appendBars(lines: readonly string[], amounts: readonly bigint[], room: number): string[] {
  const width = Math.max(0, ...lines.map(measure));
  const cells = room === Number.POSITIVE_INFINITY ? ENDLESS_CELLS : room - width - GAP;
  if (cells < MIN_CELLS) return [...lines];
  const most = amounts.reduce((high, amount) => (amount > high ? amount : high), 0n);
  return lines.map((line, index) => {
    const bar = drawBar(amounts[index] ?? 0n, most, cells);
    return bar === "" ? line : line + " ".repeat(width - measure(line) + GAP) + paint("cyan", bar);
  });
}
