// Turns drafts into lines, in the chain's order, and adds them to the sums. Drafts wait until the lines or the sums
// are needed, mostly until the end of a turn: encoding many at once costs much less than one by one.

import { parseUsd, subtractUsd } from "../../lib/money.ts";
import { type CorrectionDraft, encodeCorrection, encodeLine, hashLine, type LineDraft } from "./line.ts";
import type { Sums } from "./sums/sums.ts";

export class LedgerChain {
  #sums: Sums;
  /** Hash of the last line, written or not. */
  #prev: string;
  #lines: string[] = [];
  #drafts: ((prev: string) => string)[] = [];

  constructor(sums: Sums, prev: string) {
    this.#sums = sums;
    this.#prev = prev;
  }

  /** Throws at once if an amount is malformed: later, it would take the lines of other requests with it. */
  addLine(draft: LineDraft): void {
    const { limit_usd: limit, replaces } = draft;
    const charge = parseUsd(draft.charge_usd ?? "0");
    const estimate = limit === undefined ? null : subtractUsd(parseUsd(limit), charge);
    const replaced = replaces === undefined ? null : parseUsd(replaces.limit_usd);
    this.#drafts.push((prev) => {
      this.#sums.addRequest(draft, draft.usage);
      this.#sums.add(draft, charge);
      if (estimate !== null) this.#sums.addEstimate(draft, estimate);
      if (replaces !== undefined && replaced !== null)
        this.#sums.dropEstimate(draft, replaces.time, replaced);
      return encodeLine(draft, prev);
    });
  }

  /** Throws at once if an amount is malformed. */
  addCorrection(draft: CorrectionDraft): void {
    const { request_time: time, was } = draft;
    const before = parseUsd(was.charge_usd ?? "0");
    const difference = subtractUsd(parseUsd(draft.charge_usd ?? "0"), before);
    const estimate = was.limit_usd === undefined ? null : subtractUsd(parseUsd(was.limit_usd), before);
    this.#drafts.push((prev) => {
      this.#sums.add({ ...draft, time }, difference);
      if (estimate !== null) this.#sums.dropEstimate(draft, time, estimate);
      return encodeCorrection(draft, prev);
    });
  }

  get sums(): Sums {
    this.#encode();
    return this.#sums;
  }

  /** The same sums by the days of another time zone. `read` reads those of the lines that are in the files. */
  replaceSums(read: () => Sums): void {
    this.#encode();
    const sums = read();
    sums.addLines(this.#lines);
    this.#sums = sums;
  }

  /** The lines since the last `forgetLines`. */
  get lines(): readonly string[] {
    this.#encode();
    return this.#lines;
  }

  /** The hash of the last of `lines`. */
  get prev(): string {
    return this.#prev;
  }

  /** No line waits to be written. */
  get isWritten(): boolean {
    return this.#drafts.length === 0 && this.#lines.length === 0;
  }

  /** To be called when the lines have been written. */
  clearLines(): void {
    this.#lines = [];
  }

  #encode(): void {
    const drafts = this.#drafts;
    this.#drafts = [];
    for (const encode of drafts) {
      const line = encode(this.#prev);
      this.#lines.push(line);
      this.#prev = hashLine(line);
    }
  }
}
