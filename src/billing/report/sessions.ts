// What each session has spent, and each agent in it. It only reads.

import { formatUsd } from "../../lib/money.ts";
import { getCount, getField, isObject } from "../../lib/json/json.ts";
import { findLatestLine, type Group } from "../index/groups.ts";
import { type LedgerIndex, readLineAt } from "../index/ledger-index.ts";
import { listMisses, type MissedRequest } from "../index/requests.ts";
import { sumRises } from "../index/sessions.ts";
import { readRow, type Row } from "../ledger/row.ts";
import {
  addGroup,
  addTotals,
  countCached,
  countInput,
  countOutput,
  type DescribedTotals,
  describeTotals,
  hasNames,
  openTotals,
  type Report,
  type ReportQuery,
  type Summing,
  sumGroups,
  type Totals,
} from "./report.ts";

export interface AgentTotals extends Totals {
  /** The agent that started it. Null: the main agent did, or it is the main agent. */
  parent: string | null;
  /** The model of its last request. */
  model: string;
  /** The group with its last request. */
  latest: Group | null;
  /** Prompts that should have been read from the cache and were not. */
  readonly misses: Miss[];
}

export interface SessionTotals extends Totals {
  /** ISO times of its first and last request. */
  first: string;
  last: string;
  /** Of its last request. */
  key: string;
  tool: string | null;
  label: string | null;
  /** The tool did not name the session. */
  inferred: boolean;
  /** The group with its last request. */
  latest: Group | null;
  /** By agent. The main agent has no name. */
  readonly agents: Map<string, AgentTotals>;
}

/** A prompt that should have been read from the cache and was not. */
export interface Miss {
  readonly time: string;
  /** Of the request. */
  readonly id: string;
  readonly tokens: number;
  /** What it cost beyond a read. Null: there is no price. */
  readonly usd: string | null;
  readonly because: string;
}

/** The newest session first. Lines without a session are in the row with an empty name, which comes last. */
export function sumSessions(index: LedgerIndex, query: Omit<ReportQuery, "by">): Report<SessionTotals> {
  const report = sumGroups(index, { ...query, by: ["session"] }, SESSIONS);
  const sessions = new Map(report.rows.map(({ names, totals }) => [names[0] ?? "", totals]));
  const { only, sessions: some = only?.session === undefined ? undefined : [only.session] } = query;
  for (const row of listMisses(index, { ...query, sessions: some })) {
    const miss = hasNames(row, query.only) ? readMiss(row) : null;
    if (miss !== null) sessions.get(row.sender.session)?.agents.get(row.sender.agent)?.misses.push(miss);
  }
  return { ...report, rows: report.rows.toSorted((a, b) => compareNewest(a, b)) };
}

export type SessionRow = Report<SessionTotals>["rows"][number];

/** The sessions that a session started: opencode gives each of its agents one. The newest comes first. */
export function sumStarted(index: LedgerIndex, session: string): SessionRow[] {
  const sql = "SELECT DISTINCT session FROM senders WHERE parent = ? AND agent = ''";
  const started = new Set(
    index.parts.flatMap((part) => part.list(sql, session).map(([name]) => String(name))),
  );
  const rows = [...started].flatMap(
    (name) => sumSessions(index, { since: null, until: null, only: { session: name } }).rows,
  );
  return rows
    .filter(({ totals }) => totals.agents.get("")?.parent === session)
    .toSorted((a, b) => compareNewest(a, b));
}

/** What a session took of a plan. */
export interface SessionRise {
  /** Percent of each window: the difference between its first and its last answer. */
  readonly windows: Readonly<Record<string, number>>;
  /** Other sessions ran at the same time and had the plan pay, so a part of it is theirs. */
  readonly shared: boolean;
}

/** Null: no plan paid, or its upstream said nothing. */
export function findRise(index: LedgerIndex, { names, totals }: SessionRow): SessionRise | null {
  const windows = totals.plan.units === 0n ? {} : sumRises(index, names[0] ?? "");
  if (Object.keys(windows).length === 0) return null;
  const until = new Date(Date.parse(totals.last) + 1).toISOString();
  const meanwhile = sumSessions(index, { since: totals.first, until });
  const others = meanwhile.rows.filter((row) => row.names[0] !== names[0] && row.totals.plan.units > 0n);
  return { windows, shared: others.length > 0 };
}

/** A sentence, without a full stop. */
export function describeRise({ windows, shared }: SessionRise): string {
  const rises = Object.entries(windows).map(([name, rise]) => `${name} rose by ${rise} %`);
  const why = shared
    ? "other sessions ran at the same time, and a part of it is theirs"
    : "other devices use the same account";
  return `While it ran, the plan's window of ${rises.join(", that of ")} (an estimate: ${why})`;
}

function compareNewest(a: SessionRow, b: SessionRow): number {
  const [nameA = "", nameB = ""] = [a.names[0], b.names[0]];
  if ((nameA === "") !== (nameB === "")) return nameA === "" ? 1 : -1;
  if (a.totals.last !== b.totals.last) return a.totals.last < b.totals.last ? 1 : -1;
  return nameA < nameB ? -1 : 1;
}

function openSession(): SessionTotals {
  const none = { first: "", last: "", key: "", tool: null, label: null, inferred: false, latest: null };
  return { ...openTotals(), ...none, agents: new Map() };
}

const SESSIONS: Summing<SessionTotals, Group> = {
  open: openSession,
  addTotals,
  add: (totals, group) => {
    addGroup(totals, group);
    const { traits, sender } = group;
    const agent = openAgent(totals, sender?.agent ?? "");
    addGroup(agent, group);
    // A correction is not a request.
    if (traits.type !== "request") return;
    noteLatest(totals, group);
    if (agent.latest !== null && group.last < agent.latest.last) return;
    Object.assign(agent, { model: traits.model, parent: sender?.parent ?? null, latest: group });
  },
};

function noteLatest(totals: SessionTotals, group: Group): void {
  const { since, until, traits } = group;
  if (totals.first === "" || since < totals.first) totals.first = since;
  if (until < totals.last) return;
  const { key, tool, label, inferred } = traits;
  const { latest } = totals;
  if (latest !== null && until === totals.last && findLatestLine(group) < findLatestLine(latest)) return;
  Object.assign(totals, { last: until, key, tool, label, inferred, latest: group });
}

function openAgent({ agents }: SessionTotals, name: string): AgentTotals {
  const open = (): AgentTotals => ({ ...openTotals(), parent: null, model: "", latest: null, misses: [] });
  return agents.getOrInsertComputed(name, open);
}

/** For scripts and for the console's page. */
export interface DescribedSession extends DescribedTotals {
  readonly session: string;
  /** The tool did not name the session. */
  readonly inferred: boolean;
  readonly tool: string | null;
  readonly label: string | null;
  readonly key: string;
  /** ISO times of its first and last request. */
  readonly since: string;
  readonly until: string;
  readonly agents: number;
}

export function describeSession({ names, totals }: SessionRow): DescribedSession {
  const { first, last, key, tool, label, inferred, agents } = totals;
  const facts = { session: names[0] ?? "", inferred, tool, label, key, since: first, until: last };
  return { ...facts, agents: countAgents(agents), ...describeTotals(totals) };
}

/** The main agent counts if it made a request. */
export function countAgents(agents: SessionTotals["agents"]): number {
  return [...agents.values()].filter(({ requests }) => requests > 0).length;
}

/** A newer gateway may have written it. */
export function readMiss({ id, time, cache }: Pick<MissedRequest, "id" | "time" | "cache">): Miss | null {
  const tokens = getCount(getField(cache, "missed"));
  if (!isObject(cache) || tokens === undefined) return null;
  const { usd, because } = cache;
  return {
    time,
    id,
    tokens,
    usd: typeof usd === "string" ? usd : null,
    because: typeof because === "string" ? because : "unknown",
  };
}

export interface AgentPlace {
  /** Empty: the main agent. */
  readonly name: string;
  /** Null: it made no request in this period. */
  readonly totals: AgentTotals | null;
  /** Of each ancestor below the main agent and of the agent itself: whether another agent of the same parent follows. */
  readonly branches: readonly boolean[];
}

/** Clients choose the ids. A deeper tree is drawn as if it ended here. */
const MAX_DEPTH = 16;

/** The agents as a tree below the main agent, each before those that it started. An agent of an unknown parent is below
 *  the main agent. So is the first of several agents that name each other as their parents. */
export function listTree(agents: ReadonlyMap<string, AgentTotals>): AgentPlace[] {
  const names = [...agents.keys()].filter((name) => name !== "");
  const children = Map.groupBy(names, (name) => agents.get(name)?.parent ?? "");
  const isTop = (name: string): boolean => {
    const parent = agents.get(name)?.parent ?? "";
    return parent === "" || !agents.has(parent);
  };
  const places: AgentPlace[] = [];
  const placed = new Set<string>([""]);
  const place = (tops: readonly string[]): void => {
    const waiting = tops.map((name, index) => ({ name, branches: [index < tops.length - 1] })).toReversed();
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { name, branches } = next;
      if (placed.has(name)) continue;
      placed.add(name);
      places.push({ name, totals: agents.get(name) ?? null, branches });
      const own = children.get(name) ?? [];
      const deeper = own.map((child, index) => ({
        name: child,
        branches: branches.length < MAX_DEPTH ? [...branches, index < own.length - 1] : branches,
      }));
      waiting.push(...deeper.toReversed());
    }
  };
  place(names.filter(isTop));
  for (const name of names) if (!placed.has(name)) place([name]);
  return [{ name: "", totals: agents.get("") ?? null, branches: [] }, ...places];
}

/** One request of a session. */
export interface Turn {
  readonly time: string;
  readonly id: string;
  /** Empty: the main agent. */
  readonly agent: string;
  readonly model: string;
  /** All input tokens, and those of them that were read from the cache. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  /** A decimal in USD, after corrections; null: not known. */
  readonly charge: string | null;
  readonly basis: string;
}

export function listTurns(index: LedgerIndex, session: string): Turn[] {
  const turns = new Map<string, Turn>();
  for (const row of listSessionRows(index, session)) addTurn(turns, row);
  return [...turns.values()];
}

/** The lines of a session, corrections included. */
export function* listSessionRows(index: LedgerIndex, session: string): Generator<Row, void> {
  const sql = `SELECT DISTINCT line, at FROM requests
    WHERE sender IN (SELECT id FROM senders WHERE session = ?) ORDER BY line`;
  const places = index.parts.flatMap((part) => part.list(sql, session));
  for (const [number, at] of places) {
    const row = readRow(readLineAt(index, Number(number), Number(at))?.text ?? "");
    if (row !== null) yield row;
  }
}

function addTurn(turns: Map<string, Turn>, { id, time, model, usage, basis, was, line, ...row }: Row): void {
  const charge = row.charge === null ? null : formatUsd(row.charge);
  const corrected = turns.get(String(line["corrects"]));
  if (corrected !== undefined) turns.set(corrected.id, { ...corrected, charge });
  if (was !== null) return;
  const totals = { ...openTotals(), usage: new Map(Object.entries(usage)) };
  turns.set(String(id), {
    time,
    id: String(id),
    agent: row.client?.agent ?? "",
    model,
    input: countInput(totals),
    cached: countCached(totals),
    output: countOutput(totals),
    charge,
    basis,
  });
}
