// Finds the first event of a stream that says how the request ends: a real response, or an error in place of one. Bytes are
// pushed, cut anywhere, and nothing behind that event is read.

import { parseJson } from "../lib/json/json.ts";
import { openSseParser } from "../lib/sse.ts";
import type { StreamError, UpstreamErrors } from "./dialect.ts";

/** `open`: not known yet. `good`: a real response, or an error that has no status. */
export type FirstEvent = "open" | "good" | StreamError;

/** A first chunk may have hundreds of events. Only the first ones are parsed. */
const STEP_BYTES = 1024;
/** The beginning of JSON is judged when it has a name or this many characters. */
const MAX_OPENING_LENGTH = 32;
/** An error without framing is parsed again with each chunk that may end it. This bounds the work, however small the chunks
 *  are. */
const MAX_PARSES = 100;

export class FirstEventSearch {
  readonly #errors: UpstreamErrors;
  readonly #parser = openSseParser();
  readonly #decoder = new TextDecoder();
  #form: "unknown" | "events" | "json" = "unknown";
  #text = "";
  #parses = 0;

  constructor(errors: UpstreamErrors) {
    this.#errors = errors;
  }

  /** Must not be called again once the event is known. */
  add(chunk: Uint8Array): FirstEvent {
    if (this.#form === "unknown") this.#form = readForm(chunk);
    return this.#form === "json" ? this.#readJson(chunk) : this.#readEvents(chunk);
  }

  #readEvents(chunk: Uint8Array): FirstEvent {
    for (let at = 0; at < chunk.length; at += STEP_BYTES) {
      for (const { data } of this.#parser.push(chunk.subarray(at, at + STEP_BYTES))) {
        const event = parseJson(data);
        if (!this.#errors.isPrelude(event)) return this.#errors.readEvent(event) ?? "good";
      }
    }
    return "open";
  }

  /** Reads a stream in the form of a JSON array, or an error that is not framed as an event. */
  #readJson(chunk: Uint8Array): FirstEvent {
    this.#text = (this.#text + this.#decoder.decode(chunk, { stream: true })).trimStart();
    const text = this.#text;
    if (!this.#errors.bareStart.test(text))
      return text.length < MAX_OPENING_LENGTH && !text.includes(":") ? "open" : "good";
    if (!/[\]}],?\s*$/.test(text.slice(-MAX_OPENING_LENGTH))) return "open";
    this.#parses += 1;
    const value = parseJson(text.replace(/^\[/, "").replace(/[,\]]\s*$/, ""));
    if (value !== undefined) return this.#errors.readEvent(value) ?? "good";
    return this.#parses < MAX_PARSES ? "open" : "good";
  }
}

/** Blanks, and a byte order mark. */
const SKIPPED = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]);
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/** Where a body begins: OpenRouter writes blanks before it while its model works, thousands of them. -1: not in this chunk. */
export function findStart(chunk: Uint8Array): number {
  return chunk.findIndex((byte) => !SKIPPED.has(byte));
}

function readForm(chunk: Uint8Array): "unknown" | "events" | "json" {
  const first = chunk[findStart(chunk)];
  if (first === undefined) return "unknown";
  return first === OPEN_BRACE || first === OPEN_BRACKET ? "json" : "events";
}
