// bun:sqlite, as far as lib/file-lock.ts uses it: a lock on a file that ends with its process.

import type { Inode } from "./disk.ts";
import { fail, type FileHost } from "./files.ts";

const MAGIC = "SQLite format 3\0";

/** `write`: node:fs.writeFileSync of the same process. */
export function makeSqlite(host: FileHost, write: (path: string, text: string) => void): object {
  class Database {
    readonly #path: string;
    readonly #inode: Inode;
    #holder = "";

    constructor(path: string) {
      this.#path = path;
      host.step(`sqlite ${path}`);
      this.#inode = host.disk.find(path) ?? host.disk.create(path, "file", 0o644, host.wall());
    }

    run(sql: string, values: readonly unknown[] = []): void {
      if (sql.startsWith("BEGIN IMMEDIATE")) this.#begin();
      else if (sql.startsWith("INSERT")) this.#holder = JSON.stringify(values);
      else if (sql.startsWith("COMMIT")) this.#commit();
      else if (!/^(?:PRAGMA|CREATE TABLE|DELETE)/.test(sql))
        throw new Error(`the simulator has no SQL: ${sql}`);
    }

    query(): { get(): unknown } {
      const text = this.#inode.content.toString("latin1").slice(MAGIC.length);
      const [pid, since]: unknown[] = JSON.parse(text);
      return { get: () => ({ pid, since }) };
    }

    close(): void {
      if (this.#inode.lock?.holder === this) this.#inode.lock = null;
    }

    #begin(): void {
      const text = this.#inode.content.toString("latin1");
      if (text !== "" && !/^SQLite format 3\0\[.*\]$/.test(text))
        throw Object.assign(new Error("file is not a database"), { code: "SQLITE_NOTADB" });
      if (this.#inode.lock !== null && this.#inode.lock.holder !== this)
        throw Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
      this.#inode.lock = { holder: this, process: host };
    }

    #commit(): void {
      try {
        if (host.disk.find(this.#path) === this.#inode) write(this.#path, MAGIC + this.#holder);
      } catch (error) {
        const code: unknown = Reflect.get(Object(error), "code");
        throw Object.assign(fail("ENOSPC", "write"), {
          code: code === "ENOSPC" ? "SQLITE_FULL" : "SQLITE_IOERR",
        });
      } finally {
        this.#inode.lock = null;
      }
    }
  }

  return { Database };
}
