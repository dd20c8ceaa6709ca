// When limits in USD were reached while a session ran, as charges say. Runs in the worker.

import { HOUR_MS, type TimeRange } from "../../billing/index/groups.ts";
import type { LedgerIndex } from "../../billing/index/ledger-index.ts";
import { findRequests, listRequests, type RequestQuery } from "../../billing/index/requests.ts";
import { toIso } from "../../billing/report/period.ts";
import { hasTraits, selectGroups } from "../../billing/report/report.ts";
import { sumSessions } from "../../billing/report/sessions.ts";
import { addUsd, parseUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { startOfNextSpan, startOfSpan, type TimeSpan, type Zone } from "../../lib/text/zone.ts";
import type { LimitRow, ReachedLimit } from "../api.ts";
import type { Clock } from "./scope.ts";

export interface ReachedQuery {
  readonly session: string;
  /** As they are now. */
  readonly limits: readonly Pick<LimitRow, "holder" | "limit" | "usd">[];
}

export function findReached(
  index: LedgerIndex,
  { session, limits }: ReachedQuery,
  { zone }: Clock,
): ReachedLimit[] {
  const [row] = sumSessions(index, { since: null, until: null, only: { session } }).rows;
  if (row === undefined || limits.length === 0) return [];
  const { first, last } = row.totals;
  return limits.flatMap(({ holder, limit, usd }) =>
    listPeriods(limit, [first, last], zone).flatMap((period) => {
      const time = findMoment(index, { [holder.kind]: holder.name }, period, parseUsd(usd));
      return time === null || time < first ? [] : [{ holder, limit, usd, time }];
    }),
  );
}

const SPAN_OF: Readonly<Record<string, TimeSpan>> = { usd_per_day: "day", usd_per_month: "month" };

/** The periods of a limit that a session was in, up to its last request. */
function listPeriods(limit: string, [first, last]: readonly [string, string], zone: Zone): TimeRange[] {
  const [end, span] = [Date.parse(last) + 1, SPAN_OF[limit]];
  if (span === undefined) return [{ since: null, until: toIso(end) }];
  const periods: TimeRange[] = [];
  let at = startOfSpan(span, zone.toLocal(Date.parse(first)));
  for (let since = zone.fromLocal(at); since < end; since = zone.fromLocal(at)) {
    at = startOfNextSpan(span, at);
    periods.push({ since: toIso(since), until: toIso(Math.min(end, zone.fromLocal(at))) });
  }
  return periods;
}

type Only = Readonly<Record<string, string>>;

/** The time of the request with which they had cost so much: first its hour, then its row. */
function findMoment(index: LedgerIndex, only: Only, period: TimeRange, usd: Usd): string | null {
  const hours = Map.groupBy(selectGroups(index, { ...period, by: ["hour"], only }), ({ span }) => span);
  let sum = ZERO_USD;
  for (const [hour, groups] of [...hours].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const before = sum;
    for (const { charge } of groups) sum = addUsd(sum, charge);
    if (sum >= usd) return findRow(index, only, cutHour(period, hour), [before, usd]);
  }
  return null;
}

/** `hour`: in UTC, as a span has it. */
function cutHour({ since, until }: TimeRange, hour: string): TimeRange {
  const start = Date.parse(`${hour.replace(" ", "T")}Z`);
  const [from, to] = [toIso(start), toIso(start + HOUR_MS)];
  return {
    since: since === null || since < from ? from : since,
    until: until === null || until > to ? to : until,
  };
}

function findRow(
  index: LedgerIndex,
  { session, ...names }: Only,
  range: TimeRange,
  [before, usd]: readonly [Usd, Usd],
): string | null {
  const query: RequestQuery = { ...range, session, wants: (traits) => hasTraits(traits, names) };
  const places = findRequests(index, query);
  let sum = before;
  for (const { time, charge } of listRequests(places, query, { from: 0, most: places.total }).toReversed()) {
    sum = addUsd(sum, charge);
    if (sum >= usd) return time;
  }
  return null;
}
