// The prompt of a request that is being answered. Its parts are read from the bytes once the event loop is free, or right
// before the line is written, and then the bytes are released.

import type { Layout } from "../../../dialects/prompt/layouts.ts";
import type { Prompt } from "../../../dialects/prompt/prompt.ts";
import type { PromptReader } from "../../../dialects/prompt/read-prompt.ts";

export class PendingPrompt {
  readonly #reader: PromptReader;
  readonly layout: Layout;
  #bytes: Uint8Array | null;
  #prompt: Prompt | null = null;

  constructor(reader: PromptReader, layout: Layout, bytes: Uint8Array, isStream: boolean) {
    this.#reader = reader;
    this.layout = layout;
    this.#bytes = bytes;
    // What has arrived of the response is sent first. A stream does not hold megabytes until its end.
    if (isStream) setImmediate(() => this.read());
  }

  /** Null if the body could not be read as a prompt. */
  read(): Prompt | null {
    if (this.#bytes !== null) this.#prompt = this.#reader.read(this.#bytes, this.layout);
    this.#bytes = null;
    return this.#prompt;
  }
}
