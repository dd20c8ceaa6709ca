// `gateway cache`: what prompts missed in their caches, as tables or as JSON.

import {
  type CacheReport,
  type CauseRow,
  type MissRow,
  type MissTotals,
  reportCache,
} from "../../../billing/reports/cache.ts";
import { describeCause } from "../../../billing/reports/words.ts";
import { findBetterLifetimes } from "../../../billing/reports/lifetimes.ts";
import { openConfigUnless } from "../../access/config.ts";
import { readCurrentPrices } from "../prices/in-use.ts";
import { type Column, number, printTable } from "../../terminal/table.ts";
import { print, printJson, printNote } from "../../terminal/terminal.ts";
import { formatAmount, formatCount, shortenSession } from "../../terminal/text.ts";
import { readUsageQuery, reportUnreadable, type UsageFlags } from "../usage/usage.ts";
import { adviseOnLifetime } from "./cache-advice.ts";

export interface CacheFlags extends Omit<UsageFlags, "by" | "csv"> {
  readonly tool?: string;
  readonly session?: string;
  readonly label?: string;
}

export function showCache(flags: CacheFlags): void {
  const { period, only, clock, ...opened } = readUsageQuery({ ...flags, by: "model" });
  using table = opened.table;
  const scope = { ...period, only };
  const report = reportCache(table, scope, clock.zone);
  if (flags.json === true) return printJson(report);
  if (report.requests === 0) printNote("No requests in this period.");
  else if (report.rows.length === 0)
    printNote(`Nothing was missed in ${formatCount(report.requests - report.unanalysed, "request")}.`);
  else printReport(report);
  const prices = readCurrentPrices(openConfigUnless(flags.ledger !== undefined, flags));
  for (const better of findBetterLifetimes(table, scope, prices)) printNote(adviseOnLifetime(better));
  if (report.unanalysed > 0) printNote(describeOlder(report.unanalysed));
  reportUnreadable(report);
}

/** Lines of 0.1.0 name no session. */
function describeOlder(count: number): string {
  return `${formatCount(count, "request")} of version 0.1.0 ${count === 1 ? "was" : "were"} not analysed.`;
}

const NUMBERS: ReadonlyArray<Column<MissTotals>> = [
  number("MISSES", ({ misses }) => misses.toLocaleString("en-US"), 2),
  number("MISSED", (row) => row.missed_tokens.toLocaleString("en-US")),
  number("COST $", ({ usd }) => formatAmount(usd)),
];

function printReport({ rows, causes, persistent, total }: CacheReport): void {
  const sum = { session: "total", label: null, tool: null, model: "", causes: [], ...total };
  printTable<Omit<MissRow, "channel">>(
    [...rows, sum],
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
        read: ({ causes: [first] }) => (first === undefined ? "" : describeCause(first)),
      },
    ],
  );
  print("");
  printTable<CauseRow>(causes, [{ title: "CAUSE", name: true, read: describeCause }, ...NUMBERS]);
  const { unpriced_tokens: unpriced } = total;
  if (unpriced > 0)
    printNote(`${formatCount(unpriced, "missed token")} ${unpriced === 1 ? "has" : "have"} no price.`);
  // Once for each cause: what helps is the same in every session.
  for (const [text, help] of new Map(persistent.map((cause) => [describeCause(cause), cause.help])))
    if (help !== null) printNote(`Again and again: ${text}. What helps: ${help}.`);
}
