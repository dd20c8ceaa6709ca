// Finds secrets in bytes, in every form that redact.ts names. Each match contains a sign: a piece of the secret as it is,
// or the beginning of an escape. One regular expression finds the signs, and most texts have none. Around a sign, each
// offset is tried as the beginning of a match, as far as the bytes can be part of one. From there, both the byte as it is
// and the character that an escape there stands for are followed. The work is linear in the bytes.

import { BACKSLASH, ESCAPE_STARTS, isLetter, readDigit, readEscapes } from "../../lib/text/escapes.ts";

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

/** A text to find, each of whose characters may be escaped. By character: the bytes that can stand for it. */
type Pattern = readonly (readonly number[])[];

/** The secret itself, or the part of its base64 that does not depend on the bytes beside it. */
interface Form {
  readonly pattern: Pattern;
  readonly publicLength: number;
  /** How many of its secret characters count as a find. */
  readonly enough: number;
}

export interface Patterns {
  /** By byte: the patterns that begin with it. */
  readonly first: readonly (readonly Pattern[])[];
  /** A shorter text holds none of them. */
  readonly shortest: number;
  /** Null if pieces of a secret count: then a match can begin anywhere. */
  readonly signs: RegExp | null;
  /** By two bytes, if pieces count: a match can begin with them. */
  readonly pairs: Uint8Array;
  /** By byte: a backslash before it can be an escape of it. */
  readonly quoted: Uint8Array;
  /** By byte: it can be part of a match, as a character or within an escape. */
  readonly inner: Uint8Array;
  /** No match has more bytes. */
  readonly longest: number;
}

/** The bytes of a character as `&#x41;`, each of which is written as `\u0026`. */
const MAX_SPELLED_LENGTH = 36;

/** `pieceLength`: how many secret characters count as a find; null: only a whole secret does. */
export function compileSecrets(secrets: readonly Secret[], pieceLength: number | null): Patterns {
  const forms = secrets.flatMap((secret) => listForms(secret, pieceLength));
  const patterns = pieceLength === null ? forms.map(({ pattern }) => pattern) : forms.flatMap(listPieces);
  const first: Pattern[][] = Array.from({ length: 256 }, () => []);
  for (const pattern of patterns) for (const code of pattern[0] ?? []) first[code]?.push(pattern);
  const codes = new Set(patterns.flat(2));
  const quoted = listQuoted(secrets, codes);
  const length = Math.max(0, ...patterns.map((pattern) => pattern.length));
  return {
    first,
    shortest: Math.min(...patterns.map((pattern) => pattern.length)),
    signs: pieceLength === null ? compileSigns(forms, quoted) : null,
    pairs: pieceLength === null ? new Uint8Array(0) : markPairs(patterns),
    quoted: markBytes(quoted),
    inner: markBytes([...codes, ...ALPHANUMERIC, ...codesOf("\\%&#;")]),
    longest: length * MAX_SPELLED_LENGTH,
  };
}

/** The base64 of a shorter secret appears by chance. */
const MIN_ENCODED_LENGTH = 8;

function listForms({ text, publicLength }: Secret, pieceLength: number | null): Form[] {
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
  const pattern = codesOf(text).map((code) => [code]);
  return { pattern, publicLength, enough: Math.min(pieceLength ?? whole, whole) };
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
  const characters = base64.slice(from, to);
  const pattern = Array.from(characters, (each) => codesOf(each + (OTHER_ALPHABET.get(each) ?? "")));
  return { ...makeForm(characters, known, piece), pattern };
}

/** All pieces of the length that counts, and the first one with the public characters before it. */
function listPieces({ pattern, publicLength, enough }: Form): Pattern[] {
  const pieces = publicLength === 0 ? [] : [pattern.slice(0, publicLength + enough)];
  for (let from = publicLength; from + enough <= pattern.length; from += 1)
    pieces.push(pattern.slice(from, from + enough));
  return pieces;
}

/** No format writes a letter or digit as a backslash and the same character. But in a secret with backslashes these may
 *  stand before anything, and the search ignores them. */
function listQuoted(secrets: readonly Secret[], codes: ReadonlySet<number>): Set<number> {
  const signs = [...codes].filter((code) => code !== BACKSLASH && !ALPHANUMERIC.includes(code));
  const own = secrets.flatMap(({ text }) => text.match(/(?<=\\)[^\\]/g) ?? []).flatMap(codesOf);
  return new Set([...signs, ...own]);
}

/** If the characters of an escape are escaped themselves, one of those begins like one of these. `\u00` stands for a
 *  visible character if a digit from 2 to 7 follows. `\n` and `\"`, of which answers are full, do not matter. */
function compileSigns(forms: readonly Form[], quoted: ReadonlySet<number>): RegExp {
  const escapes = `[%&]|\\\\(?:u00[2-7]|[${writeCodes([...quoted])}])`;
  const pieces = forms.map((form) => writeCodes(pickPiece(form)));
  return new RegExp([...pieces, escapes].join("|"), "g");
}

function writeCodes(codes: readonly number[]): string {
  return codes.map((code) => `\\x${code.toString(16).padStart(2, "0")}`).join("");
}

/** A longer piece costs more to search for, and is hardly rarer. */
const MAX_PIECE_LENGTH = 8;

/** A text that each match of the form without escapes contains: of its secret part, without characters that have two
 *  spellings. */
function pickPiece({ pattern, publicLength }: Form): number[] {
  let best: number[] = [];
  for (let from = publicLength; from < pattern.length && best.length < MAX_PIECE_LENGTH; from += 1) {
    const next = pattern.slice(from, from + MAX_PIECE_LENGTH);
    const end = next.findIndex((codes) => codes.length > 1);
    const piece = next.slice(0, end < 0 ? undefined : end).flat();
    if (piece.length > best.length) best = piece;
  }
  return best;
}

function codesOf(text: string): number[] {
  return Array.from(text, (character) => character.charCodeAt(0));
}

const BYTES = Array.from({ length: 256 }, (_, code) => code);
const ALPHANUMERIC = BYTES.filter((code) => isLetter(code) || readDigit(code, 10) >= 0);

function markBytes(codes: Iterable<number>): Uint8Array {
  const marks = new Uint8Array(256);
  for (const code of codes) marks[code] = 1;
  return marks;
}

/** A bit for each pair of bytes. */
function markPairs(patterns: readonly Pattern[]): Uint8Array {
  const marks = new Uint8Array(256 * 32);
  for (const start of ESCAPE_STARTS) marks.fill(255, start * 32, start * 32 + 32);
  for (const [first = [], second = BYTES] of patterns)
    for (const code of first)
      for (const next of [...second, ...ESCAPE_STARTS]) {
        const place = code * 32 + (next >> 3);
        marks[place] = (marks[place] ?? 0) | (1 << (next & 7));
      }
  return marks;
}

function isMarked(marks: Uint8Array, first: number, second: number): boolean {
  return (((marks[first * 32 + (second >> 3)] ?? 0) >> (second & 7)) & 1) === 1;
}

/** False: the text, which may be several joined ones, holds none of them. */
export function mayHold(text: string, { signs, shortest }: Patterns): boolean {
  if (text.length < shortest || signs === null) return text.length >= shortest;
  signs.lastIndex = 0;
  return signs.test(text);
}

/** In order, without overlaps. */
export function findSecrets(bytes: Buffer, patterns: Patterns): ByteRange[] {
  const { signs, inner, shortest } = patterns;
  const found: ByteRange[] = [];
  if (bytes.length < shortest) return found;
  if (signs === null) {
    tryAll({ start: 0, end: bytes.length }, found, bytes, patterns);
    return found;
  }
  const text = bytes.toString("latin1");
  signs.lastIndex = 0;
  for (let sign = signs.exec(text); sign !== null; sign = signs.exec(text)) {
    const start = skipBack(bytes, sign.index, 0, patterns);
    let end = sign.index + 1;
    while (end < bytes.length && inner[bytes[end] ?? 0] === 1) end += 1;
    tryAll({ start, end }, found, bytes, patterns);
    signs.lastIndex = end;
  }
  return found;
}

/** Tries each offset of a range as the beginning of a match. */
function tryAll({ start, end }: ByteRange, found: ByteRange[], bytes: Buffer, patterns: Patterns): void {
  const { pairs, signs } = patterns;
  for (let at = start; at < end; at += 1) {
    // Hardly any two bytes of a text are also side by side in a secret.
    if (signs === null && !isMarked(pairs, bytes[at] ?? 0, bytes[at + 1] ?? 0)) continue;
    const hit = findAt(bytes, at, patterns);
    if (hit.end === 0) continue;
    note(found, at, hit.end);
    // Pieces overlap. Whole secrets do not.
    if (signs !== null) at = hit.end - 1;
  }
}

function note(found: ByteRange[], start: number, end: number): void {
  const last = found.at(-1);
  if (last === undefined || start > last.end) found.push({ start, end });
  else found[found.length - 1] = { start: last.start, end: Math.max(end, last.end) };
}

/** The bytes from here on may be the beginning of a secret whose end has not come. `from`: where the last one ended. */
export function findOpenEnd(bytes: Buffer, patterns: Patterns, from: number): number {
  const { length } = bytes;
  let at = skipBack(bytes, length, Math.max(from, length - patterns.longest), patterns);
  while (at < length && !findAt(bytes, at, patterns).isOpen) at += 1;
  return at;
}

/** Where a match may begin that goes on at `end`. */
function skipBack(bytes: Buffer, end: number, least: number, { inner }: Patterns): number {
  let at = end;
  while (at > least && inner[bytes[at - 1] ?? 0] === 1) at -= 1;
  return at;
}

interface Hit {
  /** The end of the shortest match; 0: there is none. What comes later may be an escape together with its end. */
  readonly end: number;
  /** The bytes end inside a match. */
  readonly isOpen: boolean;
}

const NONE: Hit = { end: 0, isOpen: false };
const OPEN: Hit = { end: 0, isOpen: true };

function findAt(bytes: Buffer, at: number, { first, quoted }: Patterns): Hit {
  const code = bytes[at] ?? 0;
  if (!ESCAPE_STARTS.has(code)) return followAll(bytes, at + 1, first[code], quoted);
  let best = followAll(bytes, at + 1, first[code], quoted);
  const isCut = readEscapes(bytes, at, quoted, (read, end) => {
    best = join(best, followAll(bytes, end, first[read], quoted));
  });
  return isCut ? join(best, OPEN) : best;
}

function join(one: Hit, other: Hit): Hit {
  if (other === NONE) return one;
  const end = Math.min(one.end || other.end, other.end || one.end);
  return { end, isOpen: one.isOpen || other.isOpen };
}

/** Follows the patterns whose first character ends at `from`. */
function followAll(
  bytes: Buffer,
  from: number,
  patterns: readonly Pattern[] | undefined,
  quoted: Uint8Array,
): Hit {
  let best = NONE;
  if (patterns !== undefined)
    for (const pattern of patterns) best = join(best, follow(bytes, from, pattern, quoted));
  return best;
}

function follow(bytes: Buffer, from: number, pattern: Pattern, quoted: Uint8Array): Hit {
  let index = 1;
  let at = from;
  // As far as nothing is escaped, there is one way.
  for (; index < pattern.length && !ESCAPE_STARTS.has(bytes[at] ?? 0); index += 1) {
    if (at === bytes.length) return OPEN;
    if (pattern[index]?.includes(bytes[at] ?? 0) !== true) return NONE;
    at += 1;
  }
  return index === pattern.length
    ? { end: at, isOpen: false }
    : followEscapes(bytes, at, pattern.slice(index), quoted);
}

/** After an escape there may be several ways to read on. */
function followEscapes(bytes: Buffer, from: number, pattern: Pattern, quoted: Uint8Array): Hit {
  let ends = [from];
  let isOpen = false;
  for (const codes of pattern) {
    const next: number[] = [];
    const add = (code: number, end: number): void => {
      if (codes.includes(code) && !next.includes(end)) next.push(end);
    };
    for (const at of ends) {
      if (at < bytes.length) add(bytes[at] ?? 0, at + 1);
      if (at === bytes.length || readEscapes(bytes, at, quoted, add)) isOpen = true;
    }
    if (next.length === 0) return isOpen ? OPEN : NONE;
    ends = next;
  }
  return { end: Math.min(...ends), isOpen };
}
