// Sessions for the page: the sums of `gateway sessions`, and one session's tree of agents. Runs in the worker.

import { listMisses } from "../../billing/index/requests.ts";
import { chooseSessions } from "../../billing/index/sessions.ts";
import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import type { Traits } from "../../billing/index/traits.ts";
import {
  describeTotals,
  hasNames,
  hasTraits,
  isReported,
  openTotals,
  type ReportQuery,
  sumLedger,
} from "../../billing/report/report.ts";
import { toIso } from "../../billing/report/period.ts";
import {
  type AgentPlace,
  describeRise,
  describeSession,
  findRise,
  listTree,
  readMiss,
  type SessionRow as Row,
  sumSessions,
} from "../../billing/report/sessions.ts";
import type { AgentRow, Order, SessionParts, SessionRow, SessionsReply } from "../api.ts";
import { type Clock, describePeriod, findRange, type Scope } from "./scope.ts";

export interface SessionsQuery extends Scope {
  /** Those that are cut off are the last ones. */
  readonly order: Order;
  readonly most: number;
}

export function listSessions(
  index: LedgerIndex,
  { period, only, order, most }: SessionsQuery,
  clock: Clock,
): SessionsReply {
  const query = { ...describePeriod(findRange(period, clock)), zone: clock.zone, only };
  const { session } = only;
  const chosen = session === undefined ? choose(index, query, { order, most: most + 1 }) : [session];
  const { rows } = sumSessions(index, { ...query, sessions: chosen });
  const named = rows.filter((row) => row.names[0] !== "");
  const sorted = order === "newest" ? named : named.toSorted(ORDERED[order]);
  const unnamed = { ...query, by: [], only: { ...only, session: "" } };
  return {
    sessions: sorted.slice(0, most).map(describeRow),
    isMore: sorted.length > most,
    total: describeTotals(sumLedger(index, { ...query, by: [] }).total),
    unnamed: describeTotals(session === undefined ? sumLedger(index, unnamed).total : openTotals()),
    as_of: toIso(clock.now),
  };
}

type RangeQuery = Omit<ReportQuery, "by">;

/** The names of the first ones. */
function choose(
  index: LedgerIndex,
  query: RangeQuery,
  { order, most }: Pick<SessionsQuery, "order" | "most">,
) {
  if (order === "missed") return chooseMissed(index, query, most);
  const { session: _, ...names } = query.only ?? {};
  const wants = (traits: Traits): boolean => isReported(traits) && hasTraits(traits, names);
  return chooseSessions(index, { ...query, wants, order, most });
}

function chooseMissed(index: LedgerIndex, query: RangeQuery, most: number): string[] {
  const missed = new Map<string, number>();
  for (const each of listMisses(index, query)) {
    const { session } = each.sender;
    if (session === "" || !hasNames(each, query.only)) continue;
    missed.set(session, (missed.get(session) ?? 0) + (readMiss(each)?.tokens ?? 0));
  }
  const sorted = [...missed].toSorted(([, a], [, b]) => b - a);
  return sorted.slice(0, most).map(([session]) => session);
}

/** The newest first among equals, because the order of those stays. */
const ORDERED: Readonly<Record<Exclude<Order, "newest">, (a: Row, b: Row) => number>> = {
  charge: ({ totals: a }, { totals: b }) => (a.charge === b.charge ? 0 : a.charge > b.charge ? -1 : 1),
  missed: (a, b) => countMissed(b) - countMissed(a),
};

function countMissed({ totals }: Row): number {
  const misses = [...totals.agents.values()].flatMap((agent) => agent.misses);
  return misses.reduce((sum, { tokens }) => sum + tokens, 0);
}

export function showSession(index: LedgerIndex, session: string): SessionParts {
  const [row] = sumSessions(index, { since: null, until: null, only: { session } }).rows;
  if (row === undefined || session === "") return { session: null, agents: [] };
  const rise = findRise(index, row);
  return {
    session: describeRow(row),
    agents: listTree(row.totals.agents).map(describeAgent),
    ...(rise !== null && { rise: describeRise(rise) }),
  };
}

function describeRow(row: Row): SessionRow {
  return { ...describeSession(row), missed: countMissed(row) };
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
