// `gateway usage --history`: what agents have used on this machine, from their own logs, without a gateway or a config. With
// `--both`, the ledger next to it: each request once.

import { basename } from "node:path";
import { type History, type LogEntry, LOGGING_TOOLS } from "../../billing/history/entry.ts";
import { joinHistory } from "../../billing/history/join.ts";
import { type OurLine, readOurLines } from "../../billing/history/our-lines.ts";
import {
  addCounted,
  type BookPrices,
  type Counted,
  type HistoryTotals,
  openHistoryTotals,
  priceEntry,
} from "../../billing/history/priced.ts";
import { describeLack, readHistory } from "../../billing/history/read-history.ts";
import { computeHitRate } from "../../billing/reports/sums.ts";
import { compareNames, describeNames, divideTime, isSpan } from "../../billing/reports/usage.ts";
import { compareDecimals, formatDecimal, ZERO_DECIMAL } from "../../lib/money.ts";
import { createNamer, createZone, nameSystemZone, SPANS } from "../../lib/text/zone.ts";
import { openConfigUnless } from "../access/config.ts";
import type { ListColumn } from "../terminal/listing.ts";
import { fail, print, printJson, printNote, refuseUsage } from "../terminal/terminal.ts";
import { formatAmount, formatCount } from "../terminal/text.ts";
import { findLedger } from "./ledger-place.ts";
import { readCurrentPrices } from "./in-use.ts";
import {
  KINDS,
  nameTotal,
  printTotals,
  quote,
  readDimensions,
  readUsagePeriod,
  type Summed,
  type UsageFlags,
  type UsageQuery,
} from "./usage.ts";
import { readLoggedUsage } from "../../dialects/meters/logged.ts";

const NAMES = ["project", "label", "tool", "model", "session", "agent"] as const;
const DIMENSIONS = [...SPANS, ...NAMES] as const;
type Dimension = (typeof DIMENSIONS)[number];

export interface HistoryFlags extends UsageFlags {
  readonly history?: true;
  readonly both?: true;
}

interface Item extends Counted {
  readonly time: number;
  readonly names: Readonly<Record<(typeof NAMES)[number], string>>;
  /** Why it has no amount. */
  readonly because: string | null;
}

interface Query extends Pick<UsageQuery, "clock"> {
  readonly by: readonly Dimension[];
  readonly period: UsageQuery["period"];
  /** In ms. */
  readonly since: number;
  readonly until: number;
}

interface HistoryReport {
  readonly rows: readonly HistoryRow[];
  readonly total: HistoryTotals;
  readonly items: readonly Item[];
  readonly history: History;
}

interface HistoryRow {
  readonly names: readonly string[];
  readonly totals: HistoryTotals;
}

export function showHistory(flags: HistoryFlags): void {
  const query = readQuery(flags);
  const history = readLogs();
  const items = selectItems(listItems(history, flags, query), flags, query);
  const report = { ...sumItems(items, query), items, history };
  if (flags.json === true) return printHistoryJson(report, query, flags);
  if (flags.csv === true) printCsv(report, query, flags);
  else if (items.length === 0)
    printNote(history.entries.size === 0 ? NO_LOGS : "No requests in this period.");
  else printTable(report, query, flags);
  reportUnread(history);
}

function sumItems(items: readonly Item[], query: Query): Pick<HistoryReport, "rows" | "total"> {
  const { by, clock } = query;
  const rows = new Map<string, HistoryRow>();
  const open = (names: readonly string[]): HistoryTotals =>
    rows.getOrInsertComputed(JSON.stringify(names), () => ({ names, totals: openHistoryTotals() })).totals;
  const [span] = by.filter(isSpan);
  if (span !== undefined && by.length === 1) for (const name of listSpans(items, query)) open([name]);
  const nameTime = span === undefined ? () => "" : createNamer(span, clock.zone);
  const total = openHistoryTotals();
  for (const item of items) {
    const names = by.map((each) =>
      isSpan(each) ? nameTime(new Date(item.time).toISOString()) : item.names[each],
    );
    for (const totals of [open(names), total]) addCounted(totals, item);
  }
  const byNames = compareNames(by);
  const compare = (a: HistoryRow, b: HistoryRow): number =>
    (span === undefined ? compareDecimals(b.totals.official, a.totals.official) : 0) ||
    byNames(a.names, b.names);
  return { rows: [...rows.values()].toSorted(compare), total };
}

/** A picture of usage over time needs the days without requests too. */
function listSpans(items: readonly Item[], { by, since, until, clock }: Query): string[] {
  const [span] = by.filter(isSpan);
  if (span === undefined || items.length === 0) return [];
  const times = items.map(({ time }) => time);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const end = since === 0 ? last : Math.max(last, Math.min(clock.now.getTime(), until - 1));
  return divideTime(span, since === 0 ? first : since, end, clock.zone).map(([name]) => name);
}

const NO_LOGS =
  "There are no logs of Claude Code, Codex, Gemini CLI or opencode in the places where they keep them.";

function readQuery(flags: HistoryFlags): Query {
  if (flags.history !== true) refuseUsage("--both needs --history.");
  if (flags.csv === true && flags.json === true) refuseUsage("--csv and --json cannot be combined.");
  for (const name of ["key", "group", "channel"] as const)
    if (flags[name] !== undefined)
      refuseUsage(`--${name} cannot be combined with --history: a log has none.`);
  const by = readDimensions(flags.by, DIMENSIONS);
  const zone = openConfigUnless(true, flags)?.catalog.zone ?? createZone(nameSystemZone());
  const clock = { zone, now: new Date() };
  const period = readUsagePeriod(flags, clock);
  return { by, period, clock, ...toMs(period) };
}

export function toMs({ since, until }: UsageQuery["period"]): Pick<Query, "since" | "until"> {
  return {
    since: since === null ? 0 : Date.parse(since),
    until: until === null ? Number.MAX_SAFE_INTEGER : Date.parse(until),
  };
}

/** A request at an edge of the period may be in it by one clock only. */
export const EDGE_MS = 3_600_000;

function listItems(history: History, flags: HistoryFlags, { since, until }: Query): Item[] {
  const prices = readCurrentPrices(openConfigUnless(true, flags));
  const entries = [...history.entries.values()];
  if (flags.both !== true) return entries.map((entry) => describeEntry(entry, prices));
  const joined = joinHistory(entries, [...readOurLines(findLedger(flags), since - EDGE_MS, until + EDGE_MS)]);
  return [
    ...joined.onlyEntries.map((entry) => describeEntry(entry, prices)),
    ...joined.onlyLines.map((line) => describeLine(line)),
    ...joined.pairs.flatMap(({ entries: [entry], lines }) => lines.map((line) => describeLine(line, entry))),
  ];
}

/** Older versions of Gemini CLI do not name it. */
const NO_PROJECT = "(not logged)";

function describeEntry(entry: LogEntry, prices: BookPrices): Item {
  const { tool, model, session, agent = "", project, usage, time, basis } = entry;
  const { official, unpricedBecause: because } = priceEntry(entry, prices);
  return {
    place: "only_logs",
    time,
    names: { tool, model, session, agent, project: project || NO_PROJECT, label: basename(project) },
    isRest: entry.isRest === true,
    usage,
    official,
    basis: because === null ? basis : "unpriced",
    because,
  };
}

/** The ledger knows better what a request has cost; the log, where it was sent from. */
function describeLine({ client, model, usage, time, official, basis }: OurLine, entry?: LogEntry): Item {
  const { tool = "", session = "", agent = "", label = basename(entry?.project ?? "") } = client;
  const project = entry?.project || label || NO_PROJECT;
  return {
    place: entry === undefined ? "only_ledger" : "both",
    time,
    names: { tool, model, session, agent, project, label },
    isRest: false,
    usage,
    official,
    basis,
    because: basis === "unpriced" ? `no price for ${model}` : null,
  };
}

function selectItems(items: readonly Item[], flags: HistoryFlags, { since, until }: Query): Item[] {
  const within = items.filter(({ time }) => time >= since && time < until);
  const session = flags.session === undefined ? undefined : findSession(within, flags.session);
  const { tool, model, label } = flags;
  const wanted = { tool, model, label, session };
  return within.filter(({ names }) =>
    NAMES.every((name) => {
      const own = name === "project" || name === "agent" ? undefined : wanted[name];
      return own === undefined || own === names[name];
    }),
  );
}

/** `words`: the id, its beginning, or `last`. */
function findSession(items: readonly Item[], words: string): string {
  const sorted = items.toSorted((a, b) => b.time - a.time);
  const ids = [...new Set(sorted.map(({ names }) => names.session).filter((id) => id !== ""))];
  const [id, other] = words === "last" ? ids.slice(0, 1) : ids.filter((each) => each.startsWith(words));
  if (id === undefined) return fail(`The logs have no session ${words}.`);
  if (other === undefined || ids.includes(words)) return other === undefined ? id : words;
  return fail(`Several sessions begin with ${words}. Use more of the id.`);
}

const SIDES = [
  ["ONLY IN LOGS $", "only_logs"],
  ["ONLY IN LEDGER $", "only_ledger"],
  ["IN BOTH $", "both"],
] as const;

/** False: nothing of it has a price, which is not the same as costing nothing. */
function hasAmount({ bases }: HistoryTotals): boolean {
  return bases.size === 0 || [...bases.keys()].some((basis) => basis !== "unpriced" && basis !== "unknown");
}

function writeAmount({ amounts }: HistoryTotals, name: string): string {
  return formatDecimal(amounts.get(name) ?? ZERO_DECIMAL);
}

function printTable(report: HistoryReport, { by }: Query, { both }: HistoryFlags): void {
  const describe = (totals: HistoryTotals): Summed & { readonly totals: HistoryTotals } => {
    const usage = Object.fromEntries(totals.usage);
    const official = formatDecimal(totals.official);
    const rate = computeHitRate(usage);
    return { requests: totals.requests, usage, cache_hit_rate: rate, official_usd: official, totals };
  };
  const rows = report.rows.map(({ names, totals }) => ({ ...describe(totals), ...describeNames(by, names) }));
  printTotals(by, { rows, total: nameTotal(by, describe(report.total)) }, [
    ...SIDES.filter(() => both).map(([title, name]): ListColumn<ReturnType<typeof describe>> => [
      title,
      ({ totals }) => writeAmount(totals, name),
      "usd",
      { spare: 1 },
    ]),
    ["OFFICIAL $", (row) => (hasAmount(row.totals) ? formatAmount(row.official_usd) : "unknown"), "exact"],
  ]);
  for (const note of describeGaps(report)) printNote(note);
}

function countGaps({ bases }: HistoryTotals) {
  const [unpriced = 0, unknown = 0, partial = 0] = ["unpriced", "unknown", "partial"].map((basis) =>
    bases.get(basis),
  );
  return { unpriced, unknown, partial };
}

/** What the amounts lack, and what they cannot know. */
function describeGaps({ items, total }: HistoryReport): string[] {
  const { unknown, partial } = countGaps(total);
  const unpriced = listUnpriced(items).map(
    ({ because, requests }) => `${because} (${formatCount(requests, "request")})`,
  );
  const rest = total.amounts.get("rest") ?? ZERO_DECIMAL;
  const notes: ReadonlyArray<readonly [isTrue: boolean, note: string]> = [
    [
      unpriced.length > 0,
      `Not in the amounts: ${unpriced.join("; ")}. \`gateway prices set MODEL input=… output=…\` gives a model a price.`,
    ],
    [unknown > 0, `Not in the amounts: ${formatCount(unknown, "request")} whose counts cannot be read.`],
    [partial > 0, `Of ${formatCount(partial, "request")}, the log does not have all of the output.`],
    [
      rest.units > 0n,
      `$${formatAmount(formatDecimal(rest))} of it belongs to no request that is listed: summaries, titles and stopped answers, which Claude Code only counts by session.`,
    ],
    ...listTools(items).map((tool) => [true, `${describeLack(tool)}.`] as const),
    [
      true,
      "Amounts are what the usage costs with a key: logs do not say what a plan has paid, and have no refused requests.",
    ],
  ];
  return notes.flatMap(([isTrue, note]) => (isTrue ? [note] : []));
}

function listTools(items: readonly Item[]): string[] {
  return LOGGING_TOOLS.filter((tool) => items.some(({ names }) => names.tool === tool));
}

function listUnpriced(items: readonly Item[]): { readonly because: string; readonly requests: number }[] {
  const unpriced = items.filter(({ basis }) => basis === "unpriced");
  const groups = Map.groupBy(unpriced, ({ because }) => because ?? "no price");
  return [...groups].map(([because, some]) => ({ because, requests: some.length }));
}

/** For scripts, without the counts of tokens. */
function describeTotals(
  totals: HistoryTotals,
  { both }: HistoryFlags,
): Record<string, string | number | null> {
  const sides = SIDES.filter(() => both).map(([, name]) => [`${name}_usd`, writeAmount(totals, name)]);
  return {
    official_usd: hasAmount(totals) ? formatDecimal(totals.official) : null,
    unlisted_usd: writeAmount(totals, "rest"),
    ...Object.fromEntries(sides),
    cache_hit_rate: computeHitRate(Object.fromEntries(totals.usage)),
    ...countGaps(totals),
  };
}

function printHistoryJson(report: HistoryReport, { by, period, clock }: Query, flags: HistoryFlags): void {
  const { rows, total, items, history } = report;
  const { unread, damaged, tooLong } = history;
  const describe = (totals: HistoryTotals) => ({
    requests: totals.requests,
    usage: Object.fromEntries(totals.usage),
    ...describeTotals(totals, flags),
  });
  printJson({
    by: by.join(","),
    ...period,
    timezone: clock.zone.name,
    rows: rows.map(({ names, totals }) => ({ ...describeNames(by, names), ...describe(totals) })),
    total: describe(total),
    unpriced: listUnpriced(items),
    lacks: Object.fromEntries(listTools(items).map((tool) => [tool, describeLack(tool)])),
    unread,
    damaged,
    too_long: tooLong,
  });
}

function printCsv({ rows, total }: HistoryReport, { by }: Query, flags: HistoryFlags): void {
  print([...by, "requests", ...KINDS, ...Object.keys(describeTotals(total, flags))].join(","));
  for (const { names, totals } of rows) {
    const counts = KINDS.map((kind) => totals.usage.get(kind) ?? 0);
    const others = Object.values(describeTotals(totals, flags)).map((value) => String(value ?? ""));
    print([...names.map(quote), totals.requests, ...counts, ...others].join(","));
  }
}

const EACH_MS = 100;
const MB = 1e6;
/** Less is read before anybody could see it. */
const MIN_BYTES = 32 * MB;
const CLEAR_LINE = "\r\u001B[K";

export function readLogs(): History {
  let [shown, size] = [Number.NEGATIVE_INFINITY, 0];
  const onProgress = (done: number, all: number): void => {
    size = all;
    if (!process.stderr.isTTY || all < MIN_BYTES || performance.now() - shown < EACH_MS) return;
    shown = performance.now();
    const [read, whole] = [done, all].map((bytes) => Math.round(bytes / MB).toLocaleString("en-US"));
    process.stderr.write(`${CLEAR_LINE}Reading logs: ${read} of ${whole} MB`);
  };
  const history = readHistory({ env: process.env, usageOf: readLoggedUsage, onProgress });
  if (shown > 0) process.stderr.write(CLEAR_LINE);
  // What reading leaves behind would stand in memory next to the sums, a third as much again.
  if (size >= MIN_BYTES) Bun.gc(true);
  return history;
}

export function reportUnread({ unread, damaged, tooLong }: History): void {
  const [first, ...others] = unread;
  const more = others.length > 0 ? `; and ${formatCount(others.length, "file")} more` : "";
  if (first !== undefined) printNote(`A log could not be read: ${first}${more}.`);
  if (damaged > 0) printNote(`${formatCount(damaged, "damaged line")} of the logs not counted.`);
  if (tooLong > 0)
    printNote(`${formatCount(tooLong, "line")} of the logs too long to be read, and not counted.`);
}
