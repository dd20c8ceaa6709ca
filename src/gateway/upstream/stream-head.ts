// Judges the beginning of a response while another channel can still be tried. A stream that was announced with 200 may begin
// with an error, and a proxy may send a page. The beginning is held until that is clear; attempt.ts says for how long.

import type { Dialect, StreamError, UpstreamErrors } from "../../dialects/dialect.ts";
import { parseJson } from "../../lib/json/json.ts";
import { openSseParser } from "../../lib/sse.ts";
import { blamesChannel } from "./failure-rules.ts";

/** What the beginning of a response says. */
export type Verdict =
  /** It is for the client. */
  | { readonly kind: "good" }
  /** It is not a response of this endpoint. */
  | { readonly kind: "empty" | "foreign" }
  /** It begins with an error, and another channel may succeed. `status` has the same meaning. */
  | { readonly kind: "error"; readonly status: number; readonly message: string };

const GOOD: Verdict = { kind: "good" };

/** Holds the beginning of a body until it can be judged. */
export interface Beginning {
  readonly held: Buffer[];
  /** It is held no longer if nothing has come after this. */
  readonly silenceMs: number;
  /** Null: more is needed. */
  add(chunk: Buffer): Verdict | null;
  /** Nothing more comes soon, or at all. `hasEnded`: the body is whole. */
  conclude(hasEnded: boolean): Verdict;
}

const OPEN_BRACE = 0x7b;
const MAX_START_BYTES = 64;
/** A body with more blanks before its beginning is passed on. */
const MAX_BLANK_BYTES = 64 * 1024;
/** JSON begins with a bracket, and an event stream with a field or a comment. */
const STARTS = ["{", "[", "data:", "event:", "id:", "retry:", ":"];

/** Holds a body until it is clear whether it can be JSON or an event stream. */
export class BodyBeginning implements Beginning {
  readonly held: Buffer[] = [];
  readonly silenceMs = Infinity;
  #start = "";
  #heldBytes = 0;

  add(chunk: Buffer): Verdict | null {
    this.held.push(chunk);
    if (this.held.length === 1 && chunk[0] === OPEN_BRACE) return GOOD;
    this.#heldBytes += chunk.length;
    this.#start = extendStart(this.#start, chunk);
    return this.#heldBytes > MAX_BLANK_BYTES ? this.conclude(false) : judgeStart(this.#start, false);
  }

  conclude(hasEnded: boolean): Verdict {
    return judgeStart(this.#start, hasEnded) ?? GOOD;
  }
}

const MAX_HELD_BYTES = 256 * 1024;
/** A first chunk may have hundreds of events. Only the first ones are parsed. */
const STEP_BYTES = 1024;
/** The beginning of JSON is judged when it has a name or this many characters. */
const MAX_OPENING_LENGTH = 32;
/** An error without framing is parsed again with each chunk that may end it. This bounds the work, however small the chunks
 *  are. */
const MAX_PARSES = 100;

/** Holds a stream until its first event that says how the request ends. Nothing behind that event is read. */
export class StreamBeginning implements Beginning {
  readonly held: Buffer[] = [];
  readonly silenceMs = 5000;
  readonly #errors: UpstreamErrors;
  readonly #parser = openSseParser();
  readonly #decoder = new TextDecoder();
  #start = "";
  #heldBytes = 0;
  #text = "";
  #parses = 0;

  constructor({ upstreamErrors }: Dialect) {
    this.#errors = upstreamErrors;
  }

  add(chunk: Buffer): Verdict | null {
    this.held.push(chunk);
    this.#heldBytes += chunk.length;
    this.#start = extendStart(this.#start, chunk);
    const isJson = this.#start.startsWith("{") || this.#start.startsWith("[");
    const first = isJson ? this.#readJson(chunk) : this.#readEvents(chunk);
    if (first === "open") return this.#heldBytes > MAX_HELD_BYTES ? this.conclude(false) : null;
    return first === "good" || !blamesChannel(first.status)
      ? this.conclude(false)
      : { kind: "error", ...first };
  }

  conclude(hasEnded: boolean): Verdict {
    return judgeStart(this.#start, hasEnded) ?? GOOD;
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

/** `open`: not known yet. `good`: a real response, or an error that has no status. */
type FirstEvent = "open" | "good" | StreamError;

/** Blanks, and a byte order mark. OpenRouter writes thousands of blanks before a body while its model works. */
const SKIPPED = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]);

/** The first characters that are not blank. They stay few, so that each chunk costs the same. */
function extendStart(before: string, chunk: Buffer): string {
  if (before.length >= MAX_START_BYTES) return before;
  const from = before === "" ? chunk.findIndex((byte) => !SKIPPED.has(byte)) : 0;
  return from < 0 ? before : before + chunk.toString("latin1", from, from + MAX_START_BYTES);
}

/** Null: too little has come. `isAll`: the body has ended. */
function judgeStart(text: string, isAll: boolean): Verdict | null {
  if (STARTS.some((start) => text.startsWith(start))) return GOOD;
  if (!isAll && STARTS.some((start) => start.startsWith(text))) return null;
  return { kind: text === "" ? "empty" : "foreign" };
}
