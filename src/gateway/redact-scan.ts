// Finds secrets in bytes, in one walk and in every form that redact.ts names. From each byte, the walk follows both
// the byte as it is and the character that an escape there stands for, and remembers how much of a secret has been
// read so far. It keeps at most one number for each character of a secret, so its work is linear in the bytes.

export interface Secret {
  /** Visible ASCII. */
  readonly text: string;
  /** How many of its first characters are known to everybody. */
  readonly publicLength: number;
}

export interface Stretch {
  readonly start: number;
  readonly end: number;
}

export interface Scan {
  /** In order, and apart from each other. */
  readonly found: readonly Stretch[];
  /** From here on the bytes may begin a secret whose end has not come. */
  readonly holdFrom: number;
}

/** A form to find: the secret itself, or the part of its base64 that does not depend on what stands beside it. */
interface Form {
  readonly text: string;
  readonly publicLength: number;
  readonly base64: boolean;
}

/** Forms joined to one text; each index stands for a character of one form. */
export interface Patterns {
  /** The indexes of a byte. */
  readonly places: readonly (readonly number[])[];
  /** By index: where the index's form starts, and where its secret part does. */
  readonly starts: readonly number[];
  readonly secretStarts: readonly number[];
  /** By index: how many secret characters up to here are enough. */
  readonly enough: readonly number[];
  /** Only whole secrets are found. */
  readonly whole: boolean;
  /** By byte and distance: the forms (as bits) that have the byte at that distance from their start. */
  readonly openings: readonly [Uint8Array, Uint8Array, Uint8Array];
}

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const AMPERSAND = 0x26;
const HASH = 0x23;
const SEMICOLON = 0x3b;
const LOWER_U = 0x75;
const LOWER_X = 0x78;
const LEADS: ReadonlySet<number> = new Set([BACKSLASH, PERCENT, AMPERSAND]);

/** `pieceLength`: this many secret characters are enough; null: only all of a secret is. */
export function compileSecrets(secrets: readonly Secret[], pieceLength: number | null): Patterns {
  const forms = secrets.flatMap(listForms);
  const places: number[][] = Array.from({ length: 256 }, () => []);
  const starts: number[] = [];
  const secretStarts: number[] = [];
  const enough: number[] = [];
  for (const form of forms) {
    const start = starts.length;
    const most = form.text.length - form.publicLength;
    const telling = form.base64 ? Math.ceil(((pieceLength ?? 0) * 4) / 3) : (pieceLength ?? 0);
    for (const character of form.text) {
      for (const code of spell(character, form)) places[code]?.push(starts.length);
      starts.push(start);
      secretStarts.push(start + form.publicLength);
      enough.push(pieceLength === null ? most : Math.min(telling, most));
    }
  }
  const openings = [findOpenings(forms, 0), findOpenings(forms, 1), findOpenings(forms, 2)] as const;
  return { places, starts, secretStarts, enough, whole: pieceLength === null, openings };
}

/** The base64 of a shorter one may be part of anything. */
const SHORTEST_ENCODED = 8;
/** Forms share this many bits. One more is for the first bytes of escapes alone, which have all of them. */
const OPENING_BITS = 7;
const ANY = 255;

function listForms({ text, publicLength }: Secret): Form[] {
  // Escapes add backslashes: those of the secret itself are left out of the search, like those.
  const plain = text.replaceAll("\\", "");
  const shifts = text.length < SHORTEST_ENCODED ? [] : [0, 1, 2];
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

/** Two alphabets of base64 differ in two characters. */
function spell(character: string, { base64 }: Form): number[] {
  const other = base64 ? { "+": "-", "/": "_" }[character] : undefined;
  return [character, ...(other ?? "")].map((each) => each.charCodeAt(0));
}

/** An escape may stand for any character: all forms may go on with its first byte. */
function findOpenings(forms: readonly Form[], distance: number): Uint8Array {
  const openings = new Uint8Array(256);
  forms.forEach((form, index) => {
    const bit = 1 << index % OPENING_BITS;
    for (const code of spell(form.text.charAt(distance), form)) openings[code] = (openings[code] ?? 0) | bit;
  });
  for (const lead of LEADS) openings[lead] = ANY;
  return openings;
}

/** What has been read of the forms up to one offset. */
interface Row {
  /** The indexes that have just been read. */
  readonly live: number[];
  /** By index: how many characters of the form, this one included, and where they begin in the bytes. */
  readonly lengths: Uint16Array;
  readonly froms: Int32Array;
}

export function scan(bytes: Buffer, patterns: Patterns): Scan {
  const first = findOpening(bytes, 0, patterns);
  if (first === bytes.length) return { found: [], holdFrom: first };
  return new Walk(bytes, patterns).run(first);
}

class Walk {
  readonly #bytes: Buffer;
  readonly #patterns: Patterns;
  readonly #found: Stretch[] = [];
  /** Rows of offsets that have not been reached. */
  readonly #rows = new Map<number, Row>();
  readonly #spare: Row[] = [];
  #holdFrom: number;

  constructor(bytes: Buffer, patterns: Patterns) {
    this.#bytes = bytes;
    this.#patterns = patterns;
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
    return { found: this.#found, holdFrom: this.#holdFrom };
  }

  /** Takes the row of an offset, and notes the secrets that end there. */
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
    if (!LEADS.has(code)) return;
    const cut = readEscapes(this.#bytes, offset, (read, end) => this.#read(row, read, offset, end));
    if (cut) this.#hold(offset, row);
  }

  /** The bytes from `offset` to `end` stand for one character. */
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
    const row = this.#spare.pop() ?? {
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
    this.#spare.push(row);
  }

  #hold(offset: number, row: Row | null): void {
    let from = offset;
    for (const index of row?.live ?? []) from = Math.min(from, row?.froms[index] ?? from);
    this.#holdFrom = Math.min(this.#holdFrom, from);
  }
}

/** The next offset where a form may begin. Nearly all bytes of most bodies are passed over here. */
function findOpening(bytes: Buffer, from: number, { openings, places, whole }: Patterns): number {
  const { length } = bytes;
  const [first, second, third] = openings;
  let at = from;
  for (; at < length; at += 1) {
    const code = bytes[at] ?? 0;
    if (!whole) {
      if ((places[code]?.length ?? 0) > 0 || LEADS.has(code)) return at;
      continue;
    }
    const bits = first[code] ?? 0;
    if (bits === 0) continue;
    if (at + 2 >= length) return at;
    const next = bytes[at + 1] ?? 0;
    const isOpening =
      bits === ANY
        ? mayEscape(code, next, first) || (places[code]?.length ?? 0) > 0
        : goesOn(bits, next, bytes[at + 2] ?? 0, second, third);
    if (isOpening) return at;
  }
  return at;
}

function goesOn(bits: number, next: number, afterNext: number, second: Uint8Array, third: Uint8Array): boolean {
  const both = bits & (second[next] ?? 0);
  return both !== 0 && (second[next] === ANY || (both & (third[afterNext] ?? 0)) !== 0);
}

function mayEscape(lead: number, next: number, first: Uint8Array): boolean {
  if (lead === BACKSLASH) return next === LOWER_U || (first[next] ?? 0) !== 0;
  if (lead === PERCENT) return readDigit(next, 16) >= 0 || first[next] === ANY;
  return next === HASH || isLetter(next) || first[next] === ANY;
}

function isLetter(code: number): boolean {
  return (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
}

function readDigit(code: number, base: 10 | 16): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = (code | 0x20) - 0x61;
  return base === 16 && letter >= 0 && letter < 6 ? letter + 10 : -1;
}

/** A character and the offset after it. */
interface Unit {
  readonly code: number;
  readonly end: number;
}

/** `cut`: the bytes end inside of what may be an escape. */
type Escape = Unit | "cut" | null;
type Next = (from: number) => Unit | "cut";

/** Texts are put into texts: a URL with escapes in HTML in JSON has three layers. */
const MOST_LAYERS = 3;

/** Calls `found` with what an escape at `at` stands for, layer by layer. True: the bytes end inside of it. */
function readEscapes(bytes: Buffer, at: number, found: (code: number, end: number) => void): boolean {
  let unit: Unit = { code: bytes[at] ?? 0, end: at + 1 };
  for (let layer = 1; layer <= MOST_LAYERS && LEADS.has(unit.code); layer += 1) {
    if (unit.code === BACKSLASH) {
      const escaped = skipBackslashes(bytes, unit.end);
      if (escaped !== null && escaped < bytes.length) found(bytes[escaped] ?? 0, escaped + 1);
    }
    const escape = readEscape(bytes, unit, layer);
    if (escape === "cut") return true;
    if (escape === null) return false;
    found(escape.code, escape.end);
    unit = escape;
  }
  return false;
}

/** The character at an offset, with the escapes of some layers read. */
function readUnit(bytes: Buffer, at: number, layers: number): Unit | "cut" {
  if (at >= bytes.length) return "cut";
  let unit: Unit = { code: bytes[at] ?? 0, end: at + 1 };
  for (let layer = 1; layer <= layers && LEADS.has(unit.code); layer += 1) {
    const escape = readEscape(bytes, unit, layer);
    if (escape === "cut") return "cut";
    if (escape === null) return unit;
    unit = escape;
  }
  return unit;
}

function readEscape(bytes: Buffer, lead: Unit, layer: number): Escape {
  const next: Next = (from) => readUnit(bytes, from, layer - 1);
  if (lead.code === PERCENT) return readNumber(next, lead.end, { base: 16, least: 2, most: 2 });
  if (lead.code === AMPERSAND) return readEntity(next, lead.end);
  const from = skipBackslashes(bytes, lead.end);
  if (from === null) return null;
  const kind = next(from);
  if (kind === "cut") return "cut";
  return kind.code === LOWER_U ? readNumber(next, kind.end, { base: 16, least: 4, most: 4 }) : null;
}

/** JSON inside of JSON inside of JSON: `\u` becomes `\\u`, then `\\\\u`. */
const MOST_BACKSLASHES = 8;

/** Null where there are more than escapes have. */
function skipBackslashes(bytes: Buffer, from: number): number | null {
  let at = from;
  while (bytes[at] === BACKSLASH) {
    at += 1;
    if (at - from >= MOST_BACKSLASHES) return null;
  }
  return at;
}

interface Numeral {
  readonly base: 10 | 16;
  readonly least: number;
  readonly most: number;
}

function readNumber(next: Next, from: number, { base, least, most }: Numeral): Escape {
  let code = 0;
  let end = from;
  for (let digits = 0; digits < most; digits += 1) {
    const unit = next(end);
    if (unit === "cut") return "cut";
    const digit = readDigit(unit.code, base);
    if (digit < 0) return digits < least ? null : { code, end };
    code = code * base + digit;
    end = unit.end;
  }
  return { code, end };
}

/** HTML's names of the ASCII characters that have one. */
const ENTITIES: Readonly<Record<string, string>> = {
  excl: "!",
  quot: '"',
  QUOT: '"',
  num: "#",
  dollar: "$",
  percnt: "%",
  amp: "&",
  AMP: "&",
  apos: "'",
  lpar: "(",
  rpar: ")",
  ast: "*",
  midast: "*",
  plus: "+",
  comma: ",",
  period: ".",
  sol: "/",
  colon: ":",
  semi: ";",
  lt: "<",
  LT: "<",
  equals: "=",
  gt: ">",
  GT: ">",
  quest: "?",
  commat: "@",
  lsqb: "[",
  lbrack: "[",
  bsol: "\\",
  rsqb: "]",
  rbrack: "]",
  Hat: "^",
  lowbar: "_",
  UnderBar: "_",
  grave: "`",
  DiacriticalGrave: "`",
  lcub: "{",
  lbrace: "{",
  verbar: "|",
  vert: "|",
  VerticalLine: "|",
  rcub: "}",
  rbrace: "}",
};
const LONGEST_NAME = Math.max(...Object.keys(ENTITIES).map((name) => name.length));
/** `&#x0000041;`: zeros may stand before a number. */
const MOST_DIGITS = 8;

function readEntity(next: Next, from: number): Escape {
  const first = next(from);
  if (first === "cut") return "cut";
  if (first.code !== HASH) return readName(next, from);
  const second = next(first.end);
  if (second === "cut") return "cut";
  const hex = (second.code | 0x20) === LOWER_X;
  const numeral = { base: hex ? 16 : 10, least: 1, most: MOST_DIGITS } as const;
  const number = readNumber(next, hex ? second.end : first.end, numeral);
  if (number === "cut" || number === null) return number;
  const last = next(number.end);
  if (last === "cut") return "cut";
  // Browsers read the number without its semicolon, too.
  return { code: number.code, end: last.code === SEMICOLON ? last.end : number.end };
}

function readName(next: Next, from: number): Escape {
  let name = "";
  for (let end = from; name.length <= LONGEST_NAME;) {
    const unit = next(end);
    if (unit === "cut") return "cut";
    end = unit.end;
    if (unit.code === SEMICOLON) {
      const character = Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined;
      return character === undefined ? null : { code: character.charCodeAt(0), end };
    }
    if (!isLetter(unit.code)) return null;
    name += String.fromCharCode(unit.code);
  }
  return null;
}

const MASK = /(?:\*|\xe2\x80\xa2|\\{1,8}u2022){2,}|\.{3,}|\xe2\x80\xa6|\\{1,8}u2026/g;
/** So many of a secret's first or last characters are looked for beside a mask. */
const LONGEST_EDGE = 24;
/** A mask with fewer secret characters beside it may stand beside anything. */
const SHORTEST_EDGES = 4;

/** `sk-abc***wxyz`: a mask with the secret's beginning before it, its end after it, or both. */
export function findMasked(bytes: Buffer, secrets: readonly Secret[]): Stretch[] {
  const found: Stretch[] = [];
  for (const mask of bytes.toString("latin1").matchAll(MASK)) {
    const end = mask.index + mask[0].length;
    for (const { text, publicLength } of secrets) {
      const most = Math.min(text.length, publicLength + LONGEST_EDGE);
      const before = measure(most, (size) => isAt(bytes, mask.index - size, text, { from: 0, to: size }));
      const last = Math.min(text.length, LONGEST_EDGE);
      const to = text.length;
      const after = measure(last, (size) => isAt(bytes, end, text, { from: to - size, to }));
      if (Math.max(0, before - publicLength) + after < SHORTEST_EDGES) continue;
      found.push({ start: mask.index - before, end: end + after });
    }
  }
  return found;
}

function measure(most: number, isShared: (size: number) => boolean): number {
  let size = most;
  while (size > 0 && !isShared(size)) size -= 1;
  return size;
}

/** True when a part of the text stands at an offset of the bytes. */
function isAt(bytes: Buffer, at: number, text: string, { from, to }: { from: number; to: number }): boolean {
  if (at < 0) return false;
  for (let index = from; index < to; index += 1) {
    if (bytes[at + index - from] !== text.charCodeAt(index)) return false;
  }
  return true;
}
