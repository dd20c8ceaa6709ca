// The requests of a ledger one by one, the newest first, from any place in their list. How many each hour has is known from
// the sums, so that a place in a list of millions is found without reading what is before it.

import {
  addDecimals,
  addUsd,
  type Decimal,
  joinAmount,
  joinUsd,
  type Usd,
  ZERO_USD,
} from "../../lib/money.ts";
import { parseJson } from "../../lib/json/json.ts";
import { type Cells, Classes, readOdd } from "./cells.ts";
import {
  divideRange,
  FIRST_HOUR,
  type Group,
  type GroupQuery,
  HOUR_MS,
  LAST,
  LAST_HOUR,
  ofSessions,
  type TimeRange,
} from "./groups.ts";
import type { IndexPart, LedgerIndex } from "./ledger-index.ts";
import { CELL, COUNTS, SUM } from "./schema.ts";
import { canBeOf, readSender, type Sender, type Traits } from "./traits.ts";

export interface RequestQuery extends TimeRange {
  /** Which kinds of requests. */
  readonly wants: (traits: Traits) => boolean;
  /** Only of this session; empty: only those without one. */
  readonly session?: string | undefined;
  /** Only of this agent of a session; empty: the main agent. */
  readonly agent?: string | undefined;
  /** Only those that missed the cache so. */
  readonly missed?: ((miss: unknown) => boolean) | undefined;
}

/** A request as it is now, with its corrections. */
export interface IndexedRequest {
  readonly id: string;
  /** ISO. */
  readonly time: string;
  readonly traits: Traits;
  readonly sender: Sender;
  readonly status: number | null;
  readonly firstByteMs: number | null;
  readonly durationMs: number | null;
  readonly official: Decimal;
  readonly charge: Usd;
  /** It has got a price since. */
  readonly isCorrected: boolean;
  /** In the order of the kinds of the traits. */
  readonly counts: readonly number[];
  /** What its prompt missed in the cache, as it stands in the line; null: nothing. */
  readonly miss: unknown;
}

interface HourPlace {
  readonly part: IndexPart;
  readonly hour: number;
  readonly requests: number;
}

/** Where requests are: the hours that have some, the newest first. */
export interface RequestPlaces {
  readonly hours: readonly HourPlace[];
  readonly total: number;
}

export function findRequests(index: LedgerIndex, query: RequestQuery): RequestPlaces {
  const hours = index.parts
    .flatMap((part) => countHours(part, query))
    .filter(({ requests }) => requests > 0)
    // The lines of the last part are the newer ones.
    .toSorted((a, b) => b.hour - a.hour || index.parts.indexOf(b.part) - index.parts.indexOf(a.part));
  return { hours, total: hours.reduce((sum, { requests }) => sum + requests, 0) };
}

function countHours(part: IndexPart, query: RequestQuery): HourPlace[] {
  const wanted = selectTraits(part, query);
  const among = describeRows(part, query);
  const hours = new Map<number, number>();
  const add = (hour: number, requests: number): void =>
    void hours.set(hour, (hours.get(hour) ?? 0) + requests);
  const addRows = (more: string, ...values: number[]): void => {
    const sql = `SELECT hour FROM requests WHERE ${among.sql} ${more}`;
    for (const [hour] of part.list(sql, ...among.values, ...values)) add(Number(hour), 1);
  };
  if (among.isSingle) addRows("");
  else {
    const { whole, edges } = divideRange(query, 1);
    for (const [, from, to] of whole)
      for (const { start, cells } of part.listSpans(1, from, to)) add(start, countWanted(wanted, cells));
    for (const edge of edges) addRows("AND hour = ? AND odd IS NULL", edge);
    addRows("AND odd IS NOT NULL");
  }
  return Array.from(hours, ([hour, requests]) => ({ part, hour, requests }));
}

function countWanted(wanted: Classes, { rows, columns }: Cells): number {
  const [traits, requests] = [columns[CELL.trait], columns[CELL.sums + SUM.requests]];
  let sum = 0;
  for (let row = 0; row < rows; row += 1) if (wanted.of(traits?.[row] ?? 0) >= 0) sum += requests?.[row] ?? 0;
  return sum;
}

interface RowsOf {
  readonly sql: string;
  readonly values: readonly (string | number)[];
  /** The traits alone do not say which. */
  readonly isSingle: boolean;
}

/** A condition of the rows of requests. */
function describeRows(part: IndexPart, query: RequestQuery): RowsOf {
  const { since, until, session = "", agent, missed } = query;
  const single: (readonly [sql: string, value: string])[] = [];
  if (session !== "") single.push([ofSessions([""]), session]);
  if (agent !== undefined) single.push(["sender IN (SELECT id FROM senders WHERE agent = ?)", agent]);
  if (missed !== undefined) {
    const numbers = part
      .list("SELECT number, miss FROM requests WHERE miss IS NOT NULL AND time >= ?", since ?? "")
      .flatMap(([number, miss]) => (missed(parseJson(String(miss))) ? [Number(number)] : []));
    single.push(["number IN (SELECT value FROM json_each(?))", JSON.stringify(numbers)]);
  }
  const traits = `trait IN (${listTraits(part, selectTraits(part, query))})`;
  return {
    sql: [traits, "time >= ? AND time < ?", ...single.map(([sql]) => sql)].join(" AND "),
    values: [since ?? "", until ?? LAST, ...single.map(([, value]) => value)],
    isSingle: single.length > 0,
  };
}

/** What these requests cost, with their corrections. */
export function sumCharges({ parts }: LedgerIndex, query: RequestQuery): Usd {
  const charges = parts.flatMap((part) => {
    const { sql, values } = describeRows(part, query);
    const sum = "SELECT 0, 0, 0, SUM(charge_milli), SUM(charge_pico) FROM requests";
    const own = part.list(`${sum} WHERE odd IS NULL AND ${sql}`, ...values);
    const more = part.list(
      `${sum} AS correction WHERE corrects IS NOT NULL
       AND EXISTS (SELECT 1 FROM requests WHERE id = correction.corrects AND ${sql})`,
      ...values,
    );
    const odd = part.list(`SELECT odd FROM requests WHERE odd IS NOT NULL AND ${sql}`, ...values);
    return [
      ...[...own, ...more].map((row) => readMoney(row).charge),
      ...odd.map(([text]) => readOdd(String(text)).charge),
    ];
  });
  return charges.reduce(addUsd, ZERO_USD);
}

function selectTraits(part: IndexPart, query: RequestQuery): Classes {
  const wants = (traits: Traits): boolean => isWanted(traits, query);
  return new Classes((trait) => part.traitsOf(trait), { wants, keeps: [] });
}

function listTraits(part: IndexPart, wanted: Classes): string {
  const ids = part.list("SELECT id FROM traits").map(([id]) => Number(id));
  return ids.filter((id) => wanted.of(id) >= 0).join(", ");
}

function isWanted(traits: Traits, { wants, session }: RequestQuery): boolean {
  return traits.type === "request" && canBeOf(traits, session) && wants(traits);
}

/** From the place `from` of the list on, at most `most`. */
export function listRequests(
  places: RequestPlaces,
  query: RequestQuery,
  { from, most }: { readonly from: number; readonly most: number },
): IndexedRequest[] {
  const found: IndexedRequest[] = [];
  const rowsOf = new Map<IndexPart, RowsOf>();
  let skip = from;
  for (const { part, hour, requests } of places.hours) {
    if (found.length >= most) break;
    if (skip >= requests) skip -= requests;
    else {
      const among = rowsOf.getOrInsertComputed(part, () => describeRows(part, query));
      found.push(...listHour(part, among, { hour, skip, most: most - found.length }));
      skip = 0;
    }
  }
  return found;
}

const COLUMNS = `id, time, trait, sender, status, first_byte, duration, miss, odd, official_milli, official_pico,
  official_rest, charge_milli, charge_pico, ${Array.from({ length: COUNTS }, (_, index) => `count_${index}`).join(", ")}`;

type HourQuery = Readonly<Record<"hour" | "skip" | "most", number>>;

function listHour(
  part: IndexPart,
  { sql, values }: RowsOf,
  { hour, skip, most }: HourQuery,
): IndexedRequest[] {
  const rows = part.list(
    `SELECT ${COLUMNS} FROM requests WHERE ${sql} AND hour = ? ORDER BY time DESC, number DESC LIMIT ? OFFSET ?`,
    ...values,
    hour,
    most,
    skip,
  );
  const corrections = listCorrections(
    part,
    rows.map(([id]) => String(id)),
  );
  return rows.map((row) => readRequest(part, row, corrections));
}

type Row = ReturnType<IndexPart["list"]>[number];
type Money = Pick<IndexedRequest, "official" | "charge">;

/** What corrections add to amounts, by the id of the request. */
function listCorrections(part: IndexPart, ids: readonly string[]): Map<string, Money> {
  if (ids.length === 0) return new Map();
  const marks = ids.map(() => "?").join(", ");
  const sums =
    "SUM(official_milli), SUM(official_pico), SUM(official_rest), SUM(charge_milli), SUM(charge_pico)";
  const rows = part.list(
    `SELECT corrects, ${sums} FROM requests WHERE corrects IN (${marks}) GROUP BY corrects`,
    ...ids,
  );
  return new Map(rows.map(([id, ...sum]) => [String(id), readMoney(sum)]));
}

function readMoney(values: Row): Money {
  const [milli = 0n, pico = 0n, rest = 0n, chargeMilli = 0n, chargePico = 0n] = values.map((value) =>
    typeof value === "bigint" ? value : 0n,
  );
  return { official: joinAmount(milli, pico, rest), charge: joinUsd(chargeMilli, chargePico) };
}

function readRequest(part: IndexPart, row: Row, corrections: ReadonlyMap<string, Money>): IndexedRequest {
  const [id, time, trait, sender, status, firstByte, duration, miss, odd, ...sums] = row;
  const traits = part.traitsOf(trait);
  const counts = sums.slice(5).map(Number);
  const own = odd === null || odd === undefined ? { ...readMoney(sums), counts } : readOdd(String(odd));
  const more = corrections.get(String(id));
  return {
    id: String(id),
    time: String(time),
    traits,
    sender: part.senderOf(sender),
    status: readCount(status),
    firstByteMs: readCount(firstByte),
    durationMs: readCount(duration),
    official: more === undefined ? own.official : addDecimals(own.official, more.official),
    charge: more === undefined ? own.charge : addUsd(own.charge, more.charge),
    isCorrected: more !== undefined,
    counts: traits.kinds.map((_, index) => own.counts[index] ?? 0),
    miss: miss === null || miss === undefined ? null : parseJson(String(miss)),
  };
}

function readCount(value: Row[number] | undefined): number | null {
  return typeof value === "bigint" ? Number(value) : null;
}

/** A request with what its prompt missed in the upstream's cache. */
export interface MissedRequest extends Pick<Group, "traits" | "span"> {
  readonly sender: Sender;
  readonly id: string;
  readonly time: string;
  /** As it stands in the line. */
  readonly cache: unknown;
}

function hourOf(time: string | null, none: number): number {
  return time === null ? none : Math.floor(Date.parse(time) / HOUR_MS);
}

/** In the order of their lines. */
export function listMisses(
  index: LedgerIndex,
  { since, until, sessions }: TimeRange & Pick<GroupQuery, "sessions">,
): MissedRequest[] {
  return index.parts.flatMap((part) => {
    const among = sessions === undefined ? "hour >= ? AND hour <= ?" : ofSessions(sessions);
    const rows = part.list(
      `SELECT trait, requests.id, time, miss, session, agent, parent FROM requests
       JOIN senders ON senders.id = sender WHERE miss IS NOT NULL AND ${among} AND time >= ? AND time < ? ORDER BY line`,
      ...(sessions ?? [hourOf(since, FIRST_HOUR), hourOf(until, LAST_HOUR)]),
      since ?? "",
      until ?? LAST,
    );
    return rows.map(([trait, id, time, miss, session, agent, parent]) => ({
      traits: part.traitsOf(trait),
      span: "",
      sender: readSender(session, agent, parent),
      id: String(id ?? undefined),
      time: String(time),
      cache: parseJson(String(miss)),
    }));
  });
}
