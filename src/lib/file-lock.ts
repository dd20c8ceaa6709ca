// A lock that one process holds on one path for as long as it lives. The
// operating system frees it however the process ends, so that no stale lock
// has to be judged by process ids. SQLite's file locks are used because they
// are the only ones of that kind that the runtime offers on every system.

import { Database } from "bun:sqlite";
import { accessSync, closeSync, constants, openSync, truncateSync } from "node:fs";
import { codeOf } from "./error-code.ts";

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

/** Throws LockHeld when another process, or another part of this one, holds the lock. */
export function takeLock(path: string): FileLock {
  makePrivate(path);
  try {
    return openLock(path);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    // As by a power cut. It only names the holder; the lock is the system's, on this very file whatever is in it.
    truncateSync(path);
    return openLock(path);
  }
}

function openLock(path: string): FileLock {
  const database = new Database(path, { create: true });
  try {
    database.run("PRAGMA synchronous = OFF");
    begin(database, path);
    database.run("CREATE TABLE IF NOT EXISTS holder (pid INTEGER, since TEXT)");
    database.run("DELETE FROM holder");
    database.run("INSERT INTO holder VALUES (?, ?)", [process.pid, new Date().toISOString()]);
    // Committed, so that others can read who holds it; then held by a transaction that never ends.
    database.run("COMMIT");
    begin(database, path);
  } catch (error) {
    database.close();
    throw error;
  }
  return { release: () => database.close() };
}

/** SQLite would let others read it, and says little of what it cannot do. A file that is there must not be opened:
 *  closing it again would free the lock that another part of this process holds. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    accessSync(path, constants.W_OK);
  }
}

/** A RESERVED lock: one process at a time, while everybody may read. */
function begin(database: Database, path: string): void {
  try {
    database.run("BEGIN IMMEDIATE");
  } catch (error) {
    if (isBusy(error)) throw new LockHeld(path, readHolder(database));
    throw error;
  }
}

function readHolder(database: Database): LockHolder | null {
  try {
    database.run("PRAGMA busy_timeout = 500");
    return database.query<LockHolder, []>("SELECT pid, since FROM holder").get();
  } catch {
    return null;
  }
}

function isBusy(error: unknown): boolean {
  return codeOf(error) === "SQLITE_BUSY";
}

function isDamaged(error: unknown): boolean {
  return /^SQLITE_(NOTADB|CORRUPT)/.test(codeOf(error));
}
