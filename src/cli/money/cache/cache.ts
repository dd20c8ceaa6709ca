// `gateway cache`: what prompts missed in their caches, as tables or as JSON.

import {
  type CauseRow,
  describeMisses,
  listPersistent,
  type MissReport,
  type MissRow,
  type MissTotals,
  reportMisses,
} from "../../../billing/report/cache-misses.ts";
import { adviseOn, describeCause } from "../../../billing/report/cache-causes.ts";
import { compareLifetimes } from "../../../billing/report/lifetimes.ts";
import { readRowsSince } from "../../../billing/index/ledger-index.ts";
import type { Row } from "../../../billing/ledger/row.ts";
import { formatUsd } from "../../../lib/money.ts";
import { openConfigUnless } from "../../access/config.ts";
import { readCurrentPrices } from "../prices/in-use.ts";
import { type Column, number, printTable } from "../../terminal/table.ts";
import { print, printJson, printNote } from "../../terminal/terminal.ts";
import { formatAmount, formatCount, shortenSession } from "../../terminal/text.ts";
import {
  describeQuery,
  readUsageQuery,
  reportUnreadable,
  type UsageFlags,
  type UsageQuery,
} from "../usage/usage.ts";
import { adviseOnLifetimes } from "./cache-advice.ts";

export interface CacheFlags extends Omit<UsageFlags, "by" | "csv"> {
  readonly tool?: string;
  readonly session?: string;
  readonly label?: string;
}

export function showCache(flags: CacheFlags): void {
  const query = readUsageQuery({ ...flags, by: "model" });
  const { index, period, only, clock } = query;
  const report = reportMisses(index(), { ...period, only, zone: clock.zone });
  if (flags.json === true) {
    const { by: _by, ...described } = describeQuery(query);
    printJson({ ...described, ...describeReport(report) });
    return;
  }
  if (report.requests === 0) printNote("No requests in this period.");
  else if (report.rows.length === 0)
    printNote(`Nothing was missed in ${formatCount(report.requests - report.older, "request")}.`);
  else printReport(report);
  const prices = readCurrentPrices(openConfigUnless(flags.ledger !== undefined, flags));
  for (const { text, help } of adviseOnLifetimes(compareLifetimes(listWanted(query), prices)))
    printNote(`${text} ${help}.`);
  if (report.older > 0) printNote(describeOlder(report.older));
  reportUnreadable(report);
}

function* listWanted({ index, period, only }: UsageQuery): Generator<Row, void> {
  const { since, until } = period;
  for (const row of readRowsSince(index(), since)) {
    const names: Readonly<Record<string, unknown>> = { ...row, ...row.client };
    if (until !== null && row.time >= until) continue;
    if (Object.entries(only).every(([name, wanted]) => names[name] === wanted)) yield row;
  }
}

/** Lines of 0.1.0 name no session. */
function describeOlder(count: number): string {
  return `${formatCount(count, "request")} of version 0.1.0 ${count === 1 ? "was" : "were"} not analysed.`;
}

function describeReport(report: MissReport): Record<string, unknown> {
  const describeRow = ({ cause, totals }: CauseRow) => ({ ...cause, ...describeMisses(totals) });
  return {
    requests: report.requests,
    unanalysed: report.older,
    rows: report.rows.map(({ causes, totals, ...row }) => ({
      ...row,
      ...describeMisses(totals),
      causes: causes.map(describeRow),
    })),
    causes: report.causes.map(describeRow),
    persistent: listPersistent(report).map(({ row: { session, channel, model }, cause }) => ({
      session,
      channel,
      model,
      ...describeRow(cause),
      help: adviseOn(cause.cause),
    })),
    total: describeMisses(report.total),
    unreadable: report.unreadable,
  };
}

interface Counted {
  readonly totals: MissTotals;
}

const NUMBERS: ReadonlyArray<Column<Counted>> = [
  number("MISSES", ({ totals }) => totals.misses.toLocaleString("en-US"), 2),
  number("MISSED", ({ totals }) => totals.tokens.toLocaleString("en-US")),
  number("COST $", ({ totals }) => formatAmount(formatUsd(totals.cost))),
];

function printReport(report: MissReport): void {
  const total = { session: "total", label: null, tool: null, model: "", causes: [], totals: report.total };
  printTable<Omit<MissRow, "channel">>(
    [...report.rows, total],
    [
      {
        title: "SESSION",
        name: true,
        read: ({ session }) => (session === null ? "(no session)" : shortenSession(session)),
      },
      { title: "LABEL", spare: 5, most: 32, read: ({ label }) => label ?? "" },
      { title: "TOOL", spare: 4, read: ({ tool }) => tool ?? "" },
      { title: "MODEL", spare: 1, read: ({ model }) => model },
      ...NUMBERS,
      {
        title: "MOSTLY BECAUSE",
        spare: 3,
        read: ({ causes }) => causes.map(({ cause }) => describeCause(cause))[0] ?? "",
      },
    ],
  );
  print("");
  printTable<CauseRow>(report.causes, [
    { title: "CAUSE", name: true, read: ({ cause }) => describeCause(cause) },
    ...NUMBERS,
  ]);
  if (report.total.unpricedTokens > 0)
    printNote(
      `${formatCount(report.total.unpricedTokens, "missed token")} ${report.total.unpricedTokens === 1 ? "has" : "have"} no price.`,
    );
  printPersistent(report);
}

/** Once for each cause: what helps is the same in every session. */
function printPersistent(report: MissReport): void {
  const causes = new Map(
    listPersistent(report).map(({ cause }) => [describeCause(cause.cause), cause.cause]),
  );
  for (const [text, cause] of causes) {
    const help = adviseOn(cause);
    if (help !== null) printNote(`Again and again: ${text}. What helps: ${help}.`);
  }
}
