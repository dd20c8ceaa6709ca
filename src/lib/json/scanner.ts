// Moves through JSON without parsing, in linear time. It checks
// only quotes and brackets, and leaves other faults to a parser.

import { asBuffer } from "../memory/bytes.ts";
import { parseJson } from "./json.ts";

/** [start, end), with the quotes of a string. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export const OPEN_BRACE = 0x7b;
export const OPEN_BRACKET = 0x5b;
const QUOTE = 0x22;
export const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LITERAL = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

const [DEEPER, HIGHER, STRING, FOREIGN] = [1, -1, 2, 3] as const;
const KINDS = new Int8Array(256).fill(FOREIGN);
// If all bytes outside strings are among these,
// all parsers agree where the strings are.
for (const byte of Buffer.from("\ufeff \t\r\n:,+-.0123456789Etruefalsn")) KINDS[byte] = 0;
for (const byte of Buffer.from("[{")) KINDS[byte] = DEEPER;
for (const byte of Buffer.from("]}")) KINDS[byte] = HIGHER;
KINDS[QUOTE] = STRING;

/** The bytes are searched as text, in windows: that is ten times as fast.
 *  The first window after a jump is short. */
const [FIRST_WINDOW_BYTES, WINDOW_BYTES] = [256, 4 * 1024] as const;

/** Moves forward until an error sets `failed`. */
export class Scanner {
  readonly bytes: Buffer;
  at: number;
  failed = false;
  keyStart = 0;
  /** Whether a byte outside strings is one that JSON forbids there. */
  isForeign = false;
  #text = "";
  #base = 0;
  #depth = 0;
  #inString = false;

  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = asBuffer(bytes);
    this.at = at;
  }

  peek(): number {
    const { bytes } = this;
    let { at } = this;
    let byte = bytes[at];
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
      at += 1;
      byte = bytes[at];
    }
    this.at = at;
    return byte ?? 0;
  }

  /** False: the object or list is empty. */
  enter(open: number): boolean {
    if (this.peek() !== open) return this.#fail();
    this.at += 1;
    if (this.peek() !== open + 2) return !this.failed;
    this.at += 1;
    return false;
  }

  /** False: the object or list ends. */
  more(open: number): boolean {
    if (this.failed) return false;
    const byte = this.peek();
    this.at += 1;
    return byte === COMMA || (byte !== open + 2 && this.#fail());
  }

  /** Returns "" also for a name over MAX_KEY_BYTES. */
  key(): string {
    if (this.peek() !== QUOTE) this.#fail();
    const start = this.at;
    this.skip();
    const end = this.at;
    if (this.peek() !== COLON) this.#fail();
    this.at += 1;
    this.peek();
    this.keyStart = start;
    if (this.failed || end - start > MAX_KEY_BYTES) return "";
    const from = start + 1 - this.#base;
    const name = from >= 0 ? this.#text.slice(from, end - 1 - this.#base) : "\\";
    return PLAIN_TEXT.test(name) ? name : (readString(this.bytes, { start, end }) ?? "");
  }

  /** Returns false after `most` bytes of a longer value. The next call goes on. */
  skip(most = Infinity): boolean {
    if (this.failed) return true;
    if (this.#depth === 0 && !this.#inString) {
      const byte = this.peek();
      if (byte !== QUOTE && (byte | 0x20) !== OPEN_BRACE) return this.#skipLiteral();
    }
    const until = this.at + most;
    while (this.at < until) {
      const { at } = this;
      if (this.#skipWindow()) return true;
      if (this.at === at || this.at >= this.bytes.length) return !this.#fail();
    }
    return false;
  }

  rewind(at: number): void {
    this.at = at;
    this.failed = this.#inString = false;
    this.#depth = 0;
  }

  #fail(): false {
    this.failed = true;
    return false;
  }

  #readWindow(): void {
    const isNext = this.at >= this.#base && this.at <= this.#base + this.#text.length;
    const size = isNext && this.#text !== "" ? WINDOW_BYTES : FIRST_WINDOW_BYTES;
    const end = Math.min(this.at + size, this.bytes.length);
    this.#base = this.at;
    this.#text = this.bytes.toString("latin1", this.at, end);
  }

  /** True: the value has ended. */
  #skipWindow(): boolean {
    if (this.at < this.#base || this.at >= this.#base + this.#text.length - 1) this.#readWindow();
    const text = this.#text;
    let at = this.at - this.#base;
    let depth = this.#depth;
    let inString = this.#inString;
    let hasEnded = false;
    while (at < text.length && !hasEnded) {
      if (inString) {
        const quote = text.indexOf('"', at);
        const end = quote < 0 ? text.length : quote;
        const isEscaped = endsEscaped(text, at, end);
        // The byte after the last backslash is in the next window.
        at = end - Number(isEscaped);
        if (quote < 0) break;
        at = end + 1;
        inString = isEscaped;
      } else {
        const kind = KINDS[text.charCodeAt(at)];
        at += 1;
        if (!kind) continue;
        if (kind === STRING) inString = true;
        else if (kind === FOREIGN) this.isForeign = true;
        else depth += kind;
      }
      hasEnded = depth + Number(inString) === 0;
    }
    this.at = this.#base + at;
    this.#depth = depth;
    this.#inString = inString;
    return hasEnded;
  }

  #skipLiteral(): boolean {
    const { bytes, at } = this;
    let end = at;
    while (isLiteralByte(bytes[end] ?? 0)) end += 1;
    if (LITERAL.test(bytes.toString("latin1", at, end))) this.at = end;
    else this.#fail();
    return true;
  }
}

/** Whether a backslash escapes the character at `end`.
 *  No backslash before `from` counts. */
export function endsEscaped(text: string, from: number, end: number): boolean {
  let first = end;
  while (first > from && text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (end - first) % 2 === 1;
}

function isLiteralByte(byte: number): boolean {
  const letter = byte | 0x20;
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (letter >= 0x61 && letter <= 0x7a) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e
  );
}

/** ASCII without escapes. */
const PLAIN_TEXT = /^[ !#-[\]-~]*$/;
/** Wanted names are shorter, even with every character escaped. */
const MAX_KEY_BYTES = 256;

const MAX_ELEMENTS = 10_240;

/** Lists the elements. A value that is no list is its own element. */
export function listElements(bytes: Uint8Array, { start }: Span, most = MAX_ELEMENTS): Span[] {
  const json = new Scanner(bytes, start);
  const elements: Span[] = [];
  const isList = json.peek() === OPEN_BRACKET;
  for (let more = !isList || json.enter(OPEN_BRACKET); more; more = isList && json.more(OPEN_BRACKET)) {
    json.peek();
    const { at } = json;
    json.skip();
    if (json.failed || elements.push({ start: at, end: json.at }) >= most) break;
  }
  return elements;
}

export function readString(bytes: Uint8Array, { start, end }: Span): string | null {
  if (bytes[start] !== QUOTE) return null;
  const text = end - start > MAX_KEY_BYTES ? "\\" : asBuffer(bytes).toString("latin1", start + 1, end - 1);
  if (PLAIN_TEXT.test(text)) return text;
  const value = parseJson(asBuffer(bytes).toString("utf8", start, end));
  return typeof value === "string" ? value : null;
}

export function replaceSpan(bytes: Uint8Array, { start, end }: Span, text: string): Uint8Array {
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(text), bytes.subarray(end)]);
}
