// What limits and the status line need to know at a start: what keys, groups, channels and sessions have spent.

import { isObject } from "../../lib/json/json.ts";
import { roundUsd, type Usd } from "../../lib/money.ts";
import type { Table, Value } from "../store/open.ts";
import { CACHE_READ_KINDS, PROMPT_KINDS } from "../usage.ts";
import { addAmount, countKinds, readList, readUsage } from "./sums.ts";
import { KIND_COLUMNS } from "../store/schema.ts";

/** Of everything, of this month and of today. */
export interface Spent<T> {
  readonly total: T;
  readonly month: T;
  readonly day: T;
}

/** The charges, and what limits count. */
export interface Counted {
  readonly charged: Usd;
  readonly limited: Usd;
}

export interface NameSpent extends Spent<Counted> {
  readonly name: string;
  /** ISO. */
  readonly lastUsed: string;
}

/** The moments, in ms, at which the month and the day began. */
export interface Begun {
  readonly month: number;
  readonly day: number;
}

/** `births`: since when the requests of a key are its own, in ISO times. */
export function listSpent(
  table: Table,
  { month, day }: Begun,
  births: ReadonlyMap<string, string>,
): Readonly<Record<"key" | "group", readonly NameSpent[]>> {
  const since = Array.from(births, ([name, time]) => [name, Date.parse(time)]);
  const sums = ["TRUE", "at >= $month", "at >= $day"].flatMap((when) => [
    `SUM(charge) FILTER (WHERE ${when})`,
    `SUM(counted) FILTER (WHERE ${when})`,
  ]);
  const again = `MAX(last), ${sums.map((_, index) => `SUM(sum${index})`).join(", ")}, group_concat(exact)`;
  const found = table.list(
    `WITH births (name, since) AS MATERIALIZED (SELECT value ->> 0, value ->> 1 FROM json_each($births)),
     sums AS MATERIALIZED (
       SELECT key, group_name, at >= COALESCE(since, at) AS own, MAX(at) AS last,
         ${sums.map((sum, index) => `${sum} AS sum${index}`).join(", ")},
         group_concat(json_set(exact, '$.at', at)) AS exact
       FROM requests LEFT JOIN births ON name = key GROUP BY key, group_name, own)
     SELECT 'key', key, ${again} FROM sums WHERE own GROUP BY key
     UNION ALL SELECT 'group', group_name, ${again} FROM sums GROUP BY group_name`,
    { $month: month, $day: day, $births: JSON.stringify(since) },
  );
  const read = (kind: string): NameSpent[] =>
    found.filter(([each]) => each === kind).map(([, ...row]) => readSpent(row, { month, day }));
  return { key: read("key"), group: read("group") };
}

function readSpent([name, last, ...sums]: readonly Value[], { month, day }: Begun): NameSpent {
  const exact = readList(sums.at(-1) ?? null);
  const read = (index: number, from: number): Counted => {
    const own = exact.filter((each) => isObject(each) && Number(each["at"]) >= from);
    const sum = (at: number, amount: string): Usd => roundUsd(addAmount(sums[at] ?? null, own, amount));
    return { charged: sum(index, "charge"), limited: sum(index + 1, "counted") };
  };
  return {
    name: String(name ?? ""),
    lastUsed: new Date(Number(last)).toISOString(),
    total: read(0, Number.NEGATIVE_INFINITY),
    month: read(2, month),
    day: read(4, day),
  };
}

export interface ChannelSpent {
  readonly channel: string;
  readonly charged: Usd;
  /** By official prices. */
  readonly byPlan: Usd;
}

/** Since a moment in ms. */
export function listChannelsSpent(table: Table, since: number): ChannelSpent[] {
  const found = table.list(
    `SELECT channel, SUM(charge), SUM(official) FILTER (WHERE paid_by = 'plan'),
       group_concat(exact)
     FROM requests WHERE at >= $since GROUP BY channel`,
    { $since: since },
  );
  return found.map(([channel, charge = null, plan = null, text = null]) => {
    const exact = readList(text);
    return {
      channel: String(channel),
      charged: roundUsd(addAmount(charge, exact, "charge")),
      byPlan: roundUsd(addAmount(plan, exact, "plan")),
    };
  });
}

export interface SessionSpent extends Counted {
  readonly session: string;
  readonly requests: number;
  /** Input tokens of all kinds, and those of them that were read from the cache. */
  readonly input: number;
  readonly cached: number;
  /** Of its last request. */
  readonly key: string;
  readonly model: string;
  readonly lastUsed: string;
  /** How full the windows of a plan were after each request. */
  readonly windows: readonly unknown[];
}

/** The sessions of this many last requests, the one of the last request at the end. */
export function listSessionsSpent(table: Table, most: number): SessionSpent[] {
  const found = table.list(
    `SELECT session, COUNT(*), SUM(charge), SUM(counted), MAX(at), key, model,
       group_concat(windows), group_concat(more), group_concat(exact),
       ${KIND_COLUMNS.map((kind) => `SUM(${kind})`).join(", ")}
     FROM (SELECT session AS name, MAX(line) AS newest
       FROM (SELECT session, line FROM requests ORDER BY line DESC LIMIT $most) WHERE session IS NOT NULL GROUP BY session)
     CROSS JOIN requests ON session = name GROUP BY session ORDER BY newest`,
    { $most: most },
  );
  return found.map(([session, requests, charge = null, limit = null, last, key, model, windows, ...rest]) => {
    const [more = [], exact = []] = rest.splice(0, 2).map(readList);
    const usage = readUsage((kind) => rest[KIND_COLUMNS.findIndex((each) => each === kind)] ?? null, more);
    return {
      session: String(session),
      requests: Number(requests),
      charged: roundUsd(addAmount(charge, exact, "charge")),
      limited: roundUsd(addAmount(limit, exact, "counted")),
      input: countKinds(usage, PROMPT_KINDS),
      cached: countKinds(usage, CACHE_READ_KINDS),
      key: String(key),
      model: String(model),
      lastUsed: new Date(Number(last)).toISOString(),
      windows: readList(windows ?? null),
    };
  });
}

/** What lines say about the ledger that its owner has not accepted, as JSON. */
export function listMarks(table: Table): string[] {
  return table.list("SELECT text FROM marks ORDER BY rowid").map(([text]) => String(text));
}
