// Finds requests and their sums for reports.
// Amounts that are too large for SQL's sums come as text.

import { addDecimals, CHARGE_PLACES, type Decimal, formatDecimal, parseDecimal } from "../../lib/money.ts";
import { getField, getText, isObject, parseJson } from "../../lib/json/json.ts";
import type { Zone } from "../../lib/text/zone.ts";
import { FAILED_OUTCOMES } from "../ledger/line.ts";
import { type CellValue, nameTable, type Parameters, type Questions } from "../store/open.ts";
import { addColumns, KIND_COLUMNS } from "../store/schema.ts";
import { ALL_KINDS, computeShare, countTokens, PROMPT_KINDS, READ_KINDS } from "../usage.ts";
import { FAILED } from "./words.ts";

export const CLIENT_NAMES = ["tool", "version", "session", "agent", "label"] as const;
export const NAMES = ["key", "group", "model", "channel", ...CLIENT_NAMES] as const;
export type Name = (typeof NAMES)[number];

const FILTERS = [...NAMES, "outcome"] as const;
/** An empty text finds requests without this name. */
export type Filter = Readonly<Partial<Record<(typeof FILTERS)[number], string>>>;

/** Requests from `since` on and before `until` (ISO times). Null: no limit. */
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

const RARE = { more: "group_concat(more)", exact: "group_concat(exact)" };
const ADDED = [...KIND_COLUMNS, "official", "charge", "counted", "missed", "missed_tokens", "hour"];
/** Sums by `who`. All requests of one `who` have the same names. */
const BY_WHO: Readonly<Record<string, string>> = {
  requests: "COUNT(*)",
  priced: "COUNT(official)",
  first: "MIN(at)",
  last: "MAX(at)",
  first_line: "MIN(line)",
  last_line: "MAX(line)",
  ...Object.fromEntries(ADDED.map((name) => [name, `SUM(${name})`])),
  ...RARE,
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

const writeUsd = (pico: string): string =>
  `IIF(${pico}, rtrim(rtrim(printf('%d.%012d', ${pico} / ${ONE}, ${pico} % ${ONE}), '0'), '.'), '0')`;
const ONE = "1000000000000";

/** SQL that orders by a sum and its amounts in `exact`, the largest first. */
export const orderUsd = (sum: string, name: string): string =>
  `IFNULL(${sum}, 0) + IIF(exact IS NULL, 0, (
    SELECT ROUND(TOTAL(value ->> '${name}') * ${ONE})
    FROM json_each('[' || exact || ']')
  )) DESC`;

type Cell = readonly [json: string, sql?: string];

function quote(name: string, sql = "NULL"): string {
  const isClients = CLIENT_NAMES.some((each) => each === name);
  return `json_quote(${isClients ? sql : `IFNULL(${sql}, '')`})`;
}

function describeOwn(
  places: readonly string[],
  values: readonly string[],
  sums: ReadonlyArray<readonly [name: string, sql: string]>,
): Cell[] {
  const names = places.map((place) => `'' || IFNULL(${place}, '')`);
  const own = sums.map(([name, sql]) => `'${name}', '' || ${sql}`);
  return [
    ['"names":%s,', `json_array(${names.join(", ")})`],
    ['"values":%s,', `json_array(${values.join(", ")})`],
    ['"sums":%s,', `json_object(${own.join(", ")})`],
  ];
}

function describeTotals(sum: (name: string) => string): Cell[] {
  const kinds = KIND_COLUMNS.map((kind) => `IFNULL(',"${kind}":' || ${sum(kind)}, '')`);
  const prompt = addColumns(PROMPT_KINDS, sum);
  const cached = `IFNULL(${sum("cache_read")}, 0) * 1.0`;
  const share = `CAST(${cached} / (${prompt}) * 10000 AS INTEGER) / 10000.0`;
  // A 0 is left out, unless `exact` has amounts that addRare may add to it.
  const writePlan = (name: string, payer: string): string =>
    `IIF(${sum(payer)} OR ${sum("exact")} IS NOT NULL,
      '"${name}":"' || ${writeUsd(sum(payer))} || '",',
      '')`;
  return [
    ['"requests":%d,', sum("requests")],
    ['"usage":{%s},', `substr(${kinds.join(" || ")}, 2)`],
    ['"official_usd":"%s",', writeUsd(sum("official"))],
    ['"charge_usd":"%s",', writeUsd(sum("charge"))],
    ["%s", writePlan("paid_by_plan_usd", "plan")],
    ["%s", writePlan("plan_overage_usd", "overage")],
    ['"cache_hit_rate":%s,', `IFNULL(${share}, 'null')`],
    ['"unpriced":%d,', sum("unpriced")],
    ['"unknown":%d,', sum("unknown")],
    ['"partial":%d', sum("partial")],
  ];
}

export type Span = readonly [name: string, since: number, until: number];

export interface SumsQuery extends Scope {
  /** The names that rows are grouped by, or `span`. */
  readonly by: readonly string[];
  /** Under these keys, a row's `totals` have the row's names, in the order of `by`.
   *  Then the row has no `names`, `values` and `sums`. */
  readonly as?: readonly string[];
  /** The order of rows, as SQL. In it, `n0` is the first name,
   *  `v0` the first value, and sums have their names. */
  readonly order?: string;
  /** Further lists to group by. The result's `also` has the rows of each. */
  readonly also?: readonly (readonly string[])[];
  /** Further columns to group by, and the SQL that reads them. */
  readonly columns?: Readonly<Record<string, string>>;
  /** The usual sums to compute. Absent: all. Each takes time. */
  readonly of?: readonly string[];
  /** Further sums and values, as SQL over the names and the sums in BY_WHO. */
  readonly sums?: Readonly<Record<string, string>>;
  readonly values?: readonly string[];
  readonly byWho?: Readonly<Record<string, string>>;
  /** Periods to group by with the name `span`. Lines outside of them do not count. */
  readonly spans?: readonly Span[];
  /** A row for each span, even without requests. */
  readonly hasEmpty?: boolean;
  readonly where?: Condition;
  /** SQL that reads `lines` by an index. */
  readonly from?: string;
}

export function sumRequests(table: Questions, query: SumsQuery) {
  const found = table.list(describeQuery(query), {
    ...describeScope(query).values,
    ...query.where?.values,
    ...(query.spans && { $spans: JSON.stringify(query.spans) }),
  });
  const lists = found.map(([json]): SumRow[] => parseList(String(json ?? "[]"), table));
  for (const row of lists.flat()) addRare(row);
  const [total] = lists.pop() ?? [];
  if (total === undefined) throw new Error("a sum without a total");
  const [rows = [total], ...also] = lists;
  return { rows, also, total };
}

export interface SumRow {
  readonly names: readonly string[];
  readonly values: readonly CellValue[];
  /** Counts, and amounts in pico-dollars, or in dollars if the name ends in `_usd`.
   *  The amounts in `exact` are not included. */
  readonly sums: Readonly<Record<string, string | null>>;
  readonly totals: OwnTotals;
  /** Counts of rare kinds (`more`), and amounts that are too large for the sums. */
  readonly more?: readonly unknown[];
  readonly exact?: readonly unknown[];
}

/** Adds the amounts in `exact` to a sum. For a count, use the result's `units`. */
export function addSum({ sums, exact = [] }: SumRow, name: string): Decimal {
  return addAmount(BigInt(sums[name] ?? 0), exact, name);
}

/** SQL that sums by all names, then makes a list for each grouping. The database writes JSON
 *  in a third of the time that our code needs.
 *  In a grouping by fewer names, a value that cannot be added up is null. */
function describeQuery(query: SumsQuery): string {
  const { by, also = [], as = [], of = Object.keys(SUMS), values = [], order } = query;
  const main = [...by.map(columnOf), ...Object.keys(query.columns ?? {})];
  const groupings = [...(main.length > 0 ? [main, ...also.map((names) => names.map(columnOf))] : []), []];
  const own = Object.keys(query.sums ?? {});
  const rare = of.includes("input") ? ["more", "exact"] : ["exact"];
  const names = [...new Set(groupings.flat())];
  const known: Readonly<Record<string, string>> = { ...SUMS, ...RARE, ...query.sums };
  const added = [...of, ...own, ...rare];
  const all = [...names, ...values, ...added.map((name) => known[name] ?? "")];
  const cells = all.map((sql, at) => `${sql} AS c${at}`).join(", ");
  const { parts, joined } = describeRows(query, cells);
  const groupBy = (list: readonly string[]) => (list.length === 0 ? "" : `GROUP BY ${list.join(", ")}`);
  const selects = groupings.map((grouping, at) => {
    const isAll = grouping.length === names.length;
    const places = grouping.map((name) => `c${names.indexOf(name)}`);
    const addUp = (place: number): string => {
      const [sum] = /^(?:SUM|MIN|MAX|group_concat)(?=\()/.exec(all[place] ?? "") ?? [];
      return isAll ? `c${place}` : sum === undefined ? "NULL" : `${sum}(c${place})`;
    };
    const sumOf = (name: string): string =>
      added.includes(name) ? addUp(names.length + values.length + added.indexOf(name)) : "NULL";
    const sorted = order === undefined || grouping.length === 0 ? "" : `ORDER BY ${order}`;
    const found = values.map((_, place) => addUp(names.length + place));
    const sums = own.map((name) => {
      const sql = name.endsWith("_usd") ? writeUsd(sumOf(name)) : sumOf(name);
      return [name, sql] as const;
    });
    const json: Cell[] = [
      ...(as.length === 0 || at > 0 ? describeOwn(places, found, sums) : []),
      ['"totals":{'],
      ...(at === 0 ? as : []).map((name, place): Cell => [`"${name}":%s,`, quote(name, places[place])]),
      ...(of.length === 0 ? [] : describeTotals(sumOf)),
      ["}"],
      ...rare.map((name): Cell => ["%s", `',"${name}":[' || ${sumOf(name)} || ']'`]),
    ];
    const text = json.map(([member]) => member).join("");
    const parameters = json.flatMap(([, sql]) => sql ?? []);
    const output = [
      `printf('{${text}}', ${parameters.join(", ")}) AS json`,
      ...places.map((place, index) => `${place} AS n${index}`),
      ...found.map((sql, index) => `${sql} AS v${index}`),
      ...sums.map(([name, sql]) => `${sql} AS ${name}`),
      `${sumOf("exact")} AS exact`,
    ];
    return `SELECT '[' || group_concat(json) || ']' FROM (
      SELECT ${output.join(", ")}
      FROM cells
      ${groupBy(isAll ? [] : places)}
      ${sorted})`;
  });
  return `WITH cells AS MATERIALIZED (SELECT ${cells} FROM (${parts}) AS parts ${joined} ${groupBy(names)})
    ${selects.join(" UNION ALL ")}`;
}

/** `used` is SQL that names the wanted sums. The result `parts`
 *  computes them by `who`, span and columns. */
function describeRows({ spans, columns = {}, from, where, ...query }: SumsQuery, used: string) {
  const words = new Set(used.match(/\w+/g));
  const scope = describeScope(query).sql;
  // If all lines count, SQLite reads one index from end to end.
  // The times `first` and `last` are in `names`.
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

interface OwnTotals {
  requests: number;
  usage: Counts;
  official_usd: string;
  charge_usd: string;
  /** At official prices: what a plan paid, and the overage that
   *  its account paid. No charge includes them. */
  paid_by_plan_usd?: string;
  plan_overage_usd?: string;
  cache_hit_rate: number | null;
  /** Requests with known usage but without a price: no amount includes them. */
  unpriced: number;
  unknown: number;
  partial: number;
}

export type Totals = Readonly<OwnTotals>;

function addRare({ totals, more, exact }: SumRow): void {
  if (more !== undefined) {
    totals.usage = addKinds(totals.usage, more);
    const [cached, input] = [countTokens(totals.usage, READ_KINDS), countTokens(totals.usage, PROMPT_KINDS)];
    totals.cache_hit_rate = computeShare(cached, input);
  }
  if (exact === undefined) return;
  totals.official_usd = addExact(totals.official_usd, exact, "official");
  totals.charge_usd = addExact(totals.charge_usd, exact, "charge");
  totals.paid_by_plan_usd = addExact(totals.paid_by_plan_usd, exact, "plan");
  totals.plan_overage_usd = addExact(totals.plan_overage_usd, exact, "overage");
  if (totals.paid_by_plan_usd === "0") delete totals.paid_by_plan_usd;
  if (totals.plan_overage_usd === "0") delete totals.plan_overage_usd;
}

export function addExact(text = "0", exact: readonly unknown[] = [], name: string): string {
  if (exact.length === 0) return text;
  return formatDecimal(addDecimals(parseDecimal(text), addAmount(null, exact, name)));
}

export function readList(joined: CellValue, table: Questions): readonly unknown[] {
  return joined === null ? [] : parseList(`[${String(joined)}]`, table);
}

function parseList(json: string, { path = "" }: Questions) {
  const list = parseJson(json);
  if (Array.isArray(list)) return list;
  throw new Error(`The index ${nameTable(path)} is damaged: remove it, and it is made again.`);
}

export function addAmount(sum: CellValue, exact: readonly unknown[], name: string): Decimal {
  let total: Decimal = { units: typeof sum === "bigint" ? sum : 0n, scale: CHARGE_PLACES };
  for (const each of exact) {
    const text = getText(getField(each, name));
    if (text !== "") total = addDecimals(total, parseDecimal(text));
  }
  return total;
}

export function addKinds(usage: Counts, more: readonly unknown[]): Counts {
  const all = new Map(Object.entries(usage));
  for (const each of more)
    for (const [kind, count] of Object.entries(isObject(each) ? each : {}))
      all.set(kind, (all.get(kind) ?? 0) + Number(count));
  const inOrder = new Set([...ALL_KINDS.filter((kind) => all.has(kind)), ...all.keys()]);
  return Object.fromEntries(Array.from(inOrder, (kind) => [kind, all.get(kind) ?? 0]));
}

export function toIso(value: CellValue | undefined): string {
  return typeof value === "bigint" || typeof value === "number" ? new Date(Number(value)).toISOString() : "";
}
