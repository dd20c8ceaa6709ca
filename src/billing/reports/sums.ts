// Requests and their sums, for reports. Amounts too large for SQL's sum come as text.

import {
  addDecimals,
  CHARGE_PLACES,
  type Decimal,
  formatDecimal,
  parseDecimal,
  roundUsd,
} from "../../lib/money.ts";
import { getText, getField, isObject, parseJson } from "../../lib/json/json.ts";
import type { Zone } from "../../lib/text/zone.ts";
import { FAILED_OUTCOMES } from "../ledger/line.ts";
import { nameTable, type Parameters, type Questions, type CellValue } from "../store/open.ts";
import { KIND_COLUMNS } from "../store/schema.ts";
import { ALL_KINDS, computeShare, countTokens, PROMPT_KINDS, READ_KINDS } from "../usage.ts";
import { FAILED } from "./words.ts";

export const CLIENT_NAMES = ["tool", "version", "session", "agent", "label"] as const;
export const NAMES = ["key", "group", "model", "channel", ...CLIENT_NAMES] as const;
export type Name = (typeof NAMES)[number];

const FILTERS = [...NAMES, "outcome"] as const;
/** An empty name finds requests without one. */
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
  readonly values?: Parameters;
}

export function describeScope({ since, until, only = {} }: Scope) {
  const names = FILTERS.filter((name) => only[name] !== undefined);
  const conditions = [
    ...(since === null ? [] : ["at >= $since"]),
    ...(until === null ? [] : ["at < $until"]),
    ...names.map((name) =>
      name === "outcome" && only[name] === FAILED ? HAS_FAILED : `${columnOf(name)} IS $${name}`,
    ),
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

export function columnOf(name: string): string {
  return name === "group" ? "group_name" : name;
}

export const HAS_FAILED = `outcome IN (${[...FAILED_OUTCOMES].map((each) => `'${each}'`).join(", ")})`;

const ADDED = [...KIND_COLUMNS, "official", "charge", "counted", "missed", "missed_tokens", "hour"];
/** Sums of requests with the same names. */
const BY_WHO: Readonly<Record<string, string>> = {
  requests: "COUNT(*)",
  priced: "COUNT(official)",
  first: "MIN(at)",
  last: "MAX(at)",
  first_line: "MIN(line)",
  last_line: "MAX(line)",
  ...Object.fromEntries(ADDED.map((name) => [name, `SUM(${name})`])),
  more: "group_concat(more)",
  exact: "group_concat(exact)",
};

const SUMS: Readonly<Record<string, string>> = {
  requests: "SUM(requests)",
  ...Object.fromEntries(KIND_COLUMNS.map((kind) => [kind, `SUM(${kind})`])),
  official: "SUM(official)",
  charge: "SUM(charge)",
  plan: "SUM(official) FILTER (WHERE paid_by = 'plan')",
  overage: "SUM(official) FILTER (WHERE paid_by <> 'plan')",
  unpriced: "SUM(requests - priced) FILTER (WHERE basis = 'unpriced')",
  unknown: "SUM(requests) FILTER (WHERE basis = 'unknown')",
  partial: "SUM(requests) FILTER (WHERE basis = 'partial')",
};

export type Span = readonly [name: string, since: number, until: number];

export interface SumsQuery extends Scope {
  /** The names that rows are grouped by, or `span`. */
  readonly by: readonly string[];
  /** Further lists of names or columns, each with rows of its own. */
  readonly also?: readonly (readonly string[])[];
  /** Columns of lines that rows are also grouped by, as SQL. */
  readonly columns?: Readonly<Record<string, string>>;
  /** The usual sums to compute. Absent: all. Each takes time. */
  readonly of?: readonly string[];
  /** Further values, computed from names and the sums in BY_WHO. */
  readonly sums?: Readonly<Record<string, string>>;
  readonly values?: readonly string[];
  /** Further sums of the requests with the same names. */
  readonly byWho?: Readonly<Record<string, string>>;
  /** Periods by name. `span` is then a name, and `at` is in one period. */
  readonly spans?: readonly Span[];
  /** A row for each span, even without requests. */
  readonly hasEmpty?: boolean;
  readonly where?: Condition;
  /** The lines, and the index for reading them. */
  readonly from?: string;
}

export function sumRequests(table: Questions, query: SumsQuery) {
  const { by, also = [], columns = {}, of = Object.keys(SUMS), sums = {}, values = [] } = query;
  const added = { ...Object.fromEntries(of.map((name) => [name, SUMS[name]])), ...sums };
  const rare = of.includes("input") ? ["more", "exact"] : ["exact"];
  const read = [...values, ...Object.values(added), ...rare.map((name) => `group_concat(${name})`)].map(
    String,
  );
  const main = [...by.map(columnOf), ...Object.keys(columns)];
  const groupings = [...(main.length > 0 ? [main, ...also.map((names) => names.map(columnOf))] : []), []];
  const width = Math.max(...groupings.map(({ length }) => length));
  const found = table.list(describeQuery(query, groupings, width, read), {
    ...describeScope(query).values,
    ...query.where?.values,
    ...(query.spans && { $spans: JSON.stringify(query.spans) }),
  });
  const first = 1 + width + values.length;
  const places = new Map([...Object.keys(added), ...rare].map((name, at) => [name, first + at]));
  const describe = (row: readonly CellValue[], length: number) => {
    const find = (name: string): CellValue => row[places.get(name) ?? -1] ?? null;
    const exact = readList(find("exact"), table);
    const add = (name: string): Decimal => addAmount(find(name), exact, name);
    let totals: Totals | null = null;
    return {
      names: row.slice(1, 1 + length).map((name) => String(name ?? "")),
      values: row.slice(1 + width, first),
      /** The sums in `sums`, by name. A count is in `units`. */
      sums: Object.fromEntries(Object.keys(sums).map((name) => [name, add(name)])),
      charge: roundUsd(add("charge")),
      get totals() {
        return (totals ??= describeTotals(find, add, readList(find("more"), table)));
      },
    };
  };
  const [rows = [], ...lists] = groupings.map(({ length }, at) =>
    found.filter(([grouping]) => grouping === BigInt(at)).map((row) => describe(row, length)),
  );
  return { rows, also: lists.slice(0, also.length), total: describe(found.at(-1) ?? [], 0) };
}

/** SQL: sums by all names, which are then added up for each grouping.
 *  Only the rows with all names have other values. */
function describeQuery(query: SumsQuery, groupings: string[][], width: number, read: string[]): string {
  const names = [...new Set(groupings.flat())];
  const cells = [...names, ...read].map((sql, at) => `${sql} AS c${at}`).join(", ");
  const { parts, joined } = describeRows(query, read.join());
  const groupBy = (list: readonly string[]) => (list.length === 0 ? "" : `GROUP BY ${list.join(", ")}`);
  const selects = groupings.map((own, at) => {
    const isAll = own.length === names.length;
    const places = own.map((name) => `c${names.indexOf(name)}`);
    const padded = [...places, ...Array.from({ length: width - own.length }, () => "NULL")];
    const again = read.map((sql, place) => {
      const column = `c${names.length + place}`;
      const [sum] = /^(?:SUM|MIN|MAX|group_concat)(?=\()/.exec(sql) ?? [];
      return isAll ? column : sum === undefined ? "NULL" : `${sum}(${column})`;
    });
    return `SELECT ${[at, ...padded, ...again].join(", ")} FROM cells ${groupBy(isAll ? [] : places)}`;
  });
  return `WITH cells AS MATERIALIZED (SELECT ${cells} FROM (${parts}) AS parts ${joined} ${groupBy(names)})
    ${selects.join(" UNION ALL ")}`;
}

/** SQL. `parts`: the sums that `used` names, by who, span and columns. */
function describeRows({ spans, columns = {}, ...query }: SumsQuery, used: string) {
  const { from, where, hasEmpty = false, byWho = {} } = query;
  const words = new Set(used.match(/\w+/g));
  const sums = Object.entries({ ...BY_WHO, ...byWho }).filter(([name]) => words.has(name));
  const own = spans === undefined ? ["names.who"] : ["names.who", "spans.since"];
  const added = [...Object.entries(columns), ...sums];
  const list = [...own, ...added.map(([name, sql]) => `${sql} AS ${name}`)].join(", ");
  const [inSpans, inSpan] = spans === undefined ? ["", ""] : IN_SPANS;
  const rows = from === undefined ? `names ${inSpans} CROSS JOIN lines` : `${from} CROSS JOIN names`;
  const parts = `SELECT ${list} FROM ${rows} ON lines.who = names.who ${inSpan}
    WHERE last_at >= IFNULL($since, last_at) AND first_at <= IFNULL($until, first_at)
      AND ${describeScope(query).sql} AND ${where?.sql ?? "TRUE"}
    GROUP BY ${[...own, ...Object.values(columns)].join(", ")}`;
  if (spans === undefined) return { parts, joined: "JOIN names USING (who)" };
  const empty = hasEmpty ? `UNION ALL SELECT NULL, since${", NULL".repeat(added.length)} FROM spans` : "";
  return { parts: `${parts} ${empty}`, joined: "JOIN spans USING (since) LEFT JOIN names USING (who)" };
}

const FIRST_SPAN = "IFNULL((SELECT MAX(own.since) FROM spans AS own WHERE own.since <= first_at), first_at)";
const IN_SPANS = [
  `CROSS JOIN spans ON spans.since BETWEEN ${FIRST_SPAN} AND last_at`,
  "AND at >= spans.since AND at < spans.until",
] as const;

export type SumRow = ReturnType<typeof sumRequests>["total"];

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
    // A plan's payments by official prices, and its account's overage.
    // No charge includes them.
    ...(plan.units > 0n && { paid_by_plan_usd: formatDecimal(plan) }),
    ...(overage.units > 0n && { plan_overage_usd: formatDecimal(overage) }),
    cache_hit_rate: computeShare(countTokens(usage, READ_KINDS), countTokens(usage, PROMPT_KINDS)),
    /** Requests with known usage but without a price: no amount includes them. */
    unpriced: count("unpriced"),
    unknown: count("unknown"),
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

export function addAmount(sum: CellValue, exact: readonly unknown[], name: string): Decimal {
  let total: Decimal = { units: typeof sum === "bigint" ? sum : 0n, scale: CHARGE_PLACES };
  for (const each of exact) {
    const text = getText(getField(each, name));
    if (text !== "") total = addDecimals(total, parseDecimal(text));
  }
  return total;
}

/** Usage in the order of the kinds. `read`: a kind's column.
 *  `more`: objects with further counts. */
export function readUsage(read: (kind: string) => CellValue, more: readonly unknown[]): Counts {
  const counts = new Map<string, number>();
  for (const kind of KIND_COLUMNS) {
    const count = read(kind);
    if (count !== null) counts.set(kind, Number(count));
  }
  if (more.length === 0) return Object.fromEntries(counts);
  for (const each of more)
    for (const [kind, count] of Object.entries(isObject(each) ? each : {}))
      counts.set(kind, (counts.get(kind) ?? 0) + Number(count));
  const inOrder = new Set([...ALL_KINDS.filter((kind) => counts.has(kind)), ...counts.keys()]);
  return Object.fromEntries(Array.from(inOrder, (kind) => [kind, counts.get(kind) ?? 0]));
}

/** A column's milliseconds as ISO time. Empty: no value. */
export function toIso(value: CellValue | undefined): string {
  return typeof value === "bigint" || typeof value === "number" ? new Date(Number(value)).toISOString() : "";
}
