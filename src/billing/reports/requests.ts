// Lists single requests, and finds ids by their beginning.

import { formatDecimal } from "../../lib/money.ts";
import { getList, parseJson } from "../../lib/json/json.ts";
import type { Table, CellValue } from "../store/open.ts";
import { COLUMN_NAMES, KIND_COLUMNS } from "../store/schema.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS, READ_KINDS } from "../usage.ts";
import { STACKS } from "./words.ts";
import { addAmount, addKinds, columnOf, describeScope, type Scope, sumRequests } from "./sums.ts";

export function reportRequests(table: Table, { most, ...scope }: Scope & { readonly most: number }) {
  const { totals } = sumRequests(table, { ...scope, by: [], of: ["requests", "charge"] }).total;
  const { sql, values } = describeScope(scope);
  const newest = `${sql} ORDER BY at DESC, line DESC LIMIT $most`;
  return {
    total: totals.requests,
    charge_usd: totals.charge_usd,
    rows: listRequests(table, newest, { ...values, $most: most }),
  };
}

export function listRequests(table: Table, where: string, values: Parameters<Table["list"]>[1]) {
  return table.list(`SELECT * FROM requests WHERE ${where}`, values).map(describeRow);
}

function describeRow(row: readonly CellValue[]) {
  const read = (name: string): CellValue => row[COLUMN_NAMES.indexOf(name)] ?? null;
  const text = (name: string): string => String(read(name) ?? "");
  const count = (name: string): number | null => (read(name) === null ? null : Number(read(name)));
  const kinds = KIND_COLUMNS.map((kind) => [kind, Number(read(kind) ?? 0)] as const);
  const usage = addKinds(Object.fromEntries(kinds), [parseJson(text("more"))]);
  const write = (name: string): string =>
    formatDecimal(addAmount(read(name), [parseJson(text("exact"))], name));
  return {
    id: text("id"),
    time: new Date(Number(read("at"))).toISOString(),
    key: text("key"),
    group: text("group_name"),
    channel: text("channel"),
    model: text("model"),
    tool: text("tool") || null,
    label: text("label") || null,
    session: text("session"),
    agent: text("agent"),
    status: count("status"),
    outcome: text("outcome"),
    basis: text("basis"),
    first_byte_ms: count("first_byte"),
    duration_ms: count("duration"),
    input: countTokens(usage, PROMPT_KINDS),
    cached: countTokens(usage, READ_KINDS),
    output: countTokens(usage, OUTPUT_KINDS),
    charge_usd: read("charge") === null ? null : write("charge"),
    ...(read("paid_by") === "plan" && { paid_by_plan_usd: write("official") }),
    ...(read("cause") !== null && {
      missed: {
        tokens: count("missed_tokens") ?? 0,
        /** What the miss cost beyond a cache read. Null: no price. */
        usd: read("missed") === null ? null : write("missed"),
        because: text("cause"),
      },
    }),
  };
}

export type RequestRow = Readonly<ReturnType<typeof describeRow>>;

const MAX_NAMES = 200;

export function reportNames(table: Table, scope: Scope) {
  const { sql, values } = describeScope(scope);
  const columns = STACKS.map(columnOf).join(", ");
  const rows = table.list(
    `SELECT DISTINCT ${columns} FROM names WHERE EXISTS (SELECT 1 FROM lines WHERE who = names.who AND ${sql})`,
    values,
  );
  const namesAt = (index: number) => [...new Set(rows.map((row) => String(row[index] ?? "")))];
  const names = STACKS.map((name, index) => [name, namesAt(index).toSorted().slice(0, MAX_NAMES)] as const);
  return Object.fromEntries(names);
}

/** An upstream can invent a name for each answer. */
const MAX_ANSWERED_BY = 100;

export function listSeenModels(table: Table) {
  const found = table.list(
    `SELECT channel, model, SUM(requests),
       json_group_array(DISTINCT answered) FILTER (WHERE answered IS NOT NULL AND basis <> 'unknown')
     FROM (SELECT who, COUNT(*) AS requests, MIN(line) AS first_line FROM lines GROUP BY who) JOIN names USING (who)
     WHERE model <> '' GROUP BY channel, model ORDER BY MIN(first_line)`,
  );
  return found.map(([channel, model, requests, answered]) => {
    const names = getList(parseJson(String(answered))).map(String);
    return {
      channel: String(channel),
      model: String(model),
      answeredBy: new Set(names.slice(0, MAX_ANSWERED_BY)),
      requests: Number(requests),
    };
  });
}

const MAX_FOUND = 11;

/** A few ids of requests or sessions that begin with `start`, the oldest first.
 *  An exact match is returned alone. `req_` may be missing. */
export function findBeginning(table: Table, column: "id" | "session", start: string): string[] {
  const other = column === "id" ? `req_${start}` : start;
  const all = "(SELECT id, line FROM requests UNION ALL SELECT id, line FROM unreadable)";
  const begins = (value: string): string =>
    `(${column} >= ${value} AND ${column} < ${value} || char(1114111))`;
  const found = table.list(
    `SELECT ${column} FROM ${column === "id" ? all : "requests"} WHERE ${begins("$start")} OR ${begins("$other")}
     GROUP BY ${column} ORDER BY ${column} NOT IN ($start, $other), MIN(line) LIMIT ${MAX_FOUND}`,
    { $start: start, $other: other },
  );
  const names = found.map(([name]) => String(name));
  return [start, other].includes(names[0] ?? "") ? names.slice(0, 1) : names;
}

export function findLast(table: Table, column: "id" | "session", key: string | null = null): string | null {
  const [[name = null] = []] = table.list(
    `SELECT ${column} FROM requests WHERE ${column} IS NOT NULL AND (key = $key OR $key IS NULL) ORDER BY line DESC LIMIT 1`,
    { $key: key },
  );
  return name === null ? null : String(name);
}
