// Cuts a body where the messages of a conversation begin and end. An agent sends the whole conversation with each request:
// the pieces that it sent before are stored already. Joined, the pieces are the body, byte for byte.

import { findStart, findValueEnd, walkElements, walkMembers } from "../lib/json/json-spans.ts";

/** A file takes a block of the disk anyway. */
const MIN_PIECE_BYTES = 2048;
const OPEN_BRACKET = 0x5b;

/** A body that is not a JSON object is one piece. */
export function cutPieces(bytes: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  const cut = (at: number, least: number): void => {
    if (at - from < least) return;
    pieces.push(bytes.subarray(from, at));
    from = at;
  };
  walkMembers(bytes, findStart(bytes), (_, __, value) => {
    const end = findValueEnd(bytes, value);
    if (end < 0 || bytes[value] !== OPEN_BRACKET) return end;
    // Whatever came before: an array that is sent again is cut in the same places.
    cut(value, 1);
    walkElements(bytes, value, (element) => {
      const elementEnd = findValueEnd(bytes, element);
      if (elementEnd >= 0) cut(elementEnd, MIN_PIECE_BYTES);
      return elementEnd;
    });
    cut(end, 1);
    return end;
  });
  cut(bytes.length, 1);
  return pieces;
}
