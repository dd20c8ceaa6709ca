// Refuses what never becomes a request. It guesses as much of the head as it can, only so that the refusal has the
// format that this client expects. Nothing else may rely on the guess.

import { type Field, Fields, Malformed } from "../../http/fields.ts";
import { findHeadEnd, skipEmptyLines, type RequestHead } from "../head.ts";
import { type RequestRefusal, Shortage } from "../../http/exchange.ts";
import { TOO_MANY_FILES } from "../../http/faults.ts";

export function isRefusal(error: unknown): error is RequestRefusal {
  return error instanceof Malformed || error instanceof Shortage;
}

/** `limit`: 0 for a client that cannot be served at all. */
export function explainHeadRefusal(limit: number): RequestRefusal {
  return limit === 0 ? new Shortage(TOO_MANY_FILES) : new Malformed("the head is too large", 431);
}

const LINE = /^([A-Za-z-]{1,32}) (?:https?:\/\/[^/?#\s]+)?(\/[\x21\x22\x24-\x7e]*)/i;
const FIELD = /\r\n([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*([\t\x20-\x7e\x80-\xff]*)/g;

/** Parts that cannot be read are empty. */
export function guessRequest(bytes: Buffer): RequestHead {
  const from = skipEmptyLines(bytes, 0);
  const end = findHeadEnd(bytes, from);
  const text = bytes.toString("latin1", from, end < 0 ? bytes.length : end);
  const [, method = "", target = ""] = LINE.exec(text) ?? [];
  const fields = Array.from(text.matchAll(FIELD), ([, name = "", value = ""]): Field => [
    name.toLowerCase(),
    value.trimEnd(),
  ]);
  return { method, target, minor: 1, fields: Fields.of(fields) };
}
