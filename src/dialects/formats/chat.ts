// The chat dialect. Channels speak it, and clients of responses groups.

import { getField, isObject, parseJson } from "../../lib/json/json.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { OPEN_BRACE, replaceSpan } from "../../lib/json/scanner.ts";
import { scanMembers } from "../../lib/scan.ts";
import { openSseParser } from "../../lib/sse.ts";
import type { Dialect } from "../dialect.ts";
import { openChatMeter } from "../meters/chat.ts";
import { CACHED_MEMBERS, OPENAI_CACHE, OPENAI_PARTS, formWireError } from "./openai.ts";
import { type Layout, listMembers } from "../prompt/layouts.ts";

const LAYOUT: Layout = {
  ...OPENAI_CACHE,
  members: listMembers({
    ...CACHED_MEMBERS,
    functions: "tools",
    messages: "messages",
    response_format: "setting",
    reasoning_effort: "setting",
    verbosity: "setting",
  }),
};

export const chat: Dialect = {
  ...OPENAI_PARTS,
  name: "chat",
  /** With a `[DONE]` after the error, the answer would look complete. */
  errorEvent: (error) => `data: ${JSON.stringify({ error: formWireError(error) })}\n\n`,
  openMeter: openChatMeter,
  capNames: ["max_tokens", "max_completion_tokens"],
  promptLayout: LAYOUT,
};

// Streams report usage only on request.

const OPTIONS = "stream_options";
const ASKED = { include_usage: true };

/** Null: the body asks for usage already, or cannot be read. */
export function askForUsage(body: Uint8Array): Uint8Array | null {
  const scan = scanMembers(body, [OPTIONS]);
  if (scan === null || scan.repeated.has(OPTIONS)) return null;
  const span = scan.get(OPTIONS);
  if (span === undefined) {
    const start = body.indexOf(OPEN_BRACE) + 1;
    return replaceSpan(body, { start, end: start }, `"${OPTIONS}":${JSON.stringify(ASKED)},`);
  }
  const options = parseJson(asBuffer(body).toString("utf8", span.start, span.end));
  // The upstream refuses options that are no object.
  if ((options !== null && !isObject(options)) || getField(options, "include_usage") === true) return null;
  return replaceSpan(body, span, JSON.stringify({ ...options, ...ASKED }));
}

/** A usage chunk is shorter. */
const MAX_HELD_BYTES = 16 * 1024;
/** Every usage chunk has this text. */
const COUNTS = "_tokens";
const NO_CHOICES = /"choices"\s*:\s*\[\s*\]/;
/** A blank line. Lines end in LF, CRLF or CR. */
const EVENT_END = /\n\r?\n|\r\r/g;
/** The last bytes may be the beginning of an event's end. */
const END_BYTES = 3;

/** Removes the usage chunk, which has no choices. */
export class UsageRemover {
  /** The event so far. Of a long event, only the last bytes. */
  #held: Uint8Array = new Uint8Array(0);
  /** The event is too long to be a usage chunk. */
  #isPassing = false;

  pass(piece: Uint8Array): Uint8Array {
    const bytes = Buffer.concat([this.#held, piece]);
    const kept: Uint8Array[] = [];
    let from = 0;
    for (const { 0: blank, index } of bytes.toString("latin1").matchAll(EVENT_END)) {
      const event = bytes.subarray(from, index + blank.length);
      if (this.#isPassing || !isUsageChunk(event)) kept.push(event);
      this.#isPassing = false;
      from += event.length;
    }
    this.#isPassing ||= bytes.length - from > MAX_HELD_BYTES;
    const end = this.#isPassing ? Math.max(from, bytes.length - END_BYTES) : from;
    this.#held = bytes.subarray(end);
    return Buffer.concat([...kept, bytes.subarray(from, end)]);
  }

  end(isCut: boolean): Uint8Array {
    const held = asBuffer(this.#held);
    this.#held = new Uint8Array(0);
    const isExtra = isCut ? NO_CHOICES.test(held.toString("latin1")) : isUsageChunk(held);
    return isExtra ? held.subarray(0, 0) : held;
  }
}

function isUsageChunk(event: Buffer): boolean {
  if (!event.includes(COUNTS)) return false;
  const parser = openSseParser();
  const chunks = [...parser.push(event), ...parser.end()].map(({ data }) => parseJson(data));
  return (
    chunks.length === 1 &&
    isObject(getField(chunks[0], "usage")) &&
    Bun.deepEquals(getField(chunks[0], "choices"), [])
  );
}
