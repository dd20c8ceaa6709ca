// The two files of an open ledger on the disk, the lines and the journal: how
// they are written, rotated, synced and kept where they belong. What is written,
// and what happens when it can't be, is ledger-writer.ts.

import { renameSync } from "node:fs";

import { removeDrafts } from "../../lib/own-file.ts";
import { AppendFile } from "./append-file.ts";
import { nameRotated } from "./rotation.ts";
import type { OpenRequest } from "./journal.ts";
import { encodeOpenAgain, encodeStart } from "./journal.ts";
import type { Recovery } from "./recovery.ts";
import { mendEnd } from "./recovery.ts";

export interface StoreOptions {
  readonly path: string;
  readonly journalPath: string;
  readonly sync: "batch" | "always" | "never";
  readonly rotate: { readonly bytes: number | null; readonly monthly: boolean };
  readonly report: (message: string) => void;
}

/** A journal in which nothing is open is emptied beyond this size: not each time, because that costs a system call. */
const JOURNAL_IDLE_BYTES = 64 << 10;
/** Beyond this it is written anew with what is open. It bounds what recovery has to read. */
const JOURNAL_FULL_BYTES = 1 << 20;
const PLACE_CHECK_MS = 1000;
const ROTATE_AGAIN_MS = 60_000;

export class LedgerStore {
  readonly #options: StoreOptions;
  #lines: AppendFile;
  #journal: AppendFile;
  /** Files that were rotated away and may not be on the disk yet. */
  #retired: AppendFile[] = [];
  /** Hash of the last line that is written. */
  #prev: string;
  #month: string | null;
  #checkPlaceAt = 0;
  #rotateAt = 0;
  #journalFullAt = JOURNAL_FULL_BYTES;
  /** The journal names requests that it need not name, or lacks some. */
  #journalStale = true;
  #written = 0;

  constructor(options: StoreOptions, recovery: Recovery) {
    this.#options = options;
    this.#prev = recovery.prev;
    this.#month = recovery.month;
    this.#lines = AppendFile.open(options.path, true);
    this.#journal = AppendFile.open(options.journalPath, false);
    for (const path of [options.journalPath, `${options.path}.sums`, `${options.path}.channels.json`])
      removeDrafts(path);
  }

  /** The end of the lines that are written. */
  get position(): { offset: number; prev: string } {
    return { offset: this.#lines.size, prev: this.#prev };
  }

  /** Bytes of lines written since the ledger was opened. */
  get written(): number {
    return this.#written;
  }

  writeJournal(records: string): void {
    const start = this.#journal.size === 0 ? encodeStart(this.position) : "";
    try {
      this.#journal.write(start + records);
    } catch (error) {
      this.#journalStale = true;
      throw error;
    }
  }

  /** `prev` is the hash of the last of these lines. */
  writeLines(lines: readonly string[], prev: string, now: number): void {
    // A clock that was set back would stop the checks until it is then again.
    if (now >= this.#checkPlaceAt || now < this.#checkPlaceAt - PLACE_CHECK_MS) this.#checkPlace(now);
    this.#rotateIfDue(now);
    const text = `${lines.join("\n")}\n`;
    this.#lines.write(text);
    this.#prev = prev;
    this.#written += text.length;
  }

  /** Only when every line is written: the journal forgets all but the open requests. `anew`: prove that it can be written. */
  tidyJournal(open: ReadonlyMap<string, OpenRequest>, anew: boolean): void {
    const { size } = this.#journal;
    const due =
      anew ||
      this.#journalStale ||
      size > this.#journalFullAt ||
      (open.size === 0 && size > JOURNAL_IDLE_BYTES);
    if (!due) return;
    if (this.#options.sync === "always") for (const file of [...this.#retired, this.#lines]) file.syncNow();
    if (open.size === 0 && !anew) this.#journal.clear();
    else this.#rewriteJournal(open);
    this.#journalStale = false;
  }

  /** Every line that had been written before the call is on the disk when this resolves. The journal too where requests
   *  wait for that: elsewhere it is there for the process's end, which what is written survives, not for the power's. */
  async sync(): Promise<void> {
    const retired = this.#retired;
    this.#retired = [];
    const journals = this.#options.sync === "always" ? [this.#journal] : [];
    const synced = Promise.all([...retired, this.#lines, ...journals].map((file) => file.sync()));
    for (const file of retired) file.close();
    await synced;
  }

  close(): void {
    for (const file of [...this.#retired, this.#lines, this.#journal]) file.close();
  }

  /** Whole or not at all: a crash leaves the old journal or the new one. */
  #rewriteJournal(open: ReadonlyMap<string, OpenRequest>): void {
    const fresh = AppendFile.createDraft(this.#options.journalPath);
    try {
      fresh.write(encodeStart(this.position) + Array.from(open.values(), encodeOpenAgain).join(""));
      if (this.#options.sync === "always") fresh.syncNow();
      fresh.moveTo(this.#options.journalPath);
    } catch (error) {
      fresh.discard();
      throw error;
    }
    this.#journal.close();
    this.#journal = fresh;
    this.#journalFullAt = Math.max(JOURNAL_FULL_BYTES, 2 * fresh.size);
  }

  #rotateIfDue(now: number): void {
    const { path, rotate, report } = this.#options;
    const month = new Date(now).toISOString().slice(0, 7);
    const full = rotate.bytes !== null && this.#lines.size >= rotate.bytes;
    const over = rotate.monthly && this.#month !== null && month > this.#month;
    if ((full || over) && this.#lines.size > 0 && now >= this.#rotateAt) {
      try {
        renameSync(path, nameRotated(path, this.#month ?? month));
        this.#reopen();
      } catch (error) {
        this.#rotateAt = now + ROTATE_AGAIN_MS;
        report(`the ledger could not be rotated, it goes on in the same file: ${String(error)}`);
      }
    }
    this.#month = month;
  }

  /** Lines written to a file that was moved away or removed would be lost to every reader. */
  #checkPlace(now: number): void {
    this.#checkPlaceAt = now + PLACE_CHECK_MS;
    if (!this.#journal.isInPlace()) {
      const journal = AppendFile.open(this.#options.journalPath, false);
      this.#journal.close();
      this.#journal = journal;
      this.#journalStale = true;
    }
    if (this.#lines.isInPlace()) return;
    this.#options.report(
      `${this.#options.path} was moved, removed or changed by somebody else; it goes on at that path`,
    );
    this.#reopen();
  }

  #reopen(): void {
    mendEnd(this.#options.path);
    const file = AppendFile.open(this.#options.path, true);
    if (this.#options.sync === "never") this.#lines.close();
    else this.#retired.push(this.#lines);
    this.#lines = file;
    this.#journalStale = true;
  }
}
