// Finds members in a JSON object of many megabytes. The event loop turns between two pieces of it, while the ends of its
// long values are found. The search for the members passes over these values.

import { nextTurn } from "../time/next-turn.ts";
import {
  COMMA,
  DEPTHS,
  findMemberValue,
  findShortEnd,
  findStart,
  findStringEnd,
  findValueEnd,
  isEscaped,
  longValues,
  QUOTE,
  type Scan,
  scanTopLevel,
  skipSpace,
} from "./json-spans.ts";

/** A search of this many bytes takes a millisecond or two. */
const PIECE_BYTES = 1024 * 1024;

/** Finds what scanTopLevel finds. */
export async function scanLongTopLevel(
  bytes: Uint8Array,
  names: readonly string[],
  pieceBytes = PIECE_BYTES,
): Promise<Scan> {
  const ends = new Map<number, number>();
  let until = pieceBytes;
  let at = findStart(bytes);
  do {
    at = skipSpace(bytes, at + 1);
    const start = findMemberValue(bytes, findStringEnd(bytes, at));
    const value = new ValueSearch(bytes, start);
    while (!value.advance(until)) {
      await nextTurn();
      until += pieceBytes;
    }
    if (value.end - start > pieceBytes) ends.set(start, value.end);
    at = value.end < 0 ? -1 : skipSpace(bytes, value.end);
  } while (bytes[at] === COMMA);
  longValues.set(bytes, ends);
  return scanTopLevel(bytes, names);
}

/** Finds the end of a value in several steps. */
class ValueSearch {
  /** The index after the value; -1 if there is none. Valid when `advance` has returned true. */
  end = -1;
  readonly #bytes: Uint8Array;
  #at: number;
  #depth = 0;
  /** The position is in a string, at a character that is not escaped. */
  #inString = false;

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes;
    this.#at = start;
  }

  /** Searches up to the index `until`. False: the value may go on there. */
  advance(until: number): boolean {
    const isLast = until >= this.#bytes.length;
    if (this.#at >= until && !isLast) return false;
    const piece = isLast ? this.#bytes : this.#bytes.subarray(0, until);
    return this.#search(piece) || isLast;
  }

  #search(piece: Uint8Array): boolean {
    if (this.#at < 0 || this.#isLiteral()) {
      this.end = findValueEnd(this.#bytes, this.#at);
      return true;
    }
    while (this.#at < piece.length) {
      const byte = piece[this.#at] ?? 0;
      if (this.#inString || byte === QUOTE) {
        if (!this.#leaveString(piece)) return false;
      } else {
        this.#depth += DEPTHS[byte] ?? 0;
        this.#at += 1;
      }
      if (this.#depth === 0) {
        this.end = this.#at;
        return true;
      }
    }
    return false;
  }

  /** False: the string does not end in the piece. */
  #leaveString(piece: Uint8Array): boolean {
    const from = this.#inString ? this.#at : this.#at + 1;
    const end = findShortEnd(piece, from);
    this.#inString = end < 0;
    this.#at = end < 0 ? piece.length + (isEscaped(piece, from, piece.length) ? 1 : 0) : end;
    return end >= 0;
  }

  /** Neither a string nor nested. */
  #isLiteral(): boolean {
    const byte = this.#bytes[this.#at] ?? 0;
    return this.#depth === 0 && !this.#inString && byte !== QUOTE && (DEPTHS[byte] ?? 0) <= 0;
  }
}
