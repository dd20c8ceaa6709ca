// What the two files beside a ledger say about its end. The gateway notes its last line in both, so that the deletion
// of one of them hides nothing.

import { isNamed, type JournalReading, readJournal } from "../ledger/journal.ts";
import { type FiledEnd, judgeEnds, type NotedEnd, readEnds } from "../ledger/noted-end.ts";
import {
  END_FILE_MISSING,
  END_MISSING,
  END_NOT_NOTED,
  END_REMOVED,
  JOURNAL_CUT,
  NO_JOURNAL,
  type Problem,
} from "./finding.ts";

export class NotedEnds {
  readonly #journal: JournalReading;
  readonly #filed: readonly FiledEnd[];
  readonly #running: boolean;
  readonly #noted: readonly NotedEnd[];
  /** The hashes of lines that must be there and were not met yet. */
  readonly #missing: Set<string>;
  #isAfterEnd = false;

  /** To be called before the ledger is read: a gateway that runs writes a line before it notes it. */
  constructor(path: string, running: boolean) {
    this.#running = running;
    this.#filed = readEnds(path);
    this.#journal = readJournal(`${path}.open`);
    this.#noted = [...this.#filed.map(({ noted }) => noted), this.#journal.noted].filter(
      (noted) => noted !== null,
    );
    const positions = this.#noted.flatMap(({ end, synced }) => (synced === null ? [end] : [end, synced]));
    this.#missing = new Set(positions.map(({ prev }) => prev));
  }

  /** To be called with the hash of each line, in their order, and with that of a missing line that another one follows. */
  meet(hash: string): void {
    this.#missing.delete(hash);
    if (this.#journal.noted?.end.prev === hash) this.#isAfterEnd = true;
  }

  /** A killed gateway wrote these lines after it had noted the end: the journal names their requests. */
  findUnnamed(line: Readonly<Record<string, unknown>>): Problem | null {
    if (!this.#isAfterEnd || this.#running) return null;
    return isNamed(this.#journal, line) ? null : JOURNAL_CUT;
  }

  listProblems(): Problem[] {
    const state = judgeEnds(this.#noted, ({ prev }) => !this.#missing.has(prev));
    const isJournalGone = this.#journal.noted === null && this.#filed.some(({ hasJournal }) => hasJournal);
    return [
      ...(state === "unexplained" ? [END_REMOVED] : []),
      ...(state === "taken by a power cut" ? [END_MISSING] : []),
      ...(isJournalGone && !this.#running ? [NO_JOURNAL] : []),
    ];
  }

  /** What could not be checked. */
  listNotes(): string[] {
    if (this.#filed.length > 0) return [];
    return [this.#journal.noted === null ? END_NOT_NOTED : END_FILE_MISSING];
  }
}
