// The one query that reports are made of: sums of requests between two moments, by their traits, by local hours, days,
// weeks or months, and by who sent them. Whole hours come from the cells of spans, whole senders from their shares, and the
// rest from the rows of the requests.

import { ZERO_USD } from "../../lib/money.ts";
import { nameSpan, startOfNextSpan, startOfSpan, type TimeSpan, type Zone } from "../../lib/text/zone.ts";
import {
  type Cells,
  Classes,
  ClassSums,
  type Fold,
  keepTraits,
  readOdd,
  readSums,
  type Summed,
} from "./cells.ts";
import type { IndexPart, LedgerIndex } from "./ledger-index.ts";
import { CELL, SPAN_HOURS, SUM_COLUMNS } from "./schema.ts";
import type { Sender, Traits } from "./traits.ts";

export interface TimeRange {
  /** ISO times; null: all. */
  readonly since: string | null;
  readonly until: string | null;
}

export const HOUR_MS = 3_600_000;

/** Behind every time. */
export const LAST = "\u{10FFFF}";

const [HOUR, DAY] = SPAN_HOURS;

/** Outside of every year that a line can have. */
export const [FIRST_HOUR, LAST_HOUR] = [-DAY * 2 ** 24, DAY * 2 ** 24];

export interface Division {
  /** Spans with a length of `hours`, which begin at `from` or later and before `to`. */
  readonly whole: readonly (readonly [hours: number, from: number, to: number])[];
  /** Hours of which only a part is in the range: at most two. */
  readonly edges: readonly number[];
}

/** `longest`: in hours. */
export function divideRange({ since, until }: TimeRange, longest: number = DAY): Division {
  const from = since === null ? FIRST_HOUR : Date.parse(since) / HOUR_MS;
  const to = until === null ? LAST_HOUR : Date.parse(until) / HOUR_MS;
  const edges = new Set([from, to].filter((edge) => !Number.isInteger(edge)).map(Math.floor));
  const [first, end] = [Math.ceil(from), Math.floor(to)];
  const [day, lastDay] = [Math.ceil(first / DAY) * DAY, Math.floor(end / DAY) * DAY];
  const whole: (readonly [number, number, number])[] =
    longest === HOUR || day >= lastDay
      ? [[HOUR, first, end]]
      : [
          [HOUR, first, day],
          [DAY, day, lastDay],
          [HOUR, lastDay, end],
        ];
  return { whole: whole.filter(([, start, stop]) => start < stop), edges: [...edges] };
}

export interface SpanQuery extends TimeRange {
  /** Undefined: it is not divided. */
  readonly span?: TimeSpan | undefined;
  readonly zone: Zone;
}

interface SpanPeriod {
  readonly period: TimeRange;
  readonly name: string;
}

/** The local hours, days, weeks or months of a range that have rows. */
function* divideBySpan(part: IndexPart, query: SpanQuery): Generator<SpanPeriod, void> {
  const { span, zone } = query;
  if (span === undefined) {
    yield { period: query, name: "" };
    return;
  }
  const until = query.until === null ? Number.POSITIVE_INFINITY : Date.parse(query.until);
  let at = query.since === null ? Number.NEGATIVE_INFINITY : Date.parse(query.since);
  for (;;) {
    const hour = findNextHour(part, Math.floor(at / HOUR_MS));
    at = hour === null ? until : Math.max(at, hour * HOUR_MS);
    if (hour === null || at >= until) return;
    const start = startOfSpan(span, zone.toLocal(at));
    const next = Math.max(zone.fromLocal(startOfNextSpan(span, start)), at + 1);
    const period = {
      since: new Date(at).toISOString(),
      until: new Date(Math.min(next, until)).toISOString(),
    };
    yield { period, name: nameSpan(span, start) };
    at = next;
  }
}

/** The first hour from `from` on that has rows. */
function findNextHour(part: IndexPart, from: number): number | null {
  const sql = "SELECT MIN(start) FROM spans WHERE hours = 1 AND start >= ?";
  const [[hour] = []] = part.list(sql, Math.max(from, FIRST_HOUR));
  return typeof hour === "bigint" ? Number(hour) : null;
}

/** The moment at which the first hour with requests begins. Null: there are none. */
export function findFirstMoment({ parts }: LedgerIndex): number | null {
  const hours = parts.flatMap((part) => findNextHour(part, FIRST_HOUR) ?? []);
  return hours.length === 0 ? null : Math.min(...hours) * HOUR_MS;
}

export interface GroupQuery extends SpanQuery {
  /** Divides them by sender. */
  readonly bySender: boolean;
  /** Only of these. */
  readonly sessions?: readonly string[] | undefined;
  /** Which traits count as the same. It has no effect where requests are divided by sender. */
  readonly fold?: Fold | undefined;
}

/** Rows with the same traits, span and sender. */
export interface Group extends Summed {
  readonly place: GroupPlace;
  readonly traits: Traits;
  /** Empty if they are not divided by time. */
  readonly span: string;
  /** Null if they are not divided by sender. */
  readonly sender: Sender | null;
  /** The number of its first line. */
  readonly first: number;
  /** The number of its last line. 0 if they are not divided by sender. */
  readonly last: number;
  /** ISO times of its first and last request. Empty if they are not divided by sender. */
  readonly since: string;
  readonly until: string;
}

interface GroupPlace {
  readonly part: IndexPart;
  readonly trait: number;
  readonly sender: number;
}

/** Of a group with a sender: the number of its last line with its last time. */
export function findLatestLine({ place: { part, trait, sender }, until }: Group): number {
  const sql = "SELECT MAX(line) FROM requests WHERE sender = ? AND trait = ? AND time = ?";
  return Number(part.list(sql, sender, trait, until)[0]?.[0] ?? 0);
}

/** In the order of their first lines. */
export function listGroups(index: LedgerIndex, query: GroupQuery): Group[] {
  const groups = index.parts.flatMap((part) => [...listSummed(part, query), ...listOdd(part, query)]);
  return groups.sort((a, b) => a.first - b.first);
}

function listSummed(part: IndexPart, query: GroupQuery): Group[] {
  const divided = divideBySpan(part, query);
  if (query.bySender || query.sessions !== undefined)
    return [...divided].flatMap(({ period, name }) => listBySender(part, query.sessions, period, name));
  const classes = new Classes((trait) => part.traitsOf(trait), query.fold);
  const sums = new ClassSums(classes);
  return [...divided].flatMap(({ period, name }) => {
    const { whole, edges } = divideRange(period);
    for (const [hours, from, to] of whole)
      for (const { cells } of part.listSpans(hours, from, to)) sums.add(cells);
    for (const hour of edges) sums.add(sumEdge(part, hour, period));
    return sums
      .take()
      .map((sum) => ({ ...sum, ...NOBODY, place: { part, trait: sum.trait, sender: 0 }, span: name }));
  });
}

const NOBODY = { sender: null, last: 0, since: "", until: "" } as const;

const SUMS = SUM_COLUMNS.map((name) => `SUM(${name})`).join(", ");

/** The part of an hour that is in a range. */
function sumEdge(part: IndexPart, hour: number, { since, until }: TimeRange): Cells {
  const rows = part.list(
    `SELECT trait, MIN(line), 0, 0, ${SUMS} FROM requests
     WHERE hour = ? AND odd IS NULL AND time >= ? AND time < ? GROUP BY trait`,
    hour,
    since ?? "",
    until ?? LAST,
  );
  const columns = rows[0]?.map((_, column) => Float64Array.from(rows, (row) => Number(row[column])));
  return { rows: rows.length, columns: columns ?? [] };
}

function listBySender(
  part: IndexPart,
  sessions: readonly string[] | undefined,
  range: TimeRange,
  span: string,
): Group[] {
  const [since, until] = [range.since ?? "", range.until ?? LAST];
  const among = amongSessions(sessions);
  const wanted = sessions ?? [];
  const whole = part.list(
    `SELECT trait, first, sender, last, since, until, ${SUM_COLUMNS.join(", ")} FROM shares
     WHERE since >= ? AND until < ? ${among}`,
    since,
    until,
    ...wanted,
  );
  const cut = part.list(
    `SELECT trait, MIN(line), sender, MAX(line), MIN(time), MAX(time), ${SUMS} FROM requests
     WHERE (sender, trait) IN (SELECT sender, trait FROM shares
       WHERE until >= ?1 AND since < ?2 AND NOT (since >= ?1 AND until < ?2) ${among})
     AND odd IS NULL AND time >= ?1 AND time < ?2 GROUP BY sender, trait`,
    since,
    until,
    ...wanted,
  );
  return [...whole, ...cut].map((row) => readGroup(part, row, span));
}

/** A condition of shares, with a parameter for each of them. */
function amongSessions(sessions: readonly string[] | undefined): string {
  return sessions === undefined ? "" : `AND ${ofSessions(sessions, "root", "root")}`;
}

/** A condition of the rows of requests, with a parameter for each session. */
export function ofSessions(sessions: readonly string[], column = "sender", id = "id"): string {
  return `${column} IN (SELECT ${id} FROM senders WHERE session IN (${sessions.map(() => "?").join(", ")}))`;
}

type Row = ReturnType<IndexPart["list"]>[number];

function readGroup(part: IndexPart, row: Row, span: string): Group {
  const [trait, first, sender, last, since, until, ...sums] = row;
  const traits = part.traitsOf(trait);
  return {
    place: { part, trait: Number(trait), sender: Number(sender) },
    traits,
    span,
    sender: part.senderOf(sender),
    first: Number(first),
    last: Number(last),
    since: String(since),
    until: String(until),
    ...readSums(sums.map(Number), traits),
  };
}

/** There are hardly ever any: each is a group of its own. */
function listOdd(part: IndexPart, query: GroupQuery): Group[] {
  const rows = part.list(
    "SELECT trait, line, sender, time, odd FROM requests WHERE odd IS NOT NULL AND trait > 0 AND time >= ? AND time < ?",
    query.since ?? "",
    query.until ?? LAST,
  );
  const { span, zone, sessions, fold } = query;
  const hasSender = query.bySender || sessions !== undefined;
  return rows.flatMap(([trait, line, sender, time, odd]) => {
    const from = part.senderOf(sender);
    const own = part.traitsOf(trait);
    const used = hasSender ? undefined : fold;
    if (used?.wants(own) === false || sessions?.includes(from.session) === false) return [];
    return {
      place: { part, trait: Number(trait), sender: Number(sender) },
      traits: used === undefined ? own : keepTraits(own, used.keeps),
      span: span === undefined ? "" : nameSpan(span, zone.toLocal(Date.parse(String(time)))),
      sender: hasSender ? from : null,
      first: Number(line),
      last: Number(line),
      since: String(time),
      until: String(time),
      requests: 1,
      saved: ZERO_USD,
      missed: ZERO_USD,
      ...readOdd(String(odd)),
    };
  });
}

/** The time of each key's first request. */
export function listFirstTimes({ parts }: LedgerIndex): Map<string, string> {
  const times = new Map<string, string>();
  for (const part of parts) {
    const shares = "SELECT trait, MIN(since) FROM shares GROUP BY trait";
    const odd = "SELECT trait, time FROM requests WHERE odd IS NOT NULL AND trait > 0";
    for (const [trait, since] of [...part.list(shares), ...part.list(odd)]) {
      const { key } = part.traitsOf(trait);
      const time = String(since);
      if (time < (times.get(key) ?? LAST)) times.set(key, time);
    }
  }
  return times;
}

/** When each key was last used, corrections included. */
export function listLastTimes({ parts }: LedgerIndex): Map<string, string> {
  const times = new Map<string, string>();
  const note = (part: IndexPart, trait: Row[number] | undefined, time: string): void => {
    const { key, type } = part.traitsOf(trait);
    if (type !== "estimate" && time > (times.get(key) ?? "")) times.set(key, time);
  };
  const odd = "SELECT trait, time FROM requests WHERE odd IS NOT NULL AND trait > 0";
  for (const part of parts) {
    for (const [trait, time] of listLast(part)) note(part, trait, new Date(time).toISOString());
    for (const [trait, time] of part.list(odd)) note(part, trait, String(time));
  }
  return times;
}

/** The last time of each trait. */
function listLast(part: IndexPart): Map<number, number> {
  const times = new Map<number, number>();
  for (const [hours, from, to] of divideRange({ since: null, until: null }).whole)
    for (const { cells } of part.listSpans(hours, from, to))
      for (let row = 0; row < cells.rows; row += 1) {
        const trait = cells.columns[CELL.trait]?.[row] ?? 0;
        times.set(trait, Math.max(times.get(trait) ?? 0, cells.columns[CELL.last]?.[row] ?? 0));
      }
  return times;
}
