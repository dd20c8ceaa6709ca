// The prompt of a request that has been sent. Nobody waits for it: a long one is read in steps, between which the event loop
// turns, and then its bytes are released.

import type { Layout } from "../../../dialects/prompt/layouts.ts";
import type { Piece } from "../../../dialects/prompt/pieces.ts";
import type { Prompt } from "../../../dialects/prompt/prompt.ts";
import { joinPrompt, readParts, type ScannedBody } from "../../../dialects/prompt/read-prompt.ts";

export class SentPrompt {
  readonly layout: Layout;
  readonly #pieces: Piece[] = [];
  /** Null: it has been read. */
  #body: ScannedBody | null;
  #prompt: Prompt | null = null;

  constructor(body: ScannedBody, layout: Layout) {
    this.layout = layout;
    this.#body = body;
    // The request leaves first.
    setImmediate(() => this.#advance());
  }

  /** Null if the body has no prompt that could be read. */
  read(): Prompt | null {
    while (this.#body !== null) this.#step(this.#body);
    return this.#prompt;
  }

  /** What its parts are. */
  readPieces(): readonly Piece[] {
    this.read();
    return this.#pieces;
  }

  #advance(): void {
    if (this.#body === null) return;
    this.#step(this.#body);
    setImmediate(() => this.#advance());
  }

  #step(body: ScannedBody): void {
    if (!readParts(body, this.layout)) return;
    this.#prompt = joinPrompt(body, this.layout, this.#pieces);
    this.#body = null;
  }
}
