// Answers that go on when their request has ended (`background` of the responses dialect): what they used is told to
// whoever asks for them later, and that request's line bears it. In memory only, and bounded.

import type { LineDraft } from "../../billing/ledger/line.ts";
import type { Bill } from "./bill.ts";

/** Whose answer it is, what was asked for, and on which terms. */
type Owed = Pick<Bill, "match" | "requested" | "overrides"> & Pick<LineDraft, "replaces">;

const MOST_OWED = 10_000;

export class BackgroundResponses {
  /** By the answer's id, oldest first. */
  readonly #owed = new Map<string, Owed>();

  /** `line`: the line of the request that started it. Limits count its estimate until the real cost is known. */
  keep(id: string, { match, requested, overrides }: Bill, line: LineDraft): void {
    const { limit_usd } = line;
    const replaces = limit_usd === undefined ? undefined : { id: line.id, time: line.time, limit_usd };
    this.keepAgain(id, { match, requested, overrides, replaces });
  }

  keepAgain(id: string, owed: Owed): void {
    this.#owed.set(id, owed);
    const [oldest = id] = this.#owed.keys();
    if (this.#owed.size > MOST_OWED) this.#owed.delete(oldest);
  }

  /** What is owed for an answer, to be paid once. */
  take(id: string): Owed | null {
    const owed = this.#owed.get(id) ?? null;
    this.#owed.delete(id);
    return owed;
  }
}
