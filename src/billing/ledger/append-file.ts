// A file that only grows, by whole records of one line each. If a write fails,
// what it left behind is removed. This file does not know what the records mean.

import {
  closeSync,
  constants,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";

import { CREATE_NEW, nameDraft, openOwn, replaceName, truncateOwn } from "../../lib/files/own-file.ts";

const SCRATCH_BYTES = 256 * 1024;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

const NEWLINE = 0x0a;

/** Puts the records into `scratch`, so that frequent writes need no memory of their own. Returns their bytes. Null: they
 *  may not fit. */
function encode(records: readonly string[]): number | null {
  let length = 0;
  for (const record of records) length += record.length + 1;
  // No character takes more than three bytes.
  if (length > SCRATCH_BYTES / 3) return null;
  let end = 0;
  for (const record of records) {
    end += scratch.write(record, end);
    scratch[end] = NEWLINE;
    end += 1;
  }
  return end;
}

/** Syncs come soon after writes, so less than this waits for one. */
const MAX_REWRITTEN_BYTES = 8 << 20;

const APPEND_OR_CREATE = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

/** What a sync found when it began. */
interface BegunSync {
  readonly from: number;
  readonly size: number;
  readonly failures: number;
}

export class AppendFile {
  #path: string;
  readonly #fd: number;
  readonly #ino: number;
  readonly #dev: number;
  #size: number;
  /** The bytes of the last write. */
  #lastBytes = 0;
  /** There may be bytes of a failed write after `size`. */
  #torn = false;
  /** Syncs that run or wait. */
  #syncing = 0;
  /** Ends with the last of them. */
  #lastSync: Promise<unknown> = Promise.resolve();
  /** So many syncs have failed. */
  #failures = 0;
  /** What is before it is on the disk, as far as anybody knows. */
  #synced: number;
  /** The last sync has failed, or whoever had the file open before was killed and may have known of one that failed. */
  #hasFailed: boolean;
  #closed = false;

  private constructor(path: string, fd: number, syncedBytes: number | null) {
    this.#path = path;
    this.#fd = fd;
    const { ino, dev, size } = fstatSync(fd);
    this.#ino = ino;
    this.#dev = dev;
    this.#size = size;
    this.#synced = Math.max(Math.min(syncedBytes ?? size, size), size - MAX_REWRITTEN_BYTES);
    this.#hasFailed = this.#synced < size;
  }

  /** `shared`: the file may have other hard links. `syncedBytes`: what is certainly on the disk; null: not known. */
  static open(path: string, shared: boolean, syncedBytes: number | null = null): AppendFile {
    return new AppendFile(path, openOwn(path, { flags: APPEND_OR_CREATE, shared }), syncedBytes);
  }

  /** A new file under a temporary name, until `moveTo` puts it in place. */
  static createDraft(path: string): AppendFile {
    const draft = nameDraft(path);
    return new AppendFile(draft, openOwn(draft, { flags: CREATE_NEW | constants.O_APPEND }), null);
  }

  /** In bytes; whole records only. */
  get size(): number {
    return this.#size;
  }

  /** Writes all of them, or throws and leaves nothing of them in the file. */
  write(records: readonly string[]): void {
    // The descriptor's number may belong to another file by now.
    if (this.#closed) throw new Error("the file is closed");
    const encoded = encode(records);
    const bytes = encoded === null ? Buffer.from(`${records.join("\n")}\n`) : scratch;
    const length = encoded ?? bytes.length;
    this.#repair();
    try {
      for (let at = 0; at < length;) at += writeSync(this.#fd, bytes, at, length - at);
    } catch (error) {
      this.#torn = true;
      try {
        this.#repair();
      } catch {
        // The next write tries again.
      }
      throw error;
    }
    this.#size += length;
    this.#lastBytes = length;
  }

  /** Removes what the last `write` wrote. */
  takeBack(): void {
    this.#size -= this.#lastBytes;
    this.#lastBytes = 0;
    this.#torn = true;
    this.#repair();
  }

  /** Everything written before the call is on the disk when this resolves. One at a time: of two, the system reports a
   *  failure to one only, and the other seems to have succeeded. */
  async sync(): Promise<void> {
    this.#syncing += 1;
    const own = this.#lastSync.then(() => this.#syncOnce());
    this.#lastSync = own.catch(() => {});
    try {
      await own;
    } finally {
      this.#syncing -= 1;
      if (this.#closed && this.#syncing === 0) closeSync(this.#fd);
    }
  }

  #syncOnce(): Promise<void> {
    this.#rewrite();
    const begun = this.#beginSync();
    return new Promise((resolve, reject) => {
      fdatasync(this.#fd, (error) => {
        if (error) this.#noteFailure(begun);
        if (error) reject(error);
        else if (this.#noteSync(begun)) resolve();
        else reject(new Error("another sync failed while this one ran"));
      });
    });
  }

  syncNow(): void {
    this.#rewrite();
    const begun = this.#beginSync();
    try {
      fdatasyncSync(this.#fd);
    } catch (error) {
      this.#noteFailure(begun);
      throw error;
    }
    this.#noteSync(begun);
  }

  #beginSync(): BegunSync {
    return { from: this.#synced, size: this.#size, failures: this.#failures };
  }

  #noteFailure({ from }: BegunSync): void {
    this.#failures += 1;
    this.#hasFailed = true;
    // `syncNow` may have succeeded meanwhile, with pages that this failure had made clean.
    this.#synced = Math.min(this.#synced, from);
  }

  /** False: it proves nothing, because another one has failed since it began. */
  #noteSync({ size, failures }: BegunSync): boolean {
    if (failures !== this.#failures) return false;
    this.#hasFailed = false;
    this.#synced = Math.max(this.#synced, size);
    return true;
  }

  /** After a failed sync, Linux takes the pages for written, and a later sync that succeeds does not bring them to the disk.
   *  So they are written once more, byte for byte. */
  #rewrite(): void {
    const bytes = Buffer.alloc(this.#hasFailed ? this.#size - this.#synced : 0);
    if (bytes.length === 0) return;
    // A descriptor that appends would write them at the end.
    const fd = openOwn(this.#path, { flags: constants.O_RDWR, shared: true });
    try {
      if (fstatSync(fd).ino !== this.#ino) return;
      const length = readSync(fd, bytes, 0, bytes.length, this.#synced);
      for (let at = 0; at < length;) at += writeSync(fd, bytes, at, length - at, this.#synced + at);
    } finally {
      closeSync(fd);
    }
  }

  moveTo(path: string): void {
    replaceName(this.#path, path);
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
