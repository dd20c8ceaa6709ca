// `gateway report`: a session or a period for other people.
// It shows counts, times, amounts, ids, names of tools and models (shown-names.ts),
// and labels on request.

import { addDecimals, formatDecimal, parseDecimal, ZERO_DECIMAL } from "../../lib/money.ts";
import { getField, isObject, parseJson, textIn } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { VERSION } from "../../lib/version.ts";
import type { Identity } from "../ledger/line.ts";
import { type CellValue, listLines, type Table } from "../store/open.ts";
import { IS_TURN, KIND_COLUMNS } from "../store/schema.ts";
import { countTokens, PROMPT_KINDS, READ_KINDS, WRITE_KINDS } from "../usage.ts";
import { formatAnchor, takeAnchor } from "../verify/verify.ts";
import { type Misses, type MissTotals, sumMisses } from "./cache.ts";
import { SETTINGS, showId, showName } from "./shown-names.ts";
import { ALL, describeScope, type Scope, type Span, type SumRow, sumRequests, toIso } from "./sums.ts";
import { type Cause, describeCause } from "./words.ts";

const INPUT = KIND_COLUMNS.filter((kind) => PROMPT_KINDS.includes(kind));
const SUMS = ["requests", ...INPUT, "official", "charge", "unpriced", "partial"];
/** A file of two pages has room for this. */
const MAX_EVENTS = 12;
const MAX_VERSIONS = 4;
const MAX_ROWS = 8;

export function reportEvidence(table: Table, scope: Scope, hasLabels = false) {
  const misses = sumMisses(table, scope, ["tool", "version"], ["model"], ["cause = 'lifetime_passed'"]);
  const [byVersion = [], byModel = [], byExpiry = []] = misses.also;
  const listExpired = (is: string) =>
    byExpiry.flatMap(({ names, totals }) => (names[0] === is ? totals : []));
  const changes = [...Map.groupBy(misses.causes, describeChanged)].map(([changed, each]) => ({
    changed,
    ...addLost(each),
  }));
  const { rest, unknown, sessions, ends } = countRest(table, scope);
  const turns = sumRequests(table, {
    ...scope,
    by: ["tool", "version"],
    also: [["model"]],
    of: SUMS,
    where: { sql: IS_TURN },
    values: ["MIN(first)", "MIN(first_line)", "MAX(last)"],
  });
  const { requests: count, partial, unpriced } = turns.total.totals;
  const [begin = null, , end = null] = turns.total.values;
  const seen = [begin, end, ...ends].map(toIso).filter((iso) => iso !== "");
  const [first = null, last = first] = [seen.toSorted()[0], seen.toSorted().at(-1)];
  const versions = listLargest(turns.rows, byVersion);
  const models = listLargest(turns.also[0] ?? [], byModel);
  const events = listEvents(table, scope, turns.rows, hasLabels);
  return {
    gateway: VERSION,
    has_labels: hasLabels,
    session: scope.only?.session === undefined ? null : nameSession(scope.only.session),
    first,
    last,
    requests: count + rest,
    sessions,
    known: { exact: count - partial - unpriced, partial, unpriced, unknown, failed: rest - unknown },
    total: describe(turns.total, misses.total),
    /** Tokens paid again within the cache's lifetime. */
    paid_again: addLost(listExpired("0")),
    /** Tokens paid again after the cache's lifetime. */
    expired: addLost(listExpired("1")),
    window_points: sumPoints(table, scope),
    causes: changes.toSorted((a, b) => b.tokens - a.tokens).slice(0, MAX_ROWS),
    turns: listBars(table, scope, count, [begin, end].map(Number)),
    events,
    more_misses: misses.total.misses - events.filter(({ tokens }) => tokens !== null).length,
    more_rows: {
      causes: Math.max(0, changes.length - MAX_ROWS),
      versions: versions.more,
      models: models.more,
    },
    versions: versions.rows
      .map(({ names: [tool, version], ...sum }) => ({ ...showClient({ tool, version }), ...sum }))
      .toSorted((a, b) => (a.since < b.since ? -1 : 1)),
    models: models.rows.map(({ names, ...sum }) => ({ model: showName("model", names[0] ?? ""), ...sum })),
    anchor: formatAnchor(takeAnchor(table)),
    unreadable: table.unreadable,
  };
}

export type Evidence = Readonly<ReturnType<typeof reportEvidence>>;
export type EvidenceSum = Evidence["total"];
export type EvidenceEvent = Evidence["events"][number];

function countRest(table: Table, scope: Scope) {
  const { sql, values } = describeScope(scope);
  const [[sessions, rest, unknown, ...ends] = []] = table.list(
    `SELECT (SELECT COUNT(DISTINCT session) FROM names NOT INDEXED WHERE (${sql.replaceAll(/\bat\b/g, "first_at")})
         OR EXISTS (SELECT * FROM lines WHERE lines.who = names.who AND ${sql})),
       COUNT(*), COUNT(*) FILTER (WHERE basis = 'unknown'), MIN(at), MAX(at)
     FROM lines INDEXED BY by_rest CROSS JOIN names USING (who) WHERE ${IS_TURN} IS NOT TRUE AND ${sql}`,
    values,
  );
  return { sessions: Number(sessions), rest: Number(rest), unknown: Number(unknown), ends };
}

function listBars(table: Table, scope: Scope, count: number, [begin = 0, end = 0]: readonly number[]) {
  const { sql, values } = describeScope({ ...scope, ...ALL });
  const names = Object.keys(scope.only ?? {}).length === 0 ? "" : "CROSS JOIN names USING (who)";
  const turns = `lines INDEXED BY by_turn ${names} WHERE ${IS_TURN} AND ${sql}`;
  const bars = Math.min(BARS, count);
  const placeOf = (bar: number): number => Math.ceil((bar * count) / bars);
  let turn: CellValue[] = [begin, 0];
  const starts = Array.from({ length: bars }, (_, bar) => {
    const [$at = 0, $line = 0] = turn.map(Number);
    const $skip = placeOf(bar) - placeOf(Math.max(0, bar - 1));
    const sql = `SELECT at, line FROM ${turns} AND at <= $end AND (at, line) >= ($at, $line) ORDER BY at, line LIMIT 1 OFFSET $skip`;
    [turn = []] = table.list(sql, { ...values, $at, $line, $skip, $end: end });
    return Number(turn[0]);
  });
  const spans = starts.map((at, bar): Span => [new Date(at).toISOString(), at, starts[bar + 1] ?? end + 1]);
  const found = table.list(
    `SELECT span, COUNT(*), SUM(cache_read), ${WRITTEN}, SUM(input),
       SUM(missed_tokens) FILTER (WHERE cause <> 'lifetime_passed')
     FROM spans CROSS JOIN ${turns} AND at >= since AND at < until GROUP BY since`,
    { ...values, $spans: JSON.stringify(spans) },
  );
  return found.map(([time, ...counts]) => {
    const [turns = 0, read = 0, written = 0, sent = 0, missed = 0] = counts.map(Number);
    return { time: String(time), turns, read, written, sent, missed };
  });
}

function listLargest(turns: readonly SumRow[], lost: readonly Misses[]) {
  const misses = new Map(lost.map((row) => [row.names.join("\n"), row.totals]));
  const rows = turns
    .map((row) => ({ names: row.names, ...describe(row, misses.get(row.names.join("\n"))) }))
    .toSorted((a, b) => b.input - a.input);
  return { rows: rows.slice(0, MAX_ROWS), more: Math.max(0, rows.length - MAX_ROWS) };
}

/** An id that is no UUID may be words of a user, so its hash is shown instead. */
function nameSession(id: string): string {
  return /^(?:run-)?([\da-f]{8})(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.exec(id)?.[1] ?? sha256Hex(id).slice(0, 8);
}

function showClient({ tool, version }: Pick<Identity, "tool" | "version"> = {}) {
  return {
    tool: tool ? showName("tool", tool) : null,
    version: version ? showName("version", version) : null,
  };
}

function describe({ values: [since = null], totals }: SumRow, lost: Partial<MissTotals> = {}) {
  const { requests: turns, usage, official_usd, charge_usd, unpriced } = totals;
  const { missed_tokens = 0, usd: missed_usd = "0", unpriced_tokens = 0 } = lost;
  return {
    since: toIso(since),
    turns,
    input: countTokens(usage, PROMPT_KINDS),
    cached: countTokens(usage, READ_KINDS),
    /** By the provider's prices, also if a plan pays. */
    official_usd,
    charge_usd,
    unpriced,
    missed_tokens,
    missed_usd,
    unpriced_tokens,
  };
}

/** Adds up here, because SQL cannot know
 *  which causes are described in the same words. */
function addLost(rows: readonly MissTotals[]) {
  const add = (read: (row: MissTotals) => number): number => rows.reduce((sum, row) => sum + read(row), 0);
  const usd = rows.reduce((sum, row) => addDecimals(sum, parseDecimal(row.usd)), ZERO_DECIMAL);
  return {
    misses: add(({ misses }) => misses),
    tokens: add((row) => row.missed_tokens),
    usd: formatDecimal(usd),
    unpriced_tokens: add((row) => row.unpriced_tokens),
  };
}

/** Leaves out words of users (a channel's name) and of upstreams. */
function describeChanged({ because, at, part = "", detail }: Cause): string {
  if (!IS_CAUSE.test(because)) return "a reason of the upstream";
  return describeCause({ because, at, detail, ...(SETTINGS.has(part) && { part }) });
}

const IS_CAUSE = /^[a-z_]{1,30}_(?:changed|evicted|expired|lost|passed)$/;
const MISSES = "lines INDEXED BY by_miss CROSS JOIN names USING (who)";
const BARS = 160;
const WRITTEN = WRITE_KINDS.map((kind) =>
  KIND_COLUMNS.some((column) => column === kind)
    ? `TOTAL(${kind})`
    : `TOTAL(more ->> '${kind}') FILTER (WHERE more IS NOT NULL)`,
).join(" + ");

function listEvents(table: Table, scope: Scope, versions: readonly SumRow[], hasLabels: boolean) {
  const asked = describeScope(scope);
  const startOf = ({ values: [at] }: SumRow): number => Number(at);
  const further = [...Map.groupBy(versions, ({ names: [tool] }) => tool).values()].flatMap((own) => {
    const inOrder = own.filter(({ names }) => names[1] !== "").toSorted((a, b) => startOf(a) - startOf(b));
    const words = inOrder.map(({ names: [, version = ""] }) =>
      showName("version", version).replace("version-", ""),
    );
    return inOrder.slice(1).map((row, index) => ({
      line: Number(row.values[1]),
      at: startOf(row),
      words: `version ${words[index]} → ${words[index + 1]}`,
      age: inOrder.length - index,
    }));
  });
  const newest = further.toSorted((a, b) => a.age - b.age || b.at - a.at).slice(0, MAX_VERSIONS);
  const changes = new Map(newest.map(({ line, words }) => [line, words]));
  const where = `line IN (SELECT value FROM json_each($lines) UNION SELECT * FROM (SELECT line FROM ${MISSES}
    WHERE cause IS NOT NULL AND ${asked.sql}
    ORDER BY missed DESC, missed_tokens DESC, at, line LIMIT ${MAX_EVENTS - changes.size}))`;
  const values = { ...asked.values, $lines: JSON.stringify([...changes.keys()]) };
  const found = listLines(table, { where, values, more: ["line"] });
  const events = Array.from(found, ({ text, values: [line] }) =>
    describeEvent(parseJson(text), changes.get(Number(line)), hasLabels),
  );
  return events.toSorted((a, b) => (a.time < b.time ? -1 : 1));
}

/** `version` says how the tool's version changed at this request. */
function describeEvent(line: unknown, version: string | undefined, hasLabels: boolean) {
  const [client, cache] = [getField(line, "client"), getField(line, "cache")];
  const cause = {
    because: textIn(cache, "because"),
    part: textIn(cache, "part"),
    at: Number(getField(cache, "at")) || undefined,
    detail: textIn(cache, "detail") || undefined,
  };
  const changed = [version, isObject(cache) ? describeChanged(cause) : undefined];
  return {
    time: textIn(line, "time"),
    id: textIn(line, "id"),
    upstream_request_id: showId(textIn(line, "upstream_request_id")),
    ...showClient({ tool: textIn(client, "tool"), version: textIn(client, "version") }),
    model: showName("model", textIn(line, "model")),
    ...(hasLabels && { label: textIn(client, "label") || null }),
    changed: changed.filter((words) => words !== undefined).join("; "),
    tokens: isObject(cache) ? Number(cache["missed"]) : null,
    usd: textIn(cache, "usd") || null,
  };
}

/** How much of each plan's window was used by requests that missed the cache, in percent. */
function sumPoints(table: Table, scope: Scope): Readonly<Record<string, number>> {
  const { sql, values } = describeScope(scope);
  const found = table.list(
    `SELECT used.key, SUM(MAX(0, used.value - before.value)) * 100 AS points FROM (
       SELECT windows, (SELECT windows FROM requests AS earlier WHERE windows IS NOT NULL AND channel = names.channel
         AND (at, line) < (lines.at, lines.line) ORDER BY at DESC, line DESC LIMIT 1) AS earlier
       FROM ${MISSES} WHERE windows IS NOT NULL AND cause <> 'lifetime_passed' AND cause IS NOT NULL AND ${sql}),
       json_each(windows) AS used, json_each(earlier) AS before
     WHERE used.key = before.key GROUP BY used.key HAVING points > 0`,
    values,
  );
  return Object.fromEntries(found.map(([name, points]) => [String(name), Math.round(Number(points)) / 100]));
}
