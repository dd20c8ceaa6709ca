// Sessions for the page: the sums of `gateway sessions`, and one session's tree of agents. Runs in the worker.

import { listSessionSums } from "../../billing/index/sessions.ts";
import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import { nameFolder, readTurns } from "../../billing/report/context/file.ts";
import { describeContext } from "../../billing/report/context/report.ts";
import { describeTotals, openTotals, type ReportQuery, sumLedger } from "../../billing/report/report.ts";
import {
  type AgentPlace,
  describeRise,
  describeSession,
  findRise,
  listSessionRows,
  listTree,
  type SessionRow as Row,
  sumSessions,
} from "../../billing/report/sessions.ts";
import type { AgentRow, Order, SessionReply, SessionRow, SessionsReply } from "../api.ts";
import { type Clock, findRange, type Scope, toIso } from "./scope.ts";

const MAX_SESSIONS = 200;
/** So many are summed in one query. */
const CHUNK = 256;

export interface SessionsQuery extends Scope {
  /** Those that are cut off are the last ones. */
  readonly order: Order;
}

type RangeQuery = Omit<ReportQuery, "by">;

export function listSessions(
  index: LedgerIndex,
  { period, only, order }: SessionsQuery,
  { zone, now }: Clock,
): SessionsReply {
  const { since, end } = findRange(period, { zone, now });
  const query = { since: since === null ? null : toIso(since), until: toIso(end), zone, only };
  const rows = order === "newest" ? listNewest(index, query) : listByCharge(index, query);
  const { total } = sumLedger(index, { ...query, by: [] });
  const unnamed = sumLedger(index, { ...query, by: [], only: { ...only, session: "" } });
  return {
    sessions: rows.slice(0, MAX_SESSIONS).map(describeRow),
    isMore: rows.length > MAX_SESSIONS,
    total: describeTotals(total),
    unnamed: describeTotals(only.session === undefined ? unnamed.total : openTotals()),
  };
}

function isNamed({ names }: Row): boolean {
  return names[0] !== "";
}

/** The sessions of a long ledger are many, and the newest are shown: it sums no others. */
function listNewest(index: LedgerIndex, query: RangeQuery): Row[] {
  if (query.only?.session !== undefined) return sumSessions(index, query).rows.filter(isNamed);
  const found: Row[] = [];
  for (let known = 0; found.length <= MAX_SESSIONS; known += CHUNK) {
    const sessions = listSessionSums(index, CHUNK, known);
    if (sessions.length === 0) break;
    const names = [...new Set(sessions.map(([id]) => id))];
    found.push(...sumSessions(index, { ...query, sessions: names }).rows.filter(isNamed));
    const last = sessions.reduce((most, [, { lastUsed }]) => (lastUsed > most ? lastUsed : most), "");
    if (query.since !== null && last < query.since) break;
  }
  // The same session may be in both parts of the index.
  const byName = new Map(found.map((row) => [row.names[0] ?? "", row]));
  return [...byName.values()].toSorted((a, b) => (a.totals.last < b.totals.last ? 1 : -1));
}

/** The newest first among equals, because the order of those stays. */
function listByCharge(index: LedgerIndex, query: RangeQuery): Row[] {
  const rows = sumSessions(index, query).rows.filter(isNamed);
  return rows.toSorted(({ totals: a }, { totals: b }) =>
    a.charge === b.charge ? 0 : a.charge > b.charge ? -1 : 1,
  );
}

export function showSession(index: LedgerIndex, session: string): SessionReply {
  const [row] = sumSessions(index, { since: null, until: null, only: { session } }).rows;
  if (row === undefined || session === "") return { session: null, agents: [], context: [] };
  const rise = findRise(index, row);
  const turns = readTurns(nameFolder(index.path), session);
  const context = turns.length === 0 ? [] : describeContext(turns, listSessionRows(index, session)).turns;
  return {
    session: describeRow(row),
    agents: listTree(row.totals.agents).map(describeAgent),
    context,
    ...(rise !== null && { rise: describeRise(rise) }),
  };
}

function describeRow(row: Row): SessionRow {
  const misses = [...row.totals.agents.values()].flatMap((agent) => agent.misses);
  return { ...describeSession(row), missed: misses.reduce((sum, { tokens }) => sum + tokens, 0) };
}

function describeAgent({ name, totals, branches }: AgentPlace): AgentRow {
  return {
    ...describeTotals(totals ?? openTotals()),
    name,
    depth: branches.length,
    model: totals?.model ?? "",
    misses: totals?.misses ?? [],
  };
}
