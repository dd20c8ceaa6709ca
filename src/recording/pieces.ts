// Cuts a body where the messages of a conversation begin and end. An agent sends the whole conversation with each request:
// the pieces that it sent before are stored already. Joined, the pieces are the body, byte for byte.

import { OPEN_BRACE, OPEN_BRACKET, Scanner } from "../lib/json/scanner.ts";

/** A file takes a block of the disk anyway. */
const MIN_PIECE_BYTES = 2048;

/** A body that is not a JSON object is one piece. */
export function cutPieces(bytes: Uint8Array): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  const cut = (at: number, least: number): void => {
    if (at - from < least) return;
    pieces.push(bytes.subarray(from, at));
    from = at;
  };
  const json = new Scanner(bytes);
  for (let more = json.enter(OPEN_BRACE); more; more = json.more(OPEN_BRACE)) {
    json.key();
    if (json.peek() !== OPEN_BRACKET) {
      json.skip();
      continue;
    }
    // Whatever came before: an array that is sent again is cut in the same places.
    cut(json.at, 1);
    for (let next = json.enter(OPEN_BRACKET); next; next = json.more(OPEN_BRACKET)) {
      json.skip();
      if (!json.failed) cut(json.at, MIN_PIECE_BYTES);
    }
    if (!json.failed) cut(json.at, 1);
  }
  cut(bytes.length, 1);
  return pieces;
}
