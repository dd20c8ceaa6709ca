// A lock on a path, which one process holds until it ends. However it ends, the system frees the lock.
// Only SQLite has such locks on all systems. SQLite writes nothing into the file.

import { constants as sqlite, Database } from "bun:sqlite";
import { type BigIntStats, closeSync, constants, fstatSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "../errors.ts";
import { quoteWord } from "../text/shell-word.ts";
import { getField, parseJson } from "../json/json.ts";
import { resolveFolder } from "./links.ts";
import {
  CREATE_NEW,
  ForeignFile,
  isSame,
  keepOwner,
  openOwn,
  type Owner,
  readOwn,
  removeDrafts,
  removeOwn,
  replaceFile,
  requireOwn,
} from "./own-file.ts";

export interface FileLock {
  release(): void;
}

export interface LockHolder {
  readonly pid: number;
  /** ISO time. */
  readonly since: string;
}

export class LockHeld extends Error {
  override readonly name = "LockHeld";
  /** Null if the holder has not written who it is, or could not. */
  readonly holder: LockHolder | null;
  constructor(path: string, holder: LockHolder | null) {
    super(
      holder === null
        ? `${path} is held by another process`
        : `${path} is held by process ${holder.pid} since ${holder.since}`,
    );
    this.holder = holder;
  }
}

/** The files that this process has locked:
 *  opening and closing one again would free its lock. */
const held = new Set<string>();

/** If the administrator takes the lock, its files belong to `owner`. */
export function takeLock(path: string, owner?: Owner): FileLock {
  // Resolved, because SQLite refuses a path with a link among its folders.
  const place = resolveFolder(path);
  const there = requireOwn(place);
  if (there !== null && held.has(identify(there))) throw new LockHeld(path, readHolder(place));
  const fd = openLock(place, owner);
  try {
    const database = lockFile(place, path, fd);
    const identity = identify(fstatSync(fd, { bigint: true }));
    held.add(identity);
    writeHolder(place, owner);
    return { release: () => release(place, { database, fd, identity }) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function identify({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

interface HeldLock {
  readonly database: Database;
  readonly fd: number;
  readonly identity: string;
}

function release(place: string, { database, fd, identity }: HeldLock): void {
  if (!held.delete(identity)) return;
  try {
    removeOwn(holderPath(place));
  } catch {
    // The next holder replaces the file.
  }
  database.close();
  closeSync(fd);
}

function openLock(place: string, owner: Owner | undefined): number {
  try {
    const fd = openOwn(place, { flags: CREATE_NEW });
    if (owner !== undefined) keepOwner(fd, owner);
    return fd;
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    return openOwn(place, { flags: constants.O_RDWR });
  }
}

function lockFile(place: string, path: string, fd: number): Database {
  // SQLite would replay these files into the lock file.
  for (const tail of ["-journal", "-wal", "-shm"]) removeOwn(place + tail);
  return lockDatabase(place, path, fd);
}

/** Takes a RESERVED lock: a transaction that never ends and writes nothing. */
function lockDatabase(place: string, path: string, fd: number): Database {
  const database = new Database(place, sqlite.SQLITE_OPEN_READWRITE | sqlite.SQLITE_OPEN_NOFOLLOW);
  try {
    // Otherwise SQLite makes a journal next to the file.
    database.run("PRAGMA journal_mode = MEMORY");
    database.run("BEGIN IMMEDIATE");
    requireSame(place, database, fd);
    return database;
  } catch (error) {
    database.close();
    const code = codeOf(error);
    if (code === "SQLITE_BUSY") throw new LockHeld(path, readHolder(place));
    if (/^SQLITE_(NOTADB|CORRUPT)/.test(code))
      throw new ForeignFile(
        `${path} is not a lock file of the gateway: move it away, then the gateway makes a new one`,
      );
    if (code !== "SQLITE_FULL") throw error;
    // Users do not know of SQLite, so no message names it.
    const what =
      `no space is left on the disk (ENOSPC) for ${path}. ` +
      `Free some (df -h ${quoteWord(dirname(path))}) and repeat`;
    throw Object.assign(new Error(what, { cause: error }), { code: "ENOSPC" });
  }
}

/** SQLite opens by name, which may lead to another file now. */
function requireSame(place: string, database: Database, fd: number): void {
  const moved = new Int32Array(2);
  database.fileControl(sqlite.SQLITE_FCNTL_HAS_MOVED, moved);
  const there = requireOwn(place);
  if (moved[0] === 0 && there !== null && isSame(there, fstatSync(fd, { bigint: true }))) return;
  throw new ForeignFile(`${place} was replaced while it was being locked: try again`);
}

function holderPath(place: string): string {
  return `${place}.holder`;
}

/** Tells people who holds the lock, unless the disk is full. */
function writeHolder(place: string, owner: Owner | undefined): void {
  const holder = { pid: process.pid, since: new Date().toISOString() };
  try {
    removeDrafts(holderPath(place));
    replaceFile(holderPath(place), `${JSON.stringify(holder)}\n`, owner === undefined ? {} : { owner });
  } catch {
    // The lock works without the name.
  }
}

function readHolder(place: string): LockHolder | null {
  try {
    const found = parseJson(readOwn(holderPath(place)) ?? "");
    const pid = getField(found, "pid");
    const since = getField(found, "since");
    if (typeof pid !== "number" || typeof since !== "string" || !ISO_TIME.test(since)) return null;
    return { pid, since };
  } catch {
    return null;
  }
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
