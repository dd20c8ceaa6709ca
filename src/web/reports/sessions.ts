// Sessions for the page: the sums of `gateway sessions`, and one session's tree of agents. Runs in the worker.

import { chooseSessions } from "../../billing/index/sessions.ts";
import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import type { Traits } from "../../billing/index/traits.ts";
import { nameFolder, readTurns } from "../../billing/report/context/file.ts";
import { describeContext } from "../../billing/report/context/report.ts";
import { describeTotals, hasNames, isReported, openTotals, sumLedger } from "../../billing/report/report.ts";
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
import { type Clock, describePeriod, findRange, type Scope } from "./scope.ts";

const MAX_SESSIONS = 200;

export interface SessionsQuery extends Scope {
  /** Those that are cut off are the last ones. */
  readonly order: Order;
}

export function listSessions(
  index: LedgerIndex,
  { period, only, order }: SessionsQuery,
  clock: Clock,
): SessionsReply {
  const query = { ...describePeriod(findRange(period, clock)), zone: clock.zone, only };
  const { session, ...names } = only;
  const wants = (traits: Traits): boolean =>
    isReported(traits) && hasNames({ traits, sender: null, span: "" }, names);
  const most = MAX_SESSIONS + 1;
  const chosen = session === undefined ? chooseSessions(index, { ...query, wants, order, most }) : [session];
  const { rows } = sumSessions(index, { ...query, sessions: chosen });
  const named = rows.filter((row) => row.names[0] !== "");
  // The newest first among equals, because the order of those stays.
  const sorted = order === "newest" ? named : named.toSorted(compareCharges);
  const unnamed = { ...query, by: [], only: { ...only, session: "" } };
  return {
    sessions: sorted.slice(0, MAX_SESSIONS).map(describeRow),
    isMore: sorted.length > MAX_SESSIONS,
    total: describeTotals(sumLedger(index, { ...query, by: [] }).total),
    unnamed: describeTotals(session === undefined ? sumLedger(index, unnamed).total : openTotals()),
  };
}

function compareCharges({ totals: a }: Row, { totals: b }: Row): number {
  return a.charge === b.charge ? 0 : a.charge > b.charge ? -1 : 1;
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
