// Agents' logs and ledger lines, as rows of one table in memory.
// Logs do not say whether a plan or a key paid,
// so their amounts are official amounts.

import { Database } from "bun:sqlite";
import { basename } from "node:path";
import { lookUp, parseJson } from "../../lib/json/json.ts";
import { formatDecimal, parseDecimal } from "../../lib/money.ts";
import { SPANS, type Zone } from "../../lib/text/zone.ts";
import { computeCharge } from "../charge.ts";
import { readLine } from "../ledger/check.ts";
import { ANY_SELLER, type Overrides, type PriceBook } from "../prices.ts";
import { PLATFORM_FACTS } from "../../config/schema.ts";
import { addSum, describeScope, orderUsd, type Scope, sumRequests, type SumRow } from "../reports/sums.ts";
import { describeNames, isSpan, listSpans, orderRows } from "../reports/usage.ts";
import { splitAmounts, splitUsage } from "../store/insert.ts";
import { askDatabase, listLines, type Questions, type Table } from "../store/open.ts";
import { makeTables, NAMES } from "../store/schema.ts";
import { type LogEntry, LOGGING_TOOLS, type LoggingTool } from "./entry.ts";
import { joinHistory, type OurLine } from "./join.ts";

export const DIMENSIONS = [...SPANS, "project", "label", "tool", "model", "session", "agent"] as const;
export type HistoryDimension = (typeof DIMENSIONS)[number];

export interface BookPrices {
  readonly book: PriceBook;
  readonly overrides: Overrides;
}

/** Older versions of Gemini CLI do not name the project. */
const NO_PROJECT = "(not logged)";
/** Times in logs and ledger may differ by this much. */
const EDGE_MS = 3_600_000;

const COPY = [
  `CREATE TEMP TABLE names AS SELECT line AS who, at AS first_at, at AS last_at, ${NAMES.join(", ")},
     COALESCE(label, '${NO_PROJECT}') AS project, 'only_ledger' AS found_in,
     CASE basis WHEN 'unpriced' THEN 'no price for ' || model END AS because FROM main.requests`,
  "CREATE TEMP TABLE lines AS SELECT * FROM main.lines",
  "UPDATE lines SET who = line",
  "CREATE INDEX temp.own_names ON names (who)",
  "CREATE INDEX temp.own_lines ON lines (who)",
  "CREATE TEMP VIEW requests AS SELECT * FROM lines JOIN names USING (who)",
];

export function tabulateLogs(entries: Iterable<LogEntry>, prices: BookPrices): Questions {
  const database = new Database(":memory:");
  makeTables(database);
  const table: Questions = { list: (sql, values = {}) => askDatabase(database, sql, values) };
  for (const sql of COPY) table.list(sql);
  for (const [index, entry] of [...entries].entries()) insert(table, entry, -index, prices);
  return table;
}

export function tabulateBoth(
  table: Table,
  entries: readonly LogEntry[],
  prices: BookPrices,
  period: Scope,
): Questions {
  const { since, until } = period;
  const scope = {
    since: since && new Date(Date.parse(since) - EDGE_MS).toISOString(),
    until: until && new Date(Date.parse(until) + EDGE_MS).toISOString(),
  };
  const { pairs, onlyEntries } = joinHistory(entries, [...listOurLines(table, scope)]);
  for (const sql of COPY) table.list(sql);
  // The ledger knows the cost better; the log knows the project.
  for (const [entry, { row }] of pairs)
    table.list(
      `UPDATE names SET found_in = 'both', label = COALESCE(label, $label),
         project = COALESCE($project, project) WHERE who = $row`,
      { $project: entry.project || null, $label: basename(entry.project) || null, $row: row },
    );
  for (const [index, entry] of onlyEntries.entries()) insert(table, entry, -index, prices);
  table.list(EXACT_SIDES);
  return table;
}

export function* listOurLines(table: Table, scope: Scope): Generator<OurLine, void> {
  const { sql: where, values } = describeScope(scope);
  for (const { text, values: found } of listLines(table, { more: ["line"], where, values })) {
    const line = readLine(parseJson(text));
    if (line === null || !("status" in line)) continue;
    const time = Date.parse(line.time);
    yield { ...line, row: Number(found[0]), time, ended: time + (line.duration_ms ?? 0) };
  }
}

function insert(table: Questions, entry: LogEntry, who: number, prices: BookPrices): void {
  const { tool, session, agent, project, model, time, usage, basis } = entry;
  const { official, unpricedBecause: because } = priceEntry(entry, prices);
  const amounts = splitAmounts({ official: official === null ? null : parseDecimal(official) });
  const add = (name: string, values: Readonly<Record<string, string | number | null>>): void => {
    const columns = Object.keys(values);
    table.list(
      `INSERT INTO ${name} (${columns.join(", ")}) VALUES (${columns.map((column) => `$${column}`).join(", ")})`,
      Object.fromEntries(columns.map((column) => [`$${column}`, values[column] ?? null])),
    );
  };
  add("lines", {
    line: who,
    who,
    at: time,
    ...splitUsage(usage),
    ...amounts.columns,
    exact: amounts.exact,
  });
  add("names", {
    who,
    first_at: time,
    last_at: time,
    tool,
    session: session || null,
    agent: agent ?? null,
    model,
    label: basename(project) || null,
    project: project || NO_PROJECT,
    found_in: "only_logs",
    basis: because === null ? basis : "unpriced",
    because,
  });
}

const MAKERS: Readonly<Record<LoggingTool, readonly string[]>> = {
  "claude-code": PLATFORM_FACTS.messages.makers,
  codex: PLATFORM_FACTS.responses.makers,
  "gemini-cli": PLATFORM_FACTS.content.makers,
  opencode: ANY_SELLER.makers,
};

const PROVIDERS: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws",
  "fireworks-ai": "fireworks",
  togetherai: "together",
};

function priceEntry(entry: LogEntry, { book, overrides }: BookPrices) {
  const { tool, provider = "" } = entry;
  // Users may invent providers. Only a provider in the book says whose prices count.
  const named = lookUp(PROVIDERS, provider) ?? provider;
  const known = book.providers.includes(named) ? named : null;
  const { model, usage, parts = [{ model: null, pass: "message", usage }], tariff, time, basis } = entry;
  if (basis === "unknown") return { official: null, unpricedBecause: null };
  return computeCharge({
    parts,
    tariff,
    model: model === "" ? null : model,
    requested: null,
    book,
    overrides,
    seller: { ...ANY_SELLER, provider: known, makers: MAKERS[tool] },
    at: new Date(time),
    multiplier: "1",
  });
}

export interface HistoryFilter extends Scope {
  readonly by: readonly HistoryDimension[];
  readonly zone: Zone;
  readonly now: Date;
  readonly both: boolean;
}

const SIDES = ["only_logs", "only_ledger", "both"] as const;

const EXACT_SIDES = `UPDATE lines SET exact = json_set(exact, '$.' || found_in, exact ->> 'official')
  FROM names WHERE names.who = lines.who AND exact ->> 'official' IS NOT NULL`;

export function reportHistory(table: Questions, query: HistoryFilter) {
  const { by, since, until, only = {} } = query;
  const span = by.find(isSpan);
  const sides = query.both ? SIDES : [];
  const sumSide = (side: string): string => `SUM(official) FILTER (WHERE found_in = '${side}')`;
  const { rows, total } = sumRequests(table, {
    since,
    until,
    only,
    by: by.map((name) => (isSpan(name) ? "span" : name)),
    sums: { ...Object.fromEntries(sides.map((side) => [side, sumSide(side)])), summed: "SUM(official)" },
    order: orderRows(by, orderUsd("summed", "official")),
    ...(span !== undefined && { spans: listSpans(table, query, span), hasEmpty: by.length === 1 }),
  });
  const describe = (row: SumRow) => {
    const { totals } = row;
    const { requests, usage, official_usd: official, cache_hit_rate, unpriced, unknown, partial } = totals;
    const amounts: Partial<Record<`${(typeof SIDES)[number]}_usd`, string>> = Object.fromEntries(
      sides.map((side) => [`${side}_usd`, formatDecimal(addSum(row, side))]),
    );
    return {
      requests,
      usage,
      /** Null if no request has a known cost. 0 would say that they were free. */
      official_usd: requests > 0 && unpriced + unknown === requests ? null : official,
      ...amounts,
      cache_hit_rate,
      unpriced,
      unknown,
      partial,
    };
  };
  return {
    rows:
      total.totals.requests === 0
        ? []
        : rows.map((row) => ({ ...describeNames(by, row.names), ...describe(row) })),
    total: describe(total),
    ...listGaps(table, query),
  };
}

export type HistoryReport = ReturnType<typeof reportHistory>;
export type HistoryTotals = HistoryReport["total"];

function listGaps(table: Questions, scope: Scope) {
  const { sql, values } = describeScope(scope);
  const found = table.list(
    `SELECT because, COUNT(line) FROM requests WHERE because IS NOT NULL AND ${sql} GROUP BY because`,
    values,
  );
  const tools = table.list(`SELECT DISTINCT tool FROM requests WHERE ${sql}`, values).flat();
  return {
    unpriced: found.map(([because, count]) => ({ because: String(because), requests: Number(count) })),
    tools: LOGGING_TOOLS.filter((tool) => tools.includes(tool)),
  };
}

export function listLoggedSessions(table: Questions): string[] {
  const sql = "SELECT session FROM requests WHERE session IS NOT NULL GROUP BY session ORDER BY MAX(at) DESC";
  return table.list(sql).map(([session]) => String(session));
}
