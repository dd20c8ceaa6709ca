// Keeps the index file of a running gateway up to date. Only one thread of it does, and no command. If the file cannot be
// used, the index is in memory.

import { existsSync, statSync } from "node:fs";

import { getErrorMessage } from "../../lib/errors.ts";
import { removeOwn } from "../../lib/files/own-file.ts";
import { holdLedgerFiles } from "../ledger/rotation.ts";
import type { Source } from "../ledger/reader.ts";
import { IndexFollower } from "./follow.ts";
import { IndexPart, type LedgerIndex } from "./ledger-index.ts";
import { hasSchema, INDEX_TAILS, nameIndex, openDatabase } from "./open.ts";
import { fitsLedger, measureUnread, NOTHING_READ } from "./progress.ts";
import { createTables, type IndexDatabase, openInMemory } from "./schema.ts";

interface Opened {
  readonly part: IndexPart;
  readonly follower: IndexFollower;
  /** Null: it is in memory. */
  readonly inode: number | null;
}

export class IndexKeeper {
  readonly #path: string;
  readonly #report: (text: string) => void;
  #opened: Opened | null = null;
  /** The file cannot be used. */
  #isInMemory = false;
  #hasFailed = false;
  #unread = 0;
  #size = 0;

  /** `report` gets a line for people when the file cannot be used. */
  constructor(path: string, report: (text: string) => void) {
    this.#path = path;
    this.#report = report;
  }

  /** Reads about `most` bytes of new lines. True: everything is read. */
  advance(most: number): boolean {
    using held = holdLedgerFiles(this.#path);
    try {
      const { follower } = this.#openFitting(held.sources);
      const isDone = follower.advance(held.sources, most);
      this.#unread = measureUnread(follower.progress, held.sources);
      this.#size = measureUnread(NOTHING_READ, held.sources);
      this.#hasFailed = false;
      return isDone;
    } catch (error) {
      this.#recover(error);
      return false;
    }
  }

  #openFitting(sources: readonly Source[]): Opened {
    if (this.#opened !== null && !this.#isInPlace(this.#opened)) this.close();
    const opened = (this.#opened ??= this.#open());
    if (fitsLedger(opened.follower.progress, sources)) return opened;
    this.#drop();
    return (this.#opened = this.#open());
  }

  /** The share of the ledger that is read, from 0 to 1. */
  get read(): number {
    return this.#unread === 0 ? 1 : Math.min(0.99, 1 - this.#unread / this.#size);
  }

  get index(): LedgerIndex {
    const { part, follower } = (this.#opened ??= this.#open());
    return { path: this.#path, parts: [part], progress: follower.progress, [Symbol.dispose]: () => {} };
  }

  /** After a question that found the file damaged. The next `advance` makes it again. */
  remake(): void {
    this.#drop();
  }

  close(): void {
    this.#opened?.part.close();
    this.#opened = null;
  }

  /** A file that was removed, or replaced by another one, is not written any more. */
  #isInPlace({ inode }: Opened): boolean {
    const there = statSync(nameIndex(this.#path), { throwIfNoEntry: false });
    return inode === null || there?.ino === inode;
  }

  #open(): Opened {
    const name = nameIndex(this.#path);
    const database = this.#isInMemory ? openInMemory() : this.#openFile(name);
    const inode = this.#isInMemory ? null : statSync(name).ino;
    return {
      part: new IndexPart(database, this.#isInMemory ? null : name),
      follower: new IndexFollower(database),
      inode,
    };
  }

  #openFile(name: string): IndexDatabase {
    const isNew = !existsSync(name);
    const database = openDatabase(name, isNew);
    try {
      database.run("PRAGMA journal_mode = WAL");
      database.run("PRAGMA synchronous = NORMAL");
      if (isNew) createTables(database);
      else if (!hasSchema(database)) throw new Error("it was made by another version");
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** The file is made again, once. If that does not help, the index is in memory. */
  #recover(error: unknown): void {
    if (this.#isInMemory) throw error;
    try {
      this.#drop();
      if (!this.#hasFailed) {
        this.#hasFailed = true;
        return;
      }
    } catch {
      // The first error says more.
    }
    this.close();
    this.#isInMemory = true;
    const name = nameIndex(this.#path);
    this.#report(`the index ${name} cannot be used (${getErrorMessage(error)}): it is kept in memory`);
  }

  #drop(): void {
    this.close();
    if (this.#isInMemory) return;
    for (const tail of INDEX_TAILS) removeOwn(nameIndex(this.#path) + tail);
  }
}
