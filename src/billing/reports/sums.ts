// Requests and their sums, for reports. Amounts too large for SQL's sum come as text.

import {
  addDecimals,
  CHARGE_PLACES,
  type Decimal,
  formatDecimal,
  parseDecimal,
  roundUsd,
  type Usd,
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

const ALL_ROWS = "TRUE";

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
    sql: conditions.join(" AND ") || ALL_ROWS,
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
  charge: "SUM(charge)",
  official_usd: "SUM(official)",
  charge_usd: "SUM(charge)",
  plan_usd: "SUM(official) FILTER (WHERE paid_by = 'plan')",
  overage_usd: "SUM(official) FILTER (WHERE paid_by <> 'plan')",
  unpriced: "SUM(requests - priced) FILTER (WHERE basis = 'unpriced')",
  unknown: "SUM(requests) FILTER (WHERE basis = 'unknown')",
  partial: "SUM(requests) FILTER (WHERE basis = 'partial')",
};

/** They come as numbers: a bigint takes longer. */
const COUNTS = new Set<string>(["requests", ...KIND_COLUMNS, "unpriced", "unknown", "partial"]);

/** SQL: an amount as text, which takes less time here. */
const writeUsd = (pico: string): string => `IIF(${pico}, IIF(${pico} < 0, '-', '') ||
  rtrim(rtrim(printf('%d.%012d', ABS(${pico}) / ${ONE}, ABS(${pico}) % ${ONE}), '0'), '.'), '0')`;
const ONE = "1000000000000";

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
  const plan = planSums(query);
  const { groupings, first, read } = plan;
  const found = table.list(describeQuery(query, plan), {
    ...describeScope(query).values,
    ...query.where?.values,
    ...(query.spans && { $spans: JSON.stringify(query.spans) }),
  });
  const places = Object.fromEntries(read.map(([name], at) => [name, first + at]));
  const layout = { ...plan, table, places, kinds: listKinds(places) };
  const lists = groupings.map((): SumRow[] => []);
  for (const row of found) {
    const at = Number(row[0]);
    lists[at]?.push(new SumRow(row, groupings[at]?.length ?? 0, layout));
  }
  const [rows = []] = lists;
  const [total = new SumRow([], 0, layout)] = lists.at(-1) ?? [];
  return { rows, also: lists.slice(1, -1), total };
}

type Plan = ReturnType<typeof planSums>;

/** `first`: the column of the first value after the names. `read`: values with their SQL. */
function planSums(query: SumsQuery) {
  const { by, also = [], columns = {}, of = Object.keys(SUMS), sums = {}, values = [] } = query;
  const main = [...by.map(columnOf), ...Object.keys(columns)];
  const groupings = [...(main.length > 0 ? [main, ...also.map((names) => names.map(columnOf))] : []), []];
  const rare = of.includes("input") ? ["more", "exact"] : ["exact"];
  const read: (readonly [name: string, sql: string])[] = [
    ...values.map((sql) => ["", sql] as const),
    ...of.map((name) => [name, SUMS[name] ?? ""] as const),
    ...Object.entries(sums),
    ...rare.map((name) => [name, `group_concat(${name})`] as const),
  ];
  return { groupings, read, values, first: 1 + Math.max(...groupings.map(({ length }) => length)) };
}

interface Layout extends Pick<Plan, "first" | "values"> {
  readonly table: Questions;
  readonly places: Readonly<Record<string, number>>;
  readonly kinds: ReturnType<typeof listKinds>;
}

/** A command ends before much is compiled. */
export class SumRow {
  readonly names: string[] = [];
  readonly values: Cells;
  readonly charge: Usd;
  readonly #row: Cells;
  readonly #layout: Layout;
  readonly #exact: readonly unknown[];
  #totals: Totals | null = null;

  constructor(row: Cells, names: number, layout: Layout) {
    this.#row = row;
    this.#layout = layout;
    this.#exact = readList(this.#find("exact"), layout.table);
    for (let at = 1; at <= names; at += 1) this.names.push(String(row[at] ?? ""));
    this.charge = roundUsd(this.add("charge"));
    this.values = row.slice(layout.first, layout.first + layout.values.length);
  }

  #find(name: string): CellValue {
    return this.#row[this.#layout.places[name] ?? -1] ?? null;
  }

  /** One of the sums. A count is in `units`. */
  add(name: string): Decimal {
    return addAmount(this.#find(name), this.#exact, name);
  }

  count(name: string): number {
    return Number(this.#find(name) ?? 0);
  }

  write(name: string): string {
    const text = String(this.#find(`${name}_usd`) ?? "0");
    if (this.#exact.length === 0) return text;
    return formatDecimal(addDecimals(parseDecimal(text), addAmount(null, this.#exact, name)));
  }

  get totals(): Totals {
    return (this.#totals ??= this.describe());
  }

  describe() {
    const { kinds, table } = this.#layout;
    const usage = readUsage(this.#row, kinds, readList(this.#find("more"), table));
    const plan = this.write("plan");
    const overage = this.write("overage");
    return {
      requests: this.count("requests"),
      usage,
      official_usd: this.write("official"),
      charge_usd: this.write("charge"),
      // A plan's payments by official prices, and its account's overage.
      // No charge includes them.
      ...(plan !== "0" && { paid_by_plan_usd: plan }),
      ...(overage !== "0" && { plan_overage_usd: overage }),
      cache_hit_rate: computeShare(countTokens(usage, READ_KINDS), countTokens(usage, PROMPT_KINDS)),
      /** Requests with known usage but without a price: no amount includes them. */
      unpriced: this.count("unpriced"),
      unknown: this.count("unknown"),
      partial: this.count("partial"),
    };
  }
}

export type Totals = Readonly<ReturnType<SumRow["describe"]>>;

/** SQL: sums by all names, which are then added up for each grouping.
 *  Values that are not sums are only in rows with all names. */
function describeQuery(query: SumsQuery, { groupings, read, first }: Plan): string {
  const names = [...new Set(groupings.flat())];
  const cells = [...names, ...read.map(([, sql]) => sql)].map((sql, at) => `${sql} AS c${at}`).join(", ");
  const { parts, joined } = describeRows(query, cells);
  const groupBy = (list: readonly string[]) => (list.length === 0 ? "" : `GROUP BY ${list.join(", ")}`);
  const selects = groupings.map((own, at) => {
    const isAll = own.length === names.length;
    const places = own.map((name) => `c${names.indexOf(name)}`);
    const padded = [...places, ...Array.from({ length: first - 1 - own.length }, () => "NULL")];
    const again = read.map(([name, sql], place) => {
      const column = `c${names.length + place}`;
      const [sum] = /^(?:SUM|MIN|MAX|group_concat)(?=\()/.exec(sql) ?? [];
      const all = isAll ? column : sum === undefined ? "NULL" : `${sum}(${column})`;
      if (name.endsWith("_usd")) return writeUsd(all);
      return COUNTS.has(name) ? `CAST(${all} AS REAL)` : all;
    });
    return `SELECT ${[at, ...padded, ...again].join(", ")} FROM cells ${groupBy(isAll ? [] : places)}`;
  });
  return `WITH cells AS MATERIALIZED (SELECT ${cells} FROM (${parts}) AS parts ${joined} ${groupBy(names)})
    ${selects.join(" UNION ALL ")}`;
}

/** SQL. `parts`: sums by who, span and columns. `used`: SQL that names the wanted ones. */
function describeRows({ spans, columns = {}, from, where, ...query }: SumsQuery, used: string) {
  const words = new Set(used.match(/\w+/g));
  const scope = describeScope(query).sql;
  // Without a condition, one index is read in its order, and `names` has the times.
  const isAll = [spans, from, where].every((each) => each === undefined) && scope === ALL_ROWS;
  const sums = Object.entries({ ...BY_WHO, ...query.byWho }).filter(
    ([name]) => words.has(name) && !(isAll && (name === "first" || name === "last")),
  );
  const added = [...Object.entries(columns), ...sums];
  const select = (own: readonly string[], rows: string): string =>
    `SELECT ${[...own, ...added.map(([name, sql]) => `${sql} AS ${name}`)].join(", ")} FROM ${rows}
      GROUP BY ${[...own, ...Object.values(columns)].join(", ")}`;
  if (isAll)
    return {
      parts: select(["who"], "lines"),
      joined: "JOIN (SELECT *, first_at AS first, last_at AS last FROM names) USING (who)",
    };
  const conditions = `WHERE last_at >= IFNULL($since, last_at) AND first_at <= IFNULL($until, first_at)
    AND ${scope} AND ${where?.sql ?? "TRUE"}`;
  if (spans === undefined) {
    const rows = from === undefined ? "names CROSS JOIN lines" : `${from} CROSS JOIN names`;
    const parts = select(["names.who"], `${rows} ON lines.who = names.who ${conditions}`);
    return { parts, joined: "JOIN names USING (who)" };
  }
  const parts = select(["names.who", "spans.since"], `${IN_SPANS} ${conditions}`);
  const none = `UNION ALL SELECT NULL, since${", NULL".repeat(added.length)} FROM spans`;
  return {
    parts: query.hasEmpty === true ? `${parts} ${none}` : parts,
    joined: "JOIN spans USING (since) LEFT JOIN names USING (who)",
  };
}

const IN_SPANS = `names CROSS JOIN spans ON spans.since BETWEEN
    IFNULL((SELECT MAX(own.since) FROM spans AS own WHERE own.since <= first_at), first_at) AND last_at
  CROSS JOIN lines ON lines.who = names.who AND at >= spans.since AND at < spans.until`;

type Counts = Readonly<Record<string, number>>;
type Cells = readonly CellValue[];

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

/** Where the kinds' columns are. */
export function listKinds(places: Readonly<Record<string, number>>) {
  return KIND_COLUMNS.flatMap((kind) => (places[kind] === undefined ? [] : { kind, place: places[kind] }));
}

/** Usage in the order of the kinds. `more`: objects with further counts. */
export function readUsage(row: Cells, kinds: ReturnType<typeof listKinds>, more: readonly unknown[]): Counts {
  const counts: Record<string, number> = {};
  for (const { kind, place } of kinds) {
    const count = row[place] ?? null;
    if (count !== null) counts[kind] = Number(count);
  }
  if (more.length === 0) return counts;
  const all = new Map(Object.entries(counts));
  for (const each of more)
    for (const [kind, count] of Object.entries(isObject(each) ? each : {}))
      all.set(kind, (all.get(kind) ?? 0) + Number(count));
  const inOrder = new Set([...ALL_KINDS.filter((kind) => all.has(kind)), ...all.keys()]);
  return Object.fromEntries(Array.from(inOrder, (kind) => [kind, all.get(kind) ?? 0]));
}

/** A column's milliseconds as ISO time. Empty: no value. */
export function toIso(value: CellValue | undefined): string {
  return typeof value === "bigint" || typeof value === "number" ? new Date(Number(value)).toISOString() : "";
}
