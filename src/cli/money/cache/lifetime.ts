// `gateway cache --lifetime`: what prompt caches with another lifetime would have cost.

import { readRowsSince } from "../../../billing/index/ledger-index.ts";
import {
  compareLifetimes,
  describeLifetimes,
  findBetter,
  type LifetimeReport,
  type LifetimeRow,
  type LifetimeTotals,
} from "../../../billing/report/lifetimes.ts";
import type { Row } from "../../../billing/ledger/row.ts";
import { formatUsd, type Usd } from "../../../lib/money.ts";
import { openConfigUnless } from "../../access/config.ts";
import { number, printTable } from "../../terminal/table.ts";
import { print, printJson, printNote } from "../../terminal/terminal.ts";
import { formatAmount, formatCount } from "../../terminal/text.ts";
import { readCurrentPrices } from "../prices/in-use.ts";
import { describeQuery, readUsageQuery, type UsageQuery } from "../usage/usage.ts";
import { adviseOnLifetimes, nameLifetimeSetting } from "./cache-advice.ts";
import type { CacheFlags } from "./cache.ts";

export function showLifetimes(flags: CacheFlags): void {
  const query = readUsageQuery({ ...flags, by: "tool" });
  const prices = readCurrentPrices(openConfigUnless(flags.ledger !== undefined, flags));
  const report = compareLifetimes(listWanted(query), prices);
  if (flags.json === true) printLifetimesJson(report, query);
  else if (report.rows.length === 0)
    printNote("No request of this period has written to a cache whose lifetime can be chosen.");
  else printLifetimes(report);
}

function* listWanted({ index, period, only }: UsageQuery): Generator<Row, void> {
  const { since, until } = period;
  for (const row of readRowsSince(index(), since)) {
    const names: Readonly<Record<string, unknown>> = { ...row, ...row.client };
    if (until !== null && row.time >= until) continue;
    if (Object.entries(only).every(([name, wanted]) => names[name] === wanted)) yield row;
  }
}

function printLifetimesJson({ rows, total, leftOut }: LifetimeReport, query: UsageQuery): void {
  const { by: _by, ...described } = describeQuery(query);
  printJson({
    ...described,
    rows: rows.map((row) => {
      const better = findBetter(row);
      return {
        tool: row.tool,
        label: row.label,
        had: row.had,
        ...describeLifetimes(row.totals),
        better: better && {
          lifetime: better.name,
          saved_usd: formatUsd(better.saved),
          setting: nameLifetimeSetting(row.tool, better.name),
        },
      };
    }),
    total: describeLifetimes(total),
    not_compared: leftOut,
  });
}

type Shown = Pick<LifetimeRow, "tool" | "totals"> & { readonly label: string | null };

function printLifetimes({ rows, total, leftOut }: LifetimeReport): void {
  const usd = (title: string, read: (totals: LifetimeTotals) => Usd) =>
    number<Shown>(title, ({ totals }) => formatAmount(formatUsd(read(totals))));
  printTable<Shown>(
    [...rows, { tool: "total", label: "", totals: total }],
    [
      { title: "TOOL", read: ({ tool }) => tool ?? "no tool" },
      { title: "LABEL", name: true, read: ({ label }) => label ?? "no label" },
      number("REQUESTS", ({ totals }) => totals.requests.toLocaleString("en-US"), 1),
      number("PAUSES >5M", ({ totals }) => totals.pauses.toLocaleString("en-US"), 2),
      number("PAUSES >1H", ({ totals }) => totals.longPauses.toLocaleString("en-US"), 3),
      usd("AS IT WAS $", ({ asItWas }) => asItWas),
      usd("5 MINUTES $", (totals) => totals.five_minutes),
      usd("1 HOUR $", (totals) => totals.one_hour),
      usd("KEPT ALIVE $", (totals) => totals.kept_alive),
    ],
  );
  print("");
  const advice = adviseOnLifetimes({ rows, total, leftOut });
  for (const { text, help } of advice) print(`${text} ${help}.`);
  if (advice.length === 0) print("No other lifetime would have been cheaper.");
  printNote(
    "Computed from the pauses between the requests of each agent. Kept alive: 5 minutes, and up to two requests in a pause, " +
      `also after an agent's last request (here ${total.pings.toLocaleString("en-US")}), that read prompts of 20,000 tokens and more again. No tool has a setting for it.`,
  );
  if (leftOut > 0)
    printNote(
      `Not compared: ${formatCount(leftOut, "request")} without a price, paid by a plan, or with several passes.`,
    );
}
