// `gateway cache`: what prompts missed in their caches, as tables or as JSON.

import {
  type CacheReport,
  type CauseRow,
  type MissRow,
  type MissTotals,
  reportCache,
} from "../../billing/reports/cache.ts";
import { describeCause } from "../../billing/reports/words.ts";
import { type BetterLifetime, findBetterLifetimes } from "../../billing/reports/lifetimes.ts";
import { openConfigUnless } from "../access/config.ts";
import { readCurrentPrices } from "./in-use.ts";
import { type ListColumn, printRows } from "../terminal/listing.ts";
import { print, printJson, printNote } from "../terminal/terminal.ts";
import { formatAmount, formatCount, shortenSession } from "../terminal/text.ts";
import { readUsageQuery, reportUnreadable, type UsageFlags } from "./usage.ts";
import { formatUsd } from "../../lib/money.ts";

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

const NUMBERS: ReadonlyArray<ListColumn<MissTotals>> = [
  ["MISSES", "misses", "count", { spare: 2 }],
  ["MISSED", "missed_tokens", "count"],
  ["COST $", "usd", "usd"],
];

function printReport({ rows, causes, persistent, total }: CacheReport): void {
  const sum = { session: "total", label: null, tool: null, model: "", causes: [], ...total };
  printRows<Omit<MissRow, "channel">>(
    [...rows, sum],
    [
      [
        "SESSION",
        ({ session: id }) => (id === null ? "(no session)" : shortenSession(id)),
        "text",
        { name: true },
      ],
      ["LABEL", "label", "text", { spare: 5, most: 32 }],
      ["TOOL", "tool", "text", { spare: 4 }],
      ["MODEL", "model", "text", { spare: 1 }],
      ...NUMBERS,
      ["MOSTLY BECAUSE", ({ causes: [first] }) => first && describeCause(first), "text", { spare: 3 }],
    ],
  );
  print("");
  printRows<CauseRow>(causes, [["CAUSE", describeCause, "text", { name: true }], ...NUMBERS]);
  const { unpriced_tokens: unpriced } = total;
  if (unpriced > 0)
    printNote(`${formatCount(unpriced, "missed token")} ${unpriced === 1 ? "has" : "have"} no price.`);
  // Once for each cause: what helps is the same in every session.
  for (const [text, help] of new Map(persistent.map((cause) => [describeCause(cause), cause.help])))
    if (help !== null) printNote(`Again and again: ${text}. What helps: ${help}.`);
}

type Settings = Readonly<Record<BetterLifetime["name"], string>>;

/** Claude Code's settings were measured with 2.1.329, and pi documents its own. Null: a tool whose marks name no lifetime
 *  and that has no setting (opencode 1.18.33). */
const LIFETIME_SETTINGS: Readonly<Record<string, Settings | null>> = {
  "claude-code": { one_hour: "ENABLE_PROMPT_CACHING_1H=1", five_minutes: "FORCE_PROMPT_CACHING_5M=1" },
  pi: { one_hour: "PI_CACHE_RETENTION=long", five_minutes: "PI_CACHE_RETENTION=short" },
  opencode: null,
};

const LIFETIME_FIELDS: Settings = {
  one_hour: '`"ttl": "1h"` in its `cache_control`',
  five_minutes: '`"ttl": "5m"` in its `cache_control`',
};

/** The setting with which a tool asks for a lifetime. Null: it has none. */
function nameLifetimeSetting(tool: string | null, lifetime: BetterLifetime["name"]): string | null {
  const settings = LIFETIME_SETTINGS[tool ?? ""];
  return settings === null ? null : (settings ?? LIFETIME_FIELDS)[lifetime];
}

const LIFETIME_WORDS = { five_minutes: "5 minutes", one_hour: "1 hour" };

/** How much cheaper another lifetime would have been, and the setting. */
export function adviseOnLifetime({ tool, label, name, saved, asItWas }: BetterLifetime): string {
  const who = [tool ?? "Requests without a tool", ...(label === null ? [] : [`(${label})`])].join(" ");
  const amounts = `$${formatAmount(formatUsd(saved))} of $${formatAmount(formatUsd(asItWas))}`;
  const setting = nameLifetimeSetting(tool, name);
  const help = setting === null ? `${tool} has no setting for it` : `Set ${setting}`;
  return `${who}: a cache of ${LIFETIME_WORDS[name]} would have saved ${amounts}. ${help}.`;
}
