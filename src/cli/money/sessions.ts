// `gateway sessions` and `gateway sessions show`: what sessions and their agents have spent.

import { findBetterLifetimes } from "../../billing/reports/lifetimes.ts";
import { type AgentPlace, describeRise, listTree } from "../../billing/reports/session-words.ts";
import {
  type Miss,
  reportSession,
  reportSessions,
  type SessionReport,
  type SessionRow,
  type SessionsReport,
  type Turn,
} from "../../billing/reports/sessions.ts";
import { countKinds, describeHead, type Totals } from "../../billing/reports/sums.ts";
import { OUTPUT_KINDS, PROMPT_KINDS, type Usage } from "../../billing/usage.ts";
import type { Zone } from "../../lib/text/zone.ts";
import { findSession, listPlanColumns, readUsageQuery, reportUnreadable, type UsageFlags } from "./usage.ts";
import { openConfigUnless } from "../access/config.ts";
import { adviseOnLifetime } from "./cache.ts";
import { readCurrentPrices } from "./in-use.ts";
import { type ListColumn, printRows } from "../terminal/listing.ts";
import { fail, print, printJson, printNote } from "../terminal/terminal.ts";
import { formatAmount, formatCount, shortenId, shortenSession } from "../terminal/text.ts";

export interface SessionsFlags extends Omit<UsageFlags, "by"> {
  readonly all?: true;
}

interface ShowSessionFlags extends Pick<UsageFlags, "ledger" | "config" | "json"> {
  readonly turns?: true;
}

const BY_SESSION = { by: "session" };
const MAX_SHOWN = 20;

export function listSessionSpending(flags: SessionsFlags): void {
  const { by, period, only, clock, ...opened } = readUsageQuery({ ...flags, ...BY_SESSION });
  using table = opened.table;
  const report = reportSessions(table, { ...period, only });
  if (flags.json === true)
    return printJson({ by: by.join(","), ...describeHead({ ...period, only }, clock.zone), ...report });
  const { sessions } = report;
  if (sessions.length === 0) printNote("No sessions in this period.");
  else printSessions(flags.all === true ? sessions : sessions.slice(0, MAX_SHOWN), report, clock.zone);
  if (flags.all !== true && sessions.length > MAX_SHOWN)
    printNote(
      `The newest ${MAX_SHOWN} of ${formatCount(sessions.length, "session")}. --all shows every one.`,
    );
  reportUnreadable(report);
}

/** What a session, an agent, or some of them have spent; nothing: nothing is known of it. */
type Spending = Partial<Totals>;

/** `spares`: of turns, input, the cached share and output. */
function listSums<Line extends Spending>(
  lines: readonly Line[],
  spares: readonly number[],
  ...more: ListColumn<Line>[]
): ListColumn<Line>[] {
  const [turns = 0, input = 0, cached = 0, output = 0] = spares;
  const sum = (kinds: readonly (keyof Usage)[]) => (row: Spending) =>
    row.usage && countKinds(row.usage, kinds);
  return [
    ["TURNS", "requests", "count", { spare: turns }],
    ["INPUT", sum(PROMPT_KINDS), "count", { spare: input }],
    ["CACHED", "cache_hit_rate", "rate", { spare: cached }],
    ["OUTPUT", sum(OUTPUT_KINDS), "count", { spare: output }],
    ...more,
    ["CHARGED $", "charge_usd", "usd"],
    ...listPlanColumns(lines),
  ];
}

function printSessions(
  shown: readonly SessionRow[],
  { no_session: none, total }: SessionsReport,
  zone: Zone,
): void {
  const short = shortenNames(shown.map(({ session }) => session));
  const blank = { last: "", tool: "", label: "", agents: null };
  const lines = [
    ...shown.map((row) => ({
      ...row,
      last: formatMinute(row.until, zone),
      name: short.get(row.session) ?? "",
      tool: row.tool ?? "-",
      label: row.label ?? "-",
    })),
    ...(none === null ? [] : [{ ...none, ...blank, name: "no session" }]),
    { ...total, ...blank, name: "total" },
  ];
  const [turns, ...sums] = listSums(lines, [2, 6, 1, 7]);
  printRows(lines, [
    ["LAST USED", "last", "text", { least: 11, spare: 3 }],
    ["SESSION", "name", "text", { name: true, least: 12 }],
    ["TOOL", "tool", "text", { least: 11, spare: 4, most: 20 }],
    ["LABEL", "label", "text", { name: true, least: 10, most: 32 }],
    ...(turns === undefined ? [] : [turns]),
    ["AGENTS", "agents", "count", { spare: 5 }],
    ...sums,
  ]);
}

const MIN_NAME_LENGTH = 8;

/** Each name's beginning that no other of these names has. `gateway sessions show` accepts it. */
function shortenNames(names: readonly string[]): ReadonlyMap<string, string> {
  const sorted = names.map((name) => ({ name, text: shortenSession(name, name.length) }));
  sorted.sort((a, b) => (a.text < b.text ? -1 : 1));
  return new Map(
    sorted.map(({ name, text }, index) => {
      const near = [sorted[index - 1], sorted[index + 1]].map((other) =>
        countShared(text, other?.text ?? ""),
      );
      return [name, text.slice(0, Math.max(MIN_NAME_LENGTH, ...near.map((shared) => shared + 1)))];
    }),
  );
}

function countShared(name: string, other: string): number {
  let at = 0;
  while (at < name.length && name[at] === other[at]) at += 1;
  return at;
}

/** `11-22 14:05`, in the config's time zone. */
function formatMinute(time: string, zone: Zone): string {
  return time === ""
    ? ""
    : new Date(zone.toLocal(Date.parse(time))).toISOString().slice(5, 16).replace("T", " ");
}

export function showSession(words: string, flags: ShowSessionFlags): void {
  const { clock, ...opened } = readUsageQuery({ ...flags, ...BY_SESSION });
  using table = opened.table;
  const session = findSession(table, words);
  const report = reportSession(table, { session, hasTurns: flags.turns === true });
  if (report === null) return fail(`There is no session ${words} in ${table.path}.`);
  if (flags.json === true) return printJson(report);
  const { agents, misses, windows, windows_shared: isShared = false, turns } = report;
  printHead(report, clock.zone);
  if (windows !== undefined)
    for (const text of [describeRise({ windows, windows_shared: isShared }), ""]) print(text);
  printAgents(listTree(agents), report);
  printStarted(report.started);
  printMisses(misses, clock.zone);
  const prices = readCurrentPrices(openConfigUnless(flags.ledger !== undefined, flags));
  const scope = { since: null, until: null, only: { session } };
  for (const better of findBetterLifetimes(table, scope, prices)) printNote(adviseOnLifetime(better));
  if (turns !== undefined) printTurns(turns, clock.zone);
  reportUnreadable(table);
}

function printHead({ session, since, until, tool, label, key, inferred }: SessionReport, zone: Zone): void {
  const facts = [
    tool ?? "unknown tool",
    ...(label === null ? [] : [`label "${label}"`]),
    `key ${key}`,
    `${formatMinute(since, zone)} to ${formatMinute(until, zone)}`,
  ];
  print(`Session ${session}${inferred ? " (the tool did not name it)" : ""}`);
  print(`  ${facts.join(", ")}`);
  print("");
}

function printAgents(agents: readonly AgentPlace[], total: SessionReport): void {
  const lines = [
    ...agents.map(({ name, row, branches }) => ({
      ...row,
      name: row === null ? "main agent (no requests)" : drawPlace(name, branches),
      model: row?.model ?? "",
      misses: row?.cache_misses || null,
    })),
    { ...total, name: "total", model: "", misses: total.misses.length || null },
  ];
  printRows(lines, [
    ["AGENT", "name", "text", { name: true, least: 12 }],
    ["MODEL", "model", "text", { least: 8, spare: 3, most: 32 }],
    ...listSums(lines, [1, 5, 2, 6], ["MISSES", "misses", "count", { spare: 4 }]),
  ]);
}

/** Each is a session of its own, so that the total above leaves them out. */
function printStarted(started: readonly SessionRow[]): void {
  if (started.length === 0) return;
  print("");
  printRows(started, [
    ["STARTED SESSION", "session", "text", { name: true, least: 12 }],
    ...listSums(started, [1, 5, 2, 6], ["MISSED", ({ missed }) => missed || null, "count", { spare: 4 }]),
  ]);
}

/** `│  └─ a2` */
function drawPlace(name: string, branches: readonly boolean[]): string {
  if (branches.length === 0) return "main agent";
  const above = branches.slice(0, -1).map((follows) => (follows ? "│  " : "   "));
  return `${above.join("")}${branches.at(-1) === true ? "├─ " : "└─ "}${name}`;
}

function printMisses(misses: readonly Miss[], zone: Zone): void {
  if (misses.length === 0) return;
  print("");
  printRows<Miss>(misses, [
    ["CACHE MISSED", ({ time }) => formatMinute(time, zone), "text", { least: 11 }],
    ["ID", ({ id }) => shortenId(id), "text", { spare: 2, least: 9 }],
    ["AGENT", ({ agent }) => agent ?? "main agent", "text", { least: 10, spare: 1 }],
    ["TOKENS", "missed", "count"],
    ["COST $", "usd", "usd"],
    ["BECAUSE", ({ because }) => because.replaceAll("_", " "), "text", { name: true }],
  ]);
}

function printTurns(turns: readonly Turn[], zone: Zone): void {
  print("");
  printRows<Turn>(turns, [
    ["TIME", ({ time }) => formatMinute(time, zone), "text", { least: 11, spare: 1 }],
    ["ID", ({ id }) => shortenId(id), "text", { name: true, least: 9 }],
    ["AGENT", ({ agent }) => agent ?? "main agent", "text", { least: 10, spare: 3 }],
    ["MODEL", "model", "text", { least: 8, spare: 4, most: 32 }],
    ["INPUT", "input", "count", { spare: 5 }],
    ["CACHED", ({ input, cached }) => (input === 0 ? null : cached / input), "rate", { spare: 2 }],
    ["OUTPUT", "output", "count", { spare: 6 }],
    ["CHARGED $", ({ charge_usd: usd, basis }) => (usd === null ? basis : formatAmount(usd)), "exact"],
  ]);
}
