// What each session has spent, and each agent in it. It only reads.

import { formatUsd } from "../../lib/money.ts";
import { getCount, getField, isObject, parseJson } from "../../lib/json/json.ts";
import { readLastLines } from "../ledger/follow.ts";
import { eachRow, type Row } from "../ledger/row.ts";
import {
  addRow,
  addTotals,
  countCached,
  countInput,
  countOutput,
  openTotals,
  type Report,
  type ReportQuery,
  type Summing,
  sumRows,
  type Totals,
} from "./report.ts";

export interface AgentTotals extends Totals {
  /** The agent that started it. Null: the main agent did, or it is the main agent. */
  parent: string | null;
  /** The model of its last request. */
  model: string;
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
export function sumSessions(path: string, query: Omit<ReportQuery, "by">): Report<SessionTotals> {
  const report = sumRows(path, { ...query, by: ["session"] }, SESSIONS);
  return { ...report, rows: report.rows.toSorted((a, b) => compareNewest(a, b)) };
}

export type SessionRow = Report<SessionTotals>["rows"][number];

/** The sessions that a session started: opencode gives each of its agents one. The newest comes first. */
export function sumStarted(path: string, session: string): SessionRow[] {
  let hasStarted = false;
  eachRow(path, (row) => {
    const client = row?.client;
    hasStarted ||= client?.parent === session && client.agent === undefined;
  });
  // All sessions take a second pass, with the text of each line.
  if (!hasStarted) return [];
  const { rows } = sumSessions(path, { since: null, until: null });
  return rows.filter(({ totals }) => totals.agents.get("")?.parent === session);
}

function compareNewest(a: SessionRow, b: SessionRow): number {
  const [nameA = "", nameB = ""] = [a.names[0], b.names[0]];
  if ((nameA === "") !== (nameB === "")) return nameA === "" ? 1 : -1;
  if (a.totals.last !== b.totals.last) return a.totals.last < b.totals.last ? 1 : -1;
  return nameA < nameB ? -1 : 1;
}

function openSession(): SessionTotals {
  const none = { first: "", last: "", key: "", tool: null, label: null, inferred: false };
  return { ...openTotals(), ...none, agents: new Map() };
}

const SESSIONS: Summing<SessionTotals> = {
  open: openSession,
  addTotals,
  addRow: (totals, row) => {
    const { client } = row;
    addRow(totals, row);
    const agent = openAgent(totals, client?.agent ?? "");
    addRow(agent, row);
    // A correction is not a request.
    if (row.was !== null) return;
    describeSession(totals, row);
    agent.model = row.model;
    agent.parent = client?.parent ?? null;
    const miss = readMiss(row);
    if (miss !== null) agent.misses.push(miss);
  },
};

function describeSession(totals: SessionTotals, { time, key, client }: Row): void {
  if (totals.first === "" || time < totals.first) totals.first = time;
  if (time < totals.last) return;
  const { tool = null, label = null, inferred = false } = client ?? {};
  Object.assign(totals, { last: time, key, tool, label, inferred });
}

function openAgent({ agents }: SessionTotals, name: string): AgentTotals {
  const known = agents.get(name);
  if (known !== undefined) return known;
  const agent: AgentTotals = { ...openTotals(), parent: null, model: "", misses: [] };
  agents.set(name, agent);
  return agent;
}

/** Of a newer gateway too, whose causes may have another form. */
function readMiss({ id, time, line }: Row): Miss | null {
  const { cache } = line;
  const tokens = getCount(getField(cache, "missed"));
  if (!isObject(cache) || tokens === undefined) return null;
  const { usd, because } = cache;
  return {
    time,
    id: String(id),
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

export function listTurns(path: string, session: string): Turn[] {
  const turns = new Map<string, Turn>();
  eachRow(path, (row) => {
    if (row === null || row.client?.session !== session) return;
    const charge = row.charge === null ? null : formatUsd(row.charge);
    const corrected = turns.get(String(row.line["corrects"]));
    if (corrected !== undefined) turns.set(corrected.id, { ...corrected, charge });
    if (row.was !== null) return;
    const totals = openTotals();
    addRow(totals, row);
    const id = String(row.id);
    turns.set(id, {
      time: row.time,
      id,
      agent: row.client.agent ?? "",
      model: row.model,
      input: countInput(totals),
      cached: countCached(totals),
      output: countOutput(totals),
      charge,
      basis: row.basis,
    });
  });
  return [...turns.values()];
}

/** The sessions that begin with `start`, at most `most`. A session that equals it is the only one. */
export function listSessions(path: string, start: string, most: number): string[] {
  const found = new Set<string>();
  let isExact = false;
  eachRow(path, (row) => {
    const session = row?.client?.session;
    if (session === undefined || !session.startsWith(start)) return;
    isExact ||= session === start;
    if (found.size < most) found.add(session);
  });
  return isExact ? [start] : [...found];
}

const FIRST_LOOK = 64;

/** The session of the last request that has one. Null: no request has one. */
export function findLastSession(path: string): string | null {
  for (let count = FIRST_LOOK; ; count *= 8) {
    const { texts } = readLastLines(path, count);
    for (const text of texts.toReversed()) {
      const line = parseJson(text);
      const session = getField(getField(line, "client"), "session");
      if (getField(line, "corrects") === undefined && typeof session === "string") return session;
    }
    if (texts.length < count) return null;
  }
}
