// The sums of what logs have, and of the ledger next to them. Requests of both become rows of one table in memory, which has
// the columns of the ledger's table: sums are made as everywhere. Amounts are what the usage costs with a key by the price
// book, for a log does not say who paid.

import { Database } from "bun:sqlite";
import { basename } from "node:path";
import { lookUp, parseJson } from "../../lib/json/json.ts";
import { compareDecimals, type Decimal, formatDecimal, parseDecimal, ZERO_DECIMAL } from "../../lib/money.ts";
import { SPANS, type Zone } from "../../lib/text/zone.ts";
import { computeCharge } from "../charge.ts";
import { readLine } from "../ledger/check.ts";
import { ANY_SELLER, type Overrides, type PriceBook, type Seller } from "../prices.ts";
import { MAKERS_OF } from "../prices/sellers.ts";
import { describeScope, type Scope, type SumRow, sumRequests, type Totals } from "../reports/sums.ts";
import { compareNames, describeNames, isSpan, listSpans, type Names } from "../reports/usage.ts";
import { splitAmounts, splitUsage } from "../store/insert.ts";
import { listLines } from "../store/lines.ts";
import type { Questions, Table } from "../store/open.ts";
import { makeTables } from "../store/schema.ts";
import { countTokens, type Part, PROMPT_KINDS, type Usage } from "../usage.ts";
import { type LogEntry, LOGGING_TOOLS, type LoggingTool } from "./entry.ts";
import { joinHistory, type OurLine } from "./join.ts";

export const DIMENSIONS = [...SPANS, "project", "label", "tool", "model", "session", "agent"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export interface BookPrices {
  readonly book: PriceBook;
  readonly overrides: Overrides;
}

/** Older versions of Gemini CLI do not name it. */
const NO_PROJECT = "(not logged)";
/** A request at an edge of the period may be in it by one clock only. */
const EDGE_MS = 3_600_000;

/** `found_in`: where a request was found. `because`: why it has no amount. Without a `line`, a row is the rest of a session. */
const COPY = `CREATE TEMP TABLE requests AS SELECT *, COALESCE(label, '${NO_PROJECT}') AS project, 'only_ledger' AS found_in,
  CASE basis WHEN 'unpriced' THEN 'no price for ' || model END AS because FROM main.requests`;

/** A table of the requests of logs alone. */
export function tabulateLogs(entries: Iterable<LogEntry>, prices: BookPrices): Questions {
  const database = new Database(":memory:");
  makeTables(database);
  const table: Questions = {
    list: (sql, values = {}) => database.query(sql).safeIntegers(true).values(values),
  };
  table.list(COPY);
  for (const entry of entries) insert(table, entry, prices);
  table.list(EXACT_PARTS);
  return table;
}

/** The same, with the requests of a ledger: each once. */
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
  table.list(COPY);
  table.list("CREATE INDEX temp.by_line ON requests (line)");
  // The ledger knows better what a request has cost; the log, where it was sent from.
  for (const { entry, lines } of pairs)
    for (const { row } of lines)
      table.list(
        `UPDATE requests SET found_in = 'both', label = COALESCE(label, $label),
           project = COALESCE($project, project) WHERE line = $row`,
        { $project: entry.project || null, $label: basename(entry.project), $row: row },
      );
  for (const entry of onlyEntries) insert(table, entry, prices);
  table.list(EXACT_PARTS);
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

function insert(table: Questions, entry: LogEntry, prices: BookPrices): void {
  const { tool, session, agent, project, model, time, usage, basis, isRest } = entry;
  const { official, unpricedBecause: because } = priceEntry(entry, prices);
  const amounts = splitAmounts({ official: official === null ? null : parseDecimal(official) });
  const values: Record<string, string | number | null> = {
    // The rest of a session is not a request.
    line: isRest === true ? null : 0,
    at: time,
    tool,
    session: session || null,
    agent: agent ?? null,
    model,
    label: basename(project),
    project: project || NO_PROJECT,
    found_in: "only_logs",
    basis: because === null ? basis : "unpriced",
    because,
    ...splitUsage(usage),
    ...amounts.columns,
    exact: amounts.exact,
  };
  const names = Object.keys(values);
  table.list(
    `INSERT INTO requests (${names.join(", ")}) VALUES (${names.map((name) => `$${name}`).join(", ")})`,
    Object.fromEntries(names.map((name) => [`$${name}`, values[name] ?? null])),
  );
}

/** A tool's own provider. opencode has many, and names them. */
const MAKERS: Readonly<Record<LoggingTool, readonly string[]>> = {
  "claude-code": MAKERS_OF.messages,
  codex: MAKERS_OF.responses,
  "gemini-cli": MAKERS_OF.content,
  opencode: ANY_SELLER.makers,
};

/** opencode's names of providers that the book calls otherwise. */
const PROVIDERS: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws",
  "fireworks-ai": "fireworks",
  togetherai: "together",
};

/** A provider of the book has its own prices. The names that users give to others say nothing. */
function findSeller({ tool, provider = "" }: LogEntry, book: PriceBook): Seller {
  const name = lookUp(PROVIDERS, provider) ?? provider;
  return { ...ANY_SELLER, provider: book.providers.includes(name) ? name : null, makers: MAKERS[tool] };
}

function priceEntry(entry: LogEntry, { book, overrides }: BookPrices) {
  const { model, usage, parts, tariff, time, isRest, basis } = entry;
  if (basis === "unknown") return { official: null, unpricedBecause: null };
  const whole: Part = { model: null, pass: "message", usage };
  return computeCharge({
    parts: parts ?? [isRest === true ? { ...whole, calls: divide(usage) } : whole],
    tariff,
    model: model === "" ? null : model,
    requested: null,
    book,
    overrides,
    seller: findSeller(entry, book),
    at: new Date(time),
    multiplier: "1",
  });
}

/** No prompt of these pays a price for long prompts: how long they were, the total does not say. */
const ORDINARY_TOKENS = 100_000;

function divide(usage: Usage): Usage[] {
  const count = Math.ceil(countTokens(usage, PROMPT_KINDS) / ORDINARY_TOKENS) + 1;
  return Array.from({ length: count }, (_, index) => {
    const share = (tokens: number): number => Math.floor(tokens / count) + (index === 0 ? tokens % count : 0);
    return Object.fromEntries(Object.entries(usage).map(([kind, tokens]) => [kind, share(tokens)]));
  });
}

export interface HistoryQuery extends Scope {
  /** One or two. */
  readonly by: readonly Dimension[];
  readonly zone: Zone;
  readonly now: Date;
  /** Also what only the logs and only the ledger have. */
  readonly both: boolean;
}

export interface HistoryTotals extends Pick<
  Totals,
  "requests" | "usage" | "cache_hit_rate" | "unpriced" | "unknown" | "partial"
> {
  /** Null: nothing of it has a price, which is not the same as costing nothing. */
  readonly official_usd: string | null;
  /** What sessions used beyond the responses that their logs list. */
  readonly unlisted_usd: string;
  readonly only_logs_usd?: string;
  readonly only_ledger_usd?: string;
  readonly both_usd?: string;
}

export interface HistoryReport {
  /** By time, or the largest amount first. */
  readonly rows: readonly (HistoryTotals & Names<Dimension>)[];
  readonly total: HistoryTotals;
  readonly unpriced: readonly { readonly because: string; readonly requests: number }[];
  readonly tools: readonly LoggingTool[];
}

/** The parts of an amount, and the rows that each has. */
const PARTS = {
  unlisted: "requests.line IS NULL",
  only_logs: "found_in = 'only_logs'",
  only_ledger: "found_in = 'only_ledger'",
  both: "found_in = 'both'",
} as const;

/** An amount that no column can have is in its parts, too. */
const EXACT_PARTS = `UPDATE requests SET exact = json_set(exact, '$.' || found_in, exact ->> 'official',
  '$.' || IIF(line IS NULL, 'unlisted', 'listed'), exact ->> 'official') WHERE exact ->> 'official' IS NOT NULL`;

export function reportHistory(table: Questions, query: HistoryQuery): HistoryReport {
  const { by, since, until, only = {} } = query;
  const span = by.find(isSpan);
  const wanted = Object.entries(PARTS).filter(([name]) => name === "unlisted" || query.both);
  const { rows, total } = sumRequests(table, {
    since,
    until,
    only,
    by: by.map((name) => (isSpan(name) ? "span" : `COALESCE(${name}, '')`)),
    sums: {
      known: "COUNT(official)",
      ...Object.fromEntries(wanted.map(([name, sql]) => [name, `SUM(official) FILTER (WHERE ${sql})`])),
    },
    ...(span !== undefined && { spans: listSpans(table, query, span), hasEmpty: by.length === 1 }),
  });
  const describe = (row: SumRow): HistoryTotals => {
    const { requests, usage, official_usd: official, ...others } = row.totals;
    const { cache_hit_rate, unpriced, unknown, partial } = others;
    const isKnown = requests === 0 || (row.sums["known"]?.units ?? 0n) > 0n;
    const official_usd = isKnown ? official : null;
    const parts = wanted.map(([name]) => [`${name}_usd`, formatDecimal(row.sums[name] ?? ZERO_DECIMAL)]);
    const amounts = { official_usd, unlisted_usd: "0", ...Object.fromEntries(parts) };
    return { requests, usage, ...amounts, cache_hit_rate, unpriced, unknown, partial };
  };
  const order = compareNames(by);
  const official = ({ totals }: SumRow): Decimal => parseDecimal(totals.official_usd);
  const sorted = rows.toSorted((a, b) => {
    const byAmount = span === undefined ? compareDecimals(official(b), official(a)) : 0;
    return byAmount || order(a.names, b.names);
  });
  const isEmpty = total.totals.requests === 0 && total.totals.official_usd === "0";
  return {
    rows: isEmpty ? [] : sorted.map((row) => ({ ...describeNames(by, row.names), ...describe(row) })),
    total: describe(total),
    ...listGaps(table, query),
  };
}

function listGaps(table: Questions, scope: Scope): Pick<HistoryReport, "unpriced" | "tools"> {
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

/** The ids of sessions, the last one first. */
export function listLoggedSessions(table: Questions): string[] {
  const sql = "SELECT session FROM requests WHERE session IS NOT NULL GROUP BY session ORDER BY MAX(at) DESC";
  return table.list(sql).map(([session]) => String(session));
}
