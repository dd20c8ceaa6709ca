// Requests one by one, the newest first, and the names that they have.

import { formatDecimal } from "../../lib/money.ts";
import { getCount, getField, parseJson } from "../../lib/json/json.ts";
import type { Table, Value } from "../store/open.ts";
import { COLUMN_NAMES } from "../store/schema.ts";
import { CACHE_READ_KINDS, OUTPUT_KINDS, PROMPT_KINDS } from "../usage.ts";
import {
  addAmount,
  columnOf,
  countKinds,
  describeScope,
  readUsage,
  type Scope,
  sumRequests,
} from "./sums.ts";
import type { FilterName } from "./words.ts";

export interface RequestRow {
  readonly id: string;
  /** ISO. */
  readonly time: string;
  readonly key: string;
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  readonly tool: string | null;
  readonly label: string | null;
  /** Empty: none. */
  readonly session: string;
  readonly agent: string;
  readonly status: number | null;
  readonly outcome: string;
  readonly basis: string;
  readonly first_byte_ms: number | null;
  readonly duration_ms: number | null;
  /** All input tokens, and those of them that were read from the cache. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  /** Null: not known. */
  readonly charge_usd: string | null;
  readonly paid_by_plan_usd?: string;
  readonly missed?: { readonly tokens: number; readonly because: string };
}

export interface RequestsReport {
  /** How many fit, and what they cost. */
  readonly total: number;
  readonly charge_usd: string;
  readonly rows: readonly RequestRow[];
}

export function reportRequests(
  table: Table,
  { most, ...scope }: Scope & { readonly most: number },
): RequestsReport {
  const { totals } = sumRequests(table, { ...scope, by: [] }).total;
  const { sql, values } = describeScope(scope);
  const rows = listRequests(table, `${sql} ORDER BY at DESC, line DESC LIMIT $most`, {
    ...values,
    $most: most,
  });
  return { total: totals.requests, charge_usd: totals.charge_usd, rows };
}

/** `where`: a condition, and an order. */
export function listRequests(
  table: Table,
  where: string,
  values: Readonly<Record<string, string | number>>,
): RequestRow[] {
  return table.list(`SELECT * FROM requests WHERE ${where}`, values).map(describeRow);
}

function describeRow(row: readonly Value[]): RequestRow {
  const read = (name: string): Value => row[COLUMN_NAMES.indexOf(name)] ?? null;
  const text = (name: string): string => String(read(name) ?? "");
  const textOrNull = (name: string): string | null => (read(name) === null ? null : text(name));
  const count = (name: string): number | null => (read(name) === null ? null : Number(read(name)));
  const exact = [parseJson(text("exact"))];
  const usage = readUsage(read, [parseJson(text("more"))]);
  const miss = parseJson(text("miss"));
  return {
    id: text("id"),
    time: new Date(Number(read("at"))).toISOString(),
    key: text("key"),
    group: text("group_name"),
    channel: text("channel"),
    model: text("model"),
    tool: textOrNull("tool"),
    label: textOrNull("label"),
    session: text("session"),
    agent: text("agent"),
    status: count("status"),
    outcome: text("outcome"),
    basis: text("basis"),
    first_byte_ms: count("first_byte"),
    duration_ms: count("duration"),
    input: countKinds(usage, PROMPT_KINDS),
    cached: countKinds(usage, CACHE_READ_KINDS),
    output: countKinds(usage, OUTPUT_KINDS),
    charge_usd: read("charge") === null ? null : formatDecimal(addAmount(read("charge"), exact, "charge")),
    ...(read("paid_by") === "plan" && {
      paid_by_plan_usd: formatDecimal(addAmount(read("official"), exact, "official")),
    }),
    ...(miss !== undefined && {
      missed: { tokens: getCount(getField(miss, "missed")) ?? 0, because: String(getField(miss, "because")) },
    }),
  };
}

const CHOICES = ["key", "group", "model", "channel", "tool", "label", "outcome"] as const;
const MAX_NAMES = 200;

/** Of each property: the names that requests of the period have. */
export function reportNames(
  table: Table,
  scope: Scope,
): Readonly<Partial<Record<FilterName, readonly string[]>>> {
  const { sql, values } = describeScope(scope);
  const columns = CHOICES.map(columnOf).join(", ");
  const rows = table.list(`SELECT DISTINCT ${columns} FROM requests WHERE ${sql}`, values);
  const namesAt = (index: number) => [...new Set(rows.map((row) => String(row[index] ?? "")))];
  return Object.fromEntries(
    CHOICES.map((name, index) => [name, namesAt(index).toSorted().slice(0, MAX_NAMES)]),
  );
}
