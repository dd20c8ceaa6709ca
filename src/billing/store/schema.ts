// The tables next to the ledger. They may be deleted at any time. Decision 0025.

import type { Database } from "bun:sqlite";
import type { z } from "zod";

import { cacheSchema, clientSchema, type Column, lineSchema } from "../ledger/line.ts";
import { USAGE_KINDS } from "../usage.ts";

export type TableDatabase = Pick<Database, "run" | "query" | "close" | "inTransaction">;

/** Kinds of usage with their own columns. `more` has the rare ones. */
export const KIND_COLUMNS = USAGE_KINDS.filter((kind) => !/12h|audio|image|video|tool/.test(kind));

export function addColumns(kinds: readonly string[], read = (kind: string): string => kind): string {
  const columns = KIND_COLUMNS.filter((kind) => kinds.includes(kind));
  return columns.map((kind) => `COALESCE(${read(kind)}, 0)`).join(" + ");
}

/** SQL: whether a request was a turn with known tokens. */
export const IS_TURN = `(${KIND_COLUMNS.map((kind) => `${kind} > 0`).join(" OR ")})`;

/** Whole pico-dollars. An amount above $1,000 or with a fraction is 0 here, and text in `exact`.
 *  `counted` is what limits count. `named` is the seller's amount.
 *  `hour` is how much more the cache writes would cost if they lasted an hour. */
export const AMOUNT_COLUMNS = ["official", "charge", "counted", "named", "missed", "hour"] as const;

export interface FieldColumn extends Column {
  readonly field: string;
  /** The member of the line in which the field is. Null: the line itself. */
  readonly of: "client" | "cache" | null;
}

function listFields(shape: Readonly<Record<string, z.ZodType>>, of: FieldColumn["of"]): FieldColumn[] {
  return Object.entries(shape).flatMap(([field, schema]) => {
    const column = schema.meta()?.column;
    return column === undefined || column.as === "usd" ? [] : [{ ...column, field, of }];
  });
}

const FIELDS: readonly FieldColumn[] = [
  ...listFields(lineSchema.shape, null),
  ...listFields(clientSchema.shape, "client"),
  ...listFields(cacheSchema.shape, "cache"),
];

const WORDS = ["key", "group_name", "channel", "model", "answered", "outcome", "basis", "paid_by"];
/** What many requests share: who sent them, where to, their outcome. */
export const NAME_COLUMNS = FIELDS.filter(({ name, of }) => of === "client" || WORDS.includes(name));
export const NAMES = NAME_COLUMNS.map(({ name }) => name);
export const FIELD_COLUMNS = FIELDS.filter((field) => !NAME_COLUMNS.includes(field));

/** `line` counts from 1; `place` is the line's offset.
 *  `more` is JSON with further kinds of usage, `exact` with amounts as text,
 *  `corrections` with the lines and places of corrections. */
const OWN_COLUMNS = [
  "line INTEGER PRIMARY KEY",
  "who INTEGER NOT NULL",
  "place INTEGER",
  "more TEXT",
  "exact TEXT",
  "corrections TEXT",
];
const NUMBERS: readonly Column["as"][] = ["count", "time"];

function declare(fields: readonly FieldColumn[]): string[] {
  return fields.map(({ name, as }) => `${name} ${NUMBERS.includes(as) ? "INTEGER" : "TEXT"}`);
}

export const LINE_COLUMNS = [
  ...OWN_COLUMNS,
  ...[...KIND_COLUMNS, ...AMOUNT_COLUMNS].map((name) => `${name} INTEGER`),
  ...declare(FIELD_COLUMNS),
];
export const COLUMN_NAMES = [...LINE_COLUMNS, ...declare(NAME_COLUMNS)].map((column) =>
  column.replace(/ .*/, ""),
);

/** Triggers note edits. While `follow` writes, `edited` is 1 and switches them off.
 *  A trigger for added lines would make reading a third slower. */
const EDITS = [
  ...["lines", "names", "marks", "unreadable"].flatMap((table) => [
    `DELETE ON ${table}`,
    `UPDATE ON ${table}`,
  ]),
  "UPDATE OF position ON state",
];

/** Many requests share a row of `names`, whose key is `who`. Reports first sum the lines of each `who` in
 *  an index's order, and then group these few sums. `marks` has the marks that are not yet accepted.
 *  `state` has one row: how far the ledger is read, the checksums of what was read (`weighRows`),
 *  and whether somebody else changed a row. */
const OBJECTS = [
  `CREATE TABLE lines (${LINE_COLUMNS.join(", ")}) STRICT`,
  `CREATE TABLE names (who INTEGER PRIMARY KEY, first_at INTEGER, last_at INTEGER, ${declare(NAME_COLUMNS).join(", ")}) STRICT`,
  `CREATE VIEW requests AS SELECT ${COLUMN_NAMES.join(", ")} FROM lines JOIN names USING (who)`,
  "CREATE TABLE marks (id TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT",
  "CREATE TABLE unreadable (line INTEGER PRIMARY KEY, place INTEGER NOT NULL, id TEXT) STRICT",
  `CREATE TABLE state (position TEXT NOT NULL, weight INTEGER NOT NULL, paid INTEGER NOT NULL,
    edited INTEGER NOT NULL) STRICT`,
  `CREATE INDEX by_names ON names (session, ${NAMES.filter((name) => name !== "session").join(", ")})`,
  "CREATE INDEX by_key ON names (key, group_name, channel, paid_by, first_at, last_at)",
  "CREATE INDEX by_parent ON names (parent) WHERE parent IS NOT NULL",
  // Only this index has all summed columns.
  `CREATE INDEX by_who ON lines (who, at, charge, ${KIND_COLUMNS.join(", ")}, more, exact, official, counted, missed,
    missed_tokens, cause, hour)`,
  "CREATE INDEX by_time ON lines (at, who)",
  `CREATE INDEX by_turn ON lines (at, line, who, ${KIND_COLUMNS.join(", ")}, more, missed_tokens, cause) WHERE ${IS_TURN}`,
  `CREATE INDEX by_rest ON lines (who, at) WHERE ${IS_TURN} IS NOT TRUE`,
  "CREATE INDEX by_id ON lines (id)",
  `CREATE INDEX by_miss ON lines (who, at, cause, part, detail, from_channel, changed_at, missed, missed_tokens, exact, windows)
    WHERE cause IS NOT NULL`,
  "CREATE INDEX by_seller ON lines (who, at, named, official, charge, exact) WHERE named IS NOT NULL",
  ...EDITS.map(
    (edit, at) => `CREATE TRIGGER edit_${at} AFTER ${edit} WHEN (SELECT edited FROM state) = 0
      BEGIN UPDATE state SET edited = 1; END`,
  ),
];

/** Raise this when columns get another meaning. */
const VERSION = 20;

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
  database.query("INSERT INTO state VALUES (?, 0, 0, 0)").run(JSON.stringify({ files: [], lines: 0 }));
}
