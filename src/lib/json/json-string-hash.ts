// Reads a string of JSON and hashes it, in one pass if it is short and plain.

import {
  hashBytes,
  joinHalves,
  MAX_SHORT_BYTES,
  mixHigh,
  mixLow,
  readWord,
  STEP_BYTES,
} from "../memory/hash-bytes.ts";
import { findStringEnd } from "./json-spans.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export class StringHasher {
  /** The hash of the last string without its quotes, as `hashBytes` computes it. */
  hash = 0;

  /** The index after the closing quote. -1 if no string starts at `start`, or if it never ends. */
  read(bytes: Uint8Array, start: number): number {
    if (bytes[start] !== QUOTE) return -1;
    const first = start + 1;
    let low = 0;
    let high = 0;
    let at = first;
    const last = Math.min(first + MAX_SHORT_BYTES, bytes.length) - STEP_BYTES;
    for (; at <= last; at += STEP_BYTES) {
      const a = readWord(bytes, at);
      const b = readWord(bytes, at + 4);
      if (mayEnd(a) || mayEnd(b)) break;
      low = mixLow(low, a);
      high = mixHigh(high, b);
    }
    const until = Math.min(at + STEP_BYTES, first + MAX_SHORT_BYTES + 1, bytes.length);
    for (; at < until; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte === BACKSLASH) break;
      if (byte === QUOTE) {
        this.hash = joinHalves(low, high, at - first);
        return at + 1;
      }
      low = mixLow(low, byte);
    }
    const end = findStringEnd(bytes, start);
    if (end >= 0) this.hash = hashBytes(bytes, first, end - 1);
    return end;
  }
}

/** The word has a quote or a backslash among its bytes. */
function mayEnd(word: number): boolean {
  return (findZero(word ^ 0x22222222) | findZero(word ^ 0x5c5c5c5c)) !== 0;
}

/** Not 0 if one of the word's bytes is 0. */
function findZero(word: number): number {
  return (word - 0x01010101) & ~word & 0x80808080;
}
