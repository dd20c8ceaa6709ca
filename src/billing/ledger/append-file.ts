// A file that only grows, by whole records: what a failed write left behind is
// taken away again. Knows nothing of what the records mean.

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

import { CREATE_NEW, nameDraft, openOwn } from "../../lib/own-file.ts";

const SCRATCH_BYTES = 256 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/** Good until the next call: what is written often needs no memory of its own. */
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
  /** Bytes of a failed write may stand behind `size`. */
  #torn = false;
  #syncing = 0;
  #closed = false;

  private constructor(path: string, fd: number) {
    this.#path = path;
    this.#fd = fd;
    this.#size = fstatSync(this.#fd).size;
  }

  /** `shared`: it may have other hard links. */
  static open(path: string, shared: boolean): AppendFile {
    return new AppendFile(path, openOwn(path, { flags: APPEND_OR_CREATE, shared }));
  }

  /** A new one under a name of its own, until `moveTo` gives it its place. */
  static createDraft(path: string): AppendFile {
    const draft = nameDraft(path);
    return new AppendFile(draft, openOwn(draft, { flags: CREATE_NEW | constants.O_APPEND }));
  }

  /** Bytes of whole records. */
  get size(): number {
    return this.#size;
  }

  /** All of it or, when this throws, nothing of it. */
  write(text: string): void {
    // The descriptor's number may be another file's by now.
    if (this.#closed) throw new Error("the file is closed");
    const bytes = encode(text);
    this.#mend();
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at, bytes.length - at);
    } catch (error) {
      this.#torn = true;
      try {
        this.#mend();
      } catch {
        // Tried again before the next write.
      }
      throw error;
    }
    this.#size += bytes.length;
  }

  clear(): void {
    ftruncateSync(this.#fd, 0);
    this.#size = 0;
    this.#torn = false;
  }

  /** What had been written before the call is on the disk when this resolves. */
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

  /** Of a draft that will have no place. */
  discard(): void {
    this.close();
    rmSync(this.#path, { force: true });
  }

  /** False when somebody has moved, removed or changed the file. */
  isInPlace(): boolean {
    const there = statSync(this.#path, { throwIfNoEntry: false });
    const here = fstatSync(this.#fd);
    return there?.ino === here.ino && there.dev === here.dev && here.size === this.#size;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#syncing === 0) closeSync(this.#fd);
  }

  #mend(): void {
    if (!this.#torn) return;
    ftruncateSync(this.#fd, this.#size);
    this.#torn = false;
  }
}
