// Which requests a view is of: a period in the config's time zone, and names. Runs in the worker.

import type { TimeRange } from "../../billing/index/groups.ts";
import { readPeriodWord, toIso } from "../../billing/report/period.ts";
import { Refusal } from "../../lib/refusal.ts";
import { startOfNextSpan, startOfSpan, type TimeSpan, type Zone } from "../../lib/text/zone.ts";
import type { Filters } from "../api.ts";

export interface Scope {
  /** A word of `gateway usage`, a day, a month, two days (`2026-11-03..2026-11-09`), or `all`. */
  readonly period: string;
  readonly only: Filters;
}

export interface Clock {
  readonly zone: Zone;
  readonly now: number;
}

export interface Range {
  /** Milliseconds; null: from the beginning. */
  readonly since: number | null;
  readonly until: number;
  /** The end of the period itself, which may be later than now. */
  readonly end: number;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MAX_BARS = 92;

export function findRange(period: string, { zone, now }: Clock): Range {
  const today = startOfNextSpan("day", startOfSpan("day", zone.toLocal(now)));
  const close = zone.fromLocal(today);
  if (period === "all") return { since: null, until: now, end: close };
  const clock = { zone, now: new Date(now) };
  const [first = "", last = first] = period.split("..");
  const since = readPeriodWord(first, clock).since ?? "";
  const { until } = readPeriodWord(last, clock);
  const from = Date.parse(since);
  const end = until === null ? (last.endsWith("h") ? now : close) : Date.parse(until);
  if (end <= from) throw new Refusal(`The period ${period} ends before it begins.`, 2);
  return { since: from, until: Math.max(from, Math.min(end, now)), end };
}

/** As far into the period before as this one has come: of a month, the month before; otherwise as many days. */
export function findBefore(range: Range, zone: Zone): Range | null {
  const { since, until, end } = range;
  if (since === null) return null;
  const [first, now, last] = [since, until, end].map(zone.toLocal);
  if (first === undefined || now === undefined || last === undefined) return null;
  const isMonth = startOfSpan("month", first) === first && startOfNextSpan("month", first) === last;
  const start = isMonth ? startOfSpan("month", first - DAY_MS) : first - (last - first);
  const stop = Math.min(first, start + (now - first));
  return { since: zone.fromLocal(start), until: zone.fromLocal(stop), end: since };
}

/** All of a period, as reports ask for it. */
export function describePeriod({ since, end }: Pick<Range, "since" | "end">): TimeRange {
  return { since: since === null ? null : toIso(since), until: toIso(end) };
}

/** So that there are enough bars, and not too many. */
export function chooseSpan({ since, end }: Range, first: number): TimeSpan {
  const length = end - (since ?? first);
  if (length <= 2 * DAY_MS + HOUR_MS) return "hour";
  if (length <= MAX_BARS * DAY_MS) return "day";
  return length <= 7 * MAX_BARS * DAY_MS ? "week" : "month";
}

/** The local times at which the spans of a range begin. */
export function listStarts(span: TimeSpan, { since, end }: Range, first: number, zone: Zone): number[] {
  const last = zone.toLocal(end);
  const starts: number[] = [];
  for (let at = startOfSpan(span, zone.toLocal(since ?? first)); at < last; at = startOfNextSpan(span, at))
    starts.push(at);
  return starts;
}
