// Turns drafts into lines, in the chain's order, and adds them to the sums. Drafts wait until the lines or the sums
// are needed, mostly until the end of a turn: encoding many at once costs much less than one by one.

import { findFault } from "./check.ts";
import { type Draft, encodeLine, GENESIS, hashLine } from "./line.ts";
import { Sums, type SumsOptions } from "./sums.ts";

export class LedgerChain {
  readonly #sums: Sums;
  /** Hash of the last line, written or not. */
  #prev: string;
  #lines: string[] = [];
  /** The drafts of `lines`. */
  #encoded: Draft[] = [];
  #drafts: Draft[] = [];

  constructor(options: SumsOptions, prev: string) {
    this.#sums = new Sums({ ...options, waiting: () => this.#encoded });
    this.#prev = prev;
  }

  /** Throws at once if `verify` would reject the line: later, it would take the lines of other requests with it. */
  add(draft: Draft): void {
    const fault = findFault({ v: 1, ...draft, prev: GENESIS });
    if (fault !== null) throw new Error(`the line ${draft.id} is not right: ${fault}`);
    this.#drafts.push(draft);
  }

  get sums(): Sums {
    this.#encode();
    return this.#sums;
  }

  /** The lines since the last `clearLines`. */
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
    this.#encoded = [];
  }

  #encode(): void {
    const drafts = this.#drafts;
    this.#drafts = [];
    for (const draft of drafts) {
      this.#sums.add(draft);
      const line = encodeLine(draft, this.#prev);
      this.#lines.push(line);
      this.#encoded.push(draft);
      this.#prev = hashLine(line);
    }
  }
}
