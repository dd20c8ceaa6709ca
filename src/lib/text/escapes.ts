// Decodes escapes of JSON, URLs and HTML, also nested ones. The bytes need not be valid text of any of these formats.

export const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const AMPERSAND = 0x26;
const HASH = 0x23;
const SEMICOLON = 0x3b;
const LOWER_U = 0x75;
const LOWER_X = 0x78;
/** Every escape starts with one of these bytes. */
export const ESCAPE_STARTS: ReadonlySet<number> = new Set([BACKSLASH, PERCENT, AMPERSAND]);

/** A character for each byte. A percent sign that escapes nothing stays. */
export function decodePercents(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}

export function isLetter(code: number): boolean {
  return (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
}

export function readDigit(code: number, base: 10 | 16): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = (code | 0x20) - 0x61;
  return base === 16 && letter >= 0 && letter < 6 ? letter + 10 : -1;
}

/** A character, and the offset after it. */
interface Unit {
  readonly code: number;
  readonly end: number;
}

/** `cut`: the bytes end inside a possible escape. `none`: there is none. */
type Escape = Unit | "cut" | "none";
type Next = (from: number) => Unit | "cut";

/** A URL inside HTML inside JSON has three layers of escapes. */
const MAX_LAYERS = 3;

/** Decodes the escape at `at`, layer by layer, and passes each layer's character to `found`. `quoted`: by character,
 *  whether it is escaped by a backslash alone. True: the bytes end inside the escape. */
export function readEscapes(
  bytes: Buffer,
  at: number,
  quoted: Uint8Array,
  found: (code: number, end: number) => void,
): boolean {
  let unit: Unit = { code: bytes[at] ?? 0, end: at + 1 };
  for (let layer = 1; layer <= MAX_LAYERS && ESCAPE_STARTS.has(unit.code); layer += 1) {
    if (unit.code === BACKSLASH) {
      const escaped = skipBackslashes(bytes, unit.end);
      const code = bytes[escaped ?? bytes.length] ?? 0;
      if (escaped !== null && quoted[code] === 1) found(code, escaped + 1);
    }
    const escape = readPlainEscape(bytes, unit) ?? readEscape(bytes, unit, MAX_LAYERS - 1);
    if (escape === "cut") return true;
    if (escape === "none") return false;
    found(escape.code, escape.end);
    unit = escape;
  }
  return false;
}

/** An escape none of whose characters is escaped, such as `%41` or `\u0041`: nearly all are. Null if that is not clear. */
function readPlainEscape(bytes: Buffer, { code, end }: Unit): Unit | "none" | null {
  const next = bytes[end] ?? BACKSLASH;
  if (ESCAPE_STARTS.has(next)) return null;
  if (code === PERCENT) return readPlainNumber(bytes, end, 2);
  if (code === AMPERSAND) return next === HASH || isLetter(next) ? null : "none";
  return next === LOWER_U ? readPlainNumber(bytes, end + 1, 4) : "none";
}

function readPlainNumber(bytes: Buffer, from: number, digits: number): Unit | "none" | null {
  let code = 0;
  for (let at = from; at < from + digits; at += 1) {
    const next = bytes[at] ?? BACKSLASH;
    if (ESCAPE_STARTS.has(next)) return null;
    const digit = readDigit(next, 16);
    if (digit < 0) return "none";
    code = code * 16 + digit;
  }
  return { code, end: from + digits };
}

/** The character at an offset, after decoding at most this many layers. */
function readUnit(bytes: Buffer, at: number, layers: number): Unit | "cut" {
  if (at >= bytes.length) return "cut";
  let unit: Unit = { code: bytes[at] ?? 0, end: at + 1 };
  for (let layer = 1; layer <= layers && ESCAPE_STARTS.has(unit.code); layer += 1) {
    const escape = readEscape(bytes, unit, layers - 1);
    if (escape === "cut") return "cut";
    if (escape === "none") return unit;
    unit = escape;
  }
  return unit;
}

/** Each character of an escape may be escaped itself, whether the others are or not: an encoder chooses some of them. */
function readEscape(bytes: Buffer, lead: Unit, layers: number): Escape {
  const next: Next = (from) => readUnit(bytes, from, layers);
  if (lead.code === PERCENT) return readNumber(next, lead.end, { base: 16, least: 2, most: 2 });
  if (lead.code === AMPERSAND) return readEntity(next, lead.end);
  const from = skipBackslashes(bytes, lead.end);
  if (from === null) return "none";
  const kind = next(from);
  if (kind === "cut") return "cut";
  return kind.code === LOWER_U ? readNumber(next, kind.end, { base: 16, least: 4, most: 4 }) : "none";
}

/** JSON inside JSON inside JSON: `\u` becomes `\\u`, then `\\\\u`. */
const MAX_BACKSLASHES = 8;

/** Null if there are more than an escape can have. */
function skipBackslashes(bytes: Buffer, from: number): number | null {
  let at = from;
  while (bytes[at] === BACKSLASH) {
    at += 1;
    if (at - from >= MAX_BACKSLASHES) return null;
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
    if (digit < 0) return digits < least ? "none" : { code, end };
    code = code * base + digit;
    end = unit.end;
  }
  return { code, end };
}

/** The ASCII characters that have a name in HTML. */
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
const MAX_NAME_LENGTH = Math.max(...Object.keys(ENTITIES).map((name) => name.length));
/** `&#x0000041;`: a number may start with zeros. */
const MAX_DIGITS = 8;

function readEntity(next: Next, from: number): Escape {
  const first = next(from);
  if (first === "cut") return "cut";
  if (first.code !== HASH) return readEntityName(next, from);
  const second = next(first.end);
  if (second === "cut") return "cut";
  const hex = (second.code | 0x20) === LOWER_X;
  const numeral = { base: hex ? 16 : 10, least: 1, most: MAX_DIGITS } as const;
  const number = readNumber(next, hex ? second.end : first.end, numeral);
  if (number === "cut" || number === "none") return number;
  const last = next(number.end);
  if (last === "cut") return "cut";
  // Browsers accept the number without its semicolon.
  return { code: number.code, end: last.code === SEMICOLON ? last.end : number.end };
}

function readEntityName(next: Next, from: number): Escape {
  let name = "";
  for (let end = from; name.length <= MAX_NAME_LENGTH;) {
    const unit = next(end);
    if (unit === "cut") return "cut";
    end = unit.end;
    if (unit.code === SEMICOLON) {
      const character = Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined;
      return character === undefined ? "none" : { code: character.charCodeAt(0), end };
    }
    if (!isLetter(unit.code)) return "none";
    name += String.fromCharCode(unit.code);
  }
  return "none";
}
