// Answers that go on when their request has ended (`background` of the responses dialect): what they used is told to
// whoever asks for them later, and that request's line bears it. In memory only, and bounded.

import type { Bill } from "./bill.ts";

/** Whose answer it is, what was asked for, and on which terms. */
type Owed = Pick<Bill, "match" | "requested" | "overrides">;

const MOST_OWED = 10_000;

export class BackgroundResponses {
  /** By the answer's id, oldest first. */
  readonly #owed = new Map<string, Owed>();

  keep(id: string, { match, requested, overrides }: Owed): void {
    this.#owed.set(id, { match, requested, overrides });
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
