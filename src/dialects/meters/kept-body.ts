// What is kept of a long JSON body: all but the vectors, pictures and sounds in it, whose content no meter reads. They are
// found by native searches while the body passes, so that little is left to parse at its end.

import { findFrom, joinChunks } from "../../lib/memory/bytes.ts";

/** A body is shortened in steps of this many bytes. A shorter one is kept whole. */
const STEP_BYTES = 64 * 1024;
/** A gap without a quotation mark is looked at from this length on, and keeps this much of its beginning. */
const GAP_BYTES = 1024;
const BEGINNING_BYTES = 256;
const BACKSLASH = 0x5c;
/** So begins what is between two texts, and before the first. */
const OUTSIDE = /^\s*(?:[:,[\]{}]|$)/;
/** Base64, or a URL with it. */
const CODED = /^[\w+/=:;,.-]+$/;
/** No model writes a longer text. */
const MAX_TEXT_BYTES = 512 * 1024;
const NUMBERS = /^[\d\s,.eE+-]+$/;

export class KeptBody {
  /** Shortened, up to a quotation mark. */
  readonly #short: Buffer[] = [];
  #shortBytes = 0;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #nextStep = STEP_BYTES;
  /** It is inside a text of which nothing more is kept. */
  #isDropping = false;

  get bytes(): number {
    return this.#shortBytes + this.#waitingBytes;
  }

  add(chunk: Buffer): void {
    this.#isDropping &&= !chunk.includes('"') && chunk.at(-1) !== BACKSLASH;
    if (this.#isDropping) return;
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes < this.#nextStep) return;
    const waiting = Buffer.concat(this.#waiting);
    const last = Math.max(0, waiting.lastIndexOf('"'));
    const whole = shorten(waiting.subarray(0, last));
    const rest = shorten(waiting.subarray(last));
    const isShorter = rest.length < waiting.length - last;
    this.#isDropping = isShorter && !OUTSIDE.test(rest.toString("latin1", 1, BEGINNING_BYTES));
    this.#short.push(whole);
    this.#shortBytes += whole.length;
    this.#waiting = [rest];
    this.#waitingBytes = rest.length;
    this.#nextStep = Math.max(STEP_BYTES, 2 * rest.length);
  }

  join(): Buffer {
    const rest = joinChunks(this.#waiting);
    return this.#short.length === 0 ? rest : Buffer.concat([...this.#short, shorten(rest)]);
  }
}

/** What is left of it. It begins with a quotation mark, or is the beginning of the body. */
function shorten(bytes: Buffer): Buffer {
  const kept: Buffer[] = [];
  let from = 0;
  const drop = (start: number, end: number): void => {
    kept.push(bytes.subarray(from, start));
    from = end;
  };
  for (let at = 1; at + GAP_BYTES < bytes.length;) {
    const last = bytes.lastIndexOf('"', at + GAP_BYTES);
    if (last >= at) {
      at = last + 1;
      continue;
    }
    const end = findFrom(bytes, '"', at + GAP_BYTES);
    const beginning = bytes.toString("latin1", at, at + BEGINNING_BYTES);
    if (OUTSIDE.test(beginning)) dropNumbers(bytes, at, end, drop);
    else if (end - at > MAX_TEXT_BYTES || CODED.test(beginning)) {
      // No escape is cut.
      const start = beginning.search(/[\s\\]|$/);
      if (bytes.at(end - 1) !== BACKSLASH) drop(at + start, end);
    }
    at = end + 1;
  }
  return kept.length === 0 ? bytes : Buffer.concat([...kept, bytes.subarray(from)]);
}

/** Drops what is between two brackets. The last number of a list that goes on stays. */
function dropNumbers(
  bytes: Buffer,
  start: number,
  end: number,
  drop: (start: number, end: number) => void,
): void {
  for (let at = start, close = 0; at < end; at = close + 1) {
    close = Math.min(end, findFrom(bytes, "]", at));
    const open = bytes.lastIndexOf("[", close);
    const isLong = open >= at && close - open > GAP_BYTES;
    if (!isLong || !NUMBERS.test(bytes.toString("latin1", open + 1, open + BEGINNING_BYTES))) continue;
    drop(open + 1, close < end ? close : bytes.lastIndexOf(",", close) + 1);
  }
}
