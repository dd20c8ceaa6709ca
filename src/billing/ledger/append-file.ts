// A file that only grows, by whole records of one line each. If a write fails,
// what it left behind is removed. This file does not know what the records mean.

import { closeSync, constants, fdatasync, fdatasyncSync, fstatSync, statSync, writeSync } from "node:fs";

import { openOwn, truncateOwn } from "../../lib/files/own-file.ts";

const APPEND_OR_CREATE = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

export class AppendFile {
  readonly #path: string;
  readonly #fd: number;
  readonly #ino: number;
  readonly #dev: number;
  #size: number;
  /** There may be bytes of a failed write after `size`. */
  #torn = false;
  /** Syncs that run. */
  #syncing = 0;
  #closed = false;

  private constructor(path: string, fd: number) {
    this.#path = path;
    this.#fd = fd;
    const { ino, dev, size } = fstatSync(fd);
    this.#ino = ino;
    this.#dev = dev;
    this.#size = size;
  }

  /** `shared`: the file may have other hard links. */
  static open(path: string, shared: boolean): AppendFile {
    return new AppendFile(path, openOwn(path, { flags: APPEND_OR_CREATE, shared }));
  }

  /** In bytes; whole records only. */
  get size(): number {
    return this.#size;
  }

  /** Writes all of them, or throws and leaves nothing of them in the file. */
  write(records: readonly string[]): void {
    // The descriptor's number may belong to another file by now.
    if (this.#closed) throw new Error("the file is closed");
    const bytes = Buffer.from(`${records.join("\n")}\n`);
    this.#repair();
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at);
    } catch (error) {
      this.#torn = true;
      try {
        this.#repair();
      } catch {
        // The next write tries again.
      }
      throw error;
    }
    this.#size += bytes.length;
  }

  /** Everything written before the call is on the disk when this resolves, unless a sync has failed before: after that, Linux
   *  takes the pages for written. */
  async sync(): Promise<void> {
    this.#syncing += 1;
    try {
      await new Promise<void>((resolve, reject) => {
        fdatasync(this.#fd, (error) => (error ? reject(error) : resolve()));
      });
    } finally {
      this.#syncing -= 1;
      if (this.#closed && this.#syncing === 0) closeSync(this.#fd);
    }
  }

  syncNow(): void {
    fdatasyncSync(this.#fd);
  }

  /** False if another program has moved, removed or changed the file. */
  isInPlace(): boolean {
    const there = statSync(this.#path, { throwIfNoEntry: false });
    const isSameFile = there?.ino === this.#ino && there.dev === this.#dev;
    return isSameFile && (this.#torn || there.size === this.#size);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#syncing === 0) closeSync(this.#fd);
  }

  #repair(): void {
    if (!this.#torn) return;
    truncateOwn(this.#fd, this.#path, this.#size);
    this.#torn = false;
  }
}
