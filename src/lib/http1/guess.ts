// What can be told of a request whose head is refused: enough to answer it in
// its own manners. Nothing is ever done for a guess but that.

import { findHeadEnd, skipEmptyLines, type RequestHead } from "./head.ts";
import type { Field } from "./types.ts";

const LINE = /^([A-Za-z-]{1,32}) (?:https?:\/\/[^/?#\s]+)?(\/[\x21\x22\x24-\x7e]*)/i;
const FIELD = /\r\n([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*([\t\x20-\x7e\x80-\xff]*)/g;

/** What cannot be read is empty. */
export function guessRequest(bytes: Buffer): RequestHead {
  const from = skipEmptyLines(bytes, 0);
  const end = findHeadEnd(bytes, from);
  const text = bytes.toString("latin1", from, end < 0 ? bytes.length : end);
  const [, method = "", target = ""] = LINE.exec(text) ?? [];
  const fields = Array.from(text.matchAll(FIELD), ([, name = "", value = ""]): Field => [
    name.toLowerCase(),
    value.trimEnd(),
  ]);
  return { method, target, minor: 1, fields };
}
