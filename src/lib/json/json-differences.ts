// Finds what other JSON parsers could read differently in an object. Some parsers accept comments or other quotes, and some
// match the names of members without regard to case. One pass over the bytes, without parsing.

import { asBuffer } from "../memory/bytes.ts";
import { COMMA, findStringEnd, QUOTE } from "./json-spans.ts";

const OPEN_BRACE = 0x7b;
const OPENING = new Set([0x5b, OPEN_BRACE]);
const CLOSING = new Set([0x5d, 0x7d]);

/** Bytes that JSON has outside of strings. Without any other byte there, all parsers agree where the strings are. */
const OUTSIDE_STRINGS: ReadonlySet<number> = new Set(
  Buffer.from('\ufeff \t\r\n{}[]:,+-.0123456789Etruefalsn"'),
);

/** A name with every character escaped is no longer than this. */
const MAX_KEY_BYTES = 256;

export interface Differences {
  /** A byte outside of the strings is not JSON. */
  readonly isForeign: boolean;
  /** How many members of the outermost object some parser takes for one of the names. */
  readonly members: number;
}

/** `names` are lower-case ASCII. */
export function findDifferences(bytes: Uint8Array, names: ReadonlySet<string>): Differences {
  const text = asBuffer(bytes);
  let depth = 0;
  let members = 0;
  let atKey = false;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at] ?? 0;
    if (!OUTSIDE_STRINGS.has(byte)) return { isForeign: true, members };
    if (byte === QUOTE) {
      const closed = findStringEnd(text, at);
      const end = closed < 0 ? text.length : closed;
      if (atKey && names.has(foldKey(text.subarray(at, end)))) members += 1;
      atKey = false;
      at = end - 1;
    } else if (OPENING.has(byte)) {
      depth += 1;
      atKey = depth === 1 && byte === OPEN_BRACE;
    } else if (CLOSING.has(byte)) depth -= 1;
    else if (byte === COMMA) atKey = depth === 1;
  }
  return { isForeign: false, members };
}

/** The name as the most lenient parser compares it: without case, compatibility forms, or what follows a NUL. */
function foldKey(literal: Buffer): string {
  if (literal.length > MAX_KEY_BYTES) return "";
  try {
    const key: unknown = JSON.parse(literal.toString());
    if (typeof key !== "string") return "";
    const [start = ""] = key.normalize("NFKC").toLowerCase().split("\0");
    return start.trim();
  } catch {
    return "";
  }
}
