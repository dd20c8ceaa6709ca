// `gateway sessions` and `gateway sessions show`: what sessions and their agents have spent.

import {
  addTotals,
  computeHitRate,
  countInput,
  countOutput,
  describeTotals,
  openTotals,
  type Report,
  type Totals,
} from "../../../billing/report/report.ts";
import {
  type AgentPlace,
  countAgents,
  describeRise,
  describeSession,
  findRise,
  listTree,
  listSessionRows,
  listTurns,
  type Miss,
  type SessionRow,
  type SessionTotals,
  sumSessions,
  sumStarted,
  type Turn,
} from "../../../billing/report/sessions.ts";
import { compareLifetimes } from "../../../billing/report/lifetimes.ts";
import { formatUsd } from "../../../lib/money.ts";
import type { Zone } from "../../../lib/text/zone.ts";
import {
  describeQuery,
  findSession,
  formatRate,
  listPlanColumns,
  readUsageQuery,
  reportUnreadable,
} from "../usage/usage.ts";
import type { UsageFlags } from "../usage/usage.ts";
import { openConfigUnless } from "../../access/config.ts";
import { adviseOnLifetimes } from "../cache/cache-advice.ts";
import { readCurrentPrices } from "../prices/in-use.ts";
import { type Column, number, printTable } from "../../terminal/table.ts";
import { print, printJson, printNote } from "../../terminal/terminal.ts";
import { formatAmount, formatCount, shortenId, shortenSession } from "../../terminal/text.ts";

export interface SessionsFlags extends Omit<UsageFlags, "by"> {
  readonly all?: true;
}

interface ShowSessionFlags extends Pick<UsageFlags, "ledger" | "config" | "json"> {
  readonly turns?: true;
}

const BY_SESSION = { by: "session" };
const MAX_SHOWN = 20;

export function listSessionSpending(flags: SessionsFlags): void {
  const query = readUsageQuery({ ...flags, ...BY_SESSION });
  const { index, period, only, clock } = query;
  const report = sumSessions(index(), { ...period, only, zone: clock.zone });
  if (flags.json === true) {
    printJson({ ...describeQuery(query), ...describeSessions(report) });
    return;
  }
  const sessions = report.rows.filter(({ names }) => names[0] !== "");
  if (sessions.length === 0) printNote("No sessions in this period.");
  else printSessions(flags.all === true ? sessions : sessions.slice(0, MAX_SHOWN), report, clock.zone);
  if (flags.all !== true && sessions.length > MAX_SHOWN)
    printNote(
      `The newest ${MAX_SHOWN} of ${formatCount(sessions.length, "session")}. --all shows every one.`,
    );
  reportUnreadable(report);
}

type SessionReport = Report<SessionTotals>;

/** The rows and `no_session` add up to the total. */
function describeSessions({ rows, total, unreadable }: SessionReport): Record<string, unknown> {
  const none = rows.find(({ names }) => names[0] === "");
  return {
    sessions: rows.filter((row) => row !== none).map(describeSession),
    no_session: none === undefined ? null : describeTotals(none.totals),
    total: describeTotals(total),
    unreadable,
  };
}

/** What a session, an agent, or some of them have spent. Null: nothing is known of it. */
interface Spending {
  readonly totals: Totals | null;
}

function ofTotals(title: string, read: (totals: Totals) => string): Column<Spending> {
  return number(title, ({ totals }) => (totals === null ? "" : read(totals)));
}

const TURNS = ofTotals("TURNS", ({ requests }) => requests.toLocaleString("en-US"));
const INPUT = ofTotals("INPUT", (totals) => countInput(totals).toLocaleString("en-US"));
const CACHED = ofTotals("CACHED", (totals) => formatRate(computeHitRate(totals)));
const OUTPUT = ofTotals("OUTPUT", (totals) => countOutput(totals).toLocaleString("en-US"));
const CHARGED = ofTotals("CHARGED $", ({ charge }) => formatAmount(formatUsd(charge)));

interface SessionLine extends Spending {
  readonly last: string;
  readonly name: string;
  readonly tool: string;
  readonly label: string;
  readonly agents: string;
}

const NO_SESSION = { last: "", tool: "", label: "", agents: "" };

function printSessions(shown: readonly SessionRow[], { rows, total }: SessionReport, zone: Zone): void {
  const short = shortenNames(shown.map(({ names }) => names[0] ?? ""));
  const lines: SessionLine[] = shown.map(({ names, totals }) => ({
    last: formatMinute(totals.last, zone),
    name: short.get(names[0] ?? "") ?? "",
    tool: totals.tool ?? "-",
    label: totals.label ?? "-",
    agents: String(countAgents(totals.agents)),
    totals,
  }));
  const listed = new Set(shown);
  const left = rows.filter((row) => row.names[0] !== "" && !listed.has(row));
  if (left.length > 0) {
    const rest = openTotals();
    for (const { totals } of left) addTotals(rest, totals);
    lines.push({ ...NO_SESSION, name: `${left.length.toLocaleString("en-US")} more`, totals: rest });
  }
  const none = rows.find(({ names }) => names[0] === "");
  if (none !== undefined) lines.push({ ...NO_SESSION, name: "no session", totals: none.totals });
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
    ...listPlanColumns(lines),
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
  const query = readUsageQuery({ ...flags, ...BY_SESSION });
  const { clock } = query;
  const index = query.index();
  const id = findSession(index, words);
  const report = sumSessions(index, { since: null, until: null, only: { session: id } });
  const { total: totals } = report;
  const [row = { names: [id], totals }] = report.rows;
  const agents = listTree(row.totals.agents);
  const started = sumStarted(index, id);
  const rise = findRise(index, row);
  const turns = flags.turns === true ? listTurns(index, id) : null;
  if (flags.json === true) {
    const misses = listMisses(agents);
    printJson({
      ...describeSession(row),
      ...(rise !== null && { windows: rise.windows, windows_shared: rise.shared }),
      agents: agents.flatMap(describeAgent),
      misses: misses.map(describeMiss),
      started: started.map(describeSession),
      ...(turns !== null && { turns: turns.map(describeTurn) }),
    });
    return;
  }
  printHead(id, row.totals, clock.zone);
  if (rise !== null) for (const text of [describeRise(rise), ""]) print(text);
  printAgents(agents, totals);
  printStarted(started);
  printMisses(listMisses(agents), clock.zone);
  const prices = readCurrentPrices(openConfigUnless(flags.ledger !== undefined, flags));
  for (const better of adviseOnLifetimes(compareLifetimes(listSessionRows(index, id), prices)))
    printNote(`${better.text} ${better.help}.`);
  if (turns !== null) printTurns(turns, clock.zone);
  reportUnreadable(report);
}

function describeAgent({ name, totals }: AgentPlace): Record<string, unknown>[] {
  if (totals === null) return [];
  const { parent, model, misses } = totals;
  const agent = name === "" ? null : name;
  return [{ agent, parent, model, ...describeTotals(totals), cache_misses: misses.length }];
}

interface AgentMiss extends Miss {
  readonly agent: string;
}

function listMisses(agents: readonly AgentPlace[]): AgentMiss[] {
  const all = agents.flatMap(({ name, totals }) =>
    (totals?.misses ?? []).map((miss) => ({ ...miss, agent: name })),
  );
  return all.toSorted((a, b) => (a.time < b.time ? -1 : 1));
}

function describeMiss({ time, id, agent, tokens, usd, because }: AgentMiss): Record<string, unknown> {
  return { time, id, agent: agent === "" ? null : agent, missed: tokens, usd, because };
}

function describeTurn({
  time,
  id,
  agent,
  model,
  input,
  cached,
  output,
  charge,
  basis,
}: Turn): Record<string, unknown> {
  const amounts = { input, cached, output, charge_usd: charge, basis };
  return { time, id, agent: agent === "" ? null : agent, model, ...amounts };
}

function printHead(id: string, totals: SessionTotals, zone: Zone): void {
  const { first, last, tool, label, key, inferred } = totals;
  const facts = [
    tool ?? "unknown tool",
    ...(label === null ? [] : [`label "${label}"`]),
    `key ${key}`,
    `${formatMinute(first, zone)} to ${formatMinute(last, zone)}`,
  ];
  print(`Session ${id}${inferred ? " (the tool did not name it)" : ""}`);
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
    ...listPlanColumns(lines),
  ]);
}

function printAgents(agents: readonly AgentPlace[], total: Totals): void {
  const lines = agents.map(({ name, totals, branches }) => ({
    name: totals === null ? "main agent (no requests)" : drawPlace(name, branches),
    model: totals?.model ?? "",
    misses: totals?.misses.length ?? 0,
    totals,
  }));
  printAgentLines("AGENT", [
    ...lines,
    { name: "total", model: "", misses: listMisses(agents).length, totals: total },
  ]);
}

/** Each is a session of its own, so that the total above leaves them out. */
function printStarted(started: readonly SessionRow[]): void {
  if (started.length === 0) return;
  print("");
  const lines = started.map(({ names: [name = ""], totals }) => {
    const agents = [...totals.agents.values()];
    const misses = agents.reduce((sum, agent) => sum + agent.misses.length, 0);
    return { name, model: agents[0]?.model ?? "", misses, totals };
  });
  printAgentLines("STARTED SESSION", lines);
}

/** `│  └─ a2` */
function drawPlace(name: string, branches: readonly boolean[]): string {
  if (branches.length === 0) return "main agent";
  const above = branches.slice(0, -1).map((follows) => (follows ? "│  " : "   "));
  return `${above.join("")}${branches.at(-1) === true ? "├─ " : "└─ "}${name}`;
}

function nameAgent({ agent }: { readonly agent: string }): string {
  return agent === "" ? "main agent" : agent;
}

function printMisses(misses: readonly AgentMiss[], zone: Zone): void {
  if (misses.length === 0) return;
  print("");
  printTable(misses, [
    { title: "CACHE MISSED", least: 11, read: ({ time }) => formatMinute(time, zone) },
    { title: "ID", spare: 2, least: 9, read: ({ id }) => shortenId(id) },
    { title: "AGENT", least: 10, spare: 1, read: nameAgent },
    number("TOKENS", ({ tokens }) => tokens.toLocaleString("en-US")),
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
    number("CHARGED $", ({ charge, basis }) => (charge === null ? basis : formatAmount(charge))),
  ]);
}
