// A report's period: a word (`yesterday`), or `--since` and `--until`,
// in the config's zone.

import { readMoment } from "../../config/yaml/scalars.ts";
import { refuseUsage } from "../../lib/refusal.ts";
import { findNextSpan, startOfNextSpan, startOfSpan, UTC, type Zone } from "../../lib/text/zone.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export interface PeriodFlags {
  readonly period?: string | undefined;
  readonly since?: string;
  readonly until?: string;
}

export interface Clock {
  readonly zone: Zone;
  readonly now: Date;
}

export interface ReportPeriod {
  /** ISO times. Null: no beginning or no end. */
  readonly since: string | null;
  readonly until: string | null;
}

/** In ms. Null: no end. */
interface Range {
  readonly from: number;
  readonly to: number | null;
}

const WORDS = "today, yesterday, week, month, last-week, last-month, 7d, 12h, 2w, a month such as 2026-11";

/** A date or a month at the end is included completely. */
export function readPeriod({ period, since, until }: PeriodFlags, clock: Clock): ReportPeriod {
  const isAlone = since === undefined && until === undefined;
  const advice = "A period cannot be combined with --since and --until.";
  if (period !== undefined) return isAlone ? readWord(period, clock) : refuseUsage(advice);
  const from =
    since === undefined ? null : (readRange(since, clock) ?? refuseDate("--since", `${WORDS}, `)).from;
  const to = until === undefined ? null : (readRange(until, clock)?.to ?? refuseDate("--until"));
  if (from !== null && to !== null && to <= from) refuseUsage(`--until: ${until} is before --since.`);
  return { since: toIso(from), until: toIso(to) };
}

function refuseDate(flag: string, others = ""): never {
  return refuseUsage(
    `${flag}: expected ${others}a date such as 2026-11-20, or a moment such as 2026-11-20T12:00:00Z.`,
  );
}

export function isPeriod(text: string): boolean {
  return readRange(text, { zone: UTC, now: new Date() }) !== null;
}

function readWord(text: string, clock: Clock): ReportPeriod {
  const { from, to } =
    readRange(text, clock) ??
    refuseUsage(`There is no period "${text}". Known: ${WORDS}, a date such as 2026-11-20.`);
  return { since: toIso(from), until: toIso(to) };
}

export type ViewRange = Record<"until" | "end", number> & { readonly since: number | null };

/** The page's period: a word, a day, a month, `2026-11-03..2026-11-09` or `all`. */
export function readViewPeriod(period: string, clock: Clock): ViewRange {
  const { zone } = clock;
  const now = clock.now.getTime();
  const close = findNextSpan("day", zone, now);
  if (period === "all") return { since: null, until: now, end: close };
  const [first = "", last = first] = period.split("..");
  const from = Date.parse(readWord(first, clock).since ?? "");
  const { until } = readWord(last, clock);
  const end = until === null ? (last.endsWith("h") ? now : close) : Date.parse(until);
  if (end <= from) return refuseUsage(`The period ${period} ends before it begins.`);
  return { since: from, until: Math.max(from, Math.min(end, now)), end };
}

export function toPeriod({ since, end }: Pick<ViewRange, "since" | "end">): ReportPeriod {
  return { since: toIso(since), until: toIso(end) };
}

function readRange(text: string, { zone, now }: Clock): Range | null {
  const today = startOfSpan("day", zone.toLocal(now.getTime()));
  const localDays = (from: number, to: number): Range => ({
    from: zone.fromLocal(from),
    to: zone.fromLocal(to),
  });
  const named = findNamedSpan(text, today);
  if (named !== null) return localDays(...named);
  const [, count = "", unit = ""] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  if (unit === "h") return { from: now.getTime() - Number(count) * HOUR_MS, to: null };
  if (unit !== "") {
    const days = Number(count) * (unit === "w" ? 7 : 1);
    return { from: zone.fromLocal(today - Math.max(0, days - 1) * DAY_MS), to: null };
  }
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) {
    const month = Date.parse(`${text}-01`);
    return localDays(month, startOfNextSpan("month", month));
  }
  const moment = readDate(text);
  if (moment === null) return null;
  // A date is a local day here. readMoment reads dates as UTC, as in the config.
  return text.includes("T") ? { from: moment, to: moment } : localDays(moment, moment + DAY_MS);
}

function findNamedSpan(text: string, today: number): [from: number, to: number] | null {
  if (text === "today") return [today, today + DAY_MS];
  if (text === "yesterday") return [today - DAY_MS, today];
  const [, last, span] = /^(last-)?(week|month)$/.exec(text) ?? [];
  if (span !== "week" && span !== "month") return null;
  const start = startOfSpan(span, last === undefined ? today : startOfSpan(span, today) - DAY_MS);
  return [start, startOfNextSpan(span, start)];
}

function readDate(text: string): number | null {
  try {
    return readMoment(text).getTime();
  } catch {
    return null;
  }
}

function toIso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
