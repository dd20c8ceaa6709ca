// The form of a ledger line: what the lines of many requests have in common to the
// letter (what was asked of whom, prices, attempts), and the gaps in which they
// differ. To fill in a known form is many times quicker than to read a line anew.

import { picoOfDigits } from "../lib/money.ts";
import type { Bytes, Pieces } from "./ledger-bytes.ts";

/** Digits; an amount; what is passed over unread: the raw usage; 64 characters, which should be a hash. */
export type Gap = "count" | "amount" | "raw" | "prev";

export interface Form {
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  readonly basis: string;
  readonly kinds: readonly string[];
  /** The JSON text of the prices; null where the lines have no amounts. */
  readonly prices: string | null;
  readonly multiplier: string;
  /** What stands before each gap, and behind the last. */
  readonly pieces: Pieces;
  readonly gaps: readonly Gap[];
}

/** What the raw usage ends with. */
export const PRICES = ',"prices":';
const PRICES_BYTES = Buffer.from(PRICES);
const HASH_LENGTH = 64;
const ZERO = "0".charCodeAt(0);
const NINE = "9".charCodeAt(0);
const POINT = ".".charCodeAt(0);

/** The numbers in a line that from `from` to `to` has this form, amounts in pico-dollars; null: it has another. */
export function fillForm({ pieces, gaps }: Form, bytes: Bytes, from: number, to: number): number[] | null {
  const numbers: number[] = [];
  let at = from;
  for (let index = 0; index < gaps.length; index += 1) {
    at = pieces.pass(bytes, at, index);
    if (at < 0) return null;
    const gap = gaps[index];
    if (gap === "raw") at = bytes.buffer.indexOf(PRICES_BYTES, at);
    else if (gap === "prev") at += HASH_LENGTH;
    else at = readNumber(bytes.buffer, at, gap === "amount", numbers);
  }
  return pieces.pass(bytes, at, gaps.length) === to ? numbers : null;
}

/** Where it ends; -1: it is none, not spelled as the gateway does, or more than a number holds exactly. */
function readNumber(bytes: Uint8Array, from: number, isAmount: boolean, numbers: number[]): number {
  const point = passDigits(bytes, from);
  const to = isAmount && bytes[point] === POINT ? passDigits(bytes, point + 1) : point;
  if (hasIdleDigit(bytes, from, point, to)) return -1;
  const whole = readDigits(bytes, from, point, 0);
  const number = isAmount
    ? picoOfDigits(readDigits(bytes, point + 1, to, whole), Math.max(0, to - point - 1))
    : whole;
  if (!(number <= Number.MAX_SAFE_INTEGER)) return -1;
  numbers.push(number);
  return to;
}

function passDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let digit = bytes[at] ?? 0; digit >= ZERO && digit <= NINE; digit = bytes[at] ?? 0) at += 1;
  return at;
}

/** A zero before or behind it that says nothing; or no digit where one belongs. */
function hasIdleDigit(bytes: Uint8Array, from: number, point: number, to: number): boolean {
  if (point === from || (bytes[from] === ZERO && point > from + 1)) return true;
  return to > point && (to === point + 1 || bytes[to - 1] === ZERO);
}

function readDigits(bytes: Uint8Array, from: number, to: number, before: number): number {
  let number = before;
  for (let at = from; at < to; at += 1) number = number * 10 + ((bytes[at] ?? 0) - ZERO);
  return number;
}
