// The one query that reports are made of: sums of requests between two moments, by their traits, by local hours, days,
// weeks or months, and by who sent them. Whole hours come from the table of sums; the rest, and everything by sender,
// from the rows of the requests.

import {
  type Decimal,
  joinAmount,
  joinUsd,
  parseDecimal,
  parseUsd,
  type Usd,
  ZERO_DECIMAL,
  ZERO_USD,
} from "../../lib/money.ts";
import { getList, parseJson } from "../../lib/json/json.ts";
import { nameSpan, startOfNextSpan, startOfSpan, type TimeSpan, type Zone } from "../../lib/text/zone.ts";
import type { IndexPart, LedgerIndex } from "./ledger-index.ts";
import { SPAN_HOURS, SUMS, WORK_SLOT_MS } from "./schema.ts";
import { bucketOf, slotOf } from "./sum-changes.ts";
import type { Sender, Traits } from "./traits.ts";

export interface TimeRange {
  /** ISO times; null: all. */
  readonly since: string | null;
  readonly until: string | null;
}

export interface GroupQuery extends TimeRange {
  /** Divides them by time. */
  readonly span?: TimeSpan | undefined;
  readonly zone: Zone;
  /** Divides them by sender. */
  readonly bySender: boolean;
  /** Only of these. */
  readonly sessions?: readonly string[] | undefined;
}

/** Rows with the same traits, span and sender. */
export interface Group {
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
  readonly requests: number;
  readonly official: Decimal;
  readonly charge: Usd;
  /** What the cache saved, and what it missed, at each request's own prices. */
  readonly saved: Usd;
  readonly missed: Usd;
  /** In the order of the kinds of the traits. */
  readonly counts: readonly number[];
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
  const groups = index.parts.flatMap((part) => {
    const whole = query.span === undefined ? listWithin(part, query, query) : listBySpan(part, query);
    return [...whole, ...listOdd(part, query)];
  });
  return groups.sort((a, b) => a.first - b.first);
}

const HOUR_MS = 3_600_000;

/** One query for each span that has rows. */
function listBySpan(part: IndexPart, query: GroupQuery): Group[] {
  return [...divideBySpan(part, query)].flatMap(({ period, name }) => listWithin(part, query, period, name));
}

interface SpanPeriod {
  readonly period: TimeRange;
  readonly name: string;
}

function* divideBySpan(
  part: IndexPart,
  query: TimeRange & Pick<GroupQuery, "span" | "zone">,
): Generator<SpanPeriod, void> {
  const { span = "day", zone } = query;
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
  const sql = "SELECT MIN(start) FROM sums WHERE hours = 1 AND start >= ?";
  const [[hour] = []] = part.list(sql, Number.isFinite(from) ? from : Number.MIN_SAFE_INTEGER);
  return typeof hour === "bigint" ? Number(hour) : null;
}

const [HOUR, DAY, LONG] = SPAN_HOURS;

/** The spans, the longest first, that whole hours are made of. */
function* divideHours(from: number, to: number, hours: number = LONG): Generator<[number, number, number]> {
  const [first, end] = [Math.ceil(from / hours) * hours, Math.floor(to / hours) * hours];
  const shorter = hours === LONG ? DAY : HOUR;
  if (first < end) yield [hours, first, end];
  if (hours === HOUR) return;
  if (first >= end) yield* divideHours(from, to, shorter);
  else {
    yield* divideHours(from, first, shorter);
    yield* divideHours(end, to, shorter);
  }
}

/** Outside of every year that a line can have. */
const [FIRST_HOUR, LAST_HOUR] = [-LONG * 2 ** 20, LONG * 2 ** 20];

function listWithin(part: IndexPart, query: GroupQuery, { since, until }: TimeRange, span = ""): Group[] {
  if (query.bySender || query.sessions !== undefined)
    return listBySender(part, query, { since, until }, span);
  const from = since === null ? FIRST_HOUR : Date.parse(since) / HOUR_MS;
  const to = until === null ? LAST_HOUR : Date.parse(until) / HOUR_MS;
  const whole = [...divideHours(Math.ceil(from), Math.floor(to))].flatMap(([hours, first, end]) =>
    part.list(
      `SELECT trait, MIN(first), 0, 0, '', '', ${SUMS} FROM sums
       WHERE hours = ? AND start >= ? AND start < ? GROUP BY trait`,
      hours,
      first,
      end,
    ),
  );
  const edges = new Set([from, to].filter((edge) => !Number.isInteger(edge)).map(Math.floor));
  const rest = [...edges].flatMap((edge) =>
    part.list(
      `SELECT trait, MIN(line), 0, 0, '', '', ${SUMS} FROM requests
       WHERE hour = ? AND odd IS NULL AND time >= ? AND time < ? GROUP BY trait`,
      edge,
      since ?? "",
      until ?? LAST,
    ),
  );
  return [...whole, ...rest].map((row) => readGroup(part, row, span));
}

/** Behind every time. */
const LAST = "\u{10FFFF}";

function listBySender(
  part: IndexPart,
  { sessions }: GroupQuery,
  { since, until }: TimeRange,
  span: string,
): Group[] {
  const rows = part.list(
    `SELECT trait, MIN(line), sender, MAX(line), MIN(time), MAX(time), ${SUMS} FROM requests
     WHERE odd IS NULL AND time >= ? AND time < ? ${amongSessions(sessions)} GROUP BY sender, trait`,
    since ?? "",
    until ?? LAST,
    ...(sessions ?? []),
  );
  return rows.map((row) => readGroup(part, row, span, true));
}

/** A condition with a parameter for each of them. */
function amongSessions(sessions: readonly string[] | undefined): string {
  if (sessions === undefined) return "";
  return `AND sender IN (SELECT id FROM senders WHERE session IN (${sessions.map(() => "?").join(", ")}))`;
}

type Row = ReturnType<IndexPart["list"]>[number];

function readGroup(part: IndexPart, row: Row, span: string, hasSender = false): Group {
  const [trait, first, sender, last, since, until, requests, ...sums] = row;
  const [
    milli,
    pico,
    rest,
    chargeMilli,
    chargePico,
    savedMilli,
    savedPico,
    missedMilli,
    missedPico,
    ...counts
  ] = sums.map((sum) => (typeof sum === "bigint" ? sum : 0n));
  const traits = part.traitsOf(trait);
  return {
    place: { part, trait: Number(trait), sender: Number(sender) },
    traits,
    span,
    sender: hasSender ? part.senderOf(sender) : null,
    first: Number(first),
    last: Number(last),
    since: String(since),
    until: String(until),
    requests: Number(requests),
    official: joinAmount(milli ?? 0n, pico ?? 0n, rest ?? 0n),
    charge: joinUsd(chargeMilli ?? 0n, chargePico ?? 0n),
    saved: joinUsd(savedMilli ?? 0n, savedPico ?? 0n),
    missed: joinUsd(missedMilli ?? 0n, missedPico ?? 0n),
    counts: traits.kinds.map((_, index) => Number(counts[index] ?? 0)),
  };
}

/** There are hardly ever any: each is a group of its own. */
function listOdd(part: IndexPart, query: GroupQuery): Group[] {
  const rows = part.list(
    "SELECT trait, line, sender, time, odd FROM requests WHERE odd IS NOT NULL AND trait > 0 AND time >= ? AND time < ?",
    query.since ?? "",
    query.until ?? LAST,
  );
  return rows.flatMap(([trait, line, sender, time, odd]) => {
    const from = part.senderOf(sender);
    const { span, zone, sessions } = query;
    if (sessions?.includes(from.session) === false) return [];
    const [official, charge, counts] = getList(parseJson(String(odd)));
    return {
      place: { part, trait: Number(trait), sender: Number(sender) },
      traits: part.traitsOf(trait),
      span: span === undefined ? "" : nameSpan(span, zone.toLocal(Date.parse(String(time)))),
      sender: query.bySender || sessions !== undefined ? from : null,
      first: Number(line),
      last: Number(line),
      since: String(time),
      until: String(time),
      requests: 1,
      official: typeof official === "string" ? parseDecimal(official) : ZERO_DECIMAL,
      charge: typeof charge === "string" ? parseUsd(charge) : ZERO_USD,
      saved: ZERO_USD,
      missed: ZERO_USD,
      counts: getList(counts).map(Number),
    };
  });
}

/** A request with what its prompt missed in the upstream's cache. */
export interface MissedRequest extends Pick<Group, "traits" | "span"> {
  readonly sender: Sender;
  readonly id: string;
  readonly time: string;
  /** As it stands in the line. */
  readonly cache: unknown;
}

/** In the order of their lines. */
export function listMisses(
  index: LedgerIndex,
  { since, until, sessions }: TimeRange & Pick<GroupQuery, "sessions">,
): MissedRequest[] {
  return index.parts.flatMap((part) => {
    const rows = part.list(
      `SELECT trait, sender, id, time, miss FROM requests
       WHERE miss IS NOT NULL AND time >= ? AND time < ? ${amongSessions(sessions)} ORDER BY line`,
      since ?? "",
      until ?? LAST,
      ...(sessions ?? []),
    );
    return rows.map(([trait, sender, id, time, miss]) => ({
      traits: part.traitsOf(trait),
      span: "",
      sender: part.senderOf(sender),
      id: String(id ?? undefined),
      time: String(time),
      cache: parseJson(String(miss)),
    }));
  });
}

/** When each key was last used, corrections included. */
export function listLastTimes({ parts }: LedgerIndex): Map<string, string> {
  const times = new Map<string, string>();
  const note = (part: IndexPart, [trait, time]: Row): void => {
    const { key, type } = part.traitsOf(trait);
    if (type !== "estimate" && String(time) > (times.get(key) ?? "")) times.set(key, String(time));
  };
  const odd = "SELECT trait, time FROM requests WHERE odd IS NOT NULL AND trait > 0";
  const last = `SELECT trait, MAX(last) FROM sums WHERE hours = ${LONG} GROUP BY trait`;
  for (const part of parts) for (const sql of [last, odd]) for (const row of part.list(sql)) note(part, row);
  return times;
}

/** Requests with about the same time to their first byte. */
export interface LatencyGroup extends Pick<Group, "traits" | "span"> {
  readonly bucket: number;
  readonly requests: number;
}

type SpanQuery = TimeRange & Pick<GroupQuery, "span" | "zone" | "sessions">;

export function listLatencies({ parts }: LedgerIndex, query: SpanQuery): LatencyGroup[] {
  return parts.flatMap((part) =>
    [...divideBySpan(part, query)].flatMap(({ period, name }) =>
      listBuckets(part, period, query.sessions).map(([trait, bucket, requests]) => ({
        traits: part.traitsOf(trait),
        span: name,
        bucket,
        requests,
      })),
    ),
  );
}

function listBuckets(
  part: IndexPart,
  { since, until }: TimeRange,
  sessions: readonly string[] | undefined,
): [trait: number, bucket: number, requests: number][] {
  const rows = `SELECT trait, first_byte, COUNT(*) FROM requests WHERE first_byte IS NOT NULL AND time >= ? AND time < ?`;
  const times = [since ?? "", until ?? LAST];
  const single = (more: string, ...values: (string | number)[]): [number, number, number][] =>
    part
      .list(`${rows} ${more} GROUP BY trait, first_byte`, ...times, ...values)
      .map(([trait, ms, requests]) => [Number(trait), bucketOf(Number(ms)), Number(requests)]);
  if (sessions !== undefined) return single(amongSessions(sessions), ...sessions);
  const from = since === null ? FIRST_HOUR : Date.parse(since) / HOUR_MS;
  const to = until === null ? LAST_HOUR : Date.parse(until) / HOUR_MS;
  const whole = [...divideHours(Math.ceil(from), Math.floor(to))].flatMap(([hours, first, end]) =>
    part
      .list(
        `SELECT trait, bucket, SUM(requests) FROM latencies
         WHERE hours = ? AND start >= ? AND start < ? GROUP BY trait, bucket`,
        hours,
        first,
        end,
      )
      .map(([trait, bucket, requests]): [number, number, number] => [
        Number(trait),
        Number(bucket),
        Number(requests),
      ]),
  );
  const edges = new Set([from, to].filter((edge) => !Number.isInteger(edge)).map(Math.floor));
  return [...whole, ...[...edges].flatMap((edge) => single("AND hour = ?", edge))];
}

/** Ten minutes in which a request with these traits began. */
export interface WorkSlot extends Pick<Group, "traits"> {
  readonly slot: number;
}

export function listWork({ parts }: LedgerIndex, { since, until, sessions }: SpanQuery): WorkSlot[] {
  return parts.flatMap((part) => {
    if (sessions !== undefined) {
      const sql = `SELECT DISTINCT time, trait FROM requests WHERE time >= ? AND time < ? ${amongSessions(sessions)}`;
      const rows = part.list(sql, since ?? "", until ?? LAST, ...sessions);
      return rows.map(([time, trait]) => ({
        slot: slotOf(Date.parse(String(time))),
        traits: part.traitsOf(trait),
      }));
    }
    const sql = "SELECT slot, trait FROM work WHERE slot >= ? AND slot < ?";
    const [from, to] = [since === null ? null : Date.parse(since), until === null ? null : Date.parse(until)];
    const rows = part.list(
      sql,
      from === null ? Number.MIN_SAFE_INTEGER : Math.floor(from / WORK_SLOT_MS),
      to === null ? Number.MAX_SAFE_INTEGER : Math.ceil(to / WORK_SLOT_MS),
    );
    return rows.map(([slot, trait]) => ({ slot: Number(slot), traits: part.traitsOf(trait) }));
  });
}
