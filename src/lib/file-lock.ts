// A lock that one process holds on one path for as long as it lives. The
// operating system frees it however the process ends, so that no stale lock
// has to be judged by process ids. SQLite's file locks are used because they
// are the only ones of that kind that the runtime offers on every system.
// Nothing is ever written into the locked file: it stays empty, so it cannot be
// damaged, and a file that was put in its place cannot be either. Who holds the
// lock stands in a file beside it.

import { constants as sqlite, Database } from "bun:sqlite";
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  readSync,
  realpathSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf } from "./error-code.ts";
import { fieldOf, parseJson } from "./json/json.ts";
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
  /** Null in the instant before the holder has written its name. */
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

/** The files that this process has locked. To open one of them again, and close it, would free its lock. */
const held = new Set<string>();

/** Throws LockHeld when another process, or another part of this one, holds the lock; ForeignFile when what stands at
 *  the path is no lock of the gateway's. `owner`: of a lock that the administrator makes beside a user's file. */
export function takeLock(path: string, owner?: Owner): FileLock {
  // SQLite refuses links in folders' names as well.
  const place = join(realpathSync(dirname(path)), basename(path));
  const there = requireOwn(place);
  if (there !== null && held.has(identify(there))) throw new LockHeld(path, readHolder(place));
  const fd = openLock(place, owner);
  try {
    const database = lockFile(place, path, fd);
    const identity = identify(fstatSync(fd, { bigint: true }));
    held.add(identity);
    nameHolder(place, owner);
    return { release: () => release(place, { database, fd, identity }) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function identify({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

interface Taken {
  readonly database: Database;
  readonly fd: number;
  readonly identity: string;
}

function release(place: string, { database, fd, identity }: Taken): void {
  if (!held.delete(identity)) return;
  try {
    removeOwn(nameOfHolder(place));
  } catch {
    // The next holder replaces it.
  }
  database.close();
  closeSync(fd);
}

/** Checked, and held open as long as the lock: it says which file SQLite has to have opened. */
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
  // SQLite would change the file to what they say.
  for (const tail of ["-journal", "-wal", "-shm"]) removeOwn(place + tail);
  try {
    return begin(place, path, fd);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    emptyDamaged(path, fd);
    return begin(place, path, fd);
  }
}

/** A RESERVED lock, by a transaction that never ends and writes nothing. */
function begin(place: string, path: string, fd: number): Database {
  const database = new Database(place, sqlite.SQLITE_OPEN_READWRITE | sqlite.SQLITE_OPEN_NOFOLLOW);
  try {
    // Else it makes a journal beside the file.
    database.run("PRAGMA journal_mode = MEMORY");
    database.run("BEGIN IMMEDIATE");
    requireSame(place, database, fd);
    return database;
  } catch (error) {
    database.close();
    if (isBusy(error)) throw new LockHeld(path, readHolder(place));
    throw error;
  }
}

/** SQLite opens by name: it has to have come to the file that was checked. */
function requireSame(place: string, database: Database, fd: number): void {
  const moved = new Int32Array(2);
  database.fileControl(sqlite.SQLITE_FCNTL_HAS_MOVED, moved);
  const there = requireOwn(place);
  if (moved[0] === 0 && there !== null && isSame(there, fstatSync(fd, { bigint: true }))) return;
  throw new ForeignFile(`${place} was replaced while it was being locked: try again`);
}

/** Earlier versions kept a small database in the lock, which a power cut could tear. Only what is recognised as such
 *  is emptied; the file stays the same, so that whoever holds it still does. */
function emptyDamaged(path: string, fd: number): void {
  const { size } = fstatSync(fd);
  const bytes = Buffer.alloc(Math.min(size, FORMER_BYTES));
  readSync(fd, bytes, 0, bytes.length, 0);
  const isFormer =
    bytes.subarray(0, HEAD.length).equals(HEAD) || bytes.subarray(0, HALF).every((byte) => byte === 0);
  if (size > FORMER_BYTES || !isFormer)
    throw new ForeignFile(`${path} is no lock that the gateway made: move it away, and a new one is made`);
  ftruncateSync(fd, 0);
}

const FORMER_BYTES = 8192;
const HALF = FORMER_BYTES / 2;
const HEAD = Buffer.from("SQLite format 3\0");

function nameOfHolder(place: string): string {
  return `${place}.holder`;
}

/** For people, so that a full disk keeps nobody from the lock. */
function nameHolder(place: string, owner: Owner | undefined): void {
  const holder = { pid: process.pid, since: new Date().toISOString() };
  try {
    removeDrafts(nameOfHolder(place));
    replaceFile(nameOfHolder(place), `${JSON.stringify(holder)}\n`, owner === undefined ? {} : { owner });
  } catch {
    // As said above.
  }
}

function readHolder(place: string): LockHolder | null {
  try {
    const found = parseJson(readOwn(nameOfHolder(place)) ?? "");
    const pid = fieldOf(found, "pid");
    const since = fieldOf(found, "since");
    if (typeof pid !== "number" || typeof since !== "string" || !ISO_TIME.test(since)) return null;
    return { pid, since };
  } catch {
    return null;
  }
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

function isBusy(error: unknown): boolean {
  return codeOf(error) === "SQLITE_BUSY";
}

function isDamaged(error: unknown): boolean {
  return /^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(error));
}
