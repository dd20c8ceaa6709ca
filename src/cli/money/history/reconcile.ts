// `gateway reconcile`: the ledger beside the agents' logs, the sellers' own amounts, balances, and exports of consoles. The
// exit status is 1 if they differ.

import { existsSync } from "node:fs";
import { LOGGING_TOOLS } from "../../../billing/history/entry.ts";
import { type OurLine, readOurLines } from "../../../billing/history/our-lines.ts";
import {
  type Difference,
  type Reconciliation,
  reconcileLogs,
  reconcileSellers,
  type Side,
} from "../../../billing/history/reconcile.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS } from "../../../billing/usage.ts";
import type { LoadedConfig } from "../../../config/file/load.ts";
import { readPlain } from "../../../lib/files/own-file.ts";
import { formatDecimal } from "../../../lib/money.ts";
import { createZone, nameSystemZone } from "../../../lib/text/zone.ts";
import { openConfigUnless } from "../../access/config.ts";
import { number, printTable } from "../../terminal/table.ts";
import { fail, print, printJson, printNote, refuseUsage } from "../../terminal/terminal.ts";
import { formatAmount, formatCount } from "../../terminal/text.ts";
import { findLedger, type LedgerFlags } from "../ledger-place.ts";
import type { PeriodFlags } from "../../../billing/report/period.ts";
import { readCurrentPrices } from "../prices/in-use.ts";
import { readUsagePeriod } from "../usage/usage.ts";
import { EDGE_MS, toMs } from "./history.ts";
import { readLogs, reportUnread } from "./logs.ts";

/** The words for sources that are no files, and how a sentence names them. */
const SOURCES: Readonly<Record<string, string>> = {
  logs: "the agents' logs",
  ...Object.fromEntries(LOGGING_TOOLS.map((tool) => [tool, `the logs of ${tool}`])),
  seller: "the sellers' own amounts",
  balance: "the balances",
};

export interface ReconcileFlags extends LedgerFlags, PeriodFlags {
  readonly all?: true;
  readonly json?: true;
}

interface Query {
  readonly source: string;
  readonly path: string;
  readonly loaded: LoadedConfig | null;
  /** In ms. */
  readonly since: number;
  readonly until: number;
}

export async function reconcile(words: readonly string[], flags: ReconcileFlags): Promise<void> {
  const query = readQuery(words, flags);
  const found = await compare(query);
  if (found.differences.length > 0) process.exitCode = 1;
  if (flags.json === true) printReconciliation(query, found);
  else printLists(query, found, flags);
}

/** The source may be left out, and the period too. */
function readQuery(words: readonly string[], flags: ReconcileFlags): Query {
  const [first, second] = words;
  const isSource = first !== undefined && (Object.hasOwn(SOURCES, first) || existsSync(first));
  if (words.length > (isSource ? 2 : 1))
    refuseUsage(
      `There is no source ${first}. Known: ${Object.keys(SOURCES).join(", ")}, or the file of an export.`,
    );
  const period = isSource ? second : first;
  const path = findLedger(flags);
  const loaded = openConfigUnless(true, flags);
  const clock = { zone: loaded?.catalog.zone ?? createZone(nameSystemZone()), now: new Date() };
  const range = readUsagePeriod({ ...flags, by: "", ...(period !== undefined && { period }) }, clock);
  return { source: isSource ? first : "logs", path, loaded, ...toMs(range) };
}

async function compare({ source, path, loaded, since, until }: Query): Promise<Reconciliation> {
  const isWithin = (time: number): boolean => time >= since && time < until;
  if (source === "seller") return reconcileSellers(readOurLines(path, since, until));
  const prices = readCurrentPrices(loaded);
  if (source === "balance") {
    if (loaded === null)
      return fail("A balance is asked with the credentials of a config, and there is none.");
    const { reconcileBalances } = await import("./balances.ts");
    const readLines = (from: number) => readOurLines(path, from, Number.MAX_SAFE_INTEGER);
    return reconcileBalances({ path, channels: loaded.catalog.channels.values(), readLines });
  }
  const lines = readOurLines(path, since - EDGE_MS, until + EDGE_MS);
  const tools = LOGGING_TOOLS.filter((tool) => source === "logs" || source === tool);
  if (tools.length > 0) {
    const history = readLogs(tools);
    reportUnread(history);
    const own = lines.filter(({ client }) => tools.some((name) => name === client.tool)).toArray();
    return reconcileLogs(
      [...history.entries.values()].filter(({ time }) => time >= since - EDGE_MS && time < until + EDGE_MS),
      own,
      prices,
      isWithin,
    );
  }
  const { readExport, reconcileExport } = await import("../../../billing/history/exports.ts");
  const exported = readExport(readPlain(source));
  if (exported === null)
    return fail(
      `${source} is no export of Anthropic's or OpenAI's that can be read: CSV or JSON of usage or costs.`,
    );
  const isTheirs = (line: OurLine): boolean =>
    (prices.sellerOf(line.channel)?.provider ?? nameSeller(line)) === exported.seller;
  return reconcileExport(exported, lines.filter(isTheirs), isWithin);
}

/** `book 2026-11-23 anthropic`. A model's name alone says nothing of who sold it. */
function nameSeller({ priceSource }: OurLine): string | undefined {
  return /^book \S+ (\S+)$/.exec(priceSource)?.[1];
}

const LISTS: ReadonlyArray<readonly [word: string, title: string, has: (each: Difference) => boolean]> = [
  ["only_theirs", "Only there", ({ ours }) => ours === null],
  ["only_ours", "Only in the ledger", ({ theirs }) => theirs === null],
  ["different", "Both, but different", ({ ours, theirs }) => ours !== null && theirs !== null],
];

const SIDES: ReadonlyArray<readonly [title: string, read: (each: Difference) => Side | null]> = [
  ["LEDGER", ({ ours }) => ours],
  ["THERE", ({ theirs }) => theirs],
];

const MAX_ROWS = 20;

function printLists(query: Query, found: Reconciliation, { all }: ReconcileFlags): void {
  for (const [, title, has] of LISTS) {
    const rows = found.differences.filter(has);
    if (rows.length === 0) continue;
    print(`${title}: ${rows.length.toLocaleString("en-US")}`);
    printTable<Difference>(all === true ? rows : rows.slice(0, MAX_ROWS), [
      { title: "TIME", read: ({ time }) => new Date(time).toISOString().replace(/\.\d+Z$/, "Z") },
      { title: "ID", name: true, read: ({ id }) => id },
      { title: "MODEL", spare: 2, read: ({ model }) => model },
      ...SIDES.filter(([, read]) => rows.some((row) => read(row) !== null)).flatMap(([title, read]) => [
        number<Difference>(title, (row) => describeTokens(read(row)), 1),
        number<Difference>(`${title} $`, (row) => describeUsd(read(row))),
      ]),
      { title: "WHY", spare: 3, read: ({ because }) => because ?? "" },
    ]);
    if (all !== true && rows.length > MAX_ROWS)
      printNote(`${formatCount(rows.length - MAX_ROWS, "row")} more: --all shows them.`);
    print("");
  }
  for (const note of found.notes) printNote(`${note}.`);
  print(conclude(query, found));
}

/** Tokens of the prompt, and of the output. */
function describeTokens(side: Side | null): string {
  if (side === null || Object.keys(side.usage).length === 0) return "";
  const [input, output] = [PROMPT_KINDS, OUTPUT_KINDS].map((kinds) =>
    countTokens(side.usage, kinds).toLocaleString("en-US"),
  );
  return `${input} + ${output}`;
}

function describeUsd(side: Side | null): string {
  return side === null || side.usd === null ? "" : formatAmount(formatDecimal(side.usd));
}

/** One line. */
function conclude({ source }: Query, { differences, agree, ours, theirs }: Reconciliation): string {
  const [usd, other] = [ours, theirs].map((amount) => formatAmount(formatDecimal(amount)));
  const counts = LISTS.map(([, title, has]) => `${differences.filter(has).length} ${title.toLowerCase()}`);
  const name = SOURCES[source] ?? source;
  if (differences.length > 0)
    return `The ledger ($${usd}) and ${name} ($${other}) differ: ${counts.join(", ")}; ${agree} agree.`;
  return agree === 0
    ? `There is nothing to compare with ${name}.`
    : `The ledger and ${name} agree: ${agree} of ${agree}, $${usd}.`;
}

function printReconciliation(query: Query, found: Reconciliation): void {
  const { differences, agree, ours, theirs, notes } = found;
  const describe = (side: Side | null) =>
    side && { usage: side.usage, usd: side.usd && formatDecimal(side.usd) };
  const lists = LISTS.map(([word, , has]) => [
    word,
    differences.filter(has).map((each) => ({
      ...each,
      time: new Date(each.time).toISOString(),
      ours: describe(each.ours),
      theirs: describe(each.theirs),
    })),
  ]);
  printJson({
    source: query.source,
    agrees: differences.length === 0,
    verdict: conclude(query, found),
    agree,
    ...Object.fromEntries(lists),
    ours_usd: formatDecimal(ours),
    theirs_usd: formatDecimal(theirs),
    notes,
  });
}
