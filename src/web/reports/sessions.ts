// Sessions for the page: the sums of `gateway sessions`, and one session's tree of agents. Runs in the worker.

import {
  type AgentPlace,
  describeRise,
  describeSession,
  findRise,
  listTree,
  type SessionRow as Row,
  sumSessions,
} from "../../billing/report/sessions.ts";
import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import { describeTotals, openTotals } from "../../billing/report/report.ts";
import type { AgentRow, Order, PeriodName, SessionReply, SessionRow, SessionsReply } from "../api.ts";
import { type Clock, findStart } from "./overview.ts";

const MAX_SESSIONS = 200;

export interface SessionsQuery {
  readonly period: PeriodName;
  /** Those that are cut off are the last ones. */
  readonly order: Order;
}

export function listSessions(
  index: LedgerIndex,
  { period, order }: SessionsQuery,
  clock: Clock,
): SessionsReply {
  const { rows } = sumSessions(index, { ...clock, since: formatStart(period, clock), until: null });
  const named = rows.filter(({ names }) => names[0] !== "");
  if (order === "charge") named.sort(byCharge);
  return {
    period,
    sessions: named.slice(0, MAX_SESSIONS).map(describeRow),
    more: Math.max(0, named.length - MAX_SESSIONS),
  };
}

/** The newest first among equals, because the order of those stays. */
function byCharge({ totals: a }: Row, { totals: b }: Row): number {
  if (a.charge === b.charge) return 0;
  return a.charge > b.charge ? -1 : 1;
}

export function showSession(index: LedgerIndex, session: string, clock: Clock): SessionReply {
  const query = { ...clock, since: formatStart("30d", clock), until: null, only: { session } };
  const [row] = sumSessions(index, query).rows;
  if (row === undefined) return { session: null, agents: [] };
  const rise = findRise(index, row);
  return {
    session: describeRow(row),
    agents: listTree(row.totals.agents).map(describeAgent),
    ...(rise !== null && { rise: describeRise(rise) }),
  };
}

function formatStart(period: PeriodName, clock: Clock): string {
  return new Date(findStart(period, clock)).toISOString();
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
