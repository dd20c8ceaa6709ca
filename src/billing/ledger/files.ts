// Writes, rotates and syncs an open ledger's files.

import {
  closeSync,
  constants,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";

import { readBootId } from "../../lib/files/platform.ts";
import { openOwn, removeDrafts, replaceFile, truncateOwn } from "../../lib/files/own-file.ts";
import { encode, encodeStart, type EndRecord, isFromThisStart, type OpenRequest } from "./journal.ts";
import { nameRotated, type Position } from "./rotation.ts";
import type { Recovery } from "./recovery.ts";

export interface FileOptions {
  readonly path: string;
  readonly rotate: { readonly monthly: boolean };
  /** `note`: the ledger is unharmed. */
  readonly report: (message: string, level?: "note") => void;
  /** Tests replace this to hold a sync back. */
  readonly syncFile?: (file: AppendFile) => Promise<void>;
}

/** A larger journal is replaced, so that a start reads little. */
const JOURNAL_FULL_BYTES = 1 << 20;

export class LedgerFiles {
  readonly #options: FileOptions;
  readonly #journalPath: string;
  #lines: AppendFile;
  #journal: AppendFile;
  #prev: string;
  #month: string | null;
  #synced: Position | null;
  /** A sync failed since the machine started: later syncs prove nothing. */
  #hasFailed: boolean;
  #noted: string | null = null;
  readonly #boot = readBootId();
  #journalFullAt = JOURNAL_FULL_BYTES;
  /** The journal names closed requests, or lacks open ones. */
  isJournalStale = true;

  constructor(options: FileOptions, { prev, month, noted, doubts, endState }: Recovery) {
    const { path } = options;
    this.#options = options;
    this.#journalPath = `${path}.open`;
    // The journal is made first. If a power cut takes a ledger's first lines,
    // the journal shows that the file is a ledger.
    this.#journal = AppendFile.open(this.#journalPath, false);
    this.#lines = AppendFile.open(path, true);
    this.#prev = prev;
    this.#month = month;
    this.#hasFailed = noted?.failed === true && isFromThisStart(noted);
    // If lines were lost, the position after them is noted as synced. The next line will show
    // the gap, but a power cut could take that line. With the note, a start finds the loss anyway.
    const known = endState === "unexplained" ? null : (noted?.synced ?? null);
    this.#synced = doubts.isEndGone ? this.#position : known;
    for (const each of [this.#journalPath, `${path}.channels.json`, `${path}.alerts.json`])
      removeDrafts(each);
  }

  get #position(): Position {
    return { offset: this.#lines.size, prev: this.#prev };
  }

  /** Also notes the end of the lines. */
  writeJournal(records: readonly string[]): void {
    const end = this.#noted === this.#prev ? [] : [encode({ end: this.#position })];
    try {
      this.#journal.write([...end, ...records]);
      this.#noted = this.#prev;
    } catch (error) {
      this.isJournalStale = true;
      throw error;
    }
  }

  writeLines(lines: readonly string[], prev: string, now: number): void {
    this.#rotateIfDue(now);
    this.#lines.write(lines);
    this.#prev = prev;
  }

  /** Removes closed requests from a stale or large journal,
   *  and with `afresh` from any journal. */
  tidyJournal(open: ReadonlyMap<string, OpenRequest>, afresh: boolean): void {
    if (afresh || this.isJournalStale || this.#journal.size > this.#journalFullAt) this.rewriteJournal(open);
  }

  /** A crash leaves the old journal or the new one, complete. */
  rewriteJournal(open: ReadonlyMap<string, OpenRequest>): void {
    const again = Array.from(open.values(), ({ intent, channels }) =>
      encode({ open: intent, channels: [...channels] }),
    );
    const failed = this.#hasFailed || undefined;
    const start = encodeStart({ end: this.#position, synced: this.#synced, boot: this.#boot, failed });
    replaceFile(this.#journalPath, `${[start, ...again].join("\n")}\n`);
    this.#journal.close();
    this.#journal = AppendFile.open(this.#journalPath, false);
    this.isJournalStale = false;
    this.#noted = this.#prev;
    this.#journalFullAt = Math.max(JOURNAL_FULL_BYTES, 2 * this.#journal.size);
  }

  /** Brings all written lines to the disk, and notes it unless a sync failed before.
   *  The journal only has to survive a killed process. */
  async sync(): Promise<void> {
    const { syncFile = (file) => file.sync() } = this.#options;
    const synced = this.#position;
    try {
      await syncFile(this.#lines);
    } catch (error) {
      this.#noteFailure();
      throw error;
    }
    if (this.#hasFailed || synced.prev === this.#synced?.prev) return;
    this.#synced = synced;
    this.#note({ end: this.#position, synced });
  }

  #noteFailure(): void {
    this.#hasFailed = true;
    this.#note({ end: this.#position, failed: true });
  }

  /** If this fails, the journal is rewritten within a second. */
  #note(end: EndRecord): void {
    this.#noted = this.#prev;
    try {
      this.writeJournal([encode(end)]);
    } catch {
      // `writeJournal` has noted that the journal is stale.
    }
  }

  close(): void {
    for (const file of [this.#lines, this.#journal]) file.close();
  }

  /** Throws if another program changed the ledger. Rewrites a missing journal. */
  requireInPlace(open: ReadonlyMap<string, OpenRequest>): void {
    if (!this.#lines.isInPlace())
      throw new Error(
        `${this.#options.path} was moved, removed or changed by another program. Put it back, or restart the gateway to go on with what is there`,
      );
    if (!this.#journal.isInPlace()) this.rewriteJournal(open);
  }

  #rotateIfDue(now: number): void {
    const { rotate, report } = this.#options;
    const month = new Date(now).toISOString().slice(0, 7);
    const before = this.#month;
    if (rotate.monthly && before !== null && month > before && this.#lines.size > 0) {
      try {
        this.#rotate(before);
      } catch (error) {
        report(`the ledger could not be rotated and continues in the same file: ${String(error)}`);
      }
    }
    this.#month = month;
  }

  /** The old file is synced first: a power cut may tear only the new one. */
  #rotate(month: string): void {
    const { path } = this.#options;
    if (this.#hasFailed) throw new Error("a sync has failed, so its last lines may not be on the disk");
    try {
      this.#lines.syncNow();
    } catch (error) {
      this.#noteFailure();
      throw error;
    }
    const rotated = nameRotated(path, month);
    renameSync(path, rotated);
    let file: AppendFile;
    try {
      file = AppendFile.open(path, true);
    } catch (error) {
      renameSync(rotated, path);
      throw error;
    }
    this.#lines.close();
    this.#lines = file;
    this.isJournalStale = true;
  }
}

const APPEND_OR_CREATE = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

/** Reused by each write. */
const room = Buffer.allocUnsafe(1 << 17);

/** A file that grows by whole lines. What a failed write left is removed. */
export class AppendFile {
  readonly #path: string;
  readonly #fd: number;
  readonly #ino: number;
  readonly #dev: number;
  #size: number;
  /** Bytes of a failed write may follow after `size`. */
  #torn = false;
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

  get size(): number {
    return this.#size;
  }

  /** Writes all records, or throws and leaves none. */
  write(records: readonly string[]): void {
    // The descriptor's number may now belong to another file.
    if (this.#closed) throw new Error("the file is closed");
    const text = `${records.join("\n")}\n`;
    const isLong = 3 * text.length > room.length;
    const bytes = isLong ? Buffer.from(text) : room.subarray(0, room.write(text));
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

  /** Brings all written bytes to the disk.
   *  After a failed sync, Linux treats unsaved bytes as synced. */
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
