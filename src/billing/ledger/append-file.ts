// A file that only grows, by whole records. If a write fails, what it left
// behind is removed. This file does not know what the records mean.

import {
  closeSync,
  constants,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";

import { CREATE_NEW, nameDraft, openOwn } from "../../lib/files/own-file.ts";

const SCRATCH_BYTES = 256 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/** The result is valid until the next call: frequent writes then need no memory of their own. */
function encode(text: string): Buffer {
  // No character takes more than three bytes.
  if (text.length > SCRATCH_BYTES / 3) return Buffer.from(text);
  return scratch.subarray(0, scratch.write(text));
}

const APPEND_OR_CREATE = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

export class AppendFile {
  #path: string;
  readonly #fd: number;
  #size: number;
  /** There may be bytes of a failed write after `size`. */
  #torn = false;
  #syncing = 0;
  #closed = false;

  private constructor(path: string, fd: number) {
    this.#path = path;
    this.#fd = fd;
    this.#size = fstatSync(this.#fd).size;
  }

  /** `shared`: the file may have other hard links. */
  static open(path: string, shared: boolean): AppendFile {
    return new AppendFile(path, openOwn(path, { flags: APPEND_OR_CREATE, shared }));
  }

  /** A new file under a temporary name, until `moveTo` puts it in place. */
  static createDraft(path: string): AppendFile {
    const draft = nameDraft(path);
    return new AppendFile(draft, openOwn(draft, { flags: CREATE_NEW | constants.O_APPEND }));
  }

  /** In bytes; whole records only. */
  get size(): number {
    return this.#size;
  }

  /** Writes all of it or throws: then nothing of it stays. */
  write(text: string): void {
    // The descriptor's number may belong to another file by now.
    if (this.#closed) throw new Error("the file is closed");
    const bytes = encode(text);
    this.#repair();
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at, bytes.length - at);
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

  /** Removes the text that was written last. */
  takeBack(text: string): void {
    this.#size -= Buffer.byteLength(text);
    this.#torn = true;
    this.#repair();
  }

  /** Everything written before the call is on the disk when this resolves. */
  sync(): Promise<void> {
    this.#syncing += 1;
    return new Promise((resolve, reject) => {
      fdatasync(this.#fd, (error) => {
        this.#syncing -= 1;
        if (this.#closed && this.#syncing === 0) closeSync(this.#fd);
        if (error) reject(error);
        else resolve();
      });
    });
  }

  syncNow(): void {
    fdatasyncSync(this.#fd);
  }

  moveTo(path: string): void {
    renameSync(this.#path, path);
    this.#path = path;
  }

  /** For a draft that is not needed. */
  discard(): void {
    this.close();
    rmSync(this.#path, { force: true });
  }

  /** False if another program has moved, removed or changed the file. */
  isInPlace(): boolean {
    const there = statSync(this.#path, { throwIfNoEntry: false });
    const here = fstatSync(this.#fd);
    const isSameFile = there?.ino === here.ino && there.dev === here.dev;
    return isSameFile && (this.#torn || here.size === this.#size);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#syncing === 0) closeSync(this.#fd);
  }

  #repair(): void {
    if (!this.#torn) return;
    ftruncateSync(this.#fd, this.#size);
    this.#torn = false;
  }
}
