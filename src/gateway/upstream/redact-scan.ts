// Finds secrets in bytes, in one walk and in every form that redact.ts names. From each byte, the walk follows both
// the byte as it is and the character that an escape there stands for, and remembers how much of a secret has been
// read so far. It keeps at most one number for each character of a secret, so its work is linear in the bytes.

import {
  AMPERSAND,
  HASH,
  isLetter,
  ESCAPE_STARTS,
  LOWER_U,
  PERCENT,
  readDigit,
  readEscapes,
  skipBackslashes,
  ZERO,
} from "../../lib/text/escapes.ts";

export interface Secret {
  /** Visible ASCII. */
  readonly text: string;
  /** How many of its first characters are public. */
  readonly publicLength: number;
}

export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface Scan {
  /** In order, without overlaps. */
  readonly found: readonly ByteRange[];
  /** The bytes from here on may be the beginning of a secret whose end has not come yet. */
  readonly holdFrom: number;
}

/** A form to find: the secret itself, or the part of its base64 that does not depend on the bytes beside it. */
interface Form {
  readonly text: string;
  readonly publicLength: number;
  readonly base64: boolean;
}

/** All forms joined to one text. Each index stands for one character of one form. */
export interface Patterns {
  /** By byte: the indexes of the characters that it can be. */
  readonly places: readonly (readonly number[])[];
  /** By index: the start of its form, and the start of the secret part of that form. */
  readonly starts: readonly number[];
  readonly secretStarts: readonly number[];
  /** By index: how many secret characters must match up to here. */
  readonly enough: readonly number[];
  /** A shorter text holds no secret, and no piece of one that counts. */
  readonly shortest: number;
  /** Only whole secrets count. */
  readonly whole: boolean;
  /** By byte: whether a match can begin with it, as a character (`PLAIN`) or as an escape (`ESCAPED`). */
  readonly firsts: Uint8Array;
  /** By a hash of three bytes: whether a match can begin with them. */
  readonly openings: Uint8Array;
  /** For the next search: no rows, and rows that are empty. */
  readonly rows: Map<number, Row>;
  readonly spare: Row[];
}

/** `pieceLength`: how many secret characters count as a find; null: only a whole secret does. */
export function compileSecrets(secrets: readonly Secret[], pieceLength: number | null): Patterns {
  const forms = secrets.flatMap(listForms);
  const places: number[][] = Array.from({ length: 256 }, () => []);
  const starts: number[] = [];
  const secretStarts: number[] = [];
  const enough: number[] = [];
  for (const form of forms) {
    const start = starts.length;
    const whole = form.text.length - form.publicLength;
    const piece = form.base64 ? Math.ceil(((pieceLength ?? 0) * 4) / 3) : (pieceLength ?? 0);
    for (const character of form.text) {
      for (const code of spell(character, form)) places[code]?.push(starts.length);
      starts.push(start);
      secretStarts.push(start + form.publicLength);
      enough.push(pieceLength === null ? whole : Math.min(piece, whole));
    }
  }
  const whole = pieceLength === null;
  const isShort = enough.some((count) => count < OPENING_LENGTH);
  const opening = listOpenings(forms, { whole, isShort });
  const shortest = Math.min(...enough);
  return { places, starts, secretStarts, enough, shortest, whole, ...opening, rows: new Map(), spare: [] };
}

/** The base64 of a shorter secret appears by chance. */
const MIN_ENCODED_LENGTH = 8;
const PLAIN = 1;
const ESCAPED = 2;
const OPENING_LENGTH = 3;
const OPENINGS = 1 << 15;

function listForms({ text, publicLength }: Secret): Form[] {
  // Escapes add backslashes. The search ignores all of them, so the backslashes of a secret are left out too.
  const plain = text.replaceAll("\\", "");
  const shifts = text.length < MIN_ENCODED_LENGTH ? [] : [0, 1, 2];
  const coded = shifts.map((shift): Form => {
    const base64 = Buffer.from("\0".repeat(shift) + text).toString("base64");
    const from = Math.ceil((shift * 8) / 6);
    const to = Math.floor(((shift + text.length) * 8) / 6);
    const known = Math.ceil(((shift + publicLength) * 8) / 6) - from;
    return { text: base64.slice(from, to), publicLength: publicLength === 0 ? 0 : known, base64: true };
  });
  const texts = plain === text ? [text] : [plain, encodeURIComponent(text)];
  return [...texts.map((each) => ({ text: each, publicLength, base64: false })), ...coded];
}

/** The two base64 alphabets differ in two characters. */
const OTHER_ALPHABET = new Map([
  ["+", "-"],
  ["/", "_"],
]);

function spell(character: string, { base64 }: Form): number[] {
  const code = character.charCodeAt(0);
  const other = base64 ? OTHER_ALPHABET.get(character) : undefined;
  return other === undefined ? [code] : [code, other.charCodeAt(0)];
}

/** A piece can begin with any character of a form, a whole secret only with the first one. `isShort`: a match may have
 *  fewer than three characters, so that more of it is not known. */
function listOpenings(forms: readonly Form[], { whole, isShort }: { whole: boolean; isShort: boolean }) {
  const firsts = new Uint8Array(256);
  const openings = new Uint8Array(OPENINGS).fill(isShort ? 1 : 0);
  for (const form of forms) {
    const codes = Array.from(form.text, (character) => spell(character, form));
    for (const [first, second, third] of listTriples(whole ? codes.slice(0, OPENING_LENGTH) : codes)) {
      firsts[first] = PLAIN;
      openings[hashOpening(first, second, third)] = 1;
    }
    if (isShort) for (const first of codes.flat()) firsts[first] = PLAIN;
  }
  for (const lead of ESCAPE_STARTS) firsts[lead] = ESCAPED;
  return { firsts, openings };
}

/** Each three characters that follow one another. A character may have several codes. */
function listTriples(codes: readonly (readonly number[])[]): [number, number, number][] {
  return codes.slice(OPENING_LENGTH - 1).flatMap((thirds, at) => {
    const [firsts = [], seconds = []] = codes.slice(at);
    const pairs = firsts.flatMap((first) => seconds.map((second) => [first, second] as const));
    return pairs.flatMap(([first, second]) =>
      thirds.map((third): [number, number, number] => [first, second, third]),
    );
  });
}

function hashOpening(first: number, second: number, third: number): number {
  return ((first << 10) ^ (second << 5) ^ third) & (OPENINGS - 1);
}

/** How much of each form has matched up to one offset. */
interface Row {
  /** The indexes that match here. */
  readonly live: number[];
  /** By index: how many characters of the form have matched, and where the match begins in the bytes. */
  readonly lengths: Uint16Array;
  readonly froms: Int32Array;
}

export function scan(bytes: Buffer, patterns: Patterns): Scan {
  const first = findOpening(bytes, 0, patterns);
  if (first === bytes.length) return { found: [], holdFrom: first };
  return new Walk(bytes, patterns).run(first);
}

/** True for nearly all pieces: nothing in the bytes can be a secret, or the beginning of one. */
export function isPlain(bytes: Buffer, patterns: Patterns): boolean {
  return findOpening(bytes, 0, patterns) === bytes.length;
}

class Walk {
  readonly #bytes: Buffer;
  readonly #patterns: Patterns;
  readonly #found: ByteRange[] = [];
  /** Rows of offsets that the walk has not reached yet. */
  readonly #rows: Map<number, Row>;
  #holdFrom: number;

  constructor(bytes: Buffer, patterns: Patterns) {
    this.#bytes = bytes;
    this.#patterns = patterns;
    this.#rows = patterns.rows;
    this.#holdFrom = bytes.length;
  }

  run(first: number): Scan {
    const { length } = this.#bytes;
    for (let offset = first; offset <= length; offset += 1) {
      if (this.#rows.size === 0) offset = findOpening(this.#bytes, offset, this.#patterns);
      const row = this.#arrive(offset);
      if (offset < length) this.#leave(offset, row);
      else this.#hold(offset, row);
      if (row !== null) this.#recycle(row);
    }
    this.#forget();
    return { found: this.#found, holdFrom: this.#holdFrom };
  }

  /** Takes the row of an offset and records the secrets that end there. */
  #arrive(offset: number): Row | null {
    const row = this.#rows.get(offset) ?? null;
    if (row === null) return null;
    this.#rows.delete(offset);
    const { starts, secretStarts, enough, whole } = this.#patterns;
    for (const index of row.live) {
      const first = index - (row.lengths[index] ?? 0) + 1;
      const secret = index - Math.max(first, secretStarts[index] ?? 0) + 1;
      const isWhole = !whole || starts[index + 1] !== starts[index];
      if (!isWhole || secret < (enough[index] ?? 0)) continue;
      this.#note(row.froms[index] ?? 0, offset);
      if (whole) {
        this.#forget();
        this.#recycle(row);
        return null;
      }
    }
    return row;
  }

  #note(start: number, end: number): void {
    let from = start;
    for (let last = this.#found.at(-1); last !== undefined && last.end >= from; last = this.#found.at(-1)) {
      from = Math.min(from, last.start);
      this.#found.pop();
    }
    this.#found.push({ start: from, end });
  }

  #forget(): void {
    for (const row of this.#rows.values()) this.#recycle(row);
    this.#rows.clear();
  }

  #leave(offset: number, row: Row | null): void {
    const code = this.#bytes[offset] ?? 0;
    this.#read(row, code, offset, offset + 1);
    if (!ESCAPE_STARTS.has(code)) return;
    const cut = readEscapes(this.#bytes, offset, (read, end) => this.#read(row, read, offset, end));
    if (cut) this.#hold(offset, row);
  }

  /** Extends the matches: the bytes from `offset` to `end` stand for one character. */
  #read(row: Row | null, code: number, offset: number, end: number): void {
    const { places, starts, whole } = this.#patterns;
    for (const index of places[code] ?? []) {
      const before = index === starts[index] ? 0 : (row?.lengths[index - 1] ?? 0);
      if (before === 0 && whole && index !== starts[index]) continue;
      const from = before === 0 ? offset : (row?.froms[index - 1] ?? offset);
      this.#put(end, index, before + 1, from);
    }
  }

  #put(end: number, index: number, length: number, from: number): void {
    const row = this.#rows.get(end) ?? this.#open(end);
    const known = row.lengths[index] ?? 0;
    if (known === 0) row.live.push(index);
    if (known > length || (known === length && (row.froms[index] ?? 0) <= from)) return;
    row.lengths[index] = length;
    row.froms[index] = from;
  }

  #open(end: number): Row {
    const size = this.#patterns.starts.length;
    const row = this.#patterns.spare.pop() ?? {
      live: [],
      lengths: new Uint16Array(size),
      froms: new Int32Array(size),
    };
    this.#rows.set(end, row);
    return row;
  }

  #recycle(row: Row): void {
    for (const index of row.live) row.lengths[index] = 0;
    row.live.length = 0;
    this.#patterns.spare.push(row);
  }

  #hold(offset: number, row: Row | null): void {
    let from = offset;
    for (const index of row?.live ?? []) from = Math.min(from, row?.froms[index] ?? from);
    this.#holdFrom = Math.min(this.#holdFrom, from);
  }
}

/** The next offset where a match may begin. This skips nearly all bytes of most bodies. */
function findOpening(bytes: Buffer, from: number, patterns: Patterns): number {
  const { length } = bytes;
  const { firsts } = patterns;
  for (let at = from; at < length; at += 1) {
    if (firsts[bytes[at] ?? 0] === 0) continue;
    if (at + 2 >= length || mayOpen(bytes, at, patterns)) return at;
  }
  return length;
}

function mayOpen(bytes: Buffer, at: number, { firsts, openings, places }: Patterns): boolean {
  const code = byteAt(bytes, at);
  if (firsts[code] === ESCAPED) return (places[code]?.length ?? 0) > 0 || mayEscape(bytes, at, firsts);
  const second = byteAt(bytes, at + 1);
  const third = byteAt(bytes, at + 2);
  // An escape can stand for any character.
  if (firsts[second] === ESCAPED || firsts[third] === ESCAPED) return true;
  return openings[hashOpening(code, second, third)] === 1;
}

function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

/** Most escapes in JSON stand for quotes, line ends or characters that no secret contains. */
function mayEscape(bytes: Buffer, at: number, firsts: Uint8Array): boolean {
  const next = byteAt(bytes, at + 1);
  if (bytes[at] === PERCENT) return readDigit(next, 16) >= 0 || firsts[next] === ESCAPED;
  if (bytes[at] === AMPERSAND) return next === HASH || isLetter(next) || firsts[next] === ESCAPED;
  const end = skipBackslashes(bytes, at + 1);
  if (end === null) return false;
  if (end + 2 >= bytes.length || firsts[byteAt(bytes, end)] !== 0) return true;
  return bytes[end] === LOWER_U && bytes[end + 1] === ZERO && bytes[end + 2] === ZERO;
}
