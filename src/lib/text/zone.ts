// Local time in a time zone: which hour, day, week or month a moment belongs to, and
// when a local day begins.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const SPANS = ["hour", "day", "week", "month"] as const;
export type Span = (typeof SPANS)[number];

export interface Zone {
  readonly name: string;
  /** The local time, written as if it were UTC. */
  readonly toLocal: (ms: number) => number;
  /** The moment of a local time that is written as if it were UTC. */
  readonly fromLocal: (local: number) => number;
}

/** The zone of this machine, as TZ or its settings say. */
export function nameSystemZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Throws a RangeError for an unknown name. */
export function createZone(name: string): Zone {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: name,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const readOffset = (ms: number): number => {
    const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
    const seconds = [part("hour"), part("minute"), part("second")] as const;
    return Date.UTC(part("year"), part("month") - 1, part("day"), ...seconds) - Math.floor(ms / 1000) * 1000;
  };
  return {
    name,
    toLocal: (ms) => ms + readOffset(ms),
    // The first guess is off by less than a day. Its offset may be that of before a change.
    fromLocal: (local) => local - readOffset(local - readOffset(local)),
  };
}

/** The local time at which the span of a local time begins. Weeks begin on Monday. */
export function startOfSpan(span: Span, local: number): number {
  if (span === "hour") return Math.floor(local / HOUR_MS) * HOUR_MS;
  const day = Math.floor(local / DAY_MS);
  if (span === "day") return day * DAY_MS;
  // 1970-01-01 was a Thursday.
  if (span === "week") return (day - ((day + 3) % 7)) * DAY_MS;
  const date = new Date(local);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

export function startOfNextSpan(span: Span, start: number): number {
  if (span === "hour") return start + HOUR_MS;
  if (span === "day") return start + DAY_MS;
  if (span === "week") return start + 7 * DAY_MS;
  const date = new Date(start);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** `2026-11-20 14:00`, `2026-11-20`, `2026-W47`, `2026-11`. */
export function nameSpan(span: Span, local: number): string {
  const start = startOfSpan(span, local);
  const text = new Date(start).toISOString();
  if (span === "hour") return `${text.slice(0, 10)} ${text.slice(11, 16)}`;
  if (span === "day") return text.slice(0, 10);
  if (span === "month") return text.slice(0, 7);
  // A week belongs to the year of its Thursday.
  const thursday = start + 3 * DAY_MS;
  const year = new Date(thursday).getUTCFullYear();
  const week = Math.floor((thursday - Date.UTC(year, 0)) / (7 * DAY_MS)) + 1;
  return `${year}-W${String(week).padStart(2, "0")}`;
}
