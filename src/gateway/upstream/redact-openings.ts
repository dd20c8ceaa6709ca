// The forms in which an upstream may write a secret, and the few places in bytes where one may begin. They are found mostly
// with the runtime's own search for short texts: pieces of the secret, and the beginnings of escapes. An escape matters
// only if it can stand for a character of a secret or hide the beginning of another escape. `\n` and `\"`, of which
// answers are full, do not matter.

import {
  BACKSLASH,
  isLetter,
  MAX_BROKEN_LENGTH,
  readDigit,
  readEscapes,
  readPlainEscape,
} from "../../lib/text/escapes.ts";

export interface Secret {
  /** Visible ASCII. */
  readonly text: string;
  /** How many of its first characters are public. */
  readonly publicLength: number;
}

/** A form to find: the secret itself, or the part of its base64 that does not depend on the bytes beside it. Each of its
 *  characters may be escaped. */
export interface Form {
  readonly text: string;
  readonly publicLength: number;
  /** How many of its secret characters count as a find. */
  readonly enough: number;
  /** By character: the bytes that can stand for it. */
  readonly codes: readonly (readonly number[])[];
}

/** The base64 of a shorter secret appears by chance. */
const MIN_ENCODED_LENGTH = 8;

/** `pieceLength`: how many secret characters count as a find; null: only a whole secret does. */
export function listForms({ text, publicLength }: Secret, pieceLength: number | null): Form[] {
  // Escapes add backslashes. The search ignores all of them, so the backslashes of a secret are left out too.
  const plain = text.replaceAll("\\", "");
  const texts = plain === text ? [text] : [plain, encodeURIComponent(text)];
  const shifts = text.length < MIN_ENCODED_LENGTH ? [] : [0, 1, 2];
  return [
    ...texts.map((each) => makeForm(each, publicLength, pieceLength)),
    ...shifts.map((shift) => encodeForm({ text, publicLength }, shift, pieceLength)),
  ];
}

function makeForm(text: string, publicLength: number, pieceLength: number | null): Form {
  const whole = text.length - publicLength;
  const codes = Array.from(text, (character) => [character.charCodeAt(0)]);
  return { text, publicLength, enough: Math.min(pieceLength ?? whole, whole), codes };
}

/** The two base64 alphabets differ in two characters. */
const OTHER_ALPHABET = new Map([
  ["+", "-"],
  ["/", "_"],
]);

/** The secret in base64, `shift` bytes after a place that divides by three. */
function encodeForm({ text, publicLength }: Secret, shift: number, pieceLength: number | null): Form {
  const base64 = Buffer.from("\0".repeat(shift) + text).toString("base64");
  const from = Math.ceil((shift * 8) / 6);
  const to = Math.floor(((shift + text.length) * 8) / 6);
  const known = publicLength === 0 ? 0 : Math.ceil(((shift + publicLength) * 8) / 6) - from;
  const piece = pieceLength === null ? null : Math.ceil((pieceLength * 4) / 3);
  const form = makeForm(base64.slice(from, to), known, piece);
  const codes = Array.from(form.text, (character) =>
    [character, OTHER_ALPHABET.get(character) ?? []].flat().map((each) => each.charCodeAt(0)),
  );
  return { ...form, codes };
}

/** A text that matches contain. */
interface Piece {
  readonly text: Buffer;
  /** The match begins this many bytes before it. */
  readonly before: number;
}

/** What to search for. */
export interface OpeningPlan {
  /** Each match without escapes contains one of these. None if pieces of a secret count: there would be too many. */
  readonly pieces: readonly Piece[];
  /** For pieces of a secret, by a hash of three bytes: whether a match can begin with them. */
  readonly openings: Uint8Array | null;
  /** Each match with escapes contains one of these. */
  readonly escapes: readonly Buffer[];
  /** By byte: a backslash before it can be an escape of it. */
  readonly quoted: Uint8Array;
  /** By character: an escape that stands for it matters. Besides those of secrets these are the characters that can
   *  hide the beginning of another escape. */
  readonly telling: Uint8Array;
  /** By byte: it can be part of a match, as a character or within an escape. */
  readonly inner: Uint8Array;
  /** In a match, at most this many bytes come before its first escape that matters. */
  readonly reach: number;
}

const OPENING_LENGTH = 3;
const OPENINGS = 1 << 15;

/** `whole`: only whole secrets count. */
export function planOpenings(
  secrets: readonly Secret[],
  forms: readonly Form[],
  whole: boolean,
): OpeningPlan {
  const codes = new Set(forms.flatMap((form) => form.codes.flat()));
  const quoted = listQuoted(secrets, codes);
  return {
    pieces: whole ? forms.map(pickPiece) : [],
    openings: whole ? null : listOpenings(forms),
    escapes: listEscapes(quoted),
    quoted: markBytes(quoted),
    telling: markBytes([...codes, ...codesOf("01234567u")]),
    inner: markBytes([...codes, ...ALPHANUMERIC, ...codesOf("\\%&#;")]),
    reach: Math.max(0, ...forms.map(({ text }) => text.length)) + MAX_BROKEN_LENGTH,
  };
}

function markBytes(codes: Iterable<number>): Uint8Array {
  const marks = new Uint8Array(256);
  for (const code of codes) marks[code] = 1;
  return marks;
}

function codesOf(text: string): number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}

const ALPHANUMERIC = Array.from({ length: 128 }, (_, code) => code).filter(
  (code) => isLetter(code) || readDigit(code, 10) >= 0,
);

/** No format writes a letter or digit as a backslash and the same character. But in a secret with backslashes these may
 *  stand before anything, and the search ignores them. */
function listQuoted(secrets: readonly Secret[], codes: ReadonlySet<number>): Set<number> {
  const signs = [...codes].filter((code) => code !== BACKSLASH && !ALPHANUMERIC.includes(code));
  const own = secrets.flatMap(({ text }) => text.match(/(?<=\\)[^\\]/g) ?? []).flatMap(codesOf);
  return new Set([...signs, ...own]);
}

/** A longer piece costs more to search for, and is hardly rarer. */
const MAX_PIECE_LENGTH = 8;

/** A text that each match of the form without escapes contains: of its secret part, without characters that have two
 *  spellings. */
function pickPiece({ codes, publicLength }: Form): Piece {
  let best: Piece = { text: Buffer.alloc(0), before: 0 };
  for (let from = publicLength; from < codes.length && best.text.length < MAX_PIECE_LENGTH; from += 1) {
    const next = codes.slice(from, from + MAX_PIECE_LENGTH);
    const end = next.findIndex((each) => each.length > 1);
    const text = Buffer.from(next.slice(0, end < 0 ? undefined : end).flat());
    if (text.length > best.text.length) best = { text, before: from };
  }
  return best;
}

const NO_PIECE: Piece = { text: Buffer.alloc(0), before: 0 };

const UNICODE = Buffer.from("\\u00");

/** The beginnings of all escapes that matter. If the characters of an escape are escaped themselves, one of those begins
 *  like this. `\u00` stands for a visible character if a digit from 2 to 7 follows. */
function listEscapes(quoted: ReadonlySet<number>): Buffer[] {
  const signs = Array.from(quoted, (code) => `\\${String.fromCharCode(code)}`);
  return ["%", "&", ...signs, ...Array.from("234567", (digit) => `\\u00${digit}`)].map((text) =>
    Buffer.from(text),
  );
}

/** A piece can begin with any character of a form. If a match may be shorter, it can begin with any three bytes. */
function listOpenings(forms: readonly Form[]): Uint8Array {
  const isShort = forms.some(({ enough }) => enough < OPENING_LENGTH);
  const openings = new Uint8Array(OPENINGS).fill(isShort ? 1 : 0);
  for (const { codes } of forms) {
    for (let at = 0; at + OPENING_LENGTH <= codes.length; at += 1) {
      const [firsts = [], seconds = [], thirds = []] = codes.slice(at, at + OPENING_LENGTH);
      const pairs = firsts.flatMap((first) => seconds.map((second) => [first, second] as const));
      for (const [first, second] of pairs)
        for (const third of thirds) openings[hashOpening(first, second, third)] = 1;
    }
  }
  return openings;
}

function hashOpening(first: number, second: number, third: number): number {
  return ((first << 10) ^ (second << 5) ^ third) & (OPENINGS - 1);
}

/** Greater than any offset. */
const NONE = Number.MAX_SAFE_INTEGER;

export class Openings {
  readonly #bytes: Buffer;
  readonly #plan: OpeningPlan;
  /** By piece: where the next match with it begins. By escape: where the next of its kind is. -1: not known yet. */
  readonly #pieces: number[];
  readonly #escapes: number[];
  #opening = -1;
  /** The next escape, or the end, and where a match that contains it or goes on after it may begin. */
  #escape = -1;
  #escapeStart = 0;
  /** A match may begin at each offset before this one. */
  #until = 0;

  constructor(bytes: Buffer, plan: OpeningPlan) {
    this.#bytes = bytes;
    this.#plan = plan;
    this.#pieces = plan.pieces.map(() => -1);
    const hasBackslash = bytes.includes(BACKSLASH);
    const hasUnicode = hasBackslash && bytes.includes(UNICODE);
    this.#escapes = plan.escapes.map((text) => {
      if (text[0] !== BACKSLASH) return -1;
      return (text.length > 2 ? hasUnicode : hasBackslash) ? -1 : NONE;
    });
  }

  /** The first offset, from this one on, where a match may begin. The offsets must rise. */
  next(from: number): number {
    if (from < this.#until) return from;
    const { length } = this.#bytes;
    const start = Math.min(this.#findPiece(from), this.#findOpening(from), length);
    const escape = Math.min(this.#findEscape(from), length);
    if (escape !== this.#escape) {
      this.#escape = escape;
      this.#escapeStart = this.#findStart(escape);
    }
    if (start <= this.#escapeStart) return start;
    this.#until = escape;
    return Math.max(from, this.#escapeStart);
  }

  #findPiece(from: number): number {
    const starts = this.#pieces;
    let first = NONE;
    for (let index = 0; index < starts.length; index += 1) {
      let start = starts[index] ?? NONE;
      if (start < from) {
        const { text, before } = this.#plan.pieces[index] ?? NO_PIECE;
        start = this.#find(text, from + before) - before;
        starts[index] = start;
      }
      if (start < first) first = start;
    }
    return first;
  }

  #findEscape(from: number): number {
    const places = this.#escapes;
    let first = NONE;
    for (let index = 0; index < places.length; index += 1) {
      let at = places[index] ?? NONE;
      if (at < from) {
        at = this.#findTelling(this.#plan.escapes[index] ?? UNICODE, from);
        places[index] = at;
      }
      if (at < first) first = at;
    }
    return first;
  }

  #find(text: Buffer, from: number): number {
    const at = this.#bytes.indexOf(text, from);
    return at < 0 ? NONE : at;
  }

  #findTelling(text: Buffer, from: number): number {
    let at = this.#find(text, from);
    while (at !== NONE && !this.#isTelling(at)) at = this.#find(text, at + 1);
    return at;
  }

  #isTelling(at: number): boolean {
    const { quoted, telling } = this.#plan;
    if (this.#bytes[at] === BACKSLASH && quoted[byteAt(this.#bytes, at + 1)] === 1) return true;
    const code = readPlainEscape(this.#bytes, at);
    if (code !== null) return telling[code] === 1;
    let tells = false;
    const cut = readEscapes(this.#bytes, at, quoted, (each) => {
      tells ||= telling[each] === 1;
    });
    return tells || cut;
  }

  /** Where a match may begin that holds the byte before `end`. */
  #findStart(end: number): number {
    const { inner, reach } = this.#plan;
    const least = Math.max(0, end - reach);
    let start = end;
    while (start > least && inner[byteAt(this.#bytes, start - 1)] === 1) start -= 1;
    return start;
  }

  #findOpening(from: number): number {
    const { openings } = this.#plan;
    if (openings === null) return NONE;
    const end = this.#bytes.length - OPENING_LENGTH;
    let at = Math.max(from, this.#opening);
    for (; at <= end; at += 1) {
      const [second, third] = [byteAt(this.#bytes, at + 1), byteAt(this.#bytes, at + 2)];
      if (openings[hashOpening(byteAt(this.#bytes, at), second, third)] === 1) break;
    }
    this.#opening = at <= end ? at : NONE;
    return this.#opening;
  }
}

function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}
