// Judges a response's beginning while another channel can still be tried.
// A stream with status 200 may begin with an error, and a proxy may send a page.

import { BARE_ERROR, isPrelude, readErrorEvent } from "../../dialects/upstream-errors.ts";
import { parseJson } from "../../lib/json/json.ts";
import { openSseParser } from "../../lib/sse.ts";
import { blamesChannel } from "../upstream/failures.ts";

export type BeginningVerdict = { readonly kind: "good" } | BadBeginning;

export type BadBeginning =
  | { readonly kind: "empty" | "foreign" }
  /** An error after which another channel may succeed.
   *  `status` is its status in HTTP. */
  | { readonly kind: "error"; readonly status: number; readonly message: string };

export const GOOD: BeginningVerdict = { kind: "good" };

/** JSON begins with a bracket, an event stream with a field or a comment. */
const STARTS = ["{", "[", "data:", "event:", "id:", "retry:", ":"];
const MAX_START_BYTES = 64;
const JSON_START = /^[[{]/;
/** OpenRouter writes thousands of blanks while its model works. */
const SKIPPED = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]);
const MAX_HELD_BYTES = 256 * 1024;
const MAX_BLANK_BYTES = 64 * 1024;
/** A chunk may have hundreds of events. */
const STEP_BYTES = 512;
/** JSON is judged as soon as it has a name or this many characters. */
const MAX_OPENING_LENGTH = 32;

export class Beginning {
  readonly held: Buffer[] = [];
  readonly silenceMs: number;
  readonly #isStream: boolean;
  #parser: ReturnType<typeof openSseParser> | null = null;
  #start = "";
  #heldBytes = 0;

  constructor(wanted: "stream" | "any") {
    this.#isStream = wanted === "stream";
    this.silenceMs = this.#isStream ? 5000 : Infinity;
  }

  /** Null: the verdict needs more of the body. */
  add(chunk: Buffer): BeginningVerdict | null {
    this.held.push(chunk);
    this.#heldBytes += chunk.length;
    this.#start = extendStart(this.#start, chunk);
    const verdict = this.#judge(chunk);
    const most = this.#start === "" ? MAX_BLANK_BYTES : MAX_HELD_BYTES;
    return verdict === null && this.#heldBytes > most ? this.conclude(false) : verdict;
  }

  #judge(chunk: Buffer): BeginningVerdict | null {
    const start = judgeStart(this.#start, false);
    if (!this.#isStream || (start !== null && start.kind !== "good")) return start;
    if (!JSON_START.test(this.#start)) return this.#readEvents(chunk);
    const isOpen = this.#start.length < MAX_OPENING_LENGTH && !this.#start.includes(":");
    return isOpen || BARE_ERROR.test(this.#start) ? null : GOOD;
  }

  conclude(hasEnded: boolean): BeginningVerdict {
    const start = judgeStart(this.#start, hasEnded) ?? GOOD;
    return this.#isStream && BARE_ERROR.test(this.#start) ? this.#readError() : start;
  }

  #readEvents(chunk: Uint8Array): BeginningVerdict | null {
    for (let at = 0; at < chunk.length; at += STEP_BYTES) {
      this.#parser ??= openSseParser();
      for (const { data } of this.#parser.push(chunk.subarray(at, at + STEP_BYTES))) {
        const event = parseJson(data);
        if (data !== "" && !isPrelude(event)) return judgeEvent(event);
      }
    }
    return null;
  }

  #readError(): BeginningVerdict {
    const text = Buffer.concat(this.held).toString().trim();
    return judgeEvent(parseJson(text.replace(/^\[/, "").replace(/[,\]]$/, "")));
  }
}

/** The client gets an error that does not blame the channel. */
function judgeEvent(event: unknown): BeginningVerdict {
  const error = readErrorEvent(event);
  return error === null || !blamesChannel(error.status) ? GOOD : { kind: "error", ...error };
}

/** Keeps only the first characters, so that each chunk costs the same. */
function extendStart(before: string, chunk: Buffer): string {
  if (before.length >= MAX_START_BYTES) return before;
  let from = 0;
  if (before === "") while (from < chunk.length && SKIPPED.has(chunk[from] ?? 0)) from += 1;
  return before + chunk.toString("latin1", from, from + MAX_START_BYTES);
}

/** Null: too little has come. `isAll`: the body has ended. */
function judgeStart(text: string, isAll: boolean): BeginningVerdict | null {
  if (JSON_START.test(text) || STARTS.some((start) => text.startsWith(start))) return GOOD;
  if (!isAll && STARTS.some((start) => start.startsWith(text))) return null;
  return { kind: text === "" ? "empty" : "foreign" };
}
