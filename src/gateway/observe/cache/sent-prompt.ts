// The prompt of a request that has been sent. Nobody waits for it: a long one is read in steps, between which the event loop
// turns, and then its bytes are released.

import type { Layout } from "../../../dialects/prompt/layouts.ts";
import type { Piece } from "../../../dialects/prompt/pieces.ts";
import type { Prompt } from "../../../dialects/prompt/prompt.ts";
import { joinPrompt, readParts, type ScannedBody } from "../../../dialects/prompt/read-prompt.ts";

export class SentPrompt {
  readonly layout: Layout;
  readonly #pieces: Piece[] = [];
  #reading: Generator<void, Prompt | null> | null;
  #prompt: Prompt | null = null;

  constructor(body: ScannedBody, layout: Layout) {
    this.layout = layout;
    this.#reading = readSteps(body, layout, this.#pieces);
    // The request leaves first.
    setImmediate(() => this.#advance());
  }

  /** Null if the body has no prompt that could be read. */
  read(): Prompt | null {
    while (this.#reading !== null) this.#step();
    return this.#prompt;
  }

  /** What its parts are. */
  readPieces(): readonly Piece[] {
    this.read();
    return this.#pieces;
  }

  #advance(): void {
    if (this.#reading !== null) this.#step();
    if (this.#reading !== null) setImmediate(() => this.#advance());
  }

  #step(): void {
    const step = this.#reading?.next();
    if (step?.done !== true) return;
    this.#prompt = step.value;
    this.#reading = null;
  }
}

function* readSteps(body: ScannedBody, layout: Layout, pieces: Piece[]): Generator<void, Prompt | null> {
  yield* readParts(body, layout);
  return joinPrompt(body, layout, pieces);
}
