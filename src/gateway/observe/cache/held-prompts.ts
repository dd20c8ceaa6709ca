// Prompts of requests that are being answered. They are read after the answer, right before the line is written, and then
// their bytes are released.

import type { Layout } from "../../../dialects/prompt/layouts.ts";
import { type Piece, PieceReader } from "../../../dialects/prompt/pieces.ts";
import type { Prompt } from "../../../dialects/prompt/prompt.ts";
import { readPrompt } from "../../../dialects/prompt/read-prompt.ts";
import { LARGE_BYTES } from "../../../lib/memory/memory-budget.ts";

/** Answers may stream for minutes. What does not fit is read during the answer. */
const MAX_HELD_BYTES = 64 * 1024 * 1024;

export interface HeldPrompt {
  readonly layout: Layout;
  /** Null if the body could not be read as a prompt. */
  read(): Prompt | null;
  /** What its parts are. Null if it could not be read, or nobody wants to know. */
  readPieces(): readonly Piece[] | null;
  /** Releases the bytes. */
  release(): void;
}

export class HeldPrompts {
  #bytes = 0;

  get heldBytes(): number {
    return this.#bytes;
  }

  hold(body: Uint8Array, layout: Layout, wantsPieces = false): HeldPrompt {
    let bytes: Uint8Array | null = body;
    let prompt: Prompt | null = null;
    let pieces: readonly Piece[] | null = null;
    const release = (): void => {
      this.#bytes -= bytes?.length ?? 0;
      bytes = null;
    };
    const read = (): Prompt | null => {
      if (bytes !== null) {
        const reader = wantsPieces ? new PieceReader() : null;
        prompt = readPrompt(bytes, layout, reader);
        pieces = prompt && reader && reader.pieces;
      }
      release();
      return prompt;
    };
    const readPieces = (): readonly Piece[] | null => {
      read();
      return pieces;
    };
    this.#bytes += body.length;
    // Larger bodies are counted by the memory budget only until they are sent. What has arrived of the answer goes first.
    if (body.length > LARGE_BYTES || this.#bytes > MAX_HELD_BYTES) setImmediate(read);
    return { layout, read, readPieces, release };
  }
}
