// The prompt of a request that is being answered. Its parts are read from the bytes when nobody waits for them, and then
// the bytes are released.

import type { Layout } from "../../../dialects/prompt/layouts.ts";
import type { Prompt } from "../../../dialects/prompt/prompt.ts";
import type { PromptReader } from "../../../dialects/prompt/read-prompt.ts";

/** A body up to this size is held until the response has been sent. A longer one is read as soon as the event loop is
 *  free, so that streams do not hold megabytes. */
const MAX_HELD_BYTES = 64 * 1024;

export class PendingPrompt {
  readonly #reader: PromptReader;
  readonly layout: Layout;
  #bytes: Uint8Array | null;
  #prompt: Prompt | null = null;

  constructor(reader: PromptReader, layout: Layout, bytes: Uint8Array) {
    this.#reader = reader;
    this.layout = layout;
    this.#bytes = bytes;
    if (bytes.length > MAX_HELD_BYTES) setImmediate(() => this.read());
  }

  /** Null if the body could not be read as a prompt. */
  read(): Prompt | null {
    if (this.#bytes !== null) this.#prompt = this.#reader.read(this.#bytes, this.layout);
    this.#bytes = null;
    return this.#prompt;
  }
}
