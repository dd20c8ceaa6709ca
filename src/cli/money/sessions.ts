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
import { OUTPUT_KINDS, PROMPT_KINDS } from "../../billing/usage.ts";
import type { Zone } from "../../lib/text/zone.ts";
import {
  findSession,
  formatRate,
  listPlanColumns,
  readUsageQuery,
  reportUnreadable,
  type UsageFlags,
} from "./usage.ts";
import { openConfigUnless } from "../access/config.ts";
import { adviseOnLifetime } from "./cache.ts";
import { readCurrentPrices } from "./in-use.ts";
import { type Column, number, printTable } from "../terminal/table.ts";
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

/** What a session, an agent, or some of them have spent. Null: nothing is known of it. */
interface Spending {
  readonly totals: Totals | null;
}

function ofTotals(title: string, read: (totals: Totals) => string): Column<Spending> {
  return number(title, ({ totals }) => (totals === null ? "" : read(totals)));
}

const TURNS = ofTotals("TURNS", ({ requests }) => requests.toLocaleString("en-US"));
const INPUT = ofTotals("INPUT", ({ usage }) => countKinds(usage, PROMPT_KINDS).toLocaleString("en-US"));
const CACHED = ofTotals("CACHED", (totals) => formatRate(totals.cache_hit_rate));
const OUTPUT = ofTotals("OUTPUT", ({ usage }) => countKinds(usage, OUTPUT_KINDS).toLocaleString("en-US"));
const CHARGED = ofTotals("CHARGED $", (totals) => formatAmount(totals.charge_usd));

function listPlans(lines: readonly Spending[]): Column<Spending>[] {
  return listPlanColumns(lines.flatMap(({ totals }) => totals ?? [])).map(({ title, read }) =>
    number(title, ({ totals }) => (totals === null ? "" : read(totals)), 1),
  );
}

interface SessionLine extends Spending {
  readonly last: string;
  readonly name: string;
  readonly tool: string;
  readonly label: string;
  readonly agents: string;
}

const NO_SESSION = { last: "", tool: "", label: "", agents: "" };

function printSessions(
  shown: readonly SessionRow[],
  { no_session: none, total }: SessionsReport,
  zone: Zone,
): void {
  const short = shortenNames(shown.map(({ session }) => session));
  const lines: SessionLine[] = shown.map((row) => ({
    last: formatMinute(row.until, zone),
    name: short.get(row.session) ?? "",
    tool: row.tool ?? "-",
    label: row.label ?? "-",
    agents: String(row.agents),
    totals: row,
  }));
  if (none !== null) lines.push({ ...NO_SESSION, name: "no session", totals: none });
  lines.push({ ...NO_SESSION, name: "total", totals: total });
  printTable(lines, [
    { title: "LAST USED", least: 11, spare: 3, read: ({ last }) => last },
    { title: "SESSION", name: true, least: 12, read: ({ name }) => name },
    { title: "TOOL", least: 11, spare: 4, most: 20, read: ({ tool }) => tool },
    { title: "LABEL", name: true, least: 10, most: 32, read: ({ label }) => label },
    { ...TURNS, spare: 2 },
    number("AGENTS", ({ agents }) => agents, 5),
    { ...INPUT, spare: 6 },
    { ...CACHED, spare: 1 },
    { ...OUTPUT, spare: 7 },
    CHARGED,
    ...listPlans(lines),
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

interface AgentLine extends Spending {
  readonly name: string;
  readonly model: string;
  readonly misses: number;
}

function printAgentLines(title: string, lines: readonly AgentLine[]): void {
  printTable(lines, [
    { title, name: true, least: 12, read: ({ name }) => name },
    { title: "MODEL", least: 8, spare: 3, most: 32, read: ({ model }) => model },
    { ...TURNS, spare: 1 },
    { ...INPUT, spare: 5 },
    { ...CACHED, spare: 2 },
    { ...OUTPUT, spare: 6 },
    number("MISSES", ({ misses }) => (misses === 0 ? "" : String(misses)), 4),
    CHARGED,
    ...listPlans(lines),
  ]);
}

function printAgents(agents: readonly AgentPlace[], total: SessionReport): void {
  const lines = agents.map(({ name, row, branches }) => ({
    name: row === null ? "main agent (no requests)" : drawPlace(name, branches),
    model: row?.model ?? "",
    misses: row?.cache_misses ?? 0,
    totals: row,
  }));
  const sum = { name: "total", model: "", misses: total.misses.length, totals: total };
  printAgentLines("AGENT", [...lines, sum]);
}

/** Each is a session of its own, so that the total above leaves them out. */
function printStarted(started: readonly SessionRow[]): void {
  if (started.length === 0) return;
  print("");
  printTable(
    started.map((row) => ({ name: row.session, missed: row.missed, totals: row })),
    [
      { title: "STARTED SESSION", name: true, least: 12, read: ({ name }) => name },
      { ...TURNS, spare: 1 },
      { ...INPUT, spare: 5 },
      { ...CACHED, spare: 2 },
      { ...OUTPUT, spare: 6 },
      number("MISSED", ({ missed }) => (missed === 0 ? "" : missed.toLocaleString("en-US")), 4),
      CHARGED,
      ...listPlans(started.map((totals) => ({ totals }))),
    ],
  );
}

/** `│  └─ a2` */
function drawPlace(name: string, branches: readonly boolean[]): string {
  if (branches.length === 0) return "main agent";
  const above = branches.slice(0, -1).map((follows) => (follows ? "│  " : "   "));
  return `${above.join("")}${branches.at(-1) === true ? "├─ " : "└─ "}${name}`;
}

function nameAgent({ agent }: { readonly agent: string | null }): string {
  return agent ?? "main agent";
}

function printMisses(misses: readonly Miss[], zone: Zone): void {
  if (misses.length === 0) return;
  print("");
  printTable(misses, [
    { title: "CACHE MISSED", least: 11, read: ({ time }) => formatMinute(time, zone) },
    { title: "ID", spare: 2, least: 9, read: ({ id }) => shortenId(id) },
    { title: "AGENT", least: 10, spare: 1, read: nameAgent },
    number("TOKENS", ({ missed }) => missed.toLocaleString("en-US")),
    number("COST $", ({ usd }) => (usd === null ? "" : formatAmount(usd))),
    { title: "BECAUSE", name: true, read: ({ because }) => because.replaceAll("_", " ") },
  ]);
}

function printTurns(turns: readonly Turn[], zone: Zone): void {
  print("");
  printTable(turns, [
    { title: "TIME", least: 11, spare: 1, read: ({ time }) => formatMinute(time, zone) },
    { title: "ID", name: true, least: 9, read: ({ id }) => shortenId(id) },
    { title: "AGENT", least: 10, spare: 3, read: nameAgent },
    { title: "MODEL", least: 8, spare: 4, most: 32, read: ({ model }) => model },
    number("INPUT", ({ input }) => input.toLocaleString("en-US"), 5),
    number("CACHED", ({ input, cached }) => formatRate(input === 0 ? null : cached / input), 2),
    number("OUTPUT", ({ output }) => output.toLocaleString("en-US"), 6),
    number("CHARGED $", ({ charge_usd: charge, basis }) => (charge === null ? basis : formatAmount(charge))),
  ]);
}
