// Stands in for bun:sqlite: file locks (lib/files/file-lock.ts), which end with their process, and the
// ledger's table (billing/store/), a real database in memory that each commit writes to the simulated disk.

import { Database as RealDatabase } from "bun:sqlite";
import type { Inode } from "./disk.ts";
import { fail } from "./files.ts";
import type { SimProcess } from "./process.ts";
import { refuseOthers } from "./globals.ts";

const constants = { SQLITE_OPEN_READWRITE: 2, SQLITE_OPEN_NOFOLLOW: 0x01000000, SQLITE_FCNTL_HAS_MOVED: 20 };

export function makeSqlite(host: SimProcess): object {
  /** A database: in memory only, or with a file on the simulated disk. */
  class Index {
    readonly #real: RealDatabase;
    readonly #inode: Inode | null;

    constructor(path: string) {
      this.#inode = path === ":memory:" ? null : findFile(host, path);
      const size = this.#inode?.size ?? 0;
      this.#real =
        this.#inode === null || size === 0
          ? new RealDatabase(":memory:")
          : RealDatabase.deserialize(Buffer.from(this.#inode.content));
    }

    run(sql: string): void {
      // A database in memory has no journal.
      if (/^PRAGMA (?:journal_mode|synchronous|busy_timeout)/.test(sql)) return;
      if (this.#inode !== null) host.step(`sqlite ${sql.slice(0, 20)}`);
      this.#real.run(sql);
      if (!this.#real.inTransaction) this.#inode?.commit(this.#real.serialize());
    }

    query(sql: string): object {
      return this.#real.query(sql);
    }

    close(): void {
      this.#real.close();
    }
  }

  class Lock {
    readonly #path: string;
    readonly #inode: Inode;

    constructor(path: string) {
      this.#path = path;
      this.#inode = findFile(host, path);
    }

    run(sql: string): void {
      if (sql.startsWith("BEGIN IMMEDIATE")) this.#begin();
      else if (!sql.startsWith("PRAGMA")) throw new Error(`the simulator has no SQL: ${sql}`);
    }

    fileControl(what: number, into: Int32Array): void {
      if (what !== constants.SQLITE_FCNTL_HAS_MOVED) throw new Error("the simulator does not know this");
      into[0] = host.disk.find(this.#path) === this.#inode ? 0 : 1;
    }

    close(): void {
      if (this.#inode.lock?.holder === this) this.#inode.lock = null;
    }

    #begin(): void {
      if (this.#inode.size > 0)
        throw Object.assign(new Error("file is not a database"), { code: "SQLITE_NOTADB" });
      if (this.#inode.lock !== null && this.#inode.lock.holder !== this)
        throw Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
      this.#inode.lock = { holder: this, process: host };
    }
  }

  function Database(path: string): Index | Lock {
    return path.endsWith(".lock") ? new Lock(path) : new Index(path);
  }
  return refuseOthers({ Database, constants }, "bun:sqlite");
}

function findFile(host: SimProcess, path: string): Inode {
  host.step(`sqlite ${path}`);
  const inode = host.disk.find(path);
  if (inode === undefined) throw fail("SQLITE_CANTOPEN", "open", path);
  return inode;
}
