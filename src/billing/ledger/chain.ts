// Turns drafts into lines, in the chain's order, and adds them to the sums. Drafts wait until the lines or the sums
// are needed, mostly until the end of a turn: encoding many at once costs much less than one by one.

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
      const charge = parseUsd(draft.charge_usd ?? "0");
      this.#sums.addRequest(draft, Object.entries(draft.usage));
      this.#sums.add(draft, charge);
      const { limit_usd: limit, replaces } = draft;
      if (limit !== undefined) this.#sums.addEstimate(draft, subtractUsd(parseUsd(limit), charge));
      if (replaces !== undefined) this.#sums.dropEstimate(draft, replaces.time, parseUsd(replaces.limit_usd));
      return encodeLine(draft, prev);
    });
  }

  addCorrection(draft: CorrectionDraft): void {
    this.#drafts.push((prev) => {
      const { request_time: time, was } = draft;
      const charge = parseUsd(draft.charge_usd ?? "0");
      const before = parseUsd(was.charge_usd ?? "0");
      this.#sums.add({ ...draft, time }, subtractUsd(charge, before));
      if (was.limit_usd !== undefined)
        this.#sums.dropEstimate(draft, time, subtractUsd(parseUsd(was.limit_usd), before));
      return encodeCorrection(draft, prev);
    });
  }

  get sums(): Sums {
    this.#encode();
    return this.#sums;
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
