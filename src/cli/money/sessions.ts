// `gateway sessions` and `sessions show`.

import { findHourSavings } from "../../billing/reports/cache.ts";
import {
  reportSession,
  reportSessions,
  type SessionDocument,
  type SessionRow,
} from "../../billing/reports/sessions.ts";
import { ALL, describeHead, type Totals } from "../../billing/reports/sums.ts";
import { describeCause, describeRise, listTree } from "../../billing/reports/words.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS, type UsageKind } from "../../billing/usage.ts";
import type { Zone } from "../../lib/text/zone.ts";
import { drawRows, type ListColumn } from "../terminal/listing.ts";
import { fail } from "../terminal/terminal.ts";
import { formatAmount, formatCount, shortenId, shortenSession } from "../terminal/text.ts";
import { adviseOnHour } from "./cache.ts";
import { findSession, type ReportFlags, type Shown, showReport } from "./show.ts";
import { listPlanColumns } from "./usage.ts";

export interface SessionsFlags extends ReportFlags {
  readonly all?: true;
}

interface ShowSessionFlags extends ReportFlags {
  readonly turns?: true;
}

const MAX_SHOWN = 20;
/** Shorter ids could look alike, because some begin with a time. */
const ID_LENGTH = 13;

export function listSessionSpending(flags: SessionsFlags): void {
  showReport(flags, ({ table, scope, clock: { zone } }): Shown => {
    const most = flags.all === true || flags.json === true ? Infinity : MAX_SHOWN;
    const report = reportSessions(table, { ...scope, most });
    const { sessions, more = 0, no_session: none, total } = report;
    const rows: readonly SessionLine[] = [
      ...sessions,
      ...(none === null ? [] : [{ ...none, session: "no session" }]),
      { ...total, session: "total" },
    ];
    return {
      document: { by: "session", ...describeHead(scope, zone), ...report },
      parts: () => [
        drawRows(sessions.length === 0 ? [] : rows, [
          ["LAST USED", ({ until }) => until && formatMinute(until, zone), "text", { spare: 3 }],
          ["SESSION", ({ session }) => shortenSession(session, ID_LENGTH)],
          ["TOOL", ({ until, tool }) => until && (tool ?? "-"), "text", { spare: 4 }],
          ["LABEL", ({ until, label }) => until && (label ?? "-")],
          ...listSums(rows, ["AGENTS", "agents", "count", { spare: 5 }]),
        ]),
      ],
      notes: () => [
        sessions.length === 0 && "No sessions in this period.",
        more > 0 && `The newest ${most} of ${formatCount(most + more, "session")}. --all shows every one.`,
      ],
    };
  });
}

type SessionLine = Totals & Partial<SessionRow> & { readonly session: string };

function listSums<Line extends Partial<Totals>>(
  lines: readonly Line[],
  more: ListColumn<Line>,
): ListColumn<Line>[] {
  const sum = (kinds: readonly UsageKind[]) => (row: Line) => row.usage && countTokens(row.usage, kinds);
  return [
    ["REQUESTS", "requests", "count", { spare: 2 }],
    ["INPUT", sum(PROMPT_KINDS), "count", { spare: 6 }],
    ["CACHED", "cache_hit_rate", "rate", { spare: 1 }],
    ["OUTPUT", sum(OUTPUT_KINDS), "count", { spare: 7 }],
    more,
    ["CHARGED $", "charge_usd", "usd"],
    ...listPlanColumns(lines),
  ];
}

function formatMinute(time: string, zone: Zone): string {
  return new Date(zone.toLocal(Date.parse(time))).toISOString().slice(5, 16).replace("T", " ");
}

export function showSession(words: string, flags: ShowSessionFlags): void {
  showReport(flags, ({ table, clock: { zone } }): Shown => {
    const session = findSession(table, words);
    const document = reportSession(table, { session, hasTurns: flags.turns === true });
    if (document === null) return fail(`There is no session ${words} in ${table.path}.`);
    return {
      document,
      parts: () => [
        ...describeSession(document, zone),
        drawAgents(document),
        drawStarted(document),
        drawMisses(document, zone),
        drawTurns(document, zone),
      ],
      notes: () => findHourSavings(table, { ...ALL, only: { session } }).map(adviseOnHour),
    };
  });
}

function describeSession(report: SessionDocument, zone: Zone): string[] {
  const { session, since, until, tool, label, key, inferred, windows } = report;
  const facts = [
    tool ?? "unknown tool",
    ...(label === null ? [] : [`label "${label}"`]),
    `key ${key}`,
    `${formatMinute(since, zone)} to ${formatMinute(until, zone)}`,
  ];
  return [
    `Session ${session}${inferred ? " (the tool did not name it)" : ""}`,
    `  ${facts.join(", ")}`,
    ...(windows === undefined ? [] : ["", describeRise(windows)]),
  ];
}

function drawAgents({ agents, misses, ...total }: SessionDocument): string[] {
  const places = listTree(agents).map(({ row, depth }) => {
    if (row === null) return { name: "main agent (no requests)" };
    const name = row.agent === null ? "main agent" : `${"  ".repeat(depth)}${row.agent}`;
    return { ...row, name, misses: row.cache_misses || null };
  });
  const rows: readonly AgentLine[] = [
    ...places,
    {
      ...total,
      name: "total",
      misses: misses.length || null,
    },
  ];
  return drawRows(rows, [
    ["AGENT", "name"],
    ["MODEL", "model", "text", { spare: 3 }],
    ...listSums(rows, ["MISSES", "misses", "count", { spare: 4 }]),
  ]);
}

type AgentLine = Partial<Totals> & {
  readonly name: string;
  readonly model?: string;
  readonly misses?: number | null;
};

function drawStarted({ started }: SessionDocument): string[] {
  return drawRows(started, [
    ["STARTED SESSION", "session"],
    ...listSums(started, ["MISSED", ({ missed }) => missed || null, "count", { spare: 4 }]),
  ]);
}

type Event = Pick<SessionDocument["misses"][number], "time" | "id" | "agent">;

function listEventColumns(zone: Zone, title: string): ListColumn<Event>[] {
  return [
    [title, ({ time }) => formatMinute(time, zone)],
    ["ID", ({ id }) => shortenId(id)],
    ["AGENT", ({ agent }) => agent ?? "main agent", "text", { spare: 1 }],
  ];
}

function drawMisses({ misses }: SessionDocument, zone: Zone): string[] {
  return drawRows<SessionDocument["misses"][number]>(misses, [
    ...listEventColumns(zone, "CACHE MISSED"),
    ["TOKENS", "missed", "count"],
    ["COST $", "usd", "usd"],
    ["BECAUSE", describeCause],
  ]);
}

function drawTurns({ turns = [] }: SessionDocument, zone: Zone): string[] {
  return drawRows<(typeof turns)[number]>(turns, [
    ...listEventColumns(zone, "TIME"),
    ["MODEL", "model", "text", { spare: 4 }],
    ["INPUT", "input", "count", { spare: 5 }],
    ["CACHED", ({ input, cached }) => (input === 0 ? null : cached / input), "rate", { spare: 2 }],
    ["OUTPUT", "output", "count", { spare: 6 }],
    ["CHARGED $", ({ charge_usd: usd, basis }) => (usd === null ? basis : formatAmount(usd)), "exact"],
  ]);
}
