// The form of a ledger line: the text that many lines share to the letter (model,
// channel, prices, attempts), and the gaps in which they differ. Matching a known
// form is many times faster than parsing the line.

import { picoOfDigits } from "../../../lib/money.ts";
import type { Bytes, Pieces } from "./bytes.ts";

/** `count`: digits. `amount`: a decimal. `raw`: the raw usage, which is skipped. `client`: the members of the client, each
 *  a plain text or `true`. `text`: a plain text. `prev`: 64 characters, the hash. */
export type Gap = "count" | "amount" | "raw" | "client" | "text" | "prev";

export interface Form {
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  /** The model that the answer names; empty: none. */
  readonly answeredBy: string;
  readonly basis: string;
  readonly kinds: readonly string[];
  /** False: the lines have no amounts. */
  readonly isPriced: boolean;
  /** The text before each gap, and after the last one. */
  readonly pieces: Pieces;
  /** In this order: the line's counts, each part's counts and amount, raw usage, the line's amounts, times, hash. */
  readonly gaps: readonly Gap[];
  /** The gap of the line's official amount. The next one has its charge. */
  readonly behindRaw: number;
  /** The gap of the client; -1: the lines have none. */
  readonly client: number;
  /** The number in each gap of the line that was matched last. Amounts are in pico-dollars. For the client: the offset
   *  at which it begins. */
  readonly numbers: Float64Array;
}

/** The text after the raw usage. */
export const PRICES = ',"prices":';
const PRICES_BYTES = Buffer.from(PRICES);
const HASH_LENGTH = 64;
const QUOTE = '"'.charCodeAt(0);
const BACKSLASH = "\\".charCodeAt(0);
const COLON = ":".charCodeAt(0);
const COMMA = ",".charCodeAt(0);
const TRUE = Buffer.from("true");
const CLOSE_BRACE = "}".charCodeAt(0);
const FIRST_PRINTED = 32;
const ZERO = "0".charCodeAt(0);
const NINE = "9".charCodeAt(0);
const POINT = ".".charCodeAt(0);
const EXACT_DIGITS = 15;

/** Reads the numbers of the line from `from` to `to`. False: it does not have this form. */
export function fillForm({ pieces, gaps, numbers }: Form, bytes: Bytes, from: number, to: number): boolean {
  let at = from;
  for (let index = 0; index < gaps.length; index += 1) {
    at = pieces.pass(bytes, at, index);
    if (at < 0) return false;
    const gap = gaps[index];
    if (gap === "count") at = readCount(bytes.buffer, at, numbers, index);
    else if (gap === "amount") at = readAmount(bytes.buffer, at, numbers, index);
    else if (gap === "raw") at = bytes.buffer.indexOf(PRICES_BYTES, at);
    else if (gap === "client") {
      numbers[index] = at;
      at = skipMembers(bytes.buffer, at);
    } else if (gap === "text") at = skipText(bytes.buffer, at);
    else at += HASH_LENGTH;
  }
  return pieces.pass(bytes, at, gaps.length) === to;
}

/** The offset of the quote that ends the text; -1: it never ends, or it has escapes. */
export function skipText(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) return at;
    if (byte < FIRST_PRINTED || byte === BACKSLASH) return -1;
  }
  return -1;
}

/** The offset of the brace that ends the members `"name":"text"` and `"name":true`; -1: they are not all of this kind. */
export function skipMembers(bytes: Uint8Array, from: number): number {
  if (bytes[from] === CLOSE_BRACE) return from;
  for (let at = from; bytes[at] === QUOTE; at += 1) {
    const colon = skipText(bytes, at + 1) + 1;
    if (colon === 0 || bytes[colon] !== COLON) return -1;
    at = skipValue(bytes, colon + 1);
    if (bytes[at] === CLOSE_BRACE) return at;
    if (bytes[at] !== COMMA) return -1;
  }
  return -1;
}

/** The offset after a plain text or `true`; -1: it is neither. */
function skipValue(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== QUOTE) return TRUE.every((byte, index) => bytes[from + index] === byte) ? from + 4 : -1;
  const end = skipText(bytes, from + 1);
  return end < 0 ? -1 : end + 1;
}

/** The offset after the count; -1: there is none, it is written differently, or it may be too large for a number. */
function readCount(bytes: Uint8Array, from: number, numbers: Float64Array, index: number): number {
  numbers[index] = 0;
  const to = readDigits(bytes, from, numbers, index);
  const hasIdleZero = bytes[from] === ZERO && to > from + 1;
  return to === from || to > from + EXACT_DIGITS || hasIdleZero ? -1 : to;
}

/** The same, in pico-dollars. */
function readAmount(bytes: Uint8Array, from: number, numbers: Float64Array, index: number): number {
  const point = readCount(bytes, from, numbers, index);
  if (point < 0) return -1;
  const isFraction = bytes[point] === POINT;
  const to = isFraction ? readDigits(bytes, point + 1, numbers, index) : point;
  if (isFraction && (to === point + 1 || bytes[to - 1] === ZERO)) return -1;
  const pico = picoOfDigits(numbers[index] ?? 0, isFraction ? to - point - 1 : 0);
  numbers[index] = pico;
  return Number.isNaN(pico) ? -1 : to;
}

/** The offset after the digits. They continue the number that is in the gap already. */
function readDigits(bytes: Uint8Array, from: number, numbers: Float64Array, index: number): number {
  let number = numbers[index] ?? 0;
  let at = from;
  for (let byte = bytes[at] ?? 0; byte >= ZERO && byte <= NINE; byte = bytes[at] ?? 0) {
    number = number * 10 + (byte - ZERO);
    at += 1;
  }
  numbers[index] = number;
  return at;
}
