// `gateway usage`: totals as a table with bars, as JSON, or as CSV.

import {
  countGaps,
  describeTotals,
  type Dimension,
  type Gaps,
  type Report,
  sumLedger,
  type Totals,
} from "../../billing/report/report.ts";
import { CALL_KINDS, USAGE_KINDS } from "../../billing/usage.ts";
import { formatDecimal, formatUsd } from "../../lib/money.ts";
import { escapeUnprintable } from "../../lib/printable.ts";
import { appendBars } from "./bars.ts";
import { findLedgerOrEmpty, type LedgerFlags } from "./ledger-place.ts";
import { type PeriodFlags, readPeriod } from "./period.ts";
import { type Column, formatTable } from "../table.ts";
import { print, printJson, readRoom, refuseUsage, tell } from "../terminal.ts";
import { formatAmount, formatCount } from "../text.ts";

export interface UsageFlags extends LedgerFlags, PeriodFlags {
  readonly by: Dimension;
  readonly csv?: true;
  readonly json?: true;
}

export function showUsage(flags: UsageFlags): void {
  if (flags.csv === true && flags.json === true) refuseUsage("--csv and --json exclude each other.");
  const { by } = flags;
  const { since, until } = readPeriod(flags);
  const report = sumLedger(findLedgerOrEmpty(flags), { by, since, until });
  if (flags.json === true) {
    const rows = Array.from(report.rows, ([name, totals]) => ({ [by]: name, ...describeTotals(totals) }));
    printJson({ by, since, until, rows, total: describeTotals(report.total), unreadable: report.unreadable });
    return;
  }
  if (flags.csv === true) printCsv(by, report);
  else if (report.rows.size === 0) tell("No requests in this period.");
  else printUsage(by, report);
  if (report.unreadable > 0)
    tell(`${formatCount(report.unreadable, "line")} could not be read. \`gateway ledger verify\` shows why.`);
}

const KINDS = [...USAGE_KINDS, ...CALL_KINDS];

/** The columns are always the same, so that scripts can rely on them. */
function printCsv(by: Dimension, { rows }: Report): void {
  print([by, "requests", ...KINDS, "official_usd", "charge_usd", "unpriced", "unknown", "partial"].join(","));
  for (const [name, totals] of rows) {
    const counts = KINDS.map((kind) => totals.usage.get(kind) ?? 0);
    const amounts = [formatDecimal(totals.official), formatUsd(totals.charge)];
    const { unpriced, unknown, partial } = countGaps(totals);
    print([quote(name), totals.requests, ...counts, ...amounts, unpriced, unknown, partial].join(","));
  }
}

/** A spreadsheet takes a cell that begins like this for a formula, and runs it. */
const FORMULA = /^[=+\-@]/;

function quote(text: string): string {
  const cell = escapeUnprintable(FORMULA.test(text) ? `'${text}` : text);
  return /^'|[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

const CACHE_WRITE_KINDS = ["cache_write_5m", "cache_write_1h", "cache_write"];
const USUAL_KINDS = ["input", "cache_read", "output", "reasoning", ...CACHE_WRITE_KINDS];

/** The columns of the table. Rare kinds have a column only if they were used. */
const KIND_COLUMNS: ReadonlyArray<{ title: string; kinds: readonly string[]; spare: number }> = [
  { title: "INPUT", kinds: ["input"], spare: 4 },
  { title: "CACHE READ", kinds: ["cache_read"], spare: 5 },
  { title: "CACHE WRITE", kinds: CACHE_WRITE_KINDS, spare: 6 },
  { title: "OUTPUT", kinds: ["output"], spare: 3 },
  ...KINDS.filter((kind) => !USUAL_KINDS.includes(kind)).map((kind) => ({
    title: kind.replaceAll("_", " ").toUpperCase(),
    kinds: [kind],
    spare: 7,
  })),
];

function printUsage(by: Dimension, { rows, total }: Report): void {
  const kinds = KIND_COLUMNS.filter(({ kinds }) => countOf(total, kinds) > 0);
  const columns: Column[] = [
    { title: by.toUpperCase(), name: true },
    { title: "REQUESTS", align: "right", spare: 1 },
    ...kinds.map(({ title, spare }): Column => ({ title, align: "right", spare })),
    { title: "OFFICIAL $", align: "right", spare: 2 },
    { title: "CHARGED $", align: "right" },
  ];
  const entries = [...rows, ["total", total] as const];
  const cells = entries.map(([name, totals]) => [
    name,
    totals.requests.toLocaleString("en-US"),
    ...kinds.map(({ kinds }) => countOf(totals, kinds).toLocaleString("en-US")),
    formatAmount(formatDecimal(totals.official)),
    formatAmount(formatUsd(totals.charge)),
  ]);
  const [head = "", ...lines] = formatTable(columns, cells);
  const charges = Array.from(rows.values(), ({ charge }) => charge);
  const body = process.stdout.isTTY ? appendBars(lines, charges, readRoom()) : lines;
  for (const line of [head, ...body]) print(line);
  reportGaps(countGaps(total));
}

function countOf(totals: Totals, kinds: readonly string[]): number {
  return kinds.reduce((sum, kind) => sum + (totals.usage.get(kind) ?? 0), 0);
}

/** Reports requests that the amounts do not include. */
function reportGaps({ unpriced, unknown, partial }: Gaps): void {
  if (unpriced > 0)
    tell(
      `${formatCount(unpriced, "request")} ${unpriced === 1 ? "has" : "have"} no price and ${unpriced === 1 ? "is" : "are"} not in the amounts. ` +
        "Add the price to the config's `prices`, then run `gateway ledger reprice --since DAY`.",
    );
  if (unknown > 0)
    tell(`The usage of ${formatCount(unknown, "request")} is not known and not in the amounts.`);
  if (partial > 0) tell(`${formatCount(partial, "request")} ended early. Part of the usage is estimated.`);
}
