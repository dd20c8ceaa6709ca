// Writes the ledger of a running gateway. Before a request goes out, the journal names it. When
// the request has ended, the ledger gets its line.
// Each turn of the event loop writes once.

import { GatewayError, messageOf } from "../../lib/errors.ts";
import type { FileLock } from "../../lib/files/file-lock.ts";
import { everySecond } from "../../lib/time/heartbeat.ts";
import { atTurnEnd, nextTurn } from "../../lib/time/next-turn.ts";
import { type AnswerHistory, CachedPrompts } from "../limits/forecasts.ts";
import { Table } from "../store/open.ts";
import { compileDraftCheck, findDraftFault } from "./check.ts";
import type { FileOptions, LedgerFiles } from "./files.ts";
import { addAttempt, draftInterrupted, draftUnknown, encode, type OpenRequest } from "./journal.ts";
import {
  type CorrectionDraft,
  type Draft,
  encodeLine,
  hashLine,
  type Intent,
  type LineDraft,
  type MarkDraft,
} from "./line.ts";
import { draftAcceptance } from "./mark.ts";
import type { Sums, SumsOptions } from "./sums.ts";

export interface LedgerOptions extends FileOptions, Pick<SumsOptions, "zone" | "births"> {
  readonly now?: () => number;
}

/** A power cut loses at most the lines of this time and of an unfinished sync. */
const SYNC_MS = 100;
const RETRY_MS = 1000;
const COMPILE_AFTER_MS = 2000;
/** A table reads this much in tens of milliseconds. */
const STEP_BYTES = 1 << 20;

export class LedgerWriter {
  readonly #options: LedgerOptions;
  readonly #now: () => number;
  readonly #lock: FileLock;
  readonly #files: LedgerFiles;
  /** The sums include lines that are not written yet. */
  readonly sums: Sums;
  readonly answers: AnswerHistory;
  readonly prompts = new CachedPrompts();
  readonly #open = new Map<string, OpenRequest>();
  /** The hash of the last line, written or not. */
  #prev: string;
  #lines: string[] = [];
  #records: string[] = [];
  #unnamed: string[] = [];
  #named: PromiseWithResolvers<void> | null = null;
  #problem: string | null = null;
  #scheduled = false;
  #syncing = Promise.resolve();
  #closing = false;
  #syncTimer: NodeJS.Timeout | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #endWatch: () => void = () => {};

  constructor(
    options: LedgerOptions,
    opened: { lock: FileLock; files: LedgerFiles; sums: Sums; answers: AnswerHistory },
    prev: string,
  ) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#lock = opened.lock;
    this.#files = opened.files;
    this.sums = opened.sums;
    this.answers = opened.answers;
    this.#prev = prev;
  }

  start(unfinished: ReadonlyMap<string, OpenRequest>, marks: readonly MarkDraft[]): void {
    this.#endWatch = everySecond(() => this.#watch());
    // A start does not wait for this.
    setTimeout(compileDraftCheck, COMPILE_AFTER_MS).unref();
    for (const [id, request] of unfinished) this.#open.set(id, request);
    if (marks.length > 0) {
      for (const mark of marks) this.#add(mark);
      // Written first, because the journal's new end hides what the marks report.
      this.#writeLines();
    }
    for (const request of unfinished.values()) this.append(draftInterrupted(request));
    this.#flush();
    // A killed gateway had no time to sync its last lines.
    this.#syncing = this.#sync();
  }

  /** Why lines wait in memory. Null: writing works. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Await this before a request goes upstream: it then gets a line.
   *  Rejects with `ledger_unwritable`. One write names all requests of a turn. */
  open(intent: Intent): Promise<void> {
    const problem = this.#closing ? "it is closed" : this.#problem;
    if (problem !== null) return Promise.reject(refuse(problem));
    this.#open.set(intent.id, { intent, channels: [intent.channel] });
    this.#record(encode({ open: intent }));
    this.#unnamed.push(intent.id);
    this.#named ??= Promise.withResolvers();
    return this.#named.promise;
  }

  /** `isFirst`: the request's first attempt goes to another channel than its intent names. */
  attempt(id: string, channel: string, isFirst = false): void {
    if (addAttempt(this.#open, id, channel, isFirst))
      this.#record(encode({ id, channel, ...(isFirst && { first: true }) }));
  }

  /** The request reached no upstream: it gets no line. */
  discard(id: string): void {
    if (this.#open.delete(id)) this.#record(encode({ discard: id }));
  }

  /** Writes and returns the line of an open request, without amounts if `verify` would reject them.
   *  `estimatedInput`: the prompt's tokens by its size, for forecasts. */
  append(draft: LineDraft, estimatedInput: number | null = null): LineDraft {
    if (this.#closing) {
      this.#options.report(
        `request ${draft.id} ended after the ledger was closed: it gets its line at the next start`,
      );
      return draft;
    }
    const request = this.#open.get(draft.id);
    if (request === undefined)
      throw new Error(`request ${draft.id} is not open: it has its line, or never gets one`);
    let written = draft;
    try {
      this.#addLine(draft, estimatedInput);
    } catch (error) {
      this.#options.report(messageOf(error));
      written = draftUnknown(request, draft);
      this.#addLine(written, null);
    }
    this.#open.delete(draft.id);
    return written;
  }

  appendUnopened(draft: LineDraft): void {
    if (this.#closing) {
      this.#options.report(
        `request ${draft.id} ended after the ledger was closed: its charge is not recorded`,
      );
      return;
    }
    this.#addLine(draft, null);
    this.#record(encode({ unopened: draft.id }));
  }

  #addLine(draft: LineDraft, estimatedInput: number | null): void {
    this.#add(draft);
    const { basis, model, usage, limit_usd: limit, paid_by: payer, suspect } = draft;
    const isEstimate = limit !== undefined && (payer === undefined || suspect !== undefined);
    if (basis !== "exact" || isEstimate) return;
    if (usage["output"] !== undefined) this.answers.add(model, usage["output"]);
    if (estimatedInput !== null) this.prompts.add(draft, usage, this.#now(), estimatedInput);
  }

  correct(draft: CorrectionDraft | MarkDraft): void {
    this.#add(draft);
    this.#record(encode({ unopened: draft.id }));
  }

  acceptMarks(): readonly MarkDraft[] {
    const marks = [...this.sums.marks.values()];
    const time = new Date(this.#now()).toISOString();
    for (const mark of marks) this.correct(draftAcceptance(mark, time));
    return marks;
  }

  /** Throws if `verify` would reject the line, before it joins the chain:
   *  later it could not be left out, because the next line has its hash. */
  #add(draft: Draft): void {
    const fault = findDraftFault(draft);
    if (fault !== null) throw new Error(`the line ${draft.id} is not right: ${fault}`);
    const line = encodeLine(draft, this.#prev);
    this.#prev = hashLine(line);
    this.#lines.push(line);
    this.sums.add(draft);
    this.#schedule();
  }

  #record(record: string): void {
    this.#records.push(record);
    this.#schedule();
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.#flush();
    clearTimeout(this.#syncTimer);
    clearTimeout(this.#retryTimer);
    this.#endWatch();
    const left = this.#lines.length;
    if (left > 0)
      this.#options.report(
        `${left === 1 ? "1 line" : `${left} lines`} could not be written: ${this.#problem}`,
      );
    await this.#syncing;
    // Whatever fails, the lock must be released for the next gateway.
    await this.#files.sync().catch((error: unknown) => {
      this.#options.report(`the ledger's last lines may not be on the disk: ${String(error)}`);
    });
    // If this fails, the next start does it.
    await this.#completeTable().catch(() => undefined);
    try {
      if (left === 0) this.#files.rewriteJournal(this.#open);
    } catch {
      // The next start can use the existing journal.
    }
    this.#files.close();
    this.#lock.release();
  }

  async #completeTable(): Promise<void> {
    for (let before = -1, read = 0; read > before && read < 1; await nextTurn()) {
      before = read;
      using table = new Table(this.#options.path, { report: () => {}, most: STEP_BYTES });
      read = table.isInMemory ? 1 : table.read;
    }
  }

  #watch(): void {
    if (this.#problem !== null) return;
    try {
      this.#files.requireInPlace(this.#open);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#files.isJournalStale) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#closing || this.#problem !== null) return;
    this.#scheduled = true;
    atTurnEnd("records", () => {
      this.#scheduled = false;
      this.flush();
    });
  }

  flush(): void {
    const hasWork = this.#records.length > 0 || this.#lines.length > 0 || this.#files.isJournalStale;
    if (hasWork && !this.#closing && this.#problem === null) this.#flush();
  }

  /** Writes the journal first: the requests that it
   *  names may go out even if writing lines fails. */
  #flush(): void {
    const records = this.#records;
    const named = this.#named;
    const unnamed = this.#unnamed;
    this.#records = [];
    this.#named = null;
    this.#unnamed = [];
    try {
      if (this.#problem !== null) this.#files.requireInPlace(this.#open);
      if (records.length > 0) this.#writeJournal(records);
    } catch (error) {
      this.#fail(error);
      for (const id of unnamed) this.discard(id);
      named?.reject(refuse(this.#problem ?? "unknown"));
      return;
    }
    named?.resolve();
    this.#writeLines();
    this.#scheduleSync();
  }

  /** During a problem, lines are written even if the journal fails.
   *  The next start marks lines that the journal lacks. */
  #writeJournal(records: readonly string[]): void {
    try {
      this.#files.writeJournal(records);
    } catch (error) {
      if (this.#problem === null) throw error;
    }
  }

  #writeLines(): void {
    try {
      if (this.#lines.length > 0) this.#files.writeLines(this.#lines, this.#prev, this.#now());
      this.#lines = [];
      this.sums.clearWaiting();
      this.#files.tidyJournal(this.#open, this.#problem !== null);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#problem === null) return;
    this.#problem = null;
    this.#options.report("the ledger can be written again", "note");
  }

  #fail(error: unknown): void {
    const problem = messageOf(error);
    if (problem !== this.#problem)
      this.#options.report(
        `the ledger cannot be written, billable requests are refused until it can: ${problem}`,
      );
    this.#problem = problem;
    if (this.#closing) return;
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined;
      this.#flush();
    }, RETRY_MS);
  }

  /** Does not block the event loop.
   *  Each sync waits for the one before it,
   *  and covers all writes so far. */
  #scheduleSync(): void {
    // close() itself syncs before it closes the files.
    if (this.#closing) return;
    this.#syncTimer ??= setTimeout(() => {
      this.#syncing = this.#syncing.then(() => this.#sync());
    }, SYNC_MS);
  }

  async #sync(): Promise<void> {
    clearTimeout(this.#syncTimer);
    this.#syncTimer = undefined;
    await this.#files.sync().catch((error: unknown) => this.#fail(error));
  }
}

function refuse(problem: string): GatewayError {
  return new GatewayError(
    "ledger_unwritable",
    `the gateway cannot write its ledger (${problem}) and accepts no billable requests until it can`,
    { retrySeconds: 5 },
  );
}
