// Finds members of a JSON object in its bytes without parsing the whole. A request of many megabytes takes one pass and
// no second copy. Exact for valid JSON. Of invalid JSON, only the top level is checked: rejecting nested values is up to
// the upstream.

import { asBuffer } from "../memory/bytes.ts";
import { isLongWork } from "../time/next-turn.ts";

/** The position of a value: the bytes [start, end), including the quotes of a string. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Members that were found, by name. Every request has some, and a map takes four times the memory. */
export class Spans {
  readonly #names: readonly string[];
  readonly #found: (Span | undefined)[] = [];

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  get(name: string): Span | undefined {
    return this.#found[this.#names.indexOf(name)];
  }

  /** `name` is one of the names. False if it was found before. */
  add(name: string, span: Span): boolean {
    const index = this.#names.indexOf(name);
    if (this.#found[index] !== undefined) return false;
    this.#found[index] = span;
    return true;
  }
}

export type Scan =
  | { readonly kind: "object"; readonly spans: Spans }
  /** Two members have the same wanted name. Parsers disagree on which one counts. */
  | { readonly kind: "duplicate"; readonly name: string }
  | { readonly kind: "not_json" };

export type ModelReading =
  | { readonly kind: "model"; readonly model: string; readonly span: Span }
  | { readonly kind: "missing" }
  | { readonly kind: "not_string" }
  | Exclude<Scan, { kind: "object" }>;

export const QUOTE = 0x22;
export const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** `[` and `{` differ in this bit only, and so do `]` and `}`. */
const BRACKET_BIT = 0x20;
/** Up to this length a loop in JavaScript finds the end of a string faster than a native call. */
const SHORT_STRING_BYTES = 24;
export const DEPTHS = listDepths();
/** A wanted name is not longer than this, even with every character escaped. */
const MAX_ESCAPED_KEY_BYTES = 256;
const LITERAL = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

const WORDS = ["true", "false", "null"];

/** Finds the members of the top-level object that have one of `names` (ASCII). A byte order mark is skipped. */
export function scanTopLevel(bytes: Uint8Array, names: readonly string[]): Scan {
  const spans = new Spans(names);
  const duplicates: string[] = [];
  const known = isLongWork(bytes.length) ? longValues.get(bytes) : undefined;
  const objectEnd = walkMembers(bytes, findStart(bytes), (keyStart, keyEnd, start) => {
    const end = known?.get(start) ?? findValueEnd(bytes, start);
    const name = end < 0 ? null : readWantedKey(bytes, keyStart, keyEnd, names);
    if (name === null || spans.add(name, { start, end })) return end;
    duplicates.push(name);
    return -1;
  });
  const [name] = duplicates;
  if (name !== undefined) return { kind: "duplicate", name };
  const isWhole = objectEnd >= 0 && skipSpace(bytes, objectEnd) === bytes.length;
  return isWhole ? { kind: "object", spans } : { kind: "not_json" };
}

/** Where the long values of an object end, by their starts, if json-long-scan.ts has found them. A search of the same bytes
 *  passes over them at once. */
export const longValues = new WeakMap<Uint8Array, ReadonlyMap<number, number>>();

// A walk gives a visitor the position of each member or element. The visitor says where the value ends, because it may have
// walked into it. Work is linear, and the depth is the visitors' own.

/** Gets the positions of a key (quotes included) and of its value. Returns the index after the value, or -1 to stop. */
type VisitMember = (keyStart: number, keyEnd: number, valueStart: number) => number;
/** Gets the position of an element. Returns the index after it, or -1 to stop. */
type VisitElement = (start: number) => number;

/** Where a document begins, after a byte order mark and white space. */
export function findStart(bytes: Uint8Array): number {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return skipSpace(bytes, hasMark ? 3 : 0);
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

/** The model that a request's body names. Pass the scan if there is one. */
export function readModel(bytes: Uint8Array, scan: Scan = scanTopLevel(bytes, ["model"])): ModelReading {
  if (scan.kind !== "object") return scan;
  const span = scan.spans.get("model");
  if (span === undefined) return { kind: "missing" };
  const model = readString(bytes, span);
  if (model === null) return { kind: "not_string" };
  return model === "" ? { kind: "missing" } : { kind: "model", model, span };
}

/** True if the body's `stream` is the literal `true`. */
export function readStreamFlag(bytes: Uint8Array, scan: Scan = scanTopLevel(bytes, ["stream"])): boolean {
  const span = scan.kind === "object" ? scan.spans.get("stream") : undefined;
  return span !== undefined && span.end - span.start === 4 && equalsAt(bytes, span.start, "true");
}

/** The string in a span. Null if the value is not a string. */
export function readString(bytes: Uint8Array, span: Span): string | null {
  if (bytes[span.start] !== QUOTE) return null;
  try {
    const value: unknown = JSON.parse(readText(bytes, span));
    return typeof value === "string" ? value : null;
  } catch {
    return null;
  }
}

/** The first elements of the array in a span, at most `most`. Empty if the value is not an array. */
export function findFirstElements(bytes: Uint8Array, span: Span, most: number): Span[] {
  const found: Span[] = [];
  if (bytes[span.start] !== OPEN_BRACKET) return found;
  walkElements(bytes, span.start, (start) => {
    const end = found.length < most ? findValueEnd(bytes, start) : -1;
    if (end >= 0) found.push({ start, end });
    return end;
  });
  return found;
}

/** The same bytes with `value`, as a JSON string, in place of the span. */
export function replaceSpan(bytes: Uint8Array, span: Span, value: string): Uint8Array {
  return Buffer.concat([
    bytes.subarray(0, span.start),
    Buffer.from(JSON.stringify(value)),
    bytes.subarray(span.end),
  ]);
}

function readText(bytes: Uint8Array, span: Span): string {
  return asBuffer(bytes).toString("utf8", span.start, span.end);
}

export function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at += 1;
  return at;
}

/** The index after a string's closing quote. -1 if no string starts at `start`, or if it never ends. */
export function findStringEnd(bytes: Uint8Array, start: number): number {
  return bytes[start] === QUOTE ? findShortEnd(bytes, start + 1) : -1;
}

/** The index after the closing quote, searched from the first character on. Most strings are keys and other short words: this loop is small enough for the
 *  runtime to put it into its callers' loops. */
export function findShortEnd(bytes: Uint8Array, from: number): number {
  const until = from + SHORT_STRING_BYTES;
  let at = from;
  let byte = bytes[at];
  while (byte !== QUOTE && byte !== BACKSLASH && at < until) {
    at += 1;
    byte = bytes[at];
  }
  return byte === QUOTE ? at + 1 : findLongEnd(bytes, at);
}

/** The index after the closing quote, searched from any character that is not escaped. */
function findLongEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length) {
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) return -1;
    if (!isEscaped(bytes, at, quote)) return quote + 1;
    at = quote + 1;
    // Where one character is escaped, many are.
    const until = Math.min(at + SHORT_STRING_BYTES, bytes.length);
    while (at < until) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      at += byte === BACKSLASH ? 2 : 1;
    }
  }
  return -1;
}

/** Whether an odd run of backslashes escapes `at`. `from` itself is not escaped. */
export function isEscaped(bytes: Uint8Array, from: number, at: number): boolean {
  let first = at;
  while (first > from && bytes[first - 1] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** The start of the value whose key ends at `keyEnd`. -1 if there is no key or no colon. */
export function findMemberValue(bytes: Uint8Array, keyEnd: number): number {
  if (keyEnd < 0) return -1;
  const colon = skipSpace(bytes, keyEnd);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : -1;
}

/** The index after the value at `start`. -1 if there is none. */
export function findValueEnd(bytes: Uint8Array, start: number): number {
  const byte = bytes[start];
  if (byte === undefined) return -1;
  if (byte === QUOTE) return findStringEnd(bytes, start);
  if ((byte | BRACKET_BIT) === OPEN_BRACE) return findNestedEnd(bytes, start);
  return findLiteralEnd(bytes, start);
}

function findNestedEnd(bytes: Uint8Array, start: number): number {
  let depth = 0;
  let at = start;
  while (at < bytes.length) {
    const byte = bytes[at] ?? 0;
    at += 1;
    if (byte === QUOTE) {
      at = findShortEnd(bytes, at);
      if (at < 0) return -1;
    } else {
      depth += DEPTHS[byte] ?? 0;
      if (depth === 0) return at;
    }
  }
  return -1;
}

/** What each byte adds to the depth. A table takes half the time of comparing. */
function listDepths(): Int8Array {
  const depths = new Int8Array(256);
  for (const byte of [OPEN_BRACKET, OPEN_BRACE]) depths[byte] = 1;
  for (const byte of [CLOSE_BRACKET, CLOSE_BRACE]) depths[byte] = -1;
  return depths;
}

function findLiteralEnd(bytes: Uint8Array, start: number): number {
  let end = start;
  while (end < bytes.length && isLiteralByte(bytes[end] ?? 0)) end += 1;
  return isPlainLiteral(bytes, start, end) || LITERAL.test(readText(bytes, { start, end })) ? end : -1;
}

/** Handles most literals without decoding them. */
function isPlainLiteral(bytes: Uint8Array, start: number, end: number): boolean {
  const first = bytes[start] ?? 0;
  if (first > 0x39) return isWord(bytes, start, end);
  let at = start;
  while (at < end && isDigit(bytes[at] ?? 0)) at += 1;
  return at === end && isDigit(first) && (first !== 0x30 || end - start === 1);
}

function isWord(bytes: Uint8Array, start: number, end: number): boolean {
  for (const word of WORDS) if (word.length === end - start && equalsAt(bytes, start, word)) return true;
  return false;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isLiteralByte(byte: number): boolean {
  const letter = byte | 0x20;
  return (
    isDigit(byte) || (letter >= 0x61 && letter <= 0x7a) || byte === 0x2b || byte === 0x2d || byte === 0x2e
  );
}

function readWantedKey(
  bytes: Uint8Array,
  start: number,
  end: number,
  names: readonly string[],
): string | null {
  for (const name of names) {
    if (name.length === end - start - 2 && equalsAt(bytes, start + 1, name)) return name;
  }
  // A body may have millions of escaped keys. Most of them differ from every name before their first escape.
  if (end - start > MAX_ESCAPED_KEY_BYTES || !names.some((name) => mayEqual(bytes, start + 1, name)))
    return null;
  const unescaped = readString(bytes, { start, end });
  return unescaped !== null && names.includes(unescaped) ? unescaped : null;
}

/** True if the string at `start` equals the name up to its first escape, and has one. */
function mayEqual(bytes: Uint8Array, start: number, name: string): boolean {
  for (let index = 0; index < name.length; index += 1) {
    const byte = bytes[start + index];
    if (byte !== name.charCodeAt(index)) return byte === BACKSLASH;
  }
  return false;
}

function equalsAt(bytes: Uint8Array, start: number, ascii: string): boolean {
  for (let index = 0; index < ascii.length; index += 1) {
    if (bytes[start + index] !== ascii.charCodeAt(index)) return false;
  }
  return true;
}
