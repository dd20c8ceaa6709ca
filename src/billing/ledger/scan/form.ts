// The form of a ledger line: what the lines of many requests have in common to the
// letter (what was asked of whom, prices, attempts), and the gaps in which they
// differ. To fill in a known form is many times quicker than to read a line anew.

import { picoOfDigits } from "../../../lib/money.ts";
import type { Bytes, Pieces } from "./bytes.ts";

/** Digits; an amount; what is passed over unread: the raw usage; 64 characters, which should be a hash. */
export type Gap = "count" | "amount" | "raw" | "prev";

export interface Form {
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  readonly basis: string;
  readonly kinds: readonly string[];
  /** False: the lines have no amounts. */
  readonly isPriced: boolean;
  /** What stands before each gap, and behind the last. */
  readonly pieces: Pieces;
  /** The line's counts, each part's counts and amount, raw usage, the line's amounts, times, hash. */
  readonly gaps: readonly Gap[];
  /** Which gap has the line's official amount; its charge is in the next. */
  readonly behindRaw: number;
  /** What stands in each gap of the line that was filled in last, amounts in pico-dollars. */
  readonly numbers: Float64Array;
}

/** What the raw usage ends with. */
export const PRICES = ',"prices":';
const PRICES_BYTES = Buffer.from(PRICES);
const HASH_LENGTH = 64;
const ZERO = "0".charCodeAt(0);
const NINE = "9".charCodeAt(0);
const POINT = ".".charCodeAt(0);
const EXACT_DIGITS = 15;

/** Reads the numbers in a line that from `from` to `to` has this form. False: it has another. */
export function fillForm({ pieces, gaps, numbers }: Form, bytes: Bytes, from: number, to: number): boolean {
  let at = from;
  for (let index = 0; index < gaps.length; index += 1) {
    at = pieces.pass(bytes, at, index);
    if (at < 0) return false;
    const gap = gaps[index];
    if (gap === "count") at = readCount(bytes.buffer, at, numbers, index);
    else if (gap === "amount") at = readAmount(bytes.buffer, at, numbers, index);
    else if (gap === "raw") at = bytes.buffer.indexOf(PRICES_BYTES, at);
    else at += HASH_LENGTH;
  }
  return pieces.pass(bytes, at, gaps.length) === to;
}

/** Where it ends; -1: it is none, not spelled as the gateway does, or may be more than a number holds exactly. */
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

/** Where they end. They go on where those before them left off. */
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
