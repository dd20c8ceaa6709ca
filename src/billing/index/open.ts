// Opens the index of a ledger for a report. What the file lacks is read from the ledger into memory, and nothing is
// written. Without a file that can be used, all of it is.

import { constants as sqlite, Database } from "bun:sqlite";
import { closeSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { getErrorMessage } from "../../lib/errors.ts";
import { CREATE_NEW, openOwn, requireOwn } from "../../lib/files/own-file.ts";
import type { Source } from "../ledger/reader.ts";
import { holdLedgerFiles } from "../ledger/rotation.ts";
import { IndexFollower } from "./follow.ts";
import { IndexPart, type LedgerIndex } from "./ledger-index.ts";
import { fitsLedger, measureUnread, NOTHING_READ, type Progress, readProgress } from "./progress.ts";
import { type IndexDatabase, openInMemory, SCHEMA } from "./schema.ts";

/** SQLite's own files beside the index. */
export const INDEX_TAILS = ["", "-wal", "-shm", "-journal"];

export function nameIndex(path: string): string {
  return `${path}.index`;
}

/** More than this takes longer than a moment. */
const LONG_BYTES = 64 << 20;

/** `report` gets a line for people when the index cannot be used, and when reading takes long. */
export function openIndex(path: string, report: (text: string) => void): LedgerIndex {
  using held = holdLedgerFiles(path);
  return addRest(path, held.sources, openFile(path, held.sources, report), report);
}

/** Null: there is no file that can be used. */
export function openIndexFile(path: string, report: (text: string) => void): LedgerIndex | null {
  using held = holdLedgerFiles(path);
  const file = openFile(path, held.sources, report);
  return file === null ? null : addRest(path, held.sources, file, report);
}

function addRest(
  path: string,
  sources: readonly Source[],
  file: OpenFile | null,
  report: (text: string) => void,
): LedgerIndex {
  const progress = file?.progress ?? NOTHING_READ;
  const unread = measureUnread(progress, sources);
  if (unread > LONG_BYTES)
    report(`Reading ${Math.round(unread / 1e6)} MB of the ledger that its index lacks.`);
  const parts = file === null ? [] : [new IndexPart(file.database, nameIndex(path))];
  if (unread === 0 && file !== null) return combine(path, parts, progress);
  const rest = openInMemory();
  const follower = new IndexFollower(rest, progress);
  follower.advance(sources);
  return combine(path, [...parts, new IndexPart(rest)], follower.progress);
}

function combine(path: string, parts: readonly IndexPart[], progress: Progress): LedgerIndex {
  const close = (): void => {
    for (const part of parts) part.close();
  };
  return { path, parts, progress, [Symbol.dispose]: close };
}

interface OpenFile {
  readonly database: IndexDatabase;
  readonly progress: Progress;
}

/** Null: there is none that can be used. */
function openFile(path: string, sources: readonly Source[], report: (text: string) => void): OpenFile | null {
  const name = nameIndex(path);
  try {
    if (requireOwn(name) === null) return null;
    const database = openDatabase(name);
    try {
      database.run("PRAGMA query_only = 1");
      // All answers are from the same moment, while the gateway goes on writing.
      database.run("BEGIN");
      if (!hasSchema(database)) throw new Error("it was made by another version");
      const progress = readProgress(database);
      if (!fitsLedger(progress, sources)) throw new Error("the ledger has changed");
      return { database, progress };
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    report(`The index ${name} cannot be used (${getErrorMessage(error)}): the ledger itself is read.`);
    return null;
  }
}

export function hasSchema(database: IndexDatabase): boolean {
  const [[version] = []] = database.query("PRAGMA user_version").values();
  return version === SCHEMA;
}

/** Opens the file, or with `isNew` makes it. No link is followed. SQLite gives its own files the mode of the file. */
export function openDatabase(path: string, isNew = false): IndexDatabase {
  // SQLite also refuses links among the folders.
  const place = join(realpathSync(dirname(path)), basename(path));
  for (const tail of INDEX_TAILS) requireOwn(place + tail);
  if (isNew) closeSync(openOwn(place, { flags: CREATE_NEW }));
  const database = new Database(place, sqlite.SQLITE_OPEN_READWRITE | sqlite.SQLITE_OPEN_NOFOLLOW);
  try {
    database.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A reader waits only while a writer restores the file after a crash. */
const BUSY_MS = 5000;
