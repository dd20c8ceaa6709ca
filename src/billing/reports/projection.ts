// What the month will have cost, if it goes on as the last four weeks did: an estimate in whole cents.

import { estimateUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { nameSpan, startOfNextSpan, startOfSpan } from "../../lib/text/zone.ts";

export interface Projection {
  readonly usd: string;
  /** The 80 % interval of the month's projected cost. */
  readonly low_usd: string;
  readonly high_usd: string;
}

const DAY_MS = 86_400_000;
export const PAST_DAYS = 28;
/** Fewer days say too little. */
const MIN_DAYS = 7;
/** Eight of ten normal values are within so many standard deviations. */
const EIGHT_OF_TEN = 1.2816;

export interface MonthSoFar {
  /** By the name of the day. */
  readonly days: ReadonlyMap<string, Usd>;
  readonly spent: Usd;
  /** Local times: the beginning of the day, and now. */
  readonly today: number;
  readonly local: number;
}

/** Null: there are too few days to tell. */
export function projectMonth({ days, spent, today, local }: MonthSoFar): Projection | null {
  const past = Array.from({ length: PAST_DAYS }, (_, index) => nameSpan("day", today - (index + 1) * DAY_MS));
  const first = past.findLastIndex((day) => days.has(day));
  if (first + 1 < MIN_DAYS) return null;
  const daily = past.slice(0, first + 1).map((day) => estimateUsd(days.get(day) ?? ZERO_USD));
  const mean = daily.reduce((sum, each) => sum + each, 0) / daily.length;
  const variance = daily.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (daily.length - 1);
  const left = (startOfNextSpan("month", startOfSpan("month", today)) - local) / DAY_MS;
  const until = estimateUsd(spent);
  const more = mean * left;
  const range = EIGHT_OF_TEN * Math.sqrt(variance * left);
  return {
    usd: (until + more).toFixed(2),
    low_usd: (until + Math.max(0, more - range)).toFixed(2),
    high_usd: (until + more + range).toFixed(2),
  };
}
