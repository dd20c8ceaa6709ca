// The requests of a view one by one, their names, and what the cache missed. Runs in the worker.

import {
  findRequests,
  type IndexedRequest,
  listRequests,
  type RequestQuery,
  sumCharges,
} from "../../billing/index/requests.ts";
import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import { adviseOn, describeCause } from "../../billing/report/cache-causes.ts";
import { reportMisses } from "../../billing/report/cache-misses.ts";
import {
  countCached,
  countInput,
  countOutput,
  hasTraits,
  openTotals,
  selectGroups,
  sumLedger,
} from "../../billing/report/report.ts";
import { toIso } from "../../billing/report/period.ts";
import { readMiss } from "../../billing/report/sessions.ts";
import { addUsd, formatDecimal, formatUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { FILTERS, type MissesReply, type NamesReply, type RequestRow, type RequestsReply } from "../api.ts";
import { type Clock, describePeriod, findRange, type Scope } from "./scope.ts";

export interface RequestsQuery extends Scope {
  readonly most: number;
}

export function showRequests(
  index: LedgerIndex,
  { period, only, most }: RequestsQuery,
  clock: Clock,
): RequestsReply {
  const { session, ...names } = only;
  const range = describePeriod(findRange(period, clock));
  const query: RequestQuery = { ...range, session, wants: (traits) => hasTraits(traits, names) };
  const places = findRequests(index, query);
  // A correction says whose it is, but not how the request ended.
  const charge =
    names.outcome === undefined
      ? sumLedger(index, { ...range, by: [], only }).total.charge
      : sumCharges(index, query);
  return {
    total: places.total,
    charge_usd: formatUsd(charge),
    as_of: toIso(clock.now),
    rows: listRequests(places, query, { from: 0, most }).map(describeRequest),
  };
}

function describeRequest(request: IndexedRequest): RequestRow {
  const { id, time, traits, sender, counts, charge, official, miss } = request;
  const { key, group, channel, model, tool, label, outcome, basis, kinds, paidBy } = traits;
  const usage = new Map(kinds.map((kind, index) => [kind, counts[index] ?? 0]));
  const totals = { ...openTotals(), usage };
  const missed = miss === null ? null : readMiss({ id, time, cache: miss });
  const isKnown = request.isCorrected || (basis !== "unknown" && basis !== "unpriced");
  return {
    id,
    time,
    key,
    group,
    channel,
    model,
    tool,
    label,
    session: sender.session,
    agent: sender.agent,
    status: request.status,
    outcome,
    first_byte_ms: request.firstByteMs,
    duration_ms: request.durationMs,
    input: countInput(totals),
    cached: countCached(totals),
    output: countOutput(totals),
    charge_usd: isKnown ? formatUsd(charge) : null,
    ...(paidBy === "plan" && { paid_by_plan_usd: formatDecimal(official) }),
    ...(missed !== null && { missed }),
  };
}

const MAX_NAMES = 200;
const NAMES_OF_TRAITS = ["key", "group", "channel", "model", "tool", "label"] as const;

export function listNames(index: LedgerIndex, { period, only }: Scope, clock: Clock): NamesReply {
  const range = describePeriod(findRange(period, clock));
  const groups = selectGroups(index, { ...range, by: NAMES_OF_TRAITS, only });
  const lists = FILTERS.flatMap((filter) => {
    if (filter === "session") return [];
    const charges = new Map<string, Usd>();
    for (const { traits, charge } of groups) {
      const name = traits[filter] ?? "";
      charges.set(name, addUsd(charges.get(name) ?? ZERO_USD, charge));
    }
    const sorted = [...charges].toSorted(([, a], [, b]) => (a === b ? 0 : a > b ? -1 : 1));
    return [[filter, sorted.slice(0, MAX_NAMES).map(([name]) => name)] as const];
  });
  return Object.fromEntries(lists);
}

export function listCauses(index: LedgerIndex, { period, only }: Scope, clock: Clock): MissesReply {
  const range = describePeriod(findRange(period, clock));
  const { causes, total } = reportMisses(index, { ...range, only });
  return {
    causes: causes.map(({ cause, totals }) => ({
      cause: describeCause(cause),
      help: adviseOn(cause),
      misses: totals.misses,
      tokens: totals.tokens,
      usd: formatUsd(totals.cost),
    })),
    misses: total.misses,
    usd: formatUsd(total.cost),
    as_of: toIso(clock.now),
  };
}
