// Opens a ledger's table, with all lines: the file next to the ledger. It is in memory for
// a copy without this file, for a user who may not write there, and if the file fails.

import { constants as sqlite, Database } from "bun:sqlite";
import { closeSync, existsSync } from "node:fs";

import { codeOf, messageOf } from "../../lib/errors.ts";
import { resolveFolder } from "../../lib/files/links.ts";
import { CREATE_NEW, openOwn, removeOwn, requireOwn } from "../../lib/files/own-file.ts";
import { readLines, type RawLine } from "../ledger/reader.ts";
import { holdLedgerFiles, nameOf } from "../ledger/rotation.ts";
import {
  follow,
  hasItsSums,
  isUnedited,
  measureUnread,
  NOTHING_READ,
  type FollowPosition,
  readPosition,
} from "./follow.ts";
import { hasTables, makeTables, type TableDatabase } from "./schema.ts";

/** SQLite's own files come before the table's file. */
const TAILS = ["-wal", "-shm", "-journal", ""];
/** Another process may lock the table for this long, while it reads the ledger. */
const BUSY_MS = 10_000;
/** Bytes of the ledger per transaction: a second of work. */
const STEP_BYTES = 32 << 20;
const LONG_BYTES = 64 << 20;

export function nameTable(path: string): string {
  return `${path}.index`;
}

export type CellValue = string | number | bigint | null | boolean | Uint8Array;
/** Each name begins with `$`. */
export type Parameters = Readonly<Record<string, string | number | null>>;

export interface TableOptions {
  readonly report: (text: string) => void;
  /** Use the file only if it exists. */
  readonly isCopy?: boolean;
  /** Do not follow the ledger: the table keeps the lines that the ledger lost. */
  readonly isAsItWas?: boolean;
  /** Compare the rows' sum with the sum noted while reading. */
  readonly compares?: boolean;
  /** Read only about this many bytes of new lines. */
  readonly most?: number;
}

export interface Questions {
  /** The ledger's path. Absent: no ledger. */
  readonly path?: string;
  readonly list: (sql: string, parameters?: Parameters) => CellValue[][];
}

export class Table implements Disposable, Questions {
  readonly path: string;
  readonly #options: TableOptions;
  #file: string | null;
  #database: TableDatabase;

  constructor(path: string, options: TableOptions) {
    this.path = path;
    this.#options = options;
    const file = nameTable(path);
    const database = options.isCopy === true && !existsSync(file) ? null : openFile(path, options);
    this.#file = database === null ? null : file;
    this.#database = database ?? openInMemory(path, options);
  }

  get isInMemory(): boolean {
    return this.#file === null;
  }

  /** Whole numbers come as bigints. */
  list(sql: string, parameters: Parameters = {}): CellValue[][] {
    const ask = (): CellValue[][] => askDatabase(this.#database, sql, parameters);
    try {
      return ask();
    } catch (error) {
      const why = messageOf(error);
      // The sums of a database have 64 bits.
      if (why.includes("integer overflow"))
        throw new Error(
          `The amounts of ${this.path} add up to more than $9 million: \`gateway ledger verify\` names wrong ones.`,
          { cause: error },
        );
      if (this.#file === null || !IS_DAMAGED.test(`${codeOf(error)} ${why}`)) throw error;
      // Damage shows only when a query reads the damaged part.
      this.#options.report(`The index ${this.#file} is damaged (${why}): the ledger itself is read.`);
      this.#database.close();
      removeFile(this.#file);
      this.#file = null;
      this.#database = openInMemory(this.path, this.#options);
      return ask();
    }
  }

  get position(): FollowPosition {
    return readPosition(this.#database) ?? NOTHING_READ;
  }

  get unreadable(): number {
    return Number(this.list("SELECT COUNT(*) FROM unreadable")[0]?.[0]);
  }

  get read(): number {
    using held = holdLedgerFiles(this.path);
    const unread = measureUnread(this.position, held.sources);
    return unread === 0 ? 1 : Math.min(0.99, 1 - unread / measureUnread(NOTHING_READ, held.sources));
  }

  get hasItsSums(): boolean {
    return this.isInMemory || !hasTables(this.#database) || hasItsSums(this.#database);
  }

  advance(): void {
    followLedger(this.#database, this.path, { ...this.#options, compares: false });
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}

const SPANS = [
  "CREATE TEMP TABLE IF NOT EXISTS spans (since INTEGER PRIMARY KEY, until INTEGER, span TEXT)",
  "DELETE FROM spans",
  "REPLACE INTO spans SELECT value ->> 1, value ->> 2, value ->> 0 FROM json_each($spans)",
];

/** Puts the periods of `$spans` into the table `spans` for the query. */
export function askDatabase(database: TableDatabase, sql: string, parameters: Parameters): CellValue[][] {
  if ("$spans" in parameters) for (const each of SPANS) database.query(each).run(parameters);
  return database.query(sql).safeIntegers(true).values(parameters);
}

export function isIntact(path: string): boolean {
  if (!existsSync(nameTable(path))) return true;
  using table = new Table(path, { report: () => {}, isAsItWas: true });
  return table.hasItsSums;
}

/** Returns null if the file is unusable. */
function openFile(path: string, options: TableOptions): TableDatabase | null {
  const name = nameTable(path);
  for (let isFirst = true; ; isFirst = false) {
    let database: TableDatabase | null = null;
    try {
      database = openDatabase(name);
      if (options.isAsItWas !== true) followLedger(database, path, options);
      // All queries see the table as it is now, even if other processes write.
      database.run("BEGIN");
      readPosition(database);
      return database;
    } catch (error) {
      database?.close();
      const why = messageOf(error);
      if (isFirst && IS_DAMAGED.test(`${codeOf(error)} ${why}`)) {
        options.report(`The index ${name} cannot be used (${why}): it is made again.`);
        if (removeFile(name)) continue;
      } else if (!IS_CLOSED.test(codeOf(error)))
        options.report(`The index ${name} cannot be used (${why}): the ledger itself is read.`);
      return null;
    }
  }
}

const OTHER_SUMS = "its rows have other sums than when they were read";
/** JSON is unreadable only if somebody changed its cell. */
const IS_DAMAGED = new RegExp(`SQLITE_(?:CONSTRAINT|CORRUPT|NOTADB)|malformed JSON|${OTHER_SUMS}`);
/** The folder is not writable. */
const IS_CLOSED = /^(?:EACCES|EPERM|EROFS|ENOENT|SQLITE_READONLY)/;

/** The cache is large, since sums read most of an index.
 *  A month's rows are sorted in memory. */
const SETTINGS = "PRAGMA page_size = 32768; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY";

/** Follows no links. SQLite gives its other files the mode of this one. */
function openDatabase(path: string): TableDatabase {
  // SQLite also refuses links among the folders.
  const place = resolveFolder(path);
  const [found] = TAILS.map((tail) => requireOwn(place + tail)).toReversed();
  try {
    if (found === null) closeSync(openOwn(place, { flags: CREATE_NEW }));
  } catch (error) {
    // Another process may just have made the file.
    if (codeOf(error) !== "EEXIST" || requireOwn(place) === null) throw error;
  }
  const database = new Database(place, sqlite.SQLITE_OPEN_READWRITE | sqlite.SQLITE_OPEN_NOFOLLOW);
  try {
    database.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    database.run(SETTINGS);
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA synchronous = NORMAL");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function removeFile(name: string): boolean {
  try {
    for (const tail of TAILS) removeOwn(name + tail);
    return true;
  } catch {
    return false;
  }
}

function openInMemory(path: string, options: TableOptions): TableDatabase {
  const database = new Database(":memory:");
  database.run(SETTINGS);
  makeTables(database);
  followLedger(database, path, options);
  return database;
}

function followLedger(database: TableDatabase, path: string, options: TableOptions): void {
  const { most, report, compares = false } = options;
  if (hasTables(database) && !(compares ? hasItsSums : isUnedited)(database)) throw new Error(OTHER_SUMS);
  using held = holdLedgerFiles(path);
  if (most === undefined) {
    const position = hasTables(database) ? readPosition(database) : null;
    const unread = measureUnread(position ?? NOTHING_READ, held.sources);
    if (unread > LONG_BYTES) {
      report(`Reading ${Math.round(unread / 1e6)} MB of the ledger.`);
      database.run("PRAGMA cache_size = -131072");
    }
  }
  while (!follow(database, held.sources, most ?? STEP_BYTES)) if (most !== undefined) return;
}

export interface FoundLine {
  readonly file: string;
  /** From 1, in this file. */
  readonly number: number;
  readonly text: string;
}

export type LineOfRow = FoundLine & Pick<RowPlace, "values">;

/** More rows at once would fill the memory. */
const PAGE_ROWS = 5000;
/** The next row is mostly far away: read little. */
const SHORT = 1 << 13;

/** In the ledger's order. `more`: further columns.
 *  `where`: the condition on requests. */
export function* listLines(
  table: Table,
  { more = [], where, values = {} }: { more?: readonly string[]; where: string; values?: Parameters },
): Generator<LineOfRow, void> {
  const sql = `SELECT ${["line", "place", ...more].join(", ")} FROM requests
    WHERE line > $after AND ${where} ORDER BY line LIMIT ${PAGE_ROWS}`;
  for (let after = 0; ;) {
    const rows = table.list(sql, { ...values, $after: after }).map(([line, place, ...rest]) => {
      return { line: Number(line), place: Number(place), values: rest };
    });
    yield* readPlaces(table, rows);
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE_ROWS) return;
    after = last.line;
  }
}

interface RowPlace {
  readonly line: number;
  readonly place: number;
  readonly values: readonly CellValue[];
}

/** `places` must be in ascending order. Lines that left the ledger are skipped. */
export function* readPlaces(table: Table, places: Iterable<RowPlace>): Generator<LineOfRow, void> {
  const { files } = table.position;
  using held = holdLedgerFiles(table.path);
  let [file, at] = [-1, -1];
  let lines: Iterator<RawLine> | null = null;
  for (const { line, place, values } of places) {
    const index = files.findLastIndex(({ first }) => first <= line);
    const source = held.sources[index];
    if (source === undefined) continue;
    // Rows in sequence are read in one go.
    if (lines === null || index !== file || place !== at) {
      lines?.return?.();
      lines = readLines(source, place, SHORT);
      file = index;
    }
    const { value } = lines.next();
    if (value === undefined || !value.whole) {
      lines = null;
      continue;
    }
    at = value.next;
    const number = line - (files[index]?.first ?? 1) + 1;
    yield { file: nameOf(source, table.path), number, text: value.text, values };
  }
}
