// Requests and their sums, for reports. Amounts too large for the database's sum come as text.

import { addDecimals, type Decimal, formatDecimal, parseDecimal } from "../../lib/money.ts";
import { getText, getField, isObject, parseJson } from "../../lib/json/json.ts";
import type { Zone } from "../../lib/text/zone.ts";
import { FAILED_OUTCOMES } from "../ledger/line.ts";
import { nameTable, type Parameters, type Questions, type CellValue } from "../store/open.ts";
import { KIND_COLUMNS } from "../store/schema.ts";
import { ALL_KINDS, CACHE_READ_KINDS, computeShare, countTokens, PROMPT_KINDS } from "../usage.ts";
import { FAILED } from "./words.ts";

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

const FILTERS = [...NAMES, "outcome"] as const;
/** Only requests with these names. Empty: without such a name. */
export type Filter = Readonly<Partial<Record<(typeof FILTERS)[number], string>>>;

/** Requests from one ISO time until before another. Null: no limit. */
export interface Scope {
  readonly since: string | null;
  readonly until: string | null;
  readonly only?: Filter;
}

export const ALL: Scope = { since: null, until: null };

export function describeHead({ since, until, only = {} }: Scope, { name: timezone }: Zone) {
  return { since, until, timezone, ...(Object.keys(only).length > 0 && { only }) };
}

export interface Condition {
  readonly sql: string;
  readonly values: Parameters;
}

export function describeScope({ since, until, only = {} }: Scope): Condition {
  const names = FILTERS.filter((name) => only[name] !== undefined);
  const conditions = [
    ...(since === null ? [] : ["requests.at >= $since"]),
    ...(until === null ? [] : ["requests.at < $until"]),
    ...names.map((name) => {
      if (name === "outcome" && only[name] === FAILED) return HAS_FAILED;
      // The plus keeps SQLite from the index of keys, which lacks what most reports sum.
      return `${name === "key" ? "+" : ""}requests.${columnOf(name)} IS $${name}`;
    }),
  ];
  return {
    sql: conditions.join(" AND ") || "TRUE",
    values: {
      ...(since !== null && { $since: Date.parse(since) }),
      ...(until !== null && { $until: Date.parse(until) }),
      ...Object.fromEntries(names.map((name) => [`$${name}`, only[name] || null])),
    },
  };
}

export function columnOf(name: Name | "outcome"): string {
  return name === "group" ? "group_name" : name;
}

export const HAS_FAILED = `requests.outcome IN (${[...FAILED_OUTCOMES].map((each) => `'${each}'`).join(", ")})`;

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

export type Span = readonly [name: string, since: number, until: number];

export interface SumsQuery extends Scope {
  /** SQL of the texts that rows are grouped by. */
  readonly by: readonly string[];
  /** The usual sums to compute. Absent: all. Each takes time. */
  readonly of?: readonly string[];
  readonly sums?: Readonly<Record<string, string>>;
  readonly values?: readonly string[];
  /** Periods by name. `span` is then a name, and `at` is in one period. */
  readonly spans?: readonly Span[];
  /** A row for each span, even without requests. */
  readonly hasEmpty?: boolean;
  readonly where?: Condition;
  /** The table, and the index for reading it. */
  readonly from?: string;
}

/** In one statement: the rows and their total. */
export function sumRequests(table: Questions, query: SumsQuery) {
  const { by, of = Object.keys(SUMS), sums = {}, values = [] } = query;
  const added = { ...Object.fromEntries(of.map((name) => [name, SUMS[name]])), ...sums };
  // Rare values as JSON objects: further kinds of usage, and amounts as text.
  const rare = of.includes("input") ? ["more", "exact"] : ["exact"];
  const names = by.map((_, at) => `name${at}`);
  const list = (columns: readonly string[]): string => columns.join(", ");
  const columns = [
    ...by.map((sql, at) => `${sql} AS name${at}`),
    ...values.map((sql, at) => `${sql} AS value${at}`),
    ...Object.entries(added).map(([name, sql]) => `${sql} AS "${name}"`),
    ...rare.map((name) => `group_concat(${name}) AS ${name}`),
  ];
  const all = [
    ...values.map((_, at) => `NULL AS value${at}`),
    ...Object.keys(added).map((name) => `SUM("${name}") AS "${name}"`),
    ...rare.map((name) => `group_concat(${name}) AS ${name}`),
  ];
  const rows = describeRows(query);
  const groups = `SELECT ${list(columns)} FROM ${rows.sql}`;
  const found = table.list(
    `WITH spans (span, since, until) AS MATERIALIZED
       (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each($spans)),
     sums AS MATERIALIZED (${query.spans === undefined ? groupBy(groups, names) : joinSpans(groups, names, all, query.hasEmpty)})
     SELECT * FROM sums
     UNION ALL SELECT ${list([...names.map(() => "NULL"), ...all])} FROM sums`,
    rows.values,
  );
  const first = by.length + values.length;
  const places = [...Object.keys(added), ...rare];
  const sorted = found.map((row) => {
    const read = (name: string): CellValue => {
      const at = places.indexOf(name);
      return at < 0 ? null : (row[first + at] ?? null);
    };
    const exact = readList(read("exact"), table);
    const add = (name: string): Decimal => addAmount(read(name), exact, name);
    return {
      names: row.slice(0, by.length).map((name) => String(name ?? "")),
      values: row.slice(by.length, first),
      /** The sums in `sums`, by name. A count is in `units`. */
      sums: Object.fromEntries(Object.keys(sums).map((name) => [name, add(name)])),
      totals: describeTotals(read, add, readList(read("more"), table)),
    };
  });
  const total = sorted.pop();
  if (total === undefined) throw new Error("the database has no sums");
  return { rows: sorted, total };
}

function groupBy(sql: string, names: readonly string[]): string {
  return names.length === 0 ? sql : `${sql} GROUP BY ${names.join(", ")}`;
}

/** `groups`: SQL for one span, whose rows are sorted separately. Two spans may share a name. */
function joinSpans(
  groups: string,
  names: readonly string[],
  all: readonly string[],
  hasEmpty = false,
): string {
  const columns = [...names, ...all.map((column) => column.replace(/.* AS /, ""))];
  const read = columns.map((column, at) => `each.value ->> ${at} AS ${column}`).join(", ");
  const filled =
    names.length > 1 ? groupBy(groups, names) : hasEmpty ? groups : `${groups} HAVING COUNT(*) > 0`;
  const rows = `json_each((SELECT json_group_array(json_array(${columns.join(", ")})) FROM (${filled}))) AS each`;
  return groupBy(`SELECT ${[...names, ...all].join(", ")} FROM (SELECT ${read} FROM spans, ${rows})`, names);
}

function describeRows({ spans, from = "requests", where, ...query }: SumsQuery): Condition {
  const scope = describeScope(query);
  const inSpan = spans === undefined ? "" : "at >= spans.since AND at < spans.until AND";
  return {
    sql: `${from} WHERE ${inSpan} ${scope.sql} AND ${where?.sql ?? "TRUE"}`,
    values: { $spans: JSON.stringify(spans ?? []), ...scope.values, ...where?.values },
  };
}

export type SumRow = ReturnType<typeof sumRequests>["total"];

/** For people and scripts: counts as numbers, amounts as exact decimals. */
function describeTotals(
  read: (name: string) => CellValue,
  add: (name: string) => Decimal,
  more: readonly unknown[],
) {
  const count = (name: string): number => Number(read(name) ?? 0);
  const usage = readUsage(read, more);
  const [plan, overage] = [add("plan"), add("overage")];
  return {
    requests: count("requests"),
    usage,
    official_usd: formatDecimal(add("official")),
    charge_usd: formatDecimal(add("charge")),
    // A plan's payments by official prices, and its account's overage. No charge includes them.
    ...(plan.units > 0n && { paid_by_plan_usd: formatDecimal(plan) }),
    ...(overage.units > 0n && { plan_overage_usd: formatDecimal(overage) }),
    cache_hit_rate: computeShare(countTokens(usage, CACHE_READ_KINDS), countTokens(usage, PROMPT_KINDS)),
    /** Requests with known usage but without a price: no amount includes them. */
    unpriced: count("unpriced"),
    unknown: count("unknown"),
    /** Requests that broke off: part of their usage may be estimated. */
    partial: count("partial"),
  };
}

export type Totals = Readonly<ReturnType<typeof describeTotals>>;
type Counts = Readonly<Record<string, number>>;

/** Reads JSON that the database joined with commas. */
export function readList(joined: CellValue, { path = "" }: Questions): readonly unknown[] {
  if (joined === null) return [];
  const list = parseJson(`[${String(joined)}]`);
  if (!Array.isArray(list))
    throw new Error(`The index ${nameTable(path)} is damaged: remove it, and it is made again.`);
  return list;
}

/** The database's sum of pico-dollars, plus the amounts with exact texts. */
export function addAmount(sum: CellValue, exact: readonly unknown[], name: string): Decimal {
  const texts = exact.map((each) => getText(getField(each, name))).filter((text) => text !== "");
  return texts
    .map(parseDecimal)
    .reduce(addDecimals, { units: typeof sum === "bigint" ? sum : 0n, scale: 12 });
}

/** In the order of the kinds. `read`: a kind's column. `more`: objects with further counts. */
export function readUsage(read: (kind: string) => CellValue, more: readonly unknown[]): Counts {
  const counts = new Map<string, number>();
  for (const kind of KIND_COLUMNS) {
    const count = read(kind);
    if (count !== null) counts.set(kind, Number(count));
  }
  for (const each of more)
    for (const [kind, count] of Object.entries(isObject(each) ? each : {}))
      counts.set(kind, (counts.get(kind) ?? 0) + Number(count));
  const inOrder = new Set([...ALL_KINDS.filter((kind) => counts.has(kind)), ...counts.keys()]);
  return Object.fromEntries(Array.from(inOrder, (kind) => [kind, counts.get(kind) ?? 0]));
}

/** For a column of milliseconds. Empty: no value. */
export function toIso(value: CellValue | undefined): string {
  return typeof value === "bigint" ? new Date(Number(value)).toISOString() : "";
}
