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
import {
  fitsLedger,
  measureUnread,
  NOTHING_READ,
  type Progress,
  readProgress,
  reportLongReading,
} from "./progress.ts";
import { type IndexDatabase, openInMemory, SCHEMA } from "./schema.ts";

/** SQLite's own files beside the index. */
export const INDEX_TAILS = ["", "-wal", "-shm", "-journal"];

export function nameIndex(path: string): string {
  return `${path}.index`;
}

/** `report` gets a line for people when the index cannot be used, and when reading takes long. */
export function openIndex(path: string, report: (text: string) => void): LedgerIndex {
  using held = holdLedgerFiles(path);
  const file = openIndexFile(path, held.sources, report, (why, { files }) => {
    report(`${why}: the ledger itself is read.`);
    const bytes = files.reduce((sum, { offset }) => sum + offset, 0);
    return readAgain(path, bytes);
  });
  const progress = file?.progress ?? NOTHING_READ;
  const unread = measureUnread(progress, held.sources);
  if (unread === 0 && file !== null) return file;
  reportLongReading(unread, report);
  const rest = openInMemory();
  const follower = new IndexFollower(rest, progress);
  follower.advance(held.sources);
  return combine(path, [...(file?.parts ?? []), new IndexPart(rest)], follower.progress);
}

/** An index of the first bytes of a ledger. */
function readAgain(path: string, most: number): IndexDatabase {
  using held = holdLedgerFiles(path);
  const database = openInMemory();
  new IndexFollower(database).advance(held.sources, most);
  return database;
}

/** The file as it is. Null: there is none that can be used. `makeAgain`: what to ask instead of a damaged one. */
export function openIndexFile(
  path: string,
  sources: readonly Source[],
  report: (text: string) => void,
  makeAgain: ((why: string, progress: Progress) => IndexDatabase) | null = null,
): LedgerIndex | null {
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
      const again = makeAgain && ((why: string) => makeAgain(why, progress));
      return combine(path, [new IndexPart(database, name, again)], progress);
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    report(`The index ${name} cannot be used (${getErrorMessage(error)}): the ledger itself is read.`);
    return null;
  }
}

function combine(path: string, parts: readonly IndexPart[], progress: Progress): LedgerIndex {
  const close = (): void => {
    for (const part of parts) part.close();
  };
  return { path, parts, progress, [Symbol.dispose]: close };
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
