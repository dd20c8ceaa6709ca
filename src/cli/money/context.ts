// `gateway context`: what a session's prompts consisted of.

import { reportContext, reportServers } from "../../billing/reports/context.ts";
import { type Columns, drawRows } from "../terminal/listing.ts";
import { fail } from "../terminal/terminal.ts";
import { formatAmount, formatCount, shortenId } from "../terminal/text.ts";
import { findSession, type ReportFlags, type Shown, showReport } from "./show.ts";

const COSTS: Columns<{ readonly official_usd: string; readonly charge_usd: string }> = [
  ["OFFICIAL $", "official_usd", "usd", { spare: 3 }],
  ["CHARGED $", "charge_usd", "usd"],
];

export function showContext(words: string | undefined, flags: ReportFlags): void {
  showReport(flags, ({ table }): Shown => {
    const session = findSession(table, words ?? "last");
    const found = reportContext(table, session);
    if (found === null)
      return fail(
        `Nothing is known of the prompts of session ${session}: the config has \`context: off\`, ` +
          "the upstream keeps the conversation, or no notes are there (any more).",
      );
    const { document, groups, idle } = found;
    const { tokens, turns, largest_results: results, never_called: names, not_known: leftOut } = document;
    const share = (row: (typeof groups)[number]): string =>
      tokens === 0 ? "" : `${Math.round((row.tokens / tokens) * 100)}%`;
    return {
      document,
      parts: () => [
        `Session ${session}: ${formatCount(turns.length, "prompt")}`,
        drawRows<(typeof groups)[number]>(
          [...groups, { ...document, what: "total", sent: 0 }],
          [
            ["PART", "what"],
            ["SENT", ({ sent }) => sent || null, "count", { spare: 2 }],
            ["TOKENS", "tokens", "count"],
            ["SHARE", share, "exact", { spare: 1 }],
            ...COSTS,
          ],
        ),
        drawResults(results),
        ...(idle === undefined
          ? []
          : ["", `Unused tools cost $${formatAmount(idle.official_usd)} (official): ${names.join(", ")}`]),
      ],
      notes: () => [
        "Estimated: the tokens of a prompt are divided among its parts by their lengths.",
        leftOut > 0 && `Not known: the parts or the price of ${formatCount(leftOut, "request")}.`,
      ],
    };
  });
}

export function showServers(flags: ReportFlags): void {
  showReport(flags, ({ table, scope }): Shown => {
    const document = reportServers(table, scope);
    const { servers } = document;
    return {
      document,
      parts: () => [
        drawRows<(typeof servers)[number]>(servers, [
          ["MCP SERVER", "server"],
          ["TOOLS", "tools", "count", { spare: 2 }],
          ["CALLED", "called", "count", { spare: 3 }],
          ["SESSIONS", "sessions", "count", { spare: 1 }],
          ["TOKENS", "tokens", "count"],
          ...COSTS,
        ]),
      ],
      notes: () => [
        servers.length === 0
          ? "No session of this period has tools of an MCP server."
          : "Estimated. Sessions of the period are counted in full.",
      ],
    };
  });
}

type Results = NonNullable<ReturnType<typeof reportContext>>["document"]["largest_results"];

function drawResults(results: Results): string[] {
  return drawRows<Results[number]>(results, [
    ["LARGEST RESULTS", ({ name }) => name || "unknown tool"],
    ["FIRST IN", ({ id }) => shortenId(id)],
    ["TOKENS", "tokens", "count"],
    ["SENT", "sent", "count", { spare: 1 }],
    ...COSTS,
  ]);
}
