// The tables of the index. It holds nothing that the ledger does not: it can be deleted at any time, and is made again.
// See docs/decisions/0025-index-beside-the-ledger.md.

import { Database } from "bun:sqlite";

export type IndexDatabase = Pick<Database, "run" | "query" | "close">;

/** A line with more kinds of usage is odd. */
export const COUNTS = 10;

/** What is added up. Amounts are in thousandths of a dollar, billionths of these (pico-dollars), and billionths of a
 *  pico-dollar: no line adds 2^31 or more to any of them, so that a billion lines do not fill 64 bits. */
export const SUM_COLUMNS = [
  "requests",
  "official_milli",
  "official_pico",
  "official_rest",
  "charge_milli",
  "charge_pico",
  "saved_milli",
  "saved_pico",
  "missed_milli",
  "missed_pico",
  ...Array.from({ length: COUNTS }, (_, index) => `count_${index}`),
];

/** The numbers of a cell: its trait, its first line, its last time in milliseconds, the slots in which its requests began
 *  (a bit for each), and sums. */
export const CELL = {
  trait: 0,
  first: 1,
  last: 2,
  slots: 3,
  sums: 4,
  width: 4 + SUM_COLUMNS.length,
} as const;

/** Places among the sums: of an amount, those of its parts. */
export const SUM = {
  requests: 0,
  official: [1, 2, 3],
  charge: [4, 5],
  saved: [6, 7],
  missed: [8, 9],
  counts: 10,
} as const;

/** Requests by trait and by the time to their first byte. */
export const LATENCY = { trait: 0, bucket: 1, requests: 2, width: 3 } as const;

/** Sums are kept of hours and of days in UTC. A longer period is made of the longest that fit into it. */
export const SPAN_HOURS = [1, 24] as const;

/** To be raised with each change of the tables, or of what is in them. */
export const SCHEMA = 5;

/** A time to the first byte is kept as a bucket. The next bucket is a quarter of an octave above: 19 % more. */
export const LATENCY_STEPS = 4;

/** Whether somebody worked is kept for each ten minutes. */
export const WORK_SLOT_MS = 600_000;

const COLUMNS = SUM_COLUMNS.map((name) => `${name} INTEGER NOT NULL`).join(", ");

/**
 * `traits`: what many requests share, as JSON. `senders`: sessions and their agents; `root` is the first sender of the same
 * session. `requests`: a row for each line, and for each estimate that a line adds to what limits count, or takes back. An odd
 * row has its numbers as JSON in `odd`, because one of them does not fit, or its time; a line that cannot be read has trait 0.
 * All others are also in `spans`, as cells of hours and days (cells.ts; `start` is in hours) with how many requests took how
 * long to their first byte, and in `shares`: what a sender's requests with the same traits add up to, with their first and
 * last lines and times. `sessions`: a row for each, with the number of its last line.
 */
const TABLES = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE traits (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
  CREATE TABLE senders (id INTEGER PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, parent TEXT, root INTEGER NOT NULL);
  CREATE INDEX senders_by_session ON senders (session, agent);
  CREATE TABLE requests (number INTEGER PRIMARY KEY, line INTEGER NOT NULL, at INTEGER NOT NULL, id TEXT, corrects TEXT,
    time TEXT NOT NULL, hour INTEGER NOT NULL, trait INTEGER NOT NULL, sender INTEGER NOT NULL, miss TEXT, odd TEXT,
    status INTEGER, first_byte INTEGER, duration INTEGER, ${COLUMNS});
  CREATE TABLE spans (hours INTEGER, start INTEGER, cells BLOB NOT NULL, latencies BLOB NOT NULL, PRIMARY KEY (hours, start));
  CREATE TABLE shares (root INTEGER, sender INTEGER, trait INTEGER, since TEXT NOT NULL, until TEXT NOT NULL,
    first INTEGER NOT NULL, last INTEGER NOT NULL, ${COLUMNS}, PRIMARY KEY (root, sender, trait)) WITHOUT ROWID;
  CREATE TABLE sessions (session TEXT PRIMARY KEY, sums TEXT NOT NULL, line INTEGER NOT NULL) WITHOUT ROWID;
  PRAGMA user_version = ${SCHEMA};
`;

/** They are made when the first lines are there: that takes half the time. */
const INDEXES = [
  "requests_by_id ON requests (id)",
  "requests_by_hour ON requests (hour)",
  "requests_by_sender ON requests (sender, trait)",
  "sessions_by_line ON sessions (line)",
  "corrections ON requests (corrects) WHERE corrects IS NOT NULL",
  "misses ON requests (hour) WHERE miss IS NOT NULL",
  "misses_by_sender ON requests (sender) WHERE miss IS NOT NULL",
  "odd_requests ON requests (line) WHERE odd IS NOT NULL",
];

export const INSERT_REQUEST = `INSERT INTO requests VALUES (${listMarks(14)})`;

export const ADD_TO_SHARES = `INSERT INTO shares VALUES (${listMarks(7)}) ON CONFLICT DO UPDATE SET
  since = min(since, excluded.since), until = max(until, excluded.until), last = excluded.last,
  ${SUM_COLUMNS.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`;

/** For these columns, and those of sums after them. */
function listMarks(columns: number): string {
  return Array.from({ length: columns + SUM_COLUMNS.length }, () => "?").join(", ");
}

/** The one row of the table `meta`. */
export const WRITE_PROGRESS = "REPLACE INTO meta VALUES ('progress', ?)";
export const READ_PROGRESS = "SELECT value FROM meta WHERE name = 'progress'";

export function createTables(database: IndexDatabase): void {
  database.run(TABLES);
  database.query(WRITE_PROGRESS).run(JSON.stringify({ files: [], lines: 0, unreadable: 0 }));
}

/** One that is missing, because each takes a moment in a long ledger. False: none is. */
export function createIndex(database: IndexDatabase): boolean {
  const known = new Set(
    database.query("SELECT name FROM sqlite_master WHERE type = 'index'").values().flat(),
  );
  const missing = INDEXES.find((index) => !known.has(index.split(" ", 1)[0] ?? ""));
  if (missing === undefined) return false;
  database.run(`CREATE INDEX ${missing}`);
  return true;
}

export function openInMemory(): IndexDatabase {
  const database = new Database(":memory:");
  createTables(database);
  return database;
}
