// What `gateway usage` does: the sums as a table with bars, as JSON, or as CSV.

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
import { formatDecimal, formatRounded, formatUsd, parseDecimal } from "../../lib/money.ts";
import { drawBar } from "./bars.ts";
import { findReported, type LedgerFlags } from "./ledger-place.ts";
import { type PeriodFlags, readPeriod } from "./period.ts";
import { type Column, print, printJson, printTable, refuseUsage, tell } from "../terminal.ts";
import { formatCount } from "../text.ts";

export interface UsageFlags extends LedgerFlags, PeriodFlags {
  readonly by: Dimension;
  readonly csv?: true;
  readonly json?: true;
}

export function showUsage(flags: UsageFlags): void {
  if (flags.csv === true && flags.json === true) refuseUsage("--csv and --json exclude each other.");
  const { by } = flags;
  const { since, until } = readPeriod(flags);
  const report = sumLedger(findReported(flags), { by, since, until });
  if (flags.json === true) {
    const rows = Array.from(report.rows, ([name, totals]) => ({ [by]: name, ...describeTotals(totals) }));
    printJson({ by, since, until, rows, total: describeTotals(report.total), unreadable: report.unreadable });
    return;
  }
  if (flags.csv === true) printCsv(by, report);
  else if (report.rows.size === 0) tell("No requests in this period.");
  else printUsage(by, report);
  if (report.unreadable > 0)
    tell(`${formatCount(report.unreadable, "line")} could not be read: \`gateway ledger verify\` says why.`);
}

const KINDS = [...USAGE_KINDS, ...CALL_KINDS];

/** Always the same columns, whatever was used. */
function printCsv(by: Dimension, { rows }: Report): void {
  print([by, "requests", ...KINDS, "official_usd", "charge_usd", "unpriced", "unknown", "partial"].join(","));
  for (const [name, totals] of rows) {
    const counts = KINDS.map((kind) => totals.usage.get(kind) ?? 0);
    const amounts = [formatDecimal(totals.official), formatUsd(totals.charge)];
    const { unpriced, unknown, partial } = countGaps(totals);
    print([quote(name), totals.requests, ...counts, ...amounts, unpriced, unknown, partial].join(","));
  }
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const WRITES = ["cache_write_5m", "cache_write_1h", "cache_write"];
/** Kinds that a table shows together, or in a column of their own where they were used. */
const SHOWN: ReadonlyArray<readonly [title: string, kinds: readonly string[]]> = [
  ["INPUT", ["input"]],
  ["CACHE READ", ["cache_read"]],
  ["CACHE WRITE", WRITES],
  ["OUTPUT", ["output"]],
  ...KINDS.filter((kind) => !["input", "cache_read", "output", "reasoning", ...WRITES].includes(kind)).map(
    (kind): [string, string[]] => [kind.replaceAll("_", " ").toUpperCase(), [kind]],
  ),
];

function printUsage(by: Dimension, { rows, total }: Report): void {
  const columns = SHOWN.filter(([, kinds]) => countOf(total, kinds) > 0);
  const titles: Column[] = [
    { title: by.toUpperCase(), least: 16 },
    ...["REQUESTS", ...columns.map(([title]) => title), "OFFICIAL $", "CHARGED $"].map((title): Column => ({
      title,
      align: "right",
    })),
  ];
  const most = [...rows.values()].reduce((high, { charge }) => (charge > high ? charge : high), 0n);
  const rowOf = (name: string, totals: Totals, bar: string): string[] => [
    name,
    totals.requests.toLocaleString("en-US"),
    ...columns.map(([, kinds]) => countOf(totals, kinds).toLocaleString("en-US")),
    formatRounded(totals.official, TABLE_PLACES),
    formatRounded(parseDecimal(formatUsd(totals.charge)), TABLE_PLACES),
    bar,
  ];
  const body = Array.from(rows, ([name, totals]) =>
    rowOf(name, totals, drawBar(totals.charge, most, BAR_CELLS)),
  );
  const hasBars = process.stdout.isTTY;
  printTable(hasBars ? [...titles, { title: "", least: BAR_CELLS, spare: 1 }] : titles, [
    ...body,
    rowOf("total", total, ""),
  ]);
  tellGaps(countGaps(total));
}

const TABLE_PLACES = 6;

function countOf(totals: Totals, kinds: readonly string[]): number {
  return kinds.reduce((sum, kind) => sum + (totals.usage.get(kind) ?? 0), 0);
}

const BAR_CELLS = 16;

/** What the amounts leave out. */
function tellGaps({ unpriced, unknown, partial }: Gaps): void {
  const say = (count: number, about: string): void => {
    if (count > 0) tell(`${formatCount(count, "request")} ${about}`);
  };
  say(
    unpriced,
    "without a price, in no amount: add it to the config's prices, then `gateway ledger reprice --since DAY`",
  );
  say(unknown, "without any usage to be had, in no amount");
  say(partial, "broken off: part of the usage is estimated");
}
