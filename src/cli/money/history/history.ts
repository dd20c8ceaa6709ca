// `gateway usage --history`: what agents have used on this machine, from their own logs, without a gateway or a config. With
// `--both`, the ledger beside it: each request once.

import { basename } from "node:path";
import { describeLack } from "../../../billing/history/read-history.ts";
import { type LogEntry, type History, LOGGING_TOOLS } from "../../../billing/history/entry.ts";
import { joinHistory } from "../../../billing/history/join.ts";
import { type OurLine, readOurLines } from "../../../billing/history/our-lines.ts";
import {
  addCounted,
  addHistoryTotals,
  type BookPrices,
  type Counted,
  type HistoryTotals,
  openHistoryTotals,
  priceEntry,
} from "../../../billing/history/priced.ts";
import { computeHitRate, countGaps, isSpan, type Report, sumRows } from "../../../billing/report/report.ts";
import { formatDecimal, parseDecimal } from "../../../lib/money.ts";
import { createNamer, createZone, nameSystemZone, SPANS } from "../../../lib/text/zone.ts";
import { openConfigUnless } from "../../access/config.ts";
import { number } from "../../terminal/table.ts";
import { fail, print, printJson, printNote, refuseUsage } from "../../terminal/terminal.ts";
import { formatAmount, formatCount } from "../../terminal/text.ts";
import { findLedger } from "../ledger-place.ts";
import { readCurrentPrices } from "../prices/in-use.ts";
import {
  addEmptySpans,
  describeNames,
  KINDS,
  printTotals,
  quote,
  readDimensions,
  readUsagePeriod,
  type UsageFlags,
  type UsageQuery,
} from "../usage/usage.ts";
import { readLogs, reportUnread } from "./logs.ts";

const DIMENSIONS = [...SPANS, "project", "label", "tool", "model", "session", "agent"] as const;
type Dimension = (typeof DIMENSIONS)[number];

export interface HistoryFlags extends UsageFlags {
  readonly history?: true;
  readonly both?: true;
}

interface Item extends Counted {
  readonly time: number;
  readonly names: Readonly<Record<Exclude<Dimension, (typeof SPANS)[number]>, string>>;
  /** Why it has no amount. */
  readonly unpricedBecause: string | null;
}

interface Query extends Pick<UsageQuery, "period" | "clock"> {
  readonly by: readonly Dimension[];
}

interface HistoryReport extends Pick<Report<HistoryTotals>, "rows" | "total"> {
  readonly items: readonly Item[];
  readonly history: History;
}

export function showHistory(flags: HistoryFlags): void {
  const query = readQuery(flags);
  const history = readLogs();
  const items = selectItems(listItems(history, flags, query), flags, query);
  const { by, clock } = query;
  const nameTime = by.filter(isSpan).map((span) => createNamer(span, clock.zone))[0];
  const name = (item: Item, dimension: Dimension): string =>
    isSpan(dimension) ? (nameTime?.(new Date(item.time).toISOString()) ?? "") : item.names[dimension];
  const summing = { open: openHistoryTotals, add: addCounted, addTotals: addHistoryTotals };
  const { rows, total } = sumRows(items, by, name, summing);
  const report = { rows: addEmptySpans(rows, query, openHistoryTotals), total, items, history };
  if (flags.json === true) printHistoryJson(report, query, flags);
  else if (flags.csv === true) printCsv(report, query, flags);
  else if (items.length === 0) printNote(describeNothing(history));
  else printTable(report, query, flags);
  if (flags.json !== true) reportUnread(history);
}

function readQuery(flags: HistoryFlags): Query {
  if (flags.history !== true) refuseUsage("--both needs --history.");
  if (flags.csv === true && flags.json === true) refuseUsage("--csv and --json cannot be combined.");
  for (const name of ["key", "group", "channel"] as const)
    if (flags[name] !== undefined)
      refuseUsage(`--${name} cannot be combined with --history: a log has none.`);
  const by = readDimensions(flags.by, DIMENSIONS);
  const zone = openConfigUnless(true, flags)?.catalog.zone ?? createZone(nameSystemZone());
  const clock = { zone, now: new Date() };
  return { by, period: readUsagePeriod(flags, clock), clock };
}

function listItems(history: History, flags: HistoryFlags, { period }: Query): Item[] {
  const prices = readCurrentPrices(openConfigUnless(true, flags));
  const entries = [...history.entries.values()];
  if (flags.both !== true) return entries.map((entry) => describeEntry(entry, "onlyLogs", prices));
  // A request at an edge of the period may be in it by one clock only.
  const since = period.since === null ? 0 : Date.parse(period.since) - EDGE_MS;
  const until = period.until === null ? Number.MAX_SAFE_INTEGER : Date.parse(period.until) + EDGE_MS;
  const joined = joinHistory(entries, readOurLines(findLedger(flags), since, until));
  return [
    ...joined.onlyEntries.map((entry) => describeEntry(entry, "onlyLogs", prices)),
    ...joined.onlyLines.map((line) => describeLine(line, null)),
    ...joined.pairs.flatMap(({ entries: [entry], lines }) =>
      lines.map((line) => describeLine(line, entry ?? null)),
    ),
  ];
}

const EDGE_MS = 3_600_000;

function describeEntry(entry: LogEntry, place: Item["place"], prices: BookPrices): Item {
  const { tool, model, session, agent, project, usage, time, basis } = entry;
  const charge = basis === "unknown" ? null : priceEntry(entry, prices);
  const official = charge?.official ?? null;
  return {
    place,
    time,
    names: { tool, model, session, agent, project: project || NO_PROJECT, label: basename(project) },
    isRest: entry.isRest === true,
    usage,
    official: official === null ? null : parseDecimal(official),
    basis: basis !== "unknown" && official === null ? "unpriced" : basis,
    unpricedBecause: charge?.unpricedBecause ?? null,
  };
}

/** Older versions of Gemini CLI do not name it. */
const NO_PROJECT = "(not logged)";

/** The ledger knows better what a request has cost; the log, where it was sent from. */
function describeLine(line: OurLine, entry: LogEntry | null): Item {
  const { tool, model, session, agent, label, usage, time, official, basis } = line;
  const project = entry?.project || label || NO_PROJECT;
  return {
    place: entry === null ? "onlyLedger" : "both",
    time,
    names: { tool, model, session, agent, project, label: label || basename(entry?.project ?? "") },
    isRest: false,
    usage,
    official,
    basis,
    unpricedBecause: basis === "unpriced" ? `no price for ${model}` : null,
  };
}

function selectItems(items: readonly Item[], flags: HistoryFlags, { period }: Query): Item[] {
  const since = period.since === null ? 0 : Date.parse(period.since);
  const until = period.until === null ? Number.MAX_SAFE_INTEGER : Date.parse(period.until);
  const within = items.filter(({ time }) => time >= since && time < until);
  const { session, ...others } = {
    model: flags.model,
    tool: flags.tool,
    label: flags.label,
    session: flags.session,
  };
  const id = session === undefined ? undefined : findSession(within, session);
  const wanted = Object.entries({ ...others, session: id }).filter(([, name]) => name !== undefined);
  return within.filter(({ names }) =>
    wanted.every(([name, value]) =>
      Object.entries(names).some(([key, own]) => key === name && own === value),
    ),
  );
}

/** `words`: the id, its beginning, or `last`. */
function findSession(items: readonly Item[], words: string): string {
  const named = items.filter(({ names }) => names.session !== "");
  const latest = named.reduce<Item | null>(
    (last, item) => (item.time > (last?.time ?? 0) ? item : last),
    null,
  );
  if (words === "last") return latest?.names.session ?? fail("The logs have no session yet.");
  const ids = new Set(named.map(({ names }) => names.session).filter((id) => id.startsWith(words)));
  const [id, other] = ids.has(words) ? [words] : ids;
  if (id === undefined) return fail(`The logs have no session ${words}.`);
  return other === undefined ? id : fail(`Several sessions begin with ${words}. Use more of the id.`);
}

const SIDES = [
  ["ONLY IN LOGS $", "only_logs_usd", "onlyLogs"],
  ["ONLY IN LEDGER $", "only_ledger_usd", "onlyLedger"],
  ["IN BOTH $", "both_usd", "both"],
] as const;

function printTable(report: HistoryReport, { by }: Query, flags: HistoryFlags): void {
  const sides = flags.both === true ? SIDES : [];
  printTotals(by, report, [
    ...sides.map(([title, , name]) =>
      number<HistoryReport["rows"][number]>(
        title,
        ({ totals }) => formatAmount(formatDecimal(totals[name])),
        1,
      ),
    ),
    number("OFFICIAL $", ({ totals }) => formatAmount(formatDecimal(totals.official))),
  ]);
  for (const note of describeGaps(report)) printNote(note);
}

function describeNothing({ entries }: History): string {
  if (entries.size > 0) return "No requests in this period.";
  return "There are no logs of Claude Code, Codex, Gemini CLI or opencode in the places where they keep them.";
}

/** What the amounts lack, and what they cannot know. */
function describeGaps({ items, total }: HistoryReport): string[] {
  const { unknown, partial } = countGaps(total);
  const unpriced = listUnpriced(items).map(
    ({ because, requests }) => `${because} (${formatCount(requests, "request")})`,
  );
  const hasRest = total.rest.units > 0n;
  const tools = LOGGING_TOOLS.filter((tool) => items.some(({ names }) => names.tool === tool));
  return [
    ...(unpriced.length > 0
      ? [
          `Not in the amounts: ${unpriced.join("; ")}. \`gateway prices set MODEL input=… output=…\` gives a model a price.`,
        ]
      : []),
    ...(unknown > 0
      ? [`Not in the amounts: ${formatCount(unknown, "request")} whose counts cannot be read.`]
      : []),
    ...(partial > 0
      ? [`Of ${formatCount(partial, "request")}, the log does not have all of the output.`]
      : []),
    ...(hasRest
      ? [
          `$${formatAmount(formatDecimal(total.rest))} of it belongs to no request that is listed: summaries, titles and stopped answers, which Claude Code only counts by session.`,
        ]
      : []),
    ...tools.map((tool) => `${describeLack(tool)}.`),
    "Amounts are what the usage costs with a key: logs do not say what a plan has paid, and have no refused requests.",
  ];
}

function listUnpriced(items: readonly Item[]): { readonly because: string; readonly requests: number }[] {
  const unpriced = Map.groupBy(
    items.filter(({ basis }) => basis === "unpriced"),
    ({ unpricedBecause }) => unpricedBecause ?? "no price",
  );
  return [...unpriced].map(([because, some]) => ({ because, requests: some.length }));
}

function describeTotals(totals: HistoryTotals, { both }: HistoryFlags): Record<string, unknown> {
  const sides = both === true ? SIDES : [];
  return {
    requests: totals.requests,
    usage: Object.fromEntries(totals.usage),
    official_usd: formatDecimal(totals.official),
    unlisted_usd: formatDecimal(totals.rest),
    ...Object.fromEntries(sides.map(([, word, name]) => [word, formatDecimal(totals[name])])),
    cache_hit_rate: computeHitRate(totals),
    ...countGaps(totals),
  };
}

function printHistoryJson(report: HistoryReport, { by, period, clock }: Query, flags: HistoryFlags): void {
  const { rows, total, items, history } = report;
  const { unread, damaged, tooLong } = history;
  const tools = LOGGING_TOOLS.filter((tool) => items.some(({ names }) => names.tool === tool));
  printJson({
    by: by.join(","),
    ...period,
    timezone: clock.zone.name,
    rows: rows.map(({ names, totals }) => ({
      ...describeNames(by, names),
      ...describeTotals(totals, flags),
    })),
    total: describeTotals(total, flags),
    unpriced: listUnpriced(items),
    lacks: Object.fromEntries(tools.map((tool) => [tool, describeLack(tool)])),
    unread,
    damaged,
    too_long: tooLong,
  });
}

function printCsv({ rows }: HistoryReport, { by }: Query, flags: HistoryFlags): void {
  const sides = flags.both === true ? SIDES : [];
  const gaps = ["unpriced", "unknown", "partial", "cache_hit_rate"];
  const amounts = ["official_usd", "unlisted_usd", ...sides.map(([, word]) => word)];
  print([...by, "requests", ...KINDS, ...amounts, ...gaps].join(","));
  for (const { names, totals } of rows) {
    const { unpriced, unknown, partial } = countGaps(totals);
    const counts = [totals.requests, ...KINDS.map((kind) => totals.usage.get(kind) ?? 0)];
    const usd = [totals.official, totals.rest, ...sides.map(([, , name]) => totals[name])].map(formatDecimal);
    print(
      [...names.map(quote), ...counts, ...usd, unpriced, unknown, partial, computeHitRate(totals) ?? ""].join(
        ",",
      ),
    );
  }
}
