// The tables next to the ledger, which may be deleted at any time. See
// docs/decisions/0025-index-beside-the-ledger.md.

import type { Database } from "bun:sqlite";
import type { z } from "zod";

import { cacheSchema, clientSchema, type Column, lineSchema } from "../ledger/line.ts";
import { USAGE_KINDS } from "../usage.ts";

export type TableDatabase = Pick<Database, "run" | "query" | "close">;

/** Kinds of usage with a column of their own. `more` has the rare ones. */
export const KIND_COLUMNS = USAGE_KINDS.filter((kind) => !/12h|audio|image|video|tool/.test(kind));

/** SQL: a request's tokens of these kinds, if they have columns. */
export function addColumns(kinds: readonly string[]): string {
  const columns = KIND_COLUMNS.filter((kind) => kinds.includes(kind));
  return columns.map((kind) => `COALESCE(${kind}, 0)`).join(" + ");
}

/** SQL: whether a request was a turn with known tokens. */
export const IS_TURN = `${addColumns(KIND_COLUMNS)} > 0`;

/** In pico-dollars, or 0 with a text in `exact` if too large. `counted`: what limits count.
 *  `named`: the seller's amount. `hour`: how much more writes for an hour would cost. */
export const AMOUNT_COLUMNS = ["official", "charge", "counted", "named", "missed", "hour"] as const;

interface FieldColumn extends Column {
  readonly field: string;
  /** The member of the line with the field. Null: the line itself. */
  readonly of: "client" | "cache" | null;
}

function listFields(shape: Readonly<Record<string, z.ZodType>>, of: FieldColumn["of"]): FieldColumn[] {
  return Object.entries(shape).flatMap(([field, schema]) => {
    const column = schema.meta()?.column;
    return column === undefined || column.as === "usd" ? [] : [{ ...column, field, of }];
  });
}

export const FIELD_COLUMNS: readonly FieldColumn[] = [
  ...listFields(lineSchema.shape, null),
  ...listFields(clientSchema.shape, "client"),
  ...listFields(cacheSchema.shape, "cache"),
];

/** `line`: from 1. `place`: in its file. `more`, `exact`: JSON with further kinds of usage, and
 *  with amounts as text. `corrections`: JSON with each correction's line and place. */
const OWN_COLUMNS = [
  "line INTEGER PRIMARY KEY",
  "place INTEGER",
  "more TEXT",
  "exact TEXT",
  "corrections TEXT",
];
const NUMBERS: readonly Column["as"][] = ["count", "time"];

const COLUMNS = [
  ...OWN_COLUMNS,
  ...[...KIND_COLUMNS, ...AMOUNT_COLUMNS].map((name) => `${name} INTEGER`),
  ...FIELD_COLUMNS.map(({ name, as }) => `${name} ${NUMBERS.includes(as) ? "INTEGER" : "TEXT"}`),
];
export const COLUMN_NAMES = COLUMNS.map((column) => column.replace(/ .*/, ""));

/** SQL: numbers for a row. Their sums show changed rows, but not every changed name. `spent`: what
 *  limits count, which a start compares. `used`: the rest of what reports sum. */
export const CHECKS = {
  spent: `${weigh(["official", "charge", "counted"])} + IFNULL(LENGTH(key) + UNICODE(key), 0)
    + IFNULL(LENGTH(exact), 0)`,
  used: `${weigh([...KIND_COLUMNS, "missed", "missed_tokens"])} + IFNULL(UNICODE(model), 0)`,
};

/** Another number, column, time or line gives another result. */
function weigh(names: readonly string[]): string {
  const sum = names.map((name, index) => `IFNULL(${name}, -1) * ${2 * index + 3}`).join(" + ");
  return `(${sum}) % 1000000007 * (at % 997 + line % 991 + 1)`;
}

/** `marks`: not yet accepted. `state`: one row, with the sums of CHECKS while lines were read. */
const OBJECTS = [
  `CREATE TABLE requests (${COLUMNS.join(", ")}) STRICT`,
  "CREATE TABLE marks (id TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT",
  "CREATE TABLE unreadable (line INTEGER PRIMARY KEY, place INTEGER NOT NULL, id TEXT) STRICT",
  "CREATE TABLE state (position TEXT NOT NULL, spent INTEGER NOT NULL, used INTEGER NOT NULL) STRICT",
  // Only this index has all that sums of a period need.
  `CREATE INDEX by_time ON requests (at, charge, ${KIND_COLUMNS.join(", ")}, more, exact, model, tool, version, key,
    group_name, channel, label, outcome, basis, paid_by, official, missed, missed_tokens, hour)`,
  "CREATE INDEX by_id ON requests (id)",
  // The indexes for sums of sessions and of limits.
  `CREATE INDEX by_session ON requests (session, at, agent, charge, ${KIND_COLUMNS.join(", ")}, more, exact, basis, paid_by,
    official, missed_tokens)`,
  "CREATE INDEX by_key ON requests (key, group_name, channel, at, charge, counted, official, paid_by, exact)",
  "CREATE INDEX by_parent ON requests (parent) WHERE parent IS NOT NULL",
  `CREATE INDEX by_miss ON requests (at, session, tool, label, model, channel, cause, part, detail, from_channel,
    changed_at, missed, missed_tokens, exact) WHERE cause IS NOT NULL`,
  "CREATE INDEX by_name ON requests (at) WHERE named IS NOT NULL",
];

/** Raise this when columns get another meaning. */
const VERSION = 14;

/** False: another version made the tables, or somebody changed them. */
export function hasTables(database: TableDatabase): boolean {
  const [[version] = []] = database.query("PRAGMA user_version").values();
  const found = database.query("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").values();
  return version === VERSION && found.flat().join("\n") === OBJECTS.join("\n");
}

export function makeTables(database: TableDatabase): void {
  const found = database
    .query("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND type <> 'index'")
    .values();
  const byType = found.toSorted(([a], [b]) => Number(a === "table") - Number(b === "table"));
  for (const [type, name] of byType)
    database.run(`DROP ${String(type)} "${String(name).replaceAll('"', '""')}"`);
  for (const sql of OBJECTS) database.run(sql);
  database.run(`PRAGMA user_version = ${VERSION}`);
  database.query("INSERT INTO state VALUES (?, 0, 0)").run(JSON.stringify({ files: [], lines: 0 }));
}
