// The fields of a line that sums and reports need. They are read by hand because
// a report reads a million lines. Only verify checks that a line is right.

import { statSync } from "node:fs";

import { getField, isObject, parseJson } from "../../../lib/json/json.ts";
import type { Decimal, Usd } from "../../../lib/money.ts";
import { decimalOfPico, parseDecimal, parseUsd, usdOfPico } from "../../../lib/money.ts";
import { type CacheMiss, cacheSchema, type ClientIdentity } from "../line.ts";
import type { Bytes } from "./bytes.ts";
import { eachLine, readFile } from "../reader.ts";
import { holdLedgerFiles } from "../rotation.ts";
import { clientOf, keyOf, LineScanner, type ScannedLine, timeOf } from "./scan.ts";

interface Amounts {
  /** Both are null if not known. */
  readonly official: Decimal | null;
  readonly charge: Usd | null;
}

export interface Row extends Amounts {
  /** The request's time, also in a correction. */
  readonly time: string;
  readonly key: string;
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  /** The model that the answer names; empty: none. */
  readonly answeredBy: string;
  /** The kinds of its usage. */
  readonly kinds: readonly string[];
  /** In the order of `kinds`; later elements mean nothing. Valid until the next line is scanned. */
  readonly counts: ArrayLike<number>;
  readonly basis: string;
  /** Who sent the request; null: the line does not say. To be called before the next line is scanned. */
  readonly client: () => ClientIdentity | null;
  /** What its prompt missed in the upstream's cache; null: nothing. */
  readonly cache: CacheMiss | null;
  /** The amounts that this correction replaces; null in the request's own line. */
  readonly was: Amounts | null;
  /** What limits count instead of the charge; null: the charge. */
  readonly limit: Usd | null;
  /** What limits counted for a request whose cost this line gives; null: it gives no other cost. */
  readonly replaced: { readonly time: string; readonly limit: Usd } | null;
}

/** Reads the line from `from` to its newline at `to`; null if it is neither a line nor a correction. */
export function readRow(bytes: Bytes, from: number, to: number, scanner: LineScanner): Row | null {
  const scanned = scanner.scan(bytes, from, to);
  return scanned === null ? readJsonRow(bytes.buffer.toString("utf8", from, to)) : readScanned(scanned);
}

/** Reads every whole line of a ledger's files, the oldest first. Null: a line that cannot be read. `readText` gives the
 *  whole line, until the next one is read. */
export function eachRow(path: string, see: (row: Row | null, readText: () => string) => void): void {
  const scanner = new LineScanner();
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    for (const { bytes, whole } of readFile(source)) {
      if (!whole) continue;
      eachLine(bytes, (from, to) =>
        see(readRow(bytes, from, to, scanner), () => bytes.buffer.toString("utf8", from, to)),
      );
    }
  }
}

function readJsonRow(text: string): Row | null {
  const line = parseJson(text);
  const names = readNames(line);
  const amounts = readAmounts(line);
  if (names === null || amounts === null) return null;
  const limit = readLimit(line);
  if (getField(line, "corrects") === undefined) {
    const replaces = getField(line, "replaces");
    return {
      ...names,
      ...amounts,
      was: null,
      limit,
      replaced: readReplaced(replaces, getField(replaces, "time")),
    };
  }
  const was = readAmounts(getField(line, "was"));
  const replaced = readReplaced(getField(line, "was"), names.time);
  return was === null ? null : { ...names, ...amounts, was, limit: null, replaced };
}

function readReplaced(value: unknown, time: unknown): Row["replaced"] {
  const limit = readLimit(value);
  return limit === null || !isText(time) ? null : { time, limit };
}

function readLimit(value: unknown): Usd | null {
  const limit = getField(value, "limit_usd");
  return isText(limit) ? (parseAmounts(null, limit)?.charge ?? null) : null;
}

function readScanned(line: ScannedLine): Row {
  const { form, counts, official, charge } = line;
  return {
    time: timeOf(line),
    key: keyOf(line),
    group: form.group,
    channel: form.channel,
    model: form.model,
    answeredBy: form.answeredBy,
    kinds: form.kinds,
    counts,
    basis: form.basis,
    client: readOnce(() => readClient(parseJson(clientOf(line) ?? ""))),
    // Lines with a miss have no form either.
    cache: null,
    official: official === null ? null : decimalOfPico(official),
    charge: charge === null ? null : usdOfPico(charge),
    was: null,
    // Lines with estimates have no form: they are parsed as JSON.
    limit: null,
    replaced: null,
  };
}

function readNames(line: unknown): Omit<Row, keyof Amounts | "was" | "limit" | "replaced"> | null {
  if (!isObject(line)) return null;
  const { key, group, channel, model, usage, basis } = line;
  const isCorrection = line["corrects"] !== undefined;
  const time = isCorrection ? line["request_time"] : line["time"];
  if (!isText(time) || !isText(key) || !isText(group)) return null;
  if (!isText(channel) || !isText(model) || !isObject(usage)) return null;
  const counted = Object.entries(usage).flatMap(([kind, count]) =>
    typeof count === "number" ? [{ kind, count }] : [],
  );
  const kinds = counted.map(({ kind }) => kind);
  const counts = counted.map(({ count }) => count);
  const client = readOnce(() => readClient(line["client"]));
  const cache = cacheSchema.safeParse(line["cache"]).data ?? null;
  return {
    time,
    key,
    group,
    channel,
    model,
    answeredBy: readText(line["upstream_model"]) ?? "",
    kinds,
    counts,
    basis: isText(basis) ? basis : "",
    client,
    cache,
  };
}

/** Reports look at several parts of it. */
function readOnce<T>(read: () => T): () => T {
  let known: { readonly value: T } | null = null;
  return () => (known ??= { value: read() }).value;
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
  return value === null || typeof value === "string";
}

/** How much of the ledger's end is read at first. One person makes less in a minute. */
const RECENT_BYTES = 1 << 20;
/** Many requests, or the corrections of a reprice, may need more. */
const MOST_RECENT_BYTES = 1 << 25;

export type Recent = Pick<Row, "time" | "key" | "group" | "model"> & {
  readonly client: ClientIdentity | null;
  /** Its output tokens; null: they are not known exactly. */
  readonly output: number | null;
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
  const scanner = new LineScanner();
  for (const { bytes, whole } of readFile(path, from)) {
    if (!whole) continue;
    eachLine(bytes, (start, end) => {
      const row = readRow(bytes, start, end, scanner);
      if (row === null || row.was !== null) return;
      const { time, key, group, model, basis, limit, kinds, counts } = row;
      const output = basis === "exact" && limit === null ? (counts[kinds.indexOf("output")] ?? null) : null;
      requests.push({ time, key, group, model, client: row.client(), output });
    });
  }
  return requests;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
