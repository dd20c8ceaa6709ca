// bun:sqlite, as far as lib/files/file-lock.ts uses it: a lock on a file that ends with its process.

import type { Inode } from "./disk.ts";
import { fail, type FileHost } from "./files.ts";
import { refuseOthers } from "./zlib.ts";

const constants = { SQLITE_OPEN_READWRITE: 2, SQLITE_OPEN_NOFOLLOW: 0x01000000, SQLITE_FCNTL_HAS_MOVED: 20 };

export function makeSqlite(host: FileHost): object {
  class Database {
    readonly #path: string;
    readonly #inode: Inode;

    constructor(path: string) {
      this.#path = path;
      host.step(`sqlite ${path}`);
      const inode = host.disk.find(path);
      if (inode === undefined) throw fail("SQLITE_CANTOPEN", "open", path);
      this.#inode = inode;
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

  return refuseOthers({ Database, constants }, "bun:sqlite");
}
