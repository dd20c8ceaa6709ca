// The fields of a head, as text for the wire: one line each, the name in lower case, one space before the value. The text is
// made and indexed once, when the head is read. What is forwarded is cut from it, and a value only when it is looked up.

/** A header field. The name is lower case, the value as it arrived. Order and repeats are kept. */
export type Field = readonly [name: string, value: string];

/** The other side broke the protocol. `status` is what a server replies to it. */
export class Malformed extends Error {
  readonly status: number;
  constructor(message: string, status = 400) {
    super(message);
    this.name = "Malformed";
    this.status = status;
  }
}

const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 32;
const COLON = 58;
/** `: ` and the line end. */
const SEPARATOR = 2;
const LINE_END = 2;

/** Two bits for each character: allowed in a name, allowed in a value. */
const IN_NAME = 1;
const IN_VALUE = 2;
const CHARACTER_KINDS = Uint8Array.from({ length: 256 }, (_, code) => {
  const char = String.fromCharCode(code);
  const named = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(char) ? IN_NAME : 0;
  return named | (/[\t\x20-\x7e\x80-\xff]/.test(char) ? IN_VALUE : 0);
});

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FORBIDDEN_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
/** The fields that show where a message ends. Only framing code writes them. */
export const FRAMING_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "content-length",
  "transfer-encoding",
]);

export class Fields implements Iterable<Field> {
  #text = "";
  readonly #names: string[] = [];
  /** Where each line starts in the text. */
  readonly #starts: number[] = [];

  static of(fields: Iterable<Field>): Fields {
    return new Fields().addAll(fields);
  }

  /** Fields that the runtime has parsed: nothing in them can break a head. */
  static received(fields: Iterable<Field>): Fields {
    const read = new Fields();
    for (const [name, value] of fields) {
      read.#names.push(name);
      read.#starts.push(read.#text.length);
      read.#text += `${name}: ${value}\r\n`;
    }
    return read;
  }

  /** Reads the lines from `from` to `end`, the last one with its line end. Writes their names in lower case into `bytes`. */
  static read(bytes: Buffer, from: number, end: number): Fields {
    const fields = new Fields();
    let copied = from;
    for (let at = from; at < end;) {
      const start = at;
      let hash = 0;
      for (let code = bytes[at] ?? 0; isIn(code, IN_NAME); code = bytes[++at] ?? 0) {
        if (code >= 65 && code <= 90) bytes[at] = code |= 0x20;
        hash = (Math.imul(hash, 31) + code) & (SLOTS - 1);
      }
      if (at === start || bytes[at] !== COLON) throw new Malformed("a field without a name");
      const name = readName(bytes, start, at, hash);
      const valueStart = at + SEPARATOR;
      at = findValueEnd(bytes, at + 1);
      const lineEnd = at;
      if (bytes[at] !== CR || bytes[at + 1] !== LF) throw new Malformed("a forbidden character in a field");
      at += LINE_END;
      fields.#names.push(name);
      fields.#starts.push(fields.#text.length + start - copied);
      if (isTrimmed(bytes, valueStart, lineEnd)) continue;
      const value = trimBlanks(bytes, valueStart - 1, lineEnd);
      fields.#text += `${bytes.toString("latin1", copied, start)}${name}: ${value}\r\n`;
      copied = at;
    }
    fields.#text += bytes.toString("latin1", copied, end);
    return fields;
  }

  /** Lines for the wire, in latin-1. */
  get text(): string {
    return this.#text;
  }

  /** The first value of a field, by its lower-case name. */
  get(name: string): string | undefined {
    for (let index = 0; index < this.#names.length; index += 1)
      if (this.#names[index] === name) return this.#valueAt(index);
    return undefined;
  }

  getAll(name: string): readonly string[] {
    let values: string[] | null = null;
    for (let index = 0; index < this.#names.length; index += 1)
      if (this.#names[index] === name) (values ??= []).push(this.#valueAt(index));
    return values ?? NO_VALUES;
  }

  [Symbol.iterator](): Iterator<Field> {
    return this.#names.map((name, index): Field => [name, this.#valueAt(index)])[Symbol.iterator]();
  }

  /** The name is lower case. Throws Malformed if the name or the value would break the head. */
  add(name: string, value: string): this {
    const line = writeLine(name, value);
    this.#names.push(name);
    this.#starts.push(this.#text.length);
    this.#text += line;
    return this;
  }

  addAll(fields: Iterable<Field>): this {
    for (const [name, value] of fields) this.add(name, value);
    return this;
  }

  /** `rename` returns the name of each field in the copy, or null to leave it out. */
  copy(rename: (name: string) => string | null): Fields {
    const copy = new Fields();
    const text = this.#text;
    let length = 0;
    let copied = 0;
    for (let index = 0; index < this.#names.length; index += 1) {
      const name = this.#names[index] ?? "";
      const start = this.#starts[index] ?? 0;
      const end = this.#starts[index + 1] ?? text.length;
      const renamed = rename(name);
      if (renamed !== name) {
        copy.#text += text.slice(copied, start);
        copied = end;
        if (renamed === null) continue;
        copy.#text += renamed + text.slice(start + name.length, end);
      }
      const written = renamed ?? name;
      copy.#names.push(written);
      copy.#starts.push(length);
      length += end - start + written.length - name.length;
    }
    copy.#text += text.slice(copied);
    return copy;
  }

  without(names: ReadonlySet<string>): Fields {
    return this.copy((name) => (names.has(name) ? null : name));
  }

  #valueAt(index: number): string {
    const start = (this.#starts[index] ?? 0) + (this.#names[index] ?? "").length + SEPARATOR;
    return this.#text.slice(start, (this.#starts[index + 1] ?? this.#text.length) - LINE_END);
  }

  /** Lines for the wire. Fields of the framing are left out. */
  write(): string {
    for (const name of this.#names) if (FRAMING_FIELDS.has(name)) return this.without(FRAMING_FIELDS).#text;
    return this.#text;
  }
}

const NO_VALUES: readonly string[] = [];

/** What is sent: fields that were received, with changes, or a list. */
export type SentFields = Fields | readonly Field[];

/** Field lines for the wire, in latin-1. Framing fields among `fields` are left out. */
export function writeFields(fields: SentFields): string {
  if (fields instanceof Fields) return fields.write();
  let lines = "";
  for (const [name, value] of fields) if (!FRAMING_FIELDS.has(name)) lines += writeLine(name, value);
  return lines;
}

function writeLine(name: string, value: string): string {
  if (TOKEN.test(name) && !FORBIDDEN_IN_VALUE.test(value)) return `${name}: ${value}\r\n`;
  throw new Malformed(`a forbidden character in the field ${JSON.stringify(name)}`);
}

/** Traffic repeats a few dozen names, so most are found in this table instead of being made again. */
const SLOTS = 1024;
const MAX_CACHED_NAME_BYTES = 64;
const knownNames: string[] = Array.from({ length: SLOTS }, () => "");

function readName(bytes: Buffer, start: number, end: number, slot: number): string {
  const expected = knownNames[slot] ?? "";
  if (isName(expected, bytes, start, end)) return expected;
  const name = bytes.toString("latin1", start, end);
  if (name.length <= MAX_CACHED_NAME_BYTES) knownNames[slot] = name;
  return name;
}

function isName(name: string, bytes: Buffer, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let at = start; at < end; at += 1) if (bytes[at] !== name.charCodeAt(at - start)) return false;
  return true;
}

/** A folded line, a lone CR or LF, and every other character that a value must not contain, end it too. */
function findValueEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (isIn(bytes[at] ?? 0, IN_VALUE)) at += 1;
  return at;
}

/** One space precedes the value, and no blank is around it. */
function isTrimmed(bytes: Buffer, start: number, end: number): boolean {
  if (start >= end) return start === end && bytes[start - 1] === SPACE;
  return bytes[start - 1] === SPACE && !isBlank(bytes[start]) && !isBlank(bytes[end - 1]);
}

function trimBlanks(bytes: Buffer, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(bytes[start])) start += 1;
  while (end > start && isBlank(bytes[end - 1])) end -= 1;
  return bytes.toString("latin1", start, end);
}

function isIn(code: number, kind: number): boolean {
  return ((CHARACTER_KINDS[code] ?? 0) & kind) !== 0;
}

function isBlank(code: number | undefined): boolean {
  return code === SPACE || code === TAB;
}
