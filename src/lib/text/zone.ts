// Local time in a time zone: which hour, day, week or month a moment belongs to, and
// when a local day begins.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export const SPANS = ["hour", "day", "week", "month"] as const;
export type TimeSpan = (typeof SPANS)[number];

export interface Zone {
  readonly name: string;
  /** The local time, written as if it were UTC. */
  readonly toLocal: (ms: number) => number;
  /** The moment of a local time that is written as if it were UTC: the first one if it comes twice, and the moment of the
   *  change if the clocks skip it. */
  readonly fromLocal: (local: number) => number;
}

/** The zone of this machine, as TZ or its settings say. Intl.DateTimeFormat has the same name, but takes longer. */
export function nameSystemZone(): string {
  return Temporal.Now.timeZoneId();
}

/** A zone whose name is valid. Its name and the runtime's calendar are read when they are first needed: a start takes
 *  8 ms less. */
export function createZoneLater(readName: () => string): Zone {
  let name: string | null = null;
  let zone: Zone | null = null;
  const use = (): Zone => (zone ??= createZone((name ??= readName())));
  return {
    get name() {
      return (name ??= readName());
    },
    toLocal: (ms) => use().toLocal(ms),
    fromLocal: (local) => use().fromLocal(local),
  };
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
  const toLocal = (ms: number): number => ms + readOffset(ms);
  return {
    name,
    toLocal,
    fromLocal: (local) => {
      // The clocks change at most once in two days.
      const offsets = [readOffset(local - DAY_MS), readOffset(local + DAY_MS)];
      const [first, last] = [local - Math.max(...offsets), local - Math.min(...offsets)];
      if (toLocal(first) === local) return first;
      return toLocal(last) === local ? last : findSkipped(toLocal, local, first, last);
    },
  };
}

/** The first moment between two whose local time is after one that the clocks skip. In several places they skip midnight. */
function findSkipped(toLocal: Zone["toLocal"], local: number, first: number, last: number): number {
  let [before, after] = [first, last];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (toLocal(middle) < local) before = middle;
    else after = middle;
  }
  return after;
}

/** Without the runtime's calendar, whose first use takes 7 ms. */
export const UTC: Zone = { name: "UTC", toLocal: (ms) => ms, fromLocal: (local) => local };

/** Offsets of time zones change at quarters of an hour at most: one name holds for each. */
const QUARTER_MINUTES = 15;
/** `2026-11-20T10:` */
const HOUR_CHARACTERS = 14;
/** Of five years. */
const MAX_HOURS = 50_000;

/** A function from an ISO time to the name of its span. The same few hours come again and again. */
export function createNamer(span: TimeSpan, zone: Zone): (time: string) => string {
  const hours = new Map<string, (string | undefined)[]>();
  // Lines come in the order of time: the hour is nearly always that of the line before.
  let hour = "none";
  let names: (string | undefined)[] = [];
  return (time) => {
    if (!time.startsWith(hour)) {
      hour = time.slice(0, HOUR_CHARACTERS);
      names = hours.get(hour) ?? [];
      if (hours.size >= MAX_HOURS) hours.clear();
      hours.set(hour, names);
    }
    const quarter = Math.floor(Number(time.slice(HOUR_CHARACTERS, 16)) / QUARTER_MINUTES);
    return (names[quarter] ??= nameSpan(span, zone.toLocal(Date.parse(time))));
  };
}

/** The first moment of the span after the one that a moment belongs to. */
export function findNextSpan(span: TimeSpan, zone: Zone, ms: number): number {
  return zone.fromLocal(startOfNextSpan(span, startOfSpan(span, zone.toLocal(ms))));
}

/** The local time at which the span of a local time begins. Weeks begin on Monday. */
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
