// Finds the members of a JSON object and the elements of its lists in the bytes, without parsing them. One pass, which
// knows where strings are: the runtime searches for their quotes. It takes linear time and little memory. Valid JSON is
// read exactly; of what is nested deeper, only quotes and brackets count: to reject it is up to who parses it.

import { parseJson } from "./json/json.ts";
import { asBuffer } from "./memory/bytes.ts";
import { runAtOnce, type Steps } from "./time/next-turn.ts";

/** The position of a value: the bytes [start, end), including the quotes of a string. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export const OPEN_BRACE = 0x7b;
export const OPEN_BRACKET = 0x5b;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LITERAL = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** What a byte outside of strings is: `DEEPER` and `HIGHER` change the depth by one. */
const [DEEPER, HIGHER, STRING, FOREIGN] = [1, -1, 2, 3] as const;
const KINDS = new Int8Array(256).fill(FOREIGN);
// Without any other byte there, all parsers agree where the strings are.
for (const byte of Buffer.from("\ufeff \t\r\n:,+-.0123456789Etruefalsn")) KINDS[byte] = 0;
for (const byte of Buffer.from("[{")) KINDS[byte] = DEEPER;
for (const byte of Buffer.from("]}")) KINDS[byte] = HIGHER;
KINDS[QUOTE] = STRING;

/** A text of this many bytes is searched at once: a native search in a text costs a tenth of one in bytes. */
const WINDOW_BYTES = 4 * 1024;

/** A position in JSON that moves forward. Once something is wrong, `failed` is true, and nothing moves it. */
export class Scanner {
  readonly bytes: Buffer;
  at: number;
  failed = false;
  /** Where the last name of a member begins. */
  keyStart = 0;
  /** A byte outside of the strings is not JSON: a comment, another quote. */
  isForeign = false;
  #text = "";
  #base = 0;
  // Of the value that `skip` is in.
  #depth = 0;
  #inString = false;

  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = asBuffer(bytes);
    this.at = at;
  }

  /** The next byte that is not white space; 0 at the end. */
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

  /** Steps into the object or list that begins with this byte. False: there is nothing in it. */
  enter(open: number): boolean {
    if (this.peek() !== open) return this.#fail();
    this.at += 1;
    if (this.peek() !== open + 2) return !this.failed;
    this.at += 1;
    return false;
  }

  /** After a value. False: the object or list ends here. */
  more(open: number): boolean {
    if (this.failed) return false;
    const byte = this.peek();
    this.at += 1;
    return byte === COMMA || (byte !== open + 2 && this.#fail());
  }

  /** Passes over the name of a member, and returns it. Empty also if it is too long for a name that anybody wants. */
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

  /** Passes over a value. False: there is more of it than this many bytes, and the next call goes on. */
  skip(most = Number.POSITIVE_INFINITY): boolean {
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

  /** Back to the beginning of a value, whatever was wrong in it. */
  rewind(at: number): void {
    this.at = at;
    this.failed = this.#inString = false;
    this.#depth = 0;
  }

  #fail(): false {
    this.failed = true;
    return false;
  }

  /** True: the value has ended. */
  #skipWindow(): boolean {
    if (this.at < this.#base || this.at >= this.#base + this.#text.length - 1) {
      this.#base = this.at;
      this.#text = this.bytes.toString(
        "latin1",
        this.at,
        Math.min(this.at + WINDOW_BYTES, this.bytes.length),
      );
    }
    const text = this.#text;
    let at = this.at - this.#base;
    let before = -1;
    while (at > before && at < text.length) {
      before = at;
      at = this.#inString ? this.#leaveString(text, at) : this.#findString(text, at);
      if (this.#depth === 0 && !this.#inString) break;
    }
    this.at = this.#base + at;
    return this.#depth === 0 && !this.#inString;
  }

  #leaveString(text: string, from: number): number {
    const quote = text.indexOf('"', from);
    const end = quote < 0 ? text.length : quote;
    const isEscaped = text.charCodeAt(end - 1) === BACKSLASH && endsEscaped(text, from, end);
    // What the last backslash escapes is in the next window.
    if (quote < 0) return isEscaped ? end - 1 : end;
    this.#inString = isEscaped;
    return end + 1;
  }

  /** Stops after a quote, and where the value ends. */
  #findString(text: string, from: number): number {
    const { length } = text;
    let at = from;
    let depth = this.#depth;
    while (at < length) {
      const kind = KINDS[text.charCodeAt(at)] ?? 0;
      at += 1;
      if (kind === 0) continue;
      if (kind === STRING) {
        this.#inString = true;
        break;
      }
      if (kind === FOREIGN) this.isForeign = true;
      else {
        depth += kind;
        if (depth === 0) break;
      }
    }
    this.#depth = depth;
    return at;
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

/** Whether an odd run of backslashes ends at `end`. The one at `from` is not escaped. */
function endsEscaped(text: string, from: number, end: number): boolean {
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

/** An element of a list, known by its bytes. `about`: what its reader has found in it; null: nobody has read it. */
export interface Part<About> {
  readonly length: number;
  readonly hash: number;
  about: About | null;
}

/** The elements of a list; a value that is not a list is the only one. */
export interface Parts<About> {
  readonly starts: readonly number[];
  readonly parts: readonly Part<About>[];
}

export type Lists<About> = ReadonlyMap<string, Parts<About>>;

export interface Wanted<About> {
  /** The members to find (ASCII). */
  readonly names: ReadonlySet<string>;
  /** Those of which the elements are wanted, too. */
  readonly lists?: ReadonlySet<string>;
  /** Names of which all spellings are counted that some parser takes for them (in lower case). */
  readonly alike?: ReadonlySet<string>;
  /** The lists of earlier objects, the likeliest first. What is in them is not looked at again. */
  readonly known?: readonly Lists<About>[];
  /** Known parts are looked at, too. A hash can be forged: so a member could be hidden. */
  readonly isStrict?: boolean;
}

export class Scan<About = never> {
  readonly lists = new Map<string, Parts<About>>();
  /** Two members have the same name. Parsers disagree on which one counts. */
  readonly repeated = new Set<string>();
  isForeign = false;
  /** How many members some parser takes for one of `alike`. */
  spellings = 0;
  readonly #spans = new Map<string, Span>();

  /** Undefined also for what is repeated. */
  get(name: string): Span | undefined {
    return this.repeated.has(name) ? undefined : this.#spans.get(name);
  }

  add(name: string, span: Span, parts: Parts<About> | null): void {
    if (this.#spans.has(name)) this.repeated.add(name);
    this.#spans.set(name, span);
    // As JSON.parse does: of two lists with one name, the last one counts.
    if (parts === null) this.lists.delete(name);
    else this.lists.set(name, parts);
  }
}

/** A scan of this many bytes takes less than a millisecond. */
const PIECE_BYTES = 512 * 1024;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Null if it is not a JSON object. A byte order mark before it is passed over. */
export function* scanSteps<About>(
  source: Uint8Array,
  wanted: Wanted<About>,
  pieceBytes = PIECE_BYTES,
): Steps<Scan<About> | null> {
  const search = new Search(source, wanted);
  while (!search.advance(pieceBytes)) yield;
  return search.read();
}

export function scanMembers(
  bytes: Uint8Array,
  names: readonly string[],
  alike: readonly string[] = [],
): Scan | null {
  return runAtOnce(scanSteps<never>(bytes, { names: new Set(names), alike: new Set(alike) }));
}

/** Calls `visit` for each member of the object at `start`. False: it is none, it has no end, or `visit` said so. */
export function eachMember(
  bytes: Uint8Array,
  start: number,
  visit: (name: string, value: Span) => boolean,
): boolean {
  const json = new Scanner(bytes, start);
  for (let more = json.enter(OPEN_BRACE); more; more = json.more(OPEN_BRACE)) {
    const name = json.key();
    const { at } = json;
    json.skip();
    if (json.failed || !visit(name, { start: at, end: json.at })) return false;
  }
  return !json.failed;
}

/** The same for the elements of a list. Any other value is visited as if it were the only one. */
export function eachElement(bytes: Uint8Array, start: number, visit: (element: Span) => boolean): boolean {
  const json = new Scanner(bytes, start);
  const isList = json.peek() === OPEN_BRACKET;
  for (let more = !isList || json.enter(OPEN_BRACKET); more; more = isList && json.more(OPEN_BRACKET)) {
    json.peek();
    const { at } = json;
    json.skip();
    if (json.failed || !visit({ start: at, end: json.at })) return false;
  }
  return !json.failed;
}

/** A scan that may stop after each piece. */
class Search<About> {
  readonly #json: Scanner;
  readonly #wanted: Wanted<About>;
  readonly #scan = new Scan<About>();
  #name = "";
  #start = -1;
  /** Of the member that it is in; null: its elements are not wanted. */
  #list: Divider<About> | null = null;
  #inMember = false;

  constructor(source: Uint8Array, wanted: Wanted<About>) {
    const hasMark = BYTE_ORDER_MARK.every((byte, at) => source[at] === byte);
    this.#json = new Scanner(source, hasMark ? BYTE_ORDER_MARK.length : 0);
    this.#wanted = wanted;
  }

  /** True: nothing is left to search. */
  advance(most: number): boolean {
    const json = this.#json;
    const until = json.at + most;
    do {
      if (!this.#inMember && !this.#enterMember()) return true;
      if (!(this.#list?.advance(most) ?? json.skip(most))) return false;
      this.#leaveMember();
    } while (json.at < until);
    return false;
  }

  read(): Scan<About> | null {
    const json = this.#json;
    this.#scan.isForeign = json.isForeign;
    json.peek();
    return json.failed || json.at < json.bytes.length ? null : this.#scan;
  }

  #enterMember(): boolean {
    const json = this.#json;
    const more = this.#start < 0 ? json.enter(OPEN_BRACE) : json.more(OPEN_BRACE);
    if (!more) return false;
    const { alike, lists } = this.#wanted;
    this.#name = json.key();
    if (alike?.has(foldKey(this.#name)) === true) this.#scan.spellings += 1;
    this.#start = json.at;
    this.#list = lists?.has(this.#name) === true ? new Divider(json, this.#name, this.#wanted) : null;
    this.#inMember = true;
    return true;
  }

  #leaveMember(): void {
    const { at: end, failed } = this.#json;
    this.#inMember = false;
    if (failed || !this.#wanted.names.has(this.#name)) return;
    this.#scan.add(this.#name, { start: this.#start, end }, this.#list?.read() ?? null);
  }
}

/** A list with more elements is passed over, so that memory is bounded. */
const MAX_PARTS = 10_240;
const NULL_START = 0x6e;

/** Divides a list into its elements. */
class Divider<About> {
  readonly #starts: number[] = [];
  readonly #parts: Part<About>[] = [];
  readonly #json: Scanner;
  readonly #finder: PartFinder<About>;
  readonly #isStrict: boolean;
  readonly #from: number;
  readonly #isList: boolean;
  /** The part that it is in; -1: it is between two. */
  #start = -1;
  #known: Part<About> | null = null;
  /** It cannot be divided, and is passed over as a whole. */
  #isWhole = false;

  constructor(json: Scanner, name: string, { known = [], isStrict = false }: Wanted<About>) {
    this.#json = json;
    this.#finder = new PartFinder(json.bytes, known, name);
    this.#isStrict = isStrict;
    this.#from = json.at;
    this.#isList = json.peek() === OPEN_BRACKET;
  }

  /** Null: it could not be divided. Without the bytes, so that it does not keep them. */
  read(): Parts<About> | null {
    return this.#isWhole ? null : { starts: this.#starts, parts: this.#parts };
  }

  /** True: the list has ended. */
  advance(most: number): boolean {
    const json = this.#json;
    const until = json.at + most;
    while (!this.#isWhole) {
      if (this.#start < 0 && !this.#enterPart()) return true;
      if (this.#isWhole) break;
      if (this.#known !== null && !this.#isStrict) json.at += this.#known.length;
      else if (!json.skip(most)) return false;
      this.#leavePart();
      if (json.at >= until) return false;
    }
    return json.skip(most);
  }

  /** False: there is no further one. */
  #enterPart(): boolean {
    const json = this.#json;
    const count = this.#parts.length;
    if (!this.#isList) {
      if (count > 0) return false;
      if (json.peek() === NULL_START) return !json.skip();
    } else if (!(count === 0 ? json.enter(OPEN_BRACKET) : json.more(OPEN_BRACKET)) && !json.failed)
      return false;
    json.peek();
    this.#start = json.at;
    if (json.failed || count === MAX_PARTS) this.#giveUp();
    else this.#known = this.#finder.find(json.at);
    return true;
  }

  #leavePart(): void {
    const json = this.#json;
    if (json.failed && this.#isList) return this.#giveUp();
    const known = this.#known;
    this.#starts.push(this.#start);
    this.#parts.push(known?.length === json.at - this.#start ? known : makePart(json, this.#start));
    this.#start = -1;
  }

  #giveUp(): void {
    this.#isWhole = true;
    this.#json.rewind(this.#from);
  }
}

function makePart({ bytes, at: end }: Scanner, start: number): Part<never> {
  return { length: end - start, hash: hashBytes(bytes.subarray(start, end)), about: null };
}

/** The elements of the list in a span; of anything else, the value itself. */
export function listElements(bytes: Uint8Array, { start }: Span, most = MAX_PARTS): Span[] {
  const elements: Span[] = [];
  eachElement(bytes, start, (element) => elements.push(element) < most);
  return elements;
}

export function hashBytes(bytes: Uint8Array): number {
  return Number(Bun.hash.rapidhash(bytes));
}

/** Finds the parts of an earlier list again. Agents send the same list with more at its end. */
class PartFinder<About> {
  readonly #bytes: Uint8Array;
  readonly #lists: readonly (readonly Part<About>[])[];
  #list: readonly Part<About>[] | null = null;
  #next = 0;
  /** Parts since the last one that was found. */
  #missed = 0;
  /** Bytes that may be compared in vain, so that time stays linear. */
  #left: number;

  constructor(bytes: Uint8Array, known: readonly Lists<About>[], name: string) {
    this.#bytes = bytes;
    this.#left = bytes.length;
    this.#lists = known.map((lists) => lists.get(name)?.parts ?? []);
  }

  find(start: number): Part<About> | null {
    this.#list ??= this.#lists.find(([first]) => this.#matches(first, start)) ?? this.#lists[0] ?? [];
    // Parts have taken the place of earlier ones, or were put before them.
    return this.#findAt(this.#next + this.#missed, start) ?? this.#findAt(this.#next, start) ?? this.#miss();
  }

  #findAt(index: number, start: number): Part<About> | null {
    const part = this.#list?.[index];
    if (part === undefined || !this.#matches(part, start)) return null;
    this.#next = index + 1;
    this.#missed = 0;
    return part;
  }

  #miss(): null {
    this.#missed += 1;
    return null;
  }

  #matches(part: Part<About> | undefined, start: number): boolean {
    if (part === undefined || this.#left < 0) return false;
    const { length, hash } = part;
    const end = start + length;
    // What follows an element.
    const after = this.#bytes[end] ?? 0;
    if (after > 0x20 && after !== COMMA && after !== OPEN_BRACKET + 2 && after !== OPEN_BRACE + 2)
      return false;
    if (end > this.#bytes.length) return false;
    const isSame = hashBytes(this.#bytes.subarray(start, end)) === hash;
    if (!isSame) this.#left -= length;
    return isSame;
  }
}

/** ASCII without escapes. */
const PLAIN_TEXT = /^[ !#-[\]-~]*$/;
/** A name with every character escaped is not longer. */
const MAX_KEY_BYTES = 256;

const PLAIN_KEY = /^[a-z0-9_]*$/;

/** The name as the most lenient parser compares it: without case, compatibility forms, or what follows a NUL. */
function foldKey(name: string): string {
  if (PLAIN_KEY.test(name)) return name;
  const [first = ""] = name.normalize("NFKC").toLowerCase().split("\0");
  return first.trim();
}

/** The string in a span. Null if the value is not a string. */
export function readString(bytes: Uint8Array, { start, end }: Span): string | null {
  if (bytes[start] !== QUOTE) return null;
  const text = end - start > MAX_KEY_BYTES ? "\\" : asBuffer(bytes).toString("latin1", start + 1, end - 1);
  if (PLAIN_TEXT.test(text)) return text;
  const value = parseJson(asBuffer(bytes).toString("utf8", start, end));
  return typeof value === "string" ? value : null;
}

/** The same bytes with `value`, as a JSON string, in place of the span. */
export function replaceSpan(bytes: Uint8Array, { start, end }: Span, value: string): Uint8Array {
  return Buffer.concat([bytes.subarray(0, start), Buffer.from(JSON.stringify(value)), bytes.subarray(end)]);
}
