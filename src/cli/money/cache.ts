// `gateway cache`: what prompts missed in their caches.

import {
  type CacheReport,
  type CauseRow,
  findHourSavings,
  type MissTotals,
  reportCache,
} from "../../billing/reports/cache.ts";
import { describeCause } from "../../billing/reports/words.ts";
import { type Columns, drawRows } from "../terminal/listing.ts";
import { formatAmount, formatCount, shortenSession } from "../terminal/text.ts";
import { type ReportFlags, type Shown, showReport } from "./show.ts";

export function showCache(flags: ReportFlags): void {
  showReport(flags, ({ table, scope, clock }): Shown => {
    const document = reportCache(table, scope, clock.zone);
    return {
      document,
      parts: () => (document.rows.length === 0 ? [] : drawReport(document)),
      notes: () => [
        ...describeMisses(document),
        ...findHourSavings(table, scope).map(adviseOnHour),
        ...(document.unanalysed === 0
          ? []
          : [`Not analysed: ${formatCount(document.unanalysed, "request")} of version 0.1.0.`]),
      ],
    };
  });
}

const NUMBERS: Columns<MissTotals> = [
  ["MISSES", "misses", "count", { spare: 2 }],
  ["MISSED", "missed_tokens", "count"],
  ["COST $", formatCost, "exact"],
];

function formatCost({ usd, missed_tokens, unpriced_tokens }: MissTotals): string {
  return unpriced_tokens === missed_tokens ? "unpriced" : formatAmount(usd);
}

type Line = MissTotals & Partial<CacheReport["rows"][number]>;

function drawReport({ rows, causes, total }: CacheReport): string[][] {
  const name = ({ session }: Line): string =>
    session === undefined ? "total" : session === null ? "(no session)" : shortenSession(session);
  return [
    drawRows<Line>(
      [...rows, total],
      [
        ["SESSION", name],
        ["LABEL", "label", "text", { spare: 5 }],
        ["TOOL", "tool", "text", { spare: 4 }],
        ["MODEL", "model", "text", { spare: 1 }],
        ...NUMBERS,
        ["MOSTLY BECAUSE", ({ causes: [first] = [] }) => first && describeCause(first), "text", { spare: 3 }],
      ],
    ),
    drawRows<CauseRow>(causes, [["CAUSE", describeCause], ...NUMBERS]),
  ];
}

function describeMisses({ requests, unanalysed, rows, persistent, total }: CacheReport): string[] {
  if (requests === 0) return ["No requests in this period."];
  if (rows.length === 0) return [`Nothing was missed in ${formatCount(requests - unanalysed, "request")}.`];
  const causes = new Map(persistent.map((cause) => [describeCause(cause), cause.help]));
  const unpriced = total.unpriced_tokens;
  return [
    ...(unpriced === 0 ? [] : [`Without a price: ${formatCount(unpriced, "missed token")}.`]),
    ...[...causes].flatMap(([text, help]) =>
      help === null ? [] : [`Again and again: ${text}. What helps: ${help}.`],
    ),
  ];
}

/** Measured with Claude Code 2.1.329 and opencode 1.18.33; pi documents its setting. */
const HOUR_SETTINGS: Readonly<Record<string, string>> = {
  "claude-code": "Set ENABLE_PROMPT_CACHING_1H=1",
  pi: "Set PI_CACHE_RETENTION=long",
  opencode: "opencode has no setting for it",
};

export function adviseOnHour({
  tool,
  label,
  saved_usd,
  charge_usd,
}: ReturnType<typeof findHourSavings>[number]): string {
  const who = [tool || "Requests without a tool", ...(label === "" ? [] : [`(${label})`])].join(" ");
  const amounts = `$${formatAmount(saved_usd)} of $${formatAmount(charge_usd)}`;
  const help = HOUR_SETTINGS[tool] ?? 'Set `"ttl": "1h"` in its `cache_control`';
  return `${who}: a cache of 1 hour would have saved ${amounts}. ${help}.`;
}
