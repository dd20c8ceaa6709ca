// Walks through JSON in its bytes, in one pass and without building values: a visitor gets the position of each member or
// element and says where its value ends, because it may have walked into it. Work is linear, and the depth is the
// visitors' own.

import { findMemberValue, findStringEnd, findValueEnd, skipByteOrderMark, skipSpace } from "./json-spans.ts";

/** Gets the positions of a key (quotes included) and of its value. Returns the index after the value, or -1 to stop. */
export type VisitMember = (keyStart: number, keyEnd: number, valueStart: number) => number;
/** Gets the position of an element. Returns the index after it, or -1 to stop. */
export type VisitElement = (start: number) => number;

const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Where a document begins, after a byte order mark and white space. */
export function findStart(bytes: Uint8Array): number {
  return skipSpace(bytes, skipByteOrderMark(bytes));
}

/** Returns the index after the object at `start`, or -1 if there is none, or the visitor stopped. */
export function walkMembers(bytes: Uint8Array, start: number, visit: VisitMember): number {
  if (bytes[start] !== OPEN_BRACE) return -1;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    const keyEnd = findStringEnd(bytes, at);
    const value = findMemberValue(bytes, keyEnd);
    const end = value < 0 ? -1 : visit(at, keyEnd, value);
    if (end < 0) return -1;
    at = skipSpace(bytes, end);
    if (bytes[at] === CLOSE_BRACE) return at + 1;
    if (bytes[at] !== COMMA) return -1;
    at = skipSpace(bytes, at + 1);
  }
}

/** Returns the index after the array at `start`, or -1 if there is none, or the visitor stopped. Any other value is
 *  visited as if it were the only element. */
export function walkElements(bytes: Uint8Array, start: number, visit: VisitElement): number {
  if (bytes[start] !== OPEN_BRACKET) return visit(start);
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) return at + 1;
  for (;;) {
    const end = visit(at);
    if (end < 0) return -1;
    at = skipSpace(bytes, end);
    if (bytes[at] === CLOSE_BRACKET) return at + 1;
    if (bytes[at] !== COMMA) return -1;
    at = skipSpace(bytes, at + 1);
  }
}

/** Skips a value. */
export function skipValue(bytes: Uint8Array, start: number): number {
  return findValueEnd(bytes, start);
}
