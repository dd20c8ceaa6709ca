// What sessions have spent, and one session with its agents.

import { getCount, getField, parseJson } from "../../lib/json/json.ts";
import { readRises } from "../ledger/session-sums.ts";
import type { Table, Value } from "../store/open.ts";
import { listRequests, type RequestRow } from "./requests.ts";
import { type AgentRow, listTree, type SessionRise } from "./session-words.ts";
import {
  type Condition,
  describeScope,
  type Scope,
  type SumRow,
  sumRequests,
  toIso,
  type Totals,
} from "./sums.ts";
import { compareCharges } from "./usage.ts";
import type { Order } from "./words.ts";

export interface SessionRow extends Totals {
  readonly session: string;
  /** The tool did not name the session. */
  readonly inferred: boolean;
  /** Of its last request, as the key. */
  readonly tool: string | null;
  readonly label: string | null;
  readonly key: string;
  /** ISO times of its first and last request. */
  readonly since: string;
  readonly until: string;
  /** How many agents made a request. */
  readonly agents: number;
  /** Tokens that its prompts should have read from the cache, and did not. */
  readonly missed: number;
}

export interface SessionsReport {
  readonly sessions: readonly SessionRow[];
  /** Of requests without a session. The sessions and this add up to the total. Null: there are none. */
  readonly no_session: Totals | null;
  readonly total: Totals;
  readonly unreadable: number;
}

export interface SessionsQuery extends Scope {
  readonly order?: Order;
  /** The first ones in this order. */
  readonly most?: number;
}

const MISSED = "SUM(CAST(miss ->> 'missed' AS INTEGER))";

/** The newest session first. */
export function reportSessions(table: Table, query: SessionsQuery): SessionsReport {
  const { order = "newest", most = Number.POSITIVE_INFINITY } = query;
  const { rows, total } = sumSessions(table, query);
  const named = rows.filter(({ names: [session] }) => session !== "").toSorted(ORDERED[order]);
  const none = rows.find(({ names: [session] }) => session === "");
  const wanted = order === "missed" ? named.filter(({ sums }) => (sums["missed"]?.units ?? 0n) > 0n) : named;
  return {
    sessions: describeSessions(table, query, wanted.slice(0, most)),
    no_session: none?.totals ?? null,
    total: total.totals,
    unreadable: table.unreadable,
  };
}

/** `values`: the times of the first and the last request, and the number of agents. */
function sumSessions(table: Table, scope: Scope, where?: Condition) {
  return sumRequests(table, {
    ...scope,
    by: ["session"],
    from: "requests INDEXED BY by_session",
    values: ["MIN(at)", "MAX(at)", "COUNT(DISTINCT COALESCE(agent, ''))"],
    sums: { missed: MISSED },
    ...(where !== undefined && { where }),
  });
}

/** With what the last request of each says. */
function describeSessions(table: Table, scope: Scope, rows: readonly SumRow[]): SessionRow[] {
  const { sql, values } = describeScope(scope);
  const names = rows.map(({ names: [session] }) => session);
  const last = table.list(
    `SELECT session, key, tool, label, inferred FROM requests WHERE line IN (SELECT (SELECT line FROM requests
       INDEXED BY by_session WHERE session = value AND ${sql} ORDER BY at DESC, line DESC LIMIT 1)
     FROM json_each($sessions))`,
    { ...values, $sessions: JSON.stringify(names) },
  );
  const facts = new Map(last.map(([session, ...rest]) => [String(session), rest]));
  return rows.map(({ names: [session = ""], values: [since, until, agents], totals, sums }) => {
    const [key, tool, label, inferred] = facts.get(session) ?? [];
    return {
      session,
      inferred: inferred === 1n,
      tool: readText(tool),
      label: readText(label),
      key: readText(key) ?? "",
      since: toIso(since),
      until: toIso(until),
      agents: Number(agents),
      missed: Number(sums["missed"]?.units ?? 0n),
      ...totals,
    };
  });
}

function readText(value: Value | undefined): string | null {
  return typeof value === "string" ? value : null;
}

function compareNewest(
  { names: [a = ""], values: x }: SumRow,
  { names: [b = ""], values: y }: SumRow,
): number {
  const [first, second] = [Number(x[1]), Number(y[1])];
  return first === second ? (a < b ? -1 : 1) : second - first;
}

/** The newest first among equals. */
const ORDERED: Readonly<Record<Order, (a: SumRow, b: SumRow) => number>> = {
  newest: compareNewest,
  charge: (a, b) =>
    a.totals.charge_usd === b.totals.charge_usd ? compareNewest(a, b) : compareCharges(a, b),
  missed: (a, b) => {
    const more = (b.sums["missed"]?.units ?? 0n) - (a.sums["missed"]?.units ?? 0n);
    return more === 0n ? compareNewest(a, b) : more > 0n ? 1 : -1;
  },
};

/** A prompt that should have been read from the cache and was not. */
export interface Miss {
  readonly time: string;
  /** Of the request. */
  readonly id: string;
  /** Null: the main agent. */
  readonly agent: string | null;
  /** Tokens. */
  readonly missed: number;
  /** What it cost beyond a read. Null: there is no price. */
  readonly usd: string | null;
  readonly because: string;
}

/** Without windows, no plan paid, or its upstream said nothing. */
export interface SessionReport extends Omit<SessionRow, "agents">, Partial<SessionRise> {
  /** Each before those that it started. */
  readonly agents: readonly AgentRow[];
  readonly misses: readonly Miss[];
  /** The sessions that this one started: opencode gives each of its agents one. The newest comes first. */
  readonly started: readonly SessionRow[];
  readonly turns?: readonly Turn[];
}

/** One request of a session. */
export interface Turn extends Pick<
  RequestRow,
  "time" | "id" | "model" | "input" | "cached" | "output" | "charge_usd" | "basis"
> {
  /** Null: the main agent. */
  readonly agent: string | null;
}

/** Null: the ledger has no such session. */
export function reportSession(
  table: Table,
  { session, hasTurns = false }: { readonly session: string; readonly hasTurns?: boolean },
): SessionReport | null {
  const scope = { ...ALL, only: { session } };
  const [found] = session === "" ? [] : sumSessions(table, scope).rows;
  const [own] = found === undefined ? [] : describeSessions(table, scope, [found]);
  if (found === undefined || own === undefined) return null;
  const agents = sumRequests(table, {
    ...scope,
    by: ["COALESCE(agent, '')"],
    values: ["parent", "model", "MAX(line)", "COUNT(miss)"],
  });
  const rows = agents.rows.map(
    ({ names: [agent = ""], values: [parent, model, , misses], totals }): AgentRow => ({
      agent: agent === "" ? null : agent,
      parent: readText(parent),
      model: readText(model) ?? "",
      ...totals,
      cache_misses: Number(misses),
    }),
  );
  return {
    ...own,
    ...findRise(table, found),
    agents: listTree(rows).flatMap(({ row }) => row ?? []),
    misses: listMisses(table, session),
    started: listStarted(table, session),
    ...(hasTurns && { turns: listTurns(table, session) }),
  };
}

function listMisses(table: Table, session: string): Miss[] {
  const sql =
    "SELECT at, id, agent, miss FROM requests WHERE session = $session AND miss IS NOT NULL ORDER BY at, line";
  return table.list(sql, { $session: session }).map(([at, id, agent, text]) => {
    const miss = parseJson(String(text));
    const [usd, because] = [getField(miss, "usd"), getField(miss, "because")];
    return {
      time: toIso(at),
      id: String(id),
      agent: readText(agent),
      missed: getCount(getField(miss, "missed")) ?? 0,
      usd: typeof usd === "string" ? usd : null,
      because: String(because),
    };
  });
}

const ALL: Scope = { since: null, until: null };

function listStarted(table: Table, session: string): SessionRow[] {
  const where = {
    sql: `session IN (SELECT session FROM requests AS one WHERE parent = $parent AND agent IS NULL AND line =
      (SELECT MAX(line) FROM requests WHERE session = one.session AND agent IS NULL))`,
    values: { $parent: session },
  };
  const { rows } = sumSessions(table, ALL, where);
  return describeSessions(table, ALL, rows.toSorted(compareNewest));
}

function listTurns(table: Table, session: string): Turn[] {
  const rows = listRequests(table, "session = $session ORDER BY line", { $session: session });
  return rows.map(({ time, id, agent, model, input, cached, output, charge_usd, basis }) => {
    const amounts = { input, cached, output, charge_usd, basis };
    return { time, id, agent: agent === "" ? null : agent, model, ...amounts };
  });
}

function findRise(table: Table, { names: [session = ""], values, totals }: SumRow): Partial<SessionRise> {
  if (totals.paid_by_plan_usd === undefined) return {};
  const [first = 0n, last = 0n] = values;
  const own = { $session: session, $first: Number(first), $last: Number(last) };
  const rises = readRises(table, session);
  if (Object.keys(rises).length === 0) return {};
  const others = table.list(
    `SELECT 1 FROM requests WHERE at >= $first AND at <= $last AND session IS NOT $session AND paid_by = 'plan'
     AND (official > 0 OR exact IS NOT NULL) LIMIT 1`,
    own,
  );
  return {
    windows: Object.fromEntries(Object.entries(rises).map(([name, { rise }]) => [name, rise])),
    windows_shared: others.length > 0,
  };
}

const MAX_FOUND = 11;

/** The sessions that begin with `start`, a few at most. A session that equals it is the only one. */
export function findSessions(table: Table, start: string): string[] {
  const found = table.list(
    `SELECT session FROM requests WHERE session >= $start AND session < $start || char(1114111)
     GROUP BY session ORDER BY session <> $start, MIN(line) LIMIT ${MAX_FOUND}`,
    { $start: start },
  );
  const sessions = found.map(([session]) => String(session));
  return sessions[0] === start ? [start] : sessions;
}

/** The session of the last request that has one. */
export function findLastSession(table: Table): string | null {
  const sql = "SELECT session FROM requests WHERE session IS NOT NULL ORDER BY line DESC LIMIT 1";
  return readText(table.list(sql)[0]?.[0]);
}
