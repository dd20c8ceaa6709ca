// The fields of a head, from text to names and values, in one pass: no text is
// made but the values. Strict, as head.ts says. What this file does not own:
// where a head ends, what its fields mean.

import { Malformed } from "./malformed.ts";
import type { Field } from "./types.ts";

const CR = 13;
const LF = 10;
const TAB = 9;
const SPACE = 32;
const COLON = 58;

/** Of a character, whether it may stand in a name, and whether in a value. */
const IN_NAME = 1;
const IN_VALUE = 2;
const KIND = Uint8Array.from({ length: 256 }, (_, code) => {
  const char = String.fromCharCode(code);
  const named = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(char) ? IN_NAME : 0;
  return named | (/[\t\x20-\x7e\x80-\xff]/.test(char) ? IN_VALUE : 0);
});

/** Real traffic repeats a few dozen names: where a name was, it mostly is again. */
const SLOTS = 1024;
const LONGEST_KEPT = 64;
const known: string[] = Array.from({ length: SLOTS }, () => "");

/** `head` has one latin-1 character a byte; its fields begin at `from` and end with it, without a last CRLF. */
export function parseFields(head: string, from: number): Field[] {
  const fields: Field[] = [];
  let at = from;
  while (at < head.length) {
    const start = at;
    let hash = 0;
    for (; at < head.length; at += 1) {
      const code = head.charCodeAt(at);
      if (((KIND[code] ?? 0) & IN_NAME) === 0) break;
      hash = (Math.imul(hash, 31) + (code | 0x20)) & (SLOTS - 1);
    }
    if (at === start || head.charCodeAt(at) !== COLON) throw new Malformed("a field without a name");
    const name = readName(head, start, at, hash);
    const valueEnd = findValueEnd(head, at + 1);
    fields.push([name, trimBlanks(head, at + 1, valueEnd)]);
    at = skipLineEnd(head, valueEnd);
  }
  return fields;
}

/** Lower case. */
function readName(head: string, start: number, end: number, slot: number): string {
  const expected = known[slot] ?? "";
  if (isSpelt(expected, head, start, end)) return expected;
  const name = head.slice(start, end).toLowerCase();
  if (name.length <= LONGEST_KEPT) known[slot] = name;
  return name;
}

function isSpelt(name: string, head: string, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let at = start; at < end; at += 1) {
    const code = head.charCodeAt(at);
    const lower = code >= 65 && code <= 90 ? code | 0x20 : code;
    if (lower !== name.charCodeAt(at - start)) return false;
  }
  return true;
}

function findValueEnd(head: string, from: number): number {
  let at = from;
  while (at < head.length && ((KIND[head.charCodeAt(at)] ?? 0) & IN_VALUE) !== 0) at += 1;
  return at;
}

/** A folded line, a lone CR or LF, and what else may not stand in a value are refused here. */
function skipLineEnd(head: string, at: number): number {
  if (at === head.length) return at;
  if (head.charCodeAt(at) !== CR || head.charCodeAt(at + 1) !== LF)
    throw new Malformed("a forbidden character in a field");
  return at + 2;
}

function trimBlanks(head: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(head.charCodeAt(start))) start += 1;
  while (end > start && isBlank(head.charCodeAt(end - 1))) end -= 1;
  return head.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}
