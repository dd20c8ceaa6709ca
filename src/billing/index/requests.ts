// The requests of a ledger one by one, the newest first, from any place in their list. How many each hour has is known from
// the sums, so that a place in a list of millions is found without reading what is before it.

import {
  addDecimals,
  addUsd,
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
import type { TimeRange } from "./groups.ts";
import type { IndexPart, LedgerIndex } from "./ledger-index.ts";
import { COUNTS } from "./schema.ts";
import type { Sender, Traits } from "./traits.ts";

export interface RequestQuery extends TimeRange {
  /** Which kinds of requests. */
  readonly wants: (traits: Traits) => boolean;
  /** Only of this session; empty: only those without one. */
  readonly session?: string | undefined;
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

const HOUR_MS = 3_600_000;
const LAST = "\u{10FFFF}";

export function findRequests(index: LedgerIndex, query: RequestQuery): RequestPlaces {
  const hours = index.parts
    .flatMap((part) => countHours(part, query))
    .filter(({ requests }) => requests > 0)
    // The lines of the last part are the newer ones.
    .toSorted((a, b) => b.hour - a.hour || index.parts.indexOf(b.part) - index.parts.indexOf(a.part));
  return { hours, total: hours.reduce((sum, { requests }) => sum + requests, 0) };
}

function countHours(part: IndexPart, query: RequestQuery): HourPlace[] {
  const { since, until, session } = query;
  const traits = listTraits(part, query);
  const [from, to] = [hourOf(since, Number.MIN_SAFE_INTEGER), hourOf(until, Number.MAX_SAFE_INTEGER)];
  const byRows = `SELECT hour, COUNT(*) FROM requests WHERE trait IN (${traits}) AND time >= ? AND time < ?`;
  const times = [since ?? "", until ?? LAST];
  const rows =
    session === undefined
      ? [
          ...part.list(
            `SELECT start, SUM(requests) FROM sums
             WHERE hours = 1 AND start >= ? AND start < ? AND trait IN (${traits}) GROUP BY start`,
            Math.ceil(from),
            Math.floor(to),
          ),
          ...[...new Set([from, to].filter((edge) => !Number.isInteger(edge)).map(Math.floor))].flatMap(
            (edge) => part.list(`${byRows} AND hour = ? AND odd IS NULL GROUP BY hour`, ...times, edge),
          ),
          ...part.list(`${byRows} AND odd IS NOT NULL GROUP BY hour`, ...times),
        ]
      : part.list(`${byRows} AND ${OF_SESSION} GROUP BY hour`, ...times, session);
  const hours = new Map<number, number>();
  for (const [hour, requests] of rows)
    hours.set(Number(hour), (hours.get(Number(hour)) ?? 0) + Number(requests));
  return Array.from(hours, ([hour, requests]) => ({ part, hour, requests }));
}

const OF_SESSION = "sender IN (SELECT id FROM senders WHERE session = ?)";

function hourOf(time: string | null, none: number): number {
  return time === null ? none : Date.parse(time) / HOUR_MS;
}

function listTraits(part: IndexPart, { wants }: RequestQuery): string {
  const ids = part.list("SELECT id FROM traits").map(([id]) => Number(id));
  const wanted = ids.filter((id) => {
    const traits = part.traitsOf(id);
    return traits.type === "request" && wants(traits);
  });
  return wanted.join(", ");
}

/** From the place `from` of the list on, at most `most`. */
export function listRequests(
  places: RequestPlaces,
  query: RequestQuery,
  { from, most }: { readonly from: number; readonly most: number },
): IndexedRequest[] {
  const found: IndexedRequest[] = [];
  let skip = from;
  for (const { part, hour, requests } of places.hours) {
    if (found.length >= most) break;
    if (skip >= requests) skip -= requests;
    else {
      found.push(...listHour(part, query, { hour, skip, most: most - found.length }));
      skip = 0;
    }
  }
  return found;
}

const COLUMNS = `id, time, trait, sender, status, first_byte, duration, miss, odd, official_milli, official_pico,
  official_rest, charge_milli, charge_pico, ${Array.from({ length: COUNTS }, (_, index) => `count_${index}`).join(", ")}`;

function listHour(
  part: IndexPart,
  query: RequestQuery,
  { hour, skip, most }: { readonly hour: number; readonly skip: number; readonly most: number },
): IndexedRequest[] {
  const { since, until, session } = query;
  const rows = part.list(
    `SELECT ${COLUMNS} FROM requests WHERE hour = ? AND trait IN (${listTraits(part, query)})
     AND time >= ? AND time < ? ${session === undefined ? "" : `AND ${OF_SESSION}`}
     ORDER BY time DESC, number DESC LIMIT ? OFFSET ?`,
    hour,
    since ?? "",
    until ?? LAST,
    ...(session === undefined ? [] : [session]),
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

function readOdd(text: string): Money & { readonly counts: readonly number[] } {
  const [official, charge, counts] = getList(parseJson(text));
  return {
    official: typeof official === "string" ? parseDecimal(official) : ZERO_DECIMAL,
    charge: typeof charge === "string" ? parseUsd(charge) : ZERO_USD,
    counts: getList(counts).map(Number),
  };
}
