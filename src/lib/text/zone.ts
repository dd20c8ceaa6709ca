// Local time in a time zone.

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const SPANS = ["hour", "day", "week", "month"] as const;
export type TimeSpan = (typeof SPANS)[number];

export interface Zone {
  readonly name: string;
  /** Local time as if it were UTC. */
  readonly toLocal: (ms: number) => number;
  /** A time that occurs twice means the first moment.
   *  A skipped time has the old offset. */
  readonly fromLocal: (local: number) => number;
}

/** This machine's zone. */
const SYSTEM: Zone = {
  get name() {
    return Temporal.Now.timeZoneId();
  },
  toLocal: (ms) => ms - new Date(ms).getTimezoneOffset() * MINUTE_MS,
  fromLocal: (local) => Date.parse(new Date(local).toISOString().slice(0, -1)),
};

/** "system" is this machine's zone. Throws for an unknown name. */
export function createZone(wanted: string): Zone {
  if (wanted === "system") return SYSTEM;
  return {
    name: wanted,
    toLocal: (ms: number) => {
      const moment = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(wanted);
      return ms + moment.offsetNanoseconds / 1e6;
    },
    fromLocal: (local: number) => {
      const written = Temporal.Instant.fromEpochMilliseconds(local).toZonedDateTimeISO("UTC");
      return written.toPlainDateTime().toZonedDateTime(wanted).epochMilliseconds;
    },
  };
}

/** Computed without `Temporal`, because its calendar takes 7 ms to load. */
export const UTC: Zone = { name: "UTC", toLocal: (ms) => ms, fromLocal: (local) => local };

/** When the span that contains `ms` ends. */
export function findNextSpan(span: TimeSpan, zone: Zone, ms: number): number {
  const local = zone.toLocal(ms);
  const end = startOfNextSpan(span, startOfSpan(span, local));
  // The zone's offset seldom changes.
  const next = ms + end - local;
  return zone.toLocal(next) === end ? next : zone.fromLocal(end);
}

/** Weeks begin on Monday. */
export function startOfSpan(span: TimeSpan, local: number): number {
  if (span === "hour") return Math.floor(local / HOUR_MS) * HOUR_MS;
  const day = Math.floor(local / DAY_MS);
  if (span === "day") return day * DAY_MS;
  // 1970-01-01 was a Thursday.
  if (span === "week") return (day - ((day + 3) % 7)) * DAY_MS;
  const date = new Date(local);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

export function startOfNextSpan(span: TimeSpan, start: number): number {
  if (span === "hour") return start + HOUR_MS;
  if (span === "day") return start + DAY_MS;
  if (span === "week") return start + 7 * DAY_MS;
  const date = new Date(start);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** `2026-11-20 14:00`, `2026-11-20`, `2026-W47`, `2026-11`. */
export function nameSpan(span: TimeSpan, local: number): string {
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

let last = { ms: Number.NaN, text: "" };

/** An ISO 8601 text. Writing it is slow,
 *  so all events of one millisecond share it. */
export function writeMoment(ms: number): string {
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}
