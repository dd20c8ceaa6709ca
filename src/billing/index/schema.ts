// The tables of the index. It holds nothing that the ledger does not: it can be deleted at any time, and is made again.
// See docs/decisions/0025-index-beside-the-ledger.md.

import { Database } from "bun:sqlite";

export type IndexDatabase = Pick<Database, "run" | "query" | "close">;

/** A line with more kinds of usage is odd. */
export const COUNTS = 10;

/** What is added up. Amounts are in thousandths of a dollar, billionths of these (pico-dollars), and billionths of a
 *  pico-dollar: no line adds 2^31 or more to any of them, so that a billion lines do not fill 64 bits. */
const SUM_COLUMNS = [
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

export const SUMS = SUM_COLUMNS.map((name) => `SUM(${name})`).join(", ");

/** Sums are kept of hours, of days and of 32 days in UTC. A longer period is made of the longest that fit into it. */
export const SPAN_HOURS = [1, 24, 768] as const;

/** To be raised with each change of the tables, or of what is in them. */
export const SCHEMA = 3;

/** A time to the first byte is kept as a bucket. The next bucket is a quarter of an octave above: 19 % more. */
export const LATENCY_STEPS = 4;

/** Whether somebody worked is kept for each ten minutes. */
export const WORK_SLOT_MS = 600_000;

const COLUMNS = SUM_COLUMNS.map((name) => `${name} INTEGER NOT NULL`).join(", ");

/**
 * `traits`: what many requests share, as JSON. `senders`: sessions and their agents. `requests`: a row for each line, and
 * for each estimate that a line adds to what limits count, or takes back. An odd row has its numbers as JSON in `odd`,
 * because one of them does not fit, or its time; a line that cannot be read has trait 0. `sums`: the rest of them, by span
 * and trait, with the number of the first line and the last time; `start` is in hours. `latencies`: requests by the time to
 * their first byte. `work`: in which ten minutes a request began. `sessions`: a row for each, with the number of its last line.
 */
const TABLES = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE traits (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
  CREATE TABLE senders (id INTEGER PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, parent TEXT);
  CREATE INDEX senders_by_session ON senders (session, agent);
  CREATE TABLE requests (number INTEGER PRIMARY KEY, line INTEGER NOT NULL, at INTEGER NOT NULL, id TEXT, corrects TEXT,
    time TEXT NOT NULL, hour INTEGER NOT NULL, trait INTEGER NOT NULL, sender INTEGER NOT NULL, miss TEXT, odd TEXT,
    status INTEGER, first_byte INTEGER, duration INTEGER, ${COLUMNS});
  CREATE TABLE sums (hours INTEGER, start INTEGER, trait INTEGER, first INTEGER NOT NULL, last TEXT NOT NULL, ${COLUMNS},
    PRIMARY KEY (hours, start, trait)) WITHOUT ROWID;
  CREATE TABLE latencies (hours INTEGER, start INTEGER, trait INTEGER, bucket INTEGER, requests INTEGER NOT NULL,
    PRIMARY KEY (hours, start, trait, bucket)) WITHOUT ROWID;
  CREATE TABLE work (slot INTEGER, trait INTEGER, PRIMARY KEY (slot, trait)) WITHOUT ROWID;
  CREATE TABLE sessions (session TEXT PRIMARY KEY, sums TEXT NOT NULL, line INTEGER NOT NULL) WITHOUT ROWID;
  PRAGMA user_version = ${SCHEMA};
`;

/** They are made when the first lines are there: that takes half the time. */
const INDEXES = `
  CREATE INDEX IF NOT EXISTS requests_by_id ON requests (id);
  CREATE INDEX IF NOT EXISTS requests_by_hour ON requests (hour);
  CREATE INDEX IF NOT EXISTS requests_by_sender ON requests (sender, trait);
  CREATE INDEX IF NOT EXISTS sessions_by_line ON sessions (line);
  CREATE INDEX IF NOT EXISTS corrections ON requests (corrects) WHERE corrects IS NOT NULL;
  CREATE INDEX IF NOT EXISTS misses ON requests (line) WHERE miss IS NOT NULL;
  CREATE INDEX IF NOT EXISTS odd_requests ON requests (line) WHERE odd IS NOT NULL;
`;

export const INSERT_REQUEST = `INSERT INTO requests VALUES (${listMarks(14)})`;

export const ADD_TO_SUMS = `INSERT INTO sums VALUES (${listMarks(5)}) ON CONFLICT DO UPDATE SET last = max(last, excluded.last),
  ${SUM_COLUMNS.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`;

export const ADD_TO_LATENCIES = `INSERT INTO latencies VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET requests = requests + excluded.requests`;

export const INSERT_WORK = "INSERT OR IGNORE INTO work VALUES (?, ?)";

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

export function createIndexes(database: IndexDatabase): void {
  database.run(INDEXES);
}

export function openInMemory(): IndexDatabase {
  const database = new Database(":memory:");
  createTables(database);
  return database;
}
