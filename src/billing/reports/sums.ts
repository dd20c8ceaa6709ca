// What reports ask of the table: which requests, and their sums. The database adds up; amounts that do not fit into it come
// as text next to its sum.

import { addDecimals, type Decimal, formatDecimal, parseDecimal } from "../../lib/money.ts";
import { isObject, parseJson } from "../../lib/json/json.ts";
import type { Zone } from "../../lib/text/zone.ts";
import { FAILED_OUTCOMES } from "../ledger/line.ts";
import type { Parameters, Questions, Table, Value } from "../store/open.ts";
import { KIND_COLUMNS } from "../store/schema.ts";
import { FAILED } from "./words.ts";
import { CACHE_READ_KINDS, CALL_KINDS, computeShare, PROMPT_KINDS, USAGE_KINDS } from "../usage.ts";

export const NAMES = [
  "key",
  "group",
  "model",
  "channel",
  "tool",
  "version",
  "session",
  "agent",
  "label",
] as const;
export type Name = (typeof NAMES)[number];

/** Only requests with these names. Empty: requests without one. */
export type Filter = Readonly<Partial<Record<Name | "outcome", string>>>;

export interface Scope {
  /** Requests that came at this ISO time or later; null: all. */
  readonly since: string | null;
  /** Requests that came before this ISO time; null: all. */
  readonly until: string | null;
  readonly only?: Filter;
}

/** What every report begins with. */
export interface Head extends Scope {
  readonly timezone: string;
}

export function describeHead({ since, until, only = {} }: Scope, { name: timezone }: Zone): Head {
  return { since, until, timezone, ...(Object.keys(only).length > 0 && { only }) };
}

export interface Condition {
  readonly sql: string;
  readonly values: Parameters;
}

/** Which rows of `requests` are in a scope. */
export function describeScope({ since, until, only = {} }: Scope): Condition {
  const conditions: string[] = [];
  const values: Record<string, string | number> = {};
  if (since !== null) {
    conditions.push("requests.at >= $since");
    values["$since"] = Date.parse(since);
  }
  if (until !== null) {
    conditions.push("requests.at < $until");
    values["$until"] = Date.parse(until);
  }
  for (const name of [...NAMES, "outcome"] as const) {
    const wanted = only[name];
    if (wanted === undefined) continue;
    if (name === "outcome" && wanted === FAILED) conditions.push(HAS_FAILED);
    else if (wanted === "") conditions.push(`requests.${columnOf(name)} IS NULL`);
    else {
      conditions.push(`requests.${columnOf(name)} = $${name}`);
      values[`$${name}`] = wanted;
    }
  }
  return { sql: conditions.length === 0 ? "TRUE" : conditions.join(" AND "), values };
}

/** The column of the table that has a name. */
export function columnOf(name: Name | "outcome"): string {
  return name === "group" ? "group_name" : name;
}

/** All names of a kind that requests have. */
export function listNames(table: Table, name: Name): string[] {
  const column = columnOf(name);
  return table
    .list(`SELECT DISTINCT ${column} FROM requests WHERE ${column} IS NOT NULL`)
    .map(([each]) => String(each));
}

export const HAS_FAILED = `requests.outcome IN (${[...FAILED_OUTCOMES].map((each) => `'${each}'`).join(", ")})`;

/** Sums for people and for scripts: counts as numbers, amounts as exact decimals. */
export interface Totals {
  readonly requests: number;
  /** Kind → count. */
  readonly usage: Readonly<Record<string, number>>;
  readonly official_usd: string;
  readonly charge_usd: string;
  /** What a plan paid, by official prices, and what its account is billed for beyond it; absent: nothing. No part of a
   *  charge. */
  readonly paid_by_plan_usd?: string;
  readonly plan_overage_usd?: string;
  /** The share of all input that was read from the cache, to four places. Null without input. */
  readonly cache_hit_rate: number | null;
  /** Requests whose usage is known but has no price: no amount includes them. */
  readonly unpriced: number;
  /** Requests whose usage is not known. */
  readonly unknown: number;
  /** Requests that broke off: part of their usage may be estimated. */
  readonly partial: number;
}

/** The database's sums, by name. */
const SUMS: Readonly<Record<string, string>> = {
  requests: "COUNT(line)",
  ...Object.fromEntries(KIND_COLUMNS.map((kind) => [kind, `SUM(${kind})`])),
  official: "SUM(official)",
  charge: "SUM(charge)",
  plan: "SUM(official) FILTER (WHERE paid_by = 'plan')",
  overage: "SUM(official) FILTER (WHERE paid_by <> 'plan')",
  unpriced: "COUNT(line) FILTER (WHERE basis = 'unpriced' AND official IS NULL)",
  unknown: "COUNT(line) FILTER (WHERE basis = 'unknown')",
  partial: "COUNT(line) FILTER (WHERE basis = 'partial')",
};

/** Rare values, each a JSON object: further kinds of usage, and amounts as text. */
const RARE = ["more", "exact"] as const;

export interface SumsQuery extends Scope {
  /** SQL of the texts by which rows are told apart. */
  readonly by: readonly string[];
  /** Which of the usual sums; all of them if it is not given. Each takes time. */
  readonly of?: readonly string[];
  /** Further sums, by name. */
  readonly sums?: Readonly<Record<string, string>>;
  /** Further values of each row. */
  readonly values?: readonly string[];
  /** Periods by name. `span` is then a name, and `at` is in one of them. */
  readonly spans?: readonly Span[];
  /** A row for each span, also without requests. */
  readonly hasEmpty?: boolean;
  /** Of two texts: also the sums by the second one alone. */
  readonly bySecond?: boolean;
  /** A further condition. */
  readonly where?: Condition;
  /** The table, and the index in whose order it is read. */
  readonly from?: string;
}

/** A period of milliseconds. */
export type Span = readonly [name: string, since: number, until: number];

export interface SumRow {
  readonly names: readonly string[];
  readonly totals: Totals;
  /** Of `sums`. Of a count, the units. */
  readonly sums: Readonly<Record<string, Decimal>>;
  readonly values: readonly Value[];
}

export interface Sums {
  readonly rows: readonly SumRow[];
  readonly bySecond: readonly SumRow[];
  readonly total: SumRow;
}

/** One statement: the rows, and the total of all of them. */
export function sumRequests(table: Questions, query: SumsQuery): Sums {
  const { by, of = Object.keys(SUMS), sums = {}, values = [], spans = [], bySecond = false } = query;
  const added = { ...Object.fromEntries(of.map((name) => [name, SUMS[name]])), ...sums };
  const names = by.map((_, at) => `name${at}`);
  const columns = [
    ...by.map((sql, at) => `${sql} AS name${at}`),
    ...values.map((sql, at) => `${sql} AS value${at}`),
    ...Object.entries(added).map(([name, sql]) => `${sql} AS "${name}"`),
    ...RARE.map((name) => `group_concat(${name}) AS ${name}`),
  ];
  const summed = [
    ...values.map(() => "NULL"),
    ...Object.keys(added).map((name) => `SUM("${name}")`),
    ...RARE.map((name) => `group_concat(${name})`),
  ];
  const from = describeRows(query);
  const found = table.list(
    `WITH spans (span, since, until) AS MATERIALIZED
       (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each($spans)),
     sums AS MATERIALIZED (SELECT ${columns.join(", ")} FROM ${from.sql}
       ${names.length === 0 ? "" : `GROUP BY ${names.join(", ")}`})
     SELECT 'row', * FROM sums
     ${bySecond ? `UNION ALL SELECT 'second', NULL, name1, ${summed.join(", ")} FROM sums GROUP BY name1` : ""}
     UNION ALL SELECT 'total', ${[...names.map(() => "NULL"), ...summed].join(", ")} FROM sums`,
    { $spans: JSON.stringify(spans), ...from.values },
  );
  const first = by.length + values.length;
  const places = new Map([...Object.keys(added), ...RARE].map((name, at) => [name, first + at]));
  const read = (kind: string): SumRow[] =>
    found
      .filter(([each]) => each === kind)
      .map(([, ...row]) => ({
        names: row.slice(0, by.length).map((name) => String(name ?? "")),
        values: row.slice(by.length, first),
        ...readSums((name) => row[places.get(name) ?? row.length] ?? null, Object.keys(sums)),
      }));
  const [total] = read("total");
  if (total === undefined) throw new Error("the database has no sums");
  return { rows: read("row"), bySecond: read("second"), total };
}

/** What comes after FROM. */
function describeRows({ spans, hasEmpty, from = "requests", where, ...query }: SumsQuery): Condition {
  const scope = describeScope(query);
  const sql = where === undefined ? scope.sql : `${scope.sql} AND ${where.sql}`;
  const join = `spans ${hasEmpty === true ? "LEFT" : "CROSS"} JOIN requests ON at >= spans.since AND at < spans.until`;
  return {
    sql: spans === undefined ? `${from} WHERE ${sql}` : `${join} AND ${sql}`,
    values: { ...scope.values, ...where?.values },
  };
}

function readSums(read: (name: string) => Value, more: readonly string[]): Pick<SumRow, "sums" | "totals"> {
  const [usages = [], exact = []] = RARE.map((name) => readList(read(name)));
  const count = (name: string): number => Number(read(name) ?? 0);
  const add = (name: string): Decimal => addAmount(read(name), exact, name);
  const usage = readUsage(read, usages);
  const [plan, overage] = [add("plan"), add("overage")];
  return {
    sums: Object.fromEntries(more.map((name) => [name, add(name)])),
    totals: {
      requests: count("requests"),
      usage,
      official_usd: formatDecimal(add("official")),
      charge_usd: formatDecimal(add("charge")),
      ...(plan.units > 0n && { paid_by_plan_usd: formatDecimal(plan) }),
      ...(overage.units > 0n && { plan_overage_usd: formatDecimal(overage) }),
      cache_hit_rate: computeHitRate(usage),
      unpriced: count("unpriced"),
      unknown: count("unknown"),
      partial: count("partial"),
    },
  };
}

/** Of JSON that the database has joined by commas. */
export function readList(joined: Value): readonly unknown[] {
  if (joined === null) return [];
  const list = parseJson(`[${String(joined)}]`);
  if (!Array.isArray(list))
    throw new Error("The index is damaged: remove the file whose name ends in .index. It is made again.");
  return list;
}

/** The database's sum of pico-dollars, and the amounts that have their exact text. */
export function addAmount(sum: Value, exact: readonly unknown[], name: string): Decimal {
  let amount: Decimal = { units: typeof sum === "bigint" ? sum : 0n, scale: 12 };
  for (const each of exact) {
    const text = isObject(each) ? each[name] : undefined;
    if (typeof text === "string") amount = addDecimals(amount, parseDecimal(text));
  }
  return amount;
}

const KINDS = [...USAGE_KINDS, ...CALL_KINDS];

/** In the order of the kinds, which the columns have. `read`: what the column of a kind has. `more`: JSON objects with further counts. */
export function readUsage(read: (kind: string) => Value, more: readonly unknown[]): Totals["usage"] {
  const counts: Record<string, number> = {};
  for (const kind of KIND_COLUMNS) {
    const count = read(kind);
    if (count !== null) counts[kind] = Number(count);
  }
  if (more.length === 0) return counts;
  for (const each of more)
    for (const [kind, count] of Object.entries(isObject(each) ? each : {}))
      counts[kind] = (counts[kind] ?? 0) + Number(count);
  const inOrder = new Set([...KINDS.filter((kind) => counts[kind] !== undefined), ...Object.keys(counts)]);
  return Object.fromEntries([...inOrder].map((kind) => [kind, counts[kind] ?? 0]));
}

/** Of a column of milliseconds. Empty: there is none. */
export function toIso(value: Value | undefined): string {
  return typeof value === "bigint" ? new Date(Number(value)).toISOString() : "";
}

function computeHitRate(usage: Totals["usage"]): number | null {
  return computeShare(countKinds(usage, CACHE_READ_KINDS), countKinds(usage, PROMPT_KINDS));
}

export function countKinds(usage: Totals["usage"], kinds: readonly string[]): number {
  return kinds.reduce((sum, kind) => sum + (usage[kind] ?? 0), 0);
}
