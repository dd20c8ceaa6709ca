// `gateway usage --history`: what agents have used, from their own logs.

import type { History } from "../../billing/history/entry.ts";
import { describeLack, readHistory } from "../../billing/history/read-history.ts";
import {
  DIMENSIONS,
  type HistoryFilter,
  type HistoryReport,
  type HistoryTotals,
  listLoggedSessions,
  reportHistory,
  tabulateBoth,
  tabulateLogs,
} from "../../billing/history/report.ts";
import { readPeriod } from "../../billing/reports/period.ts";
import type { Filter } from "../../billing/reports/sums.ts";
import type { Questions } from "../../billing/store/open.ts";
import { readLoggedUsage } from "../../dialects/meters/logged.ts";
import { createZone } from "../../lib/text/zone.ts";
import { openConfigUnless } from "../access/config.ts";
import type { ListColumn } from "../terminal/listing.ts";
import { refuseUsage } from "../terminal/terminal.ts";
import { formatAmount, formatCount } from "../terminal/text.ts";
import { readCurrentPrices } from "./in-use.ts";
import { findLedger, openTable } from "../access/ledger-place.ts";
import { chooseOne, printShown, writeCsv } from "./show.ts";
import { drawTotals, flattenUsage, KINDS, nameTotal, readDimensions, type UsageFlags } from "./usage.ts";

export interface HistoryFlags extends UsageFlags {
  readonly history?: true;
  readonly both?: true;
}

export function showHistory(flags: HistoryFlags): void {
  const query = readQuery(flags);
  const history = readHistory({ env: process.env, usageOf: readLoggedUsage });
  const prices = readCurrentPrices(openConfigUnless(true, flags));
  const entries = [...history.entries.values()];
  const table = query.both
    ? tabulateBoth(openTable(findLedger(flags), flags), entries, prices, query)
    : tabulateLogs(entries, prices);
  const report = reportHistory(table, { ...query, only: readFilter(flags, table) });
  const unseen = "There are no logs of Claude Code, Codex, Gemini CLI or opencode.";
  const none = entries.length > 0 ? "No requests in this period." : unseen;
  const notes = report.rows.length === 0 ? [none] : describeGaps(report);
  printShown(flags, {
    document: describeReport(report, query, history),
    csv: () => {
      const sums = SUMS.filter((name) => report.total[name] !== undefined);
      return writeCsv(query.by, ["requests", ...KINDS, ...sums], report.rows.map(flattenUsage));
    },
    parts: () => (report.rows.length === 0 ? [] : [drawReport(report, query)]),
    notes: () => [...(flags.csv === true ? [] : notes), ...describeUnread(history)],
  });
}

function readQuery(flags: HistoryFlags): HistoryFilter {
  if (flags.history !== true) refuseUsage("--both needs --history.");
  for (const name of ["key", "group", "channel"] as const)
    if (flags[name] !== undefined) refuseUsage(`--history excludes --${name}: a log names no ${name}.`);
  const by = readDimensions(flags.by, DIMENSIONS);
  const zone = openConfigUnless(true, flags)?.catalog.zone ?? createZone("system");
  const clock = { zone, now: new Date() };
  return {
    by,
    ...readPeriod(flags, clock),
    ...clock,
    both: flags.both === true,
  };
}

function readFilter(flags: HistoryFlags, table: Questions): Filter {
  const { tool, model, label, session } = flags;
  return {
    ...(tool !== undefined && { tool }),
    ...(model !== undefined && { model }),
    ...(label !== undefined && { label }),
    ...(session !== undefined && { session: findLoggedSession(listLoggedSessions(table), session) }),
  };
}

function findLoggedSession(sessions: readonly string[], words: string): string {
  if (sessions.includes(words)) return words;
  const near = sessions.filter((each) => each.startsWith(words));
  const none = `The logs have no session ${words}.`;
  return chooseOne(words === "last" ? sessions.slice(0, 1) : near, words, ["sessions", none]);
}

const SIDES = [
  ["ONLY IN LOGS $", "only_logs_usd"],
  ["ONLY IN LEDGER $", "only_ledger_usd"],
  ["IN BOTH $", "both_usd"],
] as const;

function drawReport(report: HistoryReport, { by, both }: HistoryFilter): string[] {
  const describe = <T extends HistoryTotals>(totals: T) => {
    const { official_usd: official } = totals;
    return { ...totals, official_usd: official ?? "0", official };
  };
  const rows = report.rows.map(describe);
  return drawTotals(by, { rows, total: nameTotal(by, describe(report.total)) }, [
    ...SIDES.filter(() => both).map(([title, name]): ListColumn<HistoryTotals> => [
      title,
      (row) => row[name] ?? "0",
      "usd",
      { spare: 1 },
    ]),
    ["OFFICIAL $", ({ official }) => (official === null ? "unknown" : formatAmount(official)), "exact"],
  ]);
}

function describeGaps({ total, unpriced, tools }: HistoryReport): (string | false)[] {
  const { unknown, partial } = total;
  const reasons = unpriced.map(({ because, requests }) => `${because} (${formatCount(requests, "request")})`);
  return [
    reasons.length > 0 && `Not in the amounts: ${reasons.join("; ")}. \`gateway prices set\` gives a price.`,
    unknown > 0 && `Not in the amounts: ${formatCount(unknown, "request")} whose counts cannot be read.`,
    partial > 0 && `Of ${formatCount(partial, "request")}, the log does not have all of the output.`,
    ...tools.map((tool) => `${describeLack(tool)}.`),
    "Amounts are what an API key would have paid: logs do not say what a plan paid.",
  ];
}

function describeReport(report: HistoryReport, query: HistoryFilter, history: History) {
  const { rows, total, unpriced, tools } = report;
  const { by, since, until, zone } = query;
  const { unread, damaged, tooLong } = history;
  const lacks = Object.fromEntries(tools.map((tool) => [tool, describeLack(tool)]));
  const head = { by: by.join(","), since, until, timezone: zone.name };
  return {
    ...head,
    rows,
    total,
    unpriced,
    lacks,
    unread,
    damaged,
    too_long: tooLong,
  };
}

const SUMS = [
  ...(["official_usd", "only_logs_usd", "only_ledger_usd", "both_usd"] as const),
  ...(["cache_hit_rate", "unpriced", "unknown", "partial"] as const),
];

function describeUnread({ unread, damaged, tooLong }: History): (string | false)[] {
  const [first, ...others] = unread;
  const more = others.length > 0 ? `; and ${formatCount(others.length, "file")} more` : "";
  return [
    first !== undefined && `A log could not be read: ${first}${more}.`,
    damaged > 0 && `${formatCount(damaged, "damaged line")} of the logs not counted.`,
    tooLong > 0 && `${formatCount(tooLong, "line")} of the logs too long to be read, and not counted.`,
  ];
}
