// The fields of a line that sums and reports need. They are read without a schema because
// a report reads a million lines. Only verify checks that a line is right.

import { statSync } from "node:fs";

import { getField, isObject, parseJson } from "../../lib/json/json.ts";
import type { Decimal, Usd } from "../../lib/money.ts";
import { parseDecimal, parseUsd } from "../../lib/money.ts";
import type { ClientIdentity } from "./line.ts";
import { readLines } from "./reader.ts";
import { holdLedgerFiles } from "./rotation.ts";

interface Amounts {
  /** Both are null if not known. */
  readonly official: Decimal | null;
  readonly charge: Usd | null;
}

export interface Row extends Amounts {
  /** Its id as it stands in the line, which may be damaged. */
  readonly id: unknown;
  /** The request's time, also in a correction. */
  readonly time: string;
  readonly key: string;
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  /** The model that the answer names; empty: none. */
  readonly answeredBy: string;
  /** Kind → count. */
  readonly usage: Readonly<Record<string, number>>;
  /** How full the windows of a plan were, in percent; undefined: the line does not say. */
  readonly windows: Readonly<Record<string, number>> | undefined;
  readonly basis: string;
  /** Who sent the request; null: the line does not say. */
  readonly client: ClientIdentity | null;
  /** The amounts that this correction or mark replaces; null in a request's own line. */
  readonly was: Amounts | null;
  /** What limits count instead of the charge; null: the charge. */
  readonly limit: Usd | null;
  /** What limits counted for a request whose cost this line gives; null: it gives no other cost. */
  readonly replaced: { readonly time: string; readonly limit: Usd } | null;
  /** Who pays instead of the charge: `paid_by` of the line; undefined: nobody. */
  readonly paidBy: string | undefined;
  /** Everything that the line says. */
  readonly line: Readonly<Record<string, unknown>>;
}

/** Null if the text is neither a line nor a correction. */
export function readRow(text: string): Row | null {
  return rowOf(parseJson(text));
}

export function rowOf(line: unknown): Row | null {
  if (!isObject(line)) return null;
  if (line["mark"] !== undefined) return readMark(line);
  const isCorrection = line["corrects"] !== undefined;
  const amounts = readAmounts(line);
  const was = isCorrection ? readAmounts(line["was"]) : null;
  if (amounts === null || (isCorrection && was === null)) return null;
  const time = isCorrection ? line["request_time"] : line["time"];
  const limit = readLimit(line);
  const replaced = isCorrection ? readReplaced(line["was"], time) : readReplaced(line["replaces"]);
  return describeRow(line, time, { ...amounts, was, limit, replaced });
}

/** A mark is not a request, and only limits count its amount. */
function readMark(line: Row["line"]): Row | null {
  const nothing = { official: null, charge: null };
  const names = { ...line, channel: "", model: "", usage: {} };
  const [limit, replaced] = [readLimit(line), readReplaced(line["replaces"])];
  return describeRow(names, line["request_time"], { ...nothing, was: nothing, limit, replaced });
}

type Money = Pick<Row, "official" | "charge" | "was" | "limit" | "replaced">;

function describeRow(line: Row["line"], time: unknown, money: Money): Row | null {
  const { id, key, group, channel, model, usage, basis, upstream_model: answeredBy, client } = line;
  if (!isText(time) || !isText(key) || !isText(group)) return null;
  if (!isText(channel) || !isText(model) || !isObject(usage)) return null;
  return {
    ...money,
    id,
    time,
    key,
    group,
    channel,
    model,
    answeredBy: readText(answeredBy) ?? "",
    usage: readUsage(usage),
    windows: isObject(line["windows"]) ? readUsage(line["windows"]) : undefined,
    basis: readText(basis) ?? "",
    client: readClient(client),
    paidBy: readText(line["paid_by"]),
    line,
  };
}

function readUsage(usage: Readonly<Record<string, unknown>>): Row["usage"] {
  const counts: Record<string, number> = {};
  for (const kind in usage) {
    const count = usage[kind];
    if (typeof count === "number") counts[kind] = count;
  }
  return counts;
}

/** Every whole line of a ledger's files that contains the words, the oldest first. Null: a line that cannot be read. */
export function* readRows(path: string, words = ""): Generator<Row | null, void> {
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    for (const { text, whole } of readLines(source)) if (whole && text.includes(words)) yield readRow(text);
  }
}

function readReplaced(value: unknown, time: unknown = getField(value, "time")): Row["replaced"] {
  const limit = readLimit(value);
  return limit === null || !isText(time) ? null : { time, limit };
}

function readLimit(value: unknown): Usd | null {
  const limit = getField(value, "limit_usd");
  return isText(limit) ? (parseAmounts(null, limit)?.charge ?? null) : null;
}

function readClient(value: unknown): ClientIdentity | null {
  if (!isObject(value)) return null;
  const { tool, session, agent, parent, label, inferred } = value;
  return {
    tool: readText(tool),
    session: readText(session),
    agent: readText(agent),
    parent: readText(parent),
    label: readText(label),
    inferred: inferred === true ? true : undefined,
  };
}

function readText(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}

function readAmounts(line: unknown): Amounts | null {
  const official = getField(line, "official_usd");
  const charge = getField(line, "charge_usd");
  return isAmount(official) && isAmount(charge) ? parseAmounts(official, charge) : null;
}

function parseAmounts(official: string | null, charge: string | null): Amounts | null {
  try {
    return {
      official: official === null ? null : parseDecimal(official),
      charge: charge === null ? null : parseUsd(charge),
    };
  } catch {
    return null;
  }
}

function isAmount(value: unknown): value is string | null {
  return value === null || isText(value);
}

/** How much of the ledger's end is read at first. One person makes less in a minute. */
const RECENT_BYTES = 1 << 20;
/** Many requests, or the corrections of a reprice, may need more. */
const MOST_RECENT_BYTES = 1 << 25;

export type Recent = Pick<Row, "time" | "key" | "group" | "model" | "client"> & {
  /** Its output tokens; null: they are not known exactly. */
  readonly output: number | null;
  readonly durationMs: number | null;
};

/** The requests at the end of the ledger, also across a rotation: those since a moment, and at least those of the last bytes. */
export function readRecent(files: readonly string[], since: string): Recent[] {
  for (let most = RECENT_BYTES; ; most *= 4) {
    const ends = findEnds(files, most);
    const recent = ends.flatMap(({ path, from }) => readRequests(path, from));
    const isWhole = ends.length === files.length && ends[0]?.from === 0;
    if (isWhole || most >= MOST_RECENT_BYTES || recent.some(({ time }) => time < since)) return recent;
  }
}

interface FileEnd {
  readonly path: string;
  readonly from: number;
}

/** The files that hold the last bytes, and where these begin in each. */
function findEnds(files: readonly string[], most: number): FileEnd[] {
  const ends: FileEnd[] = [];
  let left = most;
  for (const path of files.toReversed()) {
    if (left <= 0) break;
    const { size } = statSync(path);
    ends.unshift({ path, from: Math.max(0, size - left) });
    left -= size;
  }
  return ends;
}

function readRequests(path: string, from: number): Recent[] {
  const requests: Recent[] = [];
  for (const { text, whole } of readLines(path, from)) {
    const row = whole ? readRow(text) : null;
    if (row === null || row.was !== null) continue;
    const { time, key, group, model, basis, limit, usage, client } = row;
    const isKnown = basis === "exact" && (limit === null || isPaid(row));
    const output = isKnown ? (usage["output"] ?? null) : null;
    const duration = row.line["duration_ms"];
    const durationMs = typeof duration === "number" ? duration : null;
    requests.push({ time, key, group, model, client, output, durationMs });
  }
  return requests;
}

/** Its limit is not an estimate, unless its output was not counted. */
function isPaid({ line }: Row): boolean {
  return line["paid_by"] !== undefined && line["suspect"] === undefined;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
