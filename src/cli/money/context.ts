// `gateway context`: what the prompts of a session consisted of, in tokens and dollars.

import {
  addCost,
  type ContextReport,
  type PartCost,
  describePart,
  groupParts,
  nameServer,
  openCost,
  type PartGroup,
  type PartTotals,
  readContext,
} from "../../billing/reports/context.ts";
import { reportSessions } from "../../billing/reports/sessions.ts";
import { formatDecimal } from "../../lib/money.ts";
import { type ListColumn, printRows } from "../terminal/listing.ts";
import { fail, print, printJson, printNote } from "../terminal/terminal.ts";
import { formatAmount, formatCount, shortenId } from "../terminal/text.ts";
import { findSession, readUsageQuery, type UsageFlags } from "./usage.ts";

export type ContextFlags = Pick<UsageFlags, "ledger" | "config" | "json">;

export interface ServersFlags extends ContextFlags, Pick<UsageFlags, "period" | "since" | "until"> {}

export function showContext(words: string | undefined, flags: ContextFlags): void {
  using table = readUsageQuery({ ...flags, by: "session" }).table;
  const id = findSession(table, words ?? "last");
  const report = readContext(table, id);
  if (report.turns.length === 0)
    fail(
      `Nothing is known of what the prompts of session ${id} consisted of. ` +
        "It is noted a second after each request with a session, unless the config says `context: off`.",
    );
  if (flags.json === true) printContextJson(id, report);
  else printContext(id, report);
}

function printContextJson(
  session: string,
  { turns, parts, neverCalled, results, ...rest }: ContextReport,
): void {
  printJson({
    session,
    estimated: true,
    tokens: rest.tokens,
    ...describeCost(rest),
    parts: parts.map(describePart),
    never_called: neverCalled.map(({ name }) => name),
    largest_results: results.map(({ name, id, tokens, sent, ...cost }) => {
      return { name, id, tokens, sent, ...describeCost(cost) };
    }),
    turns: turns.map(({ time, id, agent, tokens }) => ({
      time,
      id,
      agent: agent === "" ? null : agent,
      tokens,
    })),
    not_known: rest.leftOut,
  });
}

function describeCost({ official, charge }: PartCost) {
  return { official_usd: formatDecimal(official), charge_usd: formatDecimal(charge) };
}

/** A session that a plan paid has no charges. */
const COSTS: ReadonlyArray<ListColumn<PartCost>> = [
  ["OFFICIAL $", ({ official }) => formatDecimal(official), "usd", { spare: 3 }],
  ["CHARGED $", ({ charge }) => formatDecimal(charge), "usd"],
];

function printContext(session: string, report: ContextReport): void {
  const { turns, parts, tokens, official, charge, neverCalled, results, leftOut } = report;
  print(`Session ${session}: ${formatCount(turns.length, "prompt")}`);
  print("");
  const total = { what: "total", sent: 0, tokens, official, charge };
  printRows<PartGroup>(
    [...groupParts(parts), total],
    [
      ["PART", "what", "text", { name: true }],
      ["SENT", ({ sent }) => sent || null, "count", { spare: 2 }],
      ["TOKENS", "tokens", "count"],
      [
        "SHARE",
        (row) => (tokens === 0 ? "" : `${Math.round((row.tokens / tokens) * 100)}%`),
        "exact",
        { spare: 1 },
      ],
      ...COSTS,
    ],
  );
  if (results.length > 0) print("");
  if (results.length > 0)
    printRows<ContextReport["results"][number]>(results, [
      ["LARGEST RESULTS", ({ name }) => name || "unknown tool", "text", { name: true }],
      ["FIRST IN", ({ id }) => shortenId(id), "text", { least: 9 }],
      ["TOKENS", "tokens", "count"],
      ["SENT", "sent", "count", { spare: 1 }],
      ...COSTS,
    ]);
  printNeverCalled(neverCalled);
  printNote("Estimated: the reported tokens of each prompt are divided among its parts by their lengths.");
  if (leftOut > 0) printNote(`Not known: the parts or the price of ${formatCount(leftOut, "request")}.`);
}

function printNeverCalled(tools: readonly PartTotals[]): void {
  if (tools.length === 0) return;
  const sum = openCost();
  for (const tool of tools) addCost(sum, tool);
  const official = formatAmount(formatDecimal(sum.official));
  print("");
  print(`Never called, for $${official} (official): ${tools.map(({ name }) => name).join(", ")}`);
}

interface ServerTotals extends PartCost {
  readonly server: string;
  readonly tools: Set<string>;
  readonly called: Set<string>;
  sessions: number;
  tokens: number;
}

/** What the definitions of each server's tools cost in a period. */
export function showServers(word: string | undefined, flags: ServersFlags) {
  const { period, ...opened } = readUsageQuery({
    ...flags,
    ...(word !== undefined && { period: word }),
    by: "session",
  });
  using table = opened.table;
  const servers = new Map<string, ServerTotals>();
  for (const { session } of reportSessions(table, period).sessions)
    addServers(servers, readContext(table, session));
  const rows = [...servers.values()]
    .toSorted((a, b) => b.tokens - a.tokens)
    .map(({ server, tools, called, sessions, tokens, ...cost }) => {
      return { server, tools: tools.size, called: called.size, sessions, tokens, ...describeCost(cost) };
    });
  return {
    rows,
    document: { ...period, servers: rows },
    empty: "No session of this period has sent the tools of an MCP server.",
    notes: ["Estimated. Of the sessions of the period, whole sessions are counted."],
  };
}

function addServers(servers: Map<string, ServerTotals>, { parts, neverCalled }: ContextReport): void {
  const idle = new Set(neverCalled);
  const seen = new Set<string>();
  for (const part of parts) {
    const server = part.kind === "tool" ? nameServer(part.name) : null;
    if (server === null) continue;
    const none = {
      server,
      tools: new Set<string>(),
      called: new Set<string>(),
      sessions: 0,
      tokens: 0,
      ...openCost(),
    };
    const known = servers.get(server) ?? none;
    servers.set(server, known);
    known.tools.add(part.name);
    if (!idle.has(part)) known.called.add(part.name);
    if (!seen.has(server)) known.sessions += 1;
    seen.add(server);
    known.tokens += part.tokens;
    addCost(known, part);
  }
}
