// What becomes of drafts: lines in the chain's order, and sums. Drafts wait until either is asked
// for, mostly at the end of a turn: many at once cost much less than one by one among other work.

import { parseUsd, subtractUsd } from "../../lib/money.ts";
import { type CorrectionDraft, encodeCorrection, encodeLine, hashLine, type LineDraft } from "./line.ts";
import type { Sums } from "./sums.ts";

export class LedgerChain {
  readonly #sums: Sums;
  /** Hash of the last line, written or not. */
  #prev: string;
  #lines: string[] = [];
  #drafts: ((prev: string) => string)[] = [];

  constructor(sums: Sums, prev: string) {
    this.#sums = sums;
    this.#prev = prev;
  }

  addLine(draft: LineDraft): void {
    this.#drafts.push((prev) => {
      this.#sums.add(draft, parseUsd(draft.charge_usd ?? "0"));
      return encodeLine(draft, prev);
    });
  }

  addCorrection(draft: CorrectionDraft): void {
    this.#drafts.push((prev) => {
      const { key, group, request_time: time, was } = draft;
      const charge = parseUsd(draft.charge_usd ?? "0");
      this.#sums.add({ key, group, time }, subtractUsd(charge, parseUsd(was.charge_usd ?? "0")));
      return encodeCorrection(draft, prev);
    });
  }

  get sums(): Sums {
    this.#encode();
    return this.#sums;
  }

  /** Those that `forgetLines` has not been told of. */
  get lines(): readonly string[] {
    this.#encode();
    return this.#lines;
  }

  /** Hash of the last of `lines`. */
  get prev(): string {
    return this.#prev;
  }

  /** They are written. */
  forgetLines(): void {
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
