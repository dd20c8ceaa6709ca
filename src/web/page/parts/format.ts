// Writes amounts, counts, durations and times.

import type { NumberLimit } from "../../../config/limit-names.ts";
import { formatRounded } from "../../../lib/money.ts";
import type { Totals } from "../../../billing/reports/sums.ts";
import type { Measure } from "../../../billing/reports/words.ts";

const PERIOD_TITLES: Readonly<Record<string, string>> = {
  today: "Today",
  yesterday: "Yesterday",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
  month: "This month",
  "last-month": "Last month",
  "90d": "Last 90 days",
  all: "All time",
};
export const PERIOD_WORDS = Object.keys(PERIOD_TITLES);

export function namePeriod(period: string): string {
  const known = PERIOD_TITLES[period];
  if (known !== undefined) return known;
  return period.split("..").map(nameMoment).join(" – ");
}

function nameMoment(text: string): string {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) return text;
  if (text.includes("T")) return formatMoment(ms);
  return (text.length === 7 ? monthName : longDay).format(ms);
}

const group = new Intl.NumberFormat("en-US");
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** `$0.30`, `$0.0204255`: all digits. */
export function formatExact(amount: string): string {
  if (amount.startsWith("-")) return `−${formatExact(amount.slice(1))}`;
  const [whole = "", fraction = ""] = amount.split(".");
  return `$${group.format(BigInt(whole))}.${fraction.padEnd(2, "0")}`;
}

/** `$12.34`, or `$0.0123` where cents would hide most. */
export function formatUsd(amount: string): string {
  const places = /^-?0\.0\d*[1-9]/.test(amount) ? 4 : 2;
  const rounded = formatRounded(amount, places);
  return rounded === "0.0000" ? "<$0.0001" : formatExact(rounded);
}

export function formatDollars(amount: string): string {
  const [dollars = ""] = formatRounded(amount, 0).split(".");
  return dollars.length < 2 ? formatUsd(amount) : `$${group.format(BigInt(dollars))}`;
}

export function chargeOf({ charge_usd, unpriced, requests }: Totals): string | null {
  return unpriced === requests ? null : charge_usd;
}

export function formatCount(count: number): string {
  return group.format(count);
}

export function countOf(count: number, word: string): string {
  return `${formatCount(count)} ${word}${count === 1 ? "" : "s"}`;
}

export function formatShort(count: number): string {
  return compact.format(count);
}

/** Writes a change such as `+12 %`.
 *  Returns null if nothing changed, or if the value was 0. */
export function formatChange(now: string | number, before: string | number): string | null {
  const [is, was] = [Number(now), Number(before)];
  if (was === 0) return null;
  const change = Math.round((100 * (is - was)) / was);
  if (change > 999) return `×${Math.round(is / was)}`;
  return change === 0 ? null : `${change > 0 ? "+" : "−"}${Math.abs(change)} %`;
}

export function listShares(values: readonly number[]): readonly number[] {
  const sum = values.reduce((before, value) => before + value, 0);
  if (sum === 0) return [];
  const exact = values.map((value) => (100 * value) / sum);
  const missing = 100 - exact.reduce((before, share) => before + Math.floor(share), 0);
  const raised = [...exact.keys()].toSorted((a, b) => cutOff(exact[b]) - cutOff(exact[a])).slice(0, missing);
  return exact.map((share, index) => Math.floor(share) + Number(raised.includes(index)));
}

function cutOff(share = 0): number {
  return share - Math.floor(share);
}

/** Rounded down: 100 % means all of it. */
export function formatRate(rate: number | null): string {
  return rate === null ? "–" : `${Math.floor(rate * 100)} %`;
}

export function formatMs(ms: number | null): string {
  if (ms === null) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : formatSpan(ms);
}

/** `45 s`, `12 min`, `3 h 5 min`, `2 d`. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours}\u00a0h ${minutes % 60}\u00a0min`;
  return `${Math.floor(hours / 24)} d`;
}

/** Hours go to 23, as in the commands,
 *  so that a time fits on a phone in any language. */
const hourCycle = "h23";
const FORMS = {
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle },
  day: { dateStyle: "medium" },
  full: { dateStyle: "medium", timeStyle: "medium", hourCycle },
  moment: {
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle,
  },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

type Formats = Readonly<Record<keyof typeof FORMS, Intl.DateTimeFormat>>;

let zone: string | undefined;
let formats = makeFormats(zone);

function makeFormats(timeZone: string | undefined): Formats {
  const make = (form: keyof typeof FORMS): Intl.DateTimeFormat =>
    new Intl.DateTimeFormat(undefined, { ...FORMS[form], timeZone });
  return {
    clock: make("clock"),
    day: make("day"),
    full: make("full"),
    moment: make("moment"),
  };
}

export function setZone(name: string): void {
  try {
    formats = makeFormats(name);
    zone = name;
  } catch {
    // The browser does not know the zone.
    zone = undefined;
    formats = makeFormats(zone);
  }
}

export function listMonths(count: number): string[] {
  const [year = 0, month = 0] = new Date()
    .toLocaleDateString("sv-SE", { timeZone: zone })
    .split("-")
    .map(Number);
  return Array.from({ length: count }, (_, back) =>
    new Date(Date.UTC(year, month - 1 - back, 1)).toISOString().slice(0, "2026-11".length),
  );
}

export function localize(text: string): string {
  return text.replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z/g, (time) =>
    formatFull(Date.parse(time)),
  );
}

export function formatClock(ms: number): string {
  return formats.clock.format(ms);
}

/** A day from the config comes as its midnight in UTC. */
export function formatDay(iso: string): string {
  return (iso.endsWith("T00:00:00Z") ? longDay : formats.day).format(new Date(iso));
}

export function formatFull(ms: number): string {
  return formats.full.format(ms);
}

/** `Nov 20, 14:05:06`, for columns: breaks only before the time. */
export function formatMoment(ms: number): string {
  return formats.moment.format(ms).replaceAll(/ (?!\d\d:)/g, "\u00a0");
}

function describeDay(form: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat(undefined, { ...form, timeZone: "UTC" });
}

const shortDay = describeDay({ day: "numeric", month: "short" });
const weekday = describeDay({ weekday: "short", day: "numeric", month: "short" });
const longDay = describeDay({ dateStyle: "medium" });
const monthName = describeDay({ month: "long", year: "numeric" });
const shortMonth = describeDay({ month: "short", year: "2-digit" });

/** `2026-11` gives `Nov 30`. */
export function formatLastDay(month: string): string {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return shortDay.format(Date.UTC(year, number, 0));
}

/** A span: `2026-11-20 14:00`, `2026-11-20`, `2026-W47` or `2026-11`. */
export function formatSpanName(name: string, how: "short" | "long"): string {
  if (name.includes(" "))
    return how === "short"
      ? name.slice(11)
      : `${weekday.format(new Date(name.slice(0, 10)))}, ${name.slice(11)}`;
  if (name.includes("W")) return how === "short" ? name.slice(5) : name.replace("-W", ", week ");
  if (name.length === 7) return (how === "short" ? shortMonth : monthName).format(new Date(name));
  return (how === "short" ? shortDay : weekday).format(new Date(name));
}

export const MEASURE_TITLES: Readonly<Record<Measure, string>> = {
  cost: "Cost",
  tokens: "Tokens",
  requests: "Requests",
  errors: "Errors",
};

export function isFailed(outcome: string): boolean {
  return !["complete", "client_closed", "refused"].includes(outcome);
}

export const MAIN_AGENT = "main agent";

const KINDS: Readonly<Record<string, string>> = {
  input: "Input",
  cache_read: "Read from cache",
  cache_write: "Written to cache",
  cache_write_5m: "Written to cache, 5 min",
  cache_write_1h: "Written to cache, 1 h",
  output: "Output",
  reasoning: "Reasoning, part of the output",
};

export function nameKind(kind: string): string {
  return KINDS[kind] ?? kind.replaceAll("_", " ");
}

const LIMITS: Readonly<Record<string, string>> = {
  usd_per_day: "per day",
  usd_per_month: "per month",
  usd_total: "in total",
  usd_per_session: "per session",
  requests_per_minute: "requests per minute",
  requests_per_minute_per_session: "requests per minute and session",
  concurrent_requests: "requests at once",
  same_call: "equal tool calls in a row",
  unpriced: "models without a price are allowed",
} satisfies Record<NumberLimit | "unpriced", string>;

export function nameLimit(limit: string): string {
  return LIMITS[limit] ?? limit.replaceAll("_", " ");
}

export function nameOf(name: string): string {
  return name === "" ? "not stated" : name;
}
