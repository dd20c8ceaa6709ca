// Finds the members of a JSON object and the elements of its lists in one pass.
// Elements known from an earlier object are not scanned again.

import { COMMA, OPEN_BRACE, OPEN_BRACKET, Scanner, type Span } from "./json/scanner.ts";
import { runAtOnce, type Steps } from "./time/next-turn.ts";

/** `about` is what a reader has found in the part.
 *  Null: no reader has read it. */
export interface ListPart<About> {
  readonly length: number;
  readonly hash: number;
  about: About | null;
}

/** The first parts of a list, if an earlier list begins with them, too. */
interface Head {
  readonly count: number;
  readonly length: number;
  readonly hash: number;
}

/** A list's parts. Any other value is one part. */
export interface Parts<About> {
  readonly starts: readonly number[];
  readonly parts: readonly ListPart<About>[];
  /** Null: no part was known before. */
  readonly head: Head | null;
  /** What a reader keeps for the next object. */
  kept: object | null;
}

export type Lists<About> = ReadonlyMap<string, Parts<About>>;

export interface Wanted<About> {
  /** The members to find (ASCII). */
  readonly names: ReadonlySet<string>;
  /** At most this many members of other names are found, too. */
  readonly others?: number;
  /** Lists whose elements are wanted, too. */
  readonly lists?: ReadonlySet<string>;
  /** Names in lower case. `spellings` counts the members
   *  that a lenient parser takes for one of them. */
  readonly alike?: ReadonlySet<string>;
  /** The lists of earlier objects, the likeliest first. */
  readonly known?: readonly Lists<About>[];
  /** Scans known elements, too: a forged hash could hide a member. */
  readonly isStrict?: boolean;
}

export class Scan<About = never> {
  readonly lists = new Map<string, Parts<About>>();
  /** Repeated names: parsers disagree on which counts. */
  readonly repeated = new Set<string>();
  isForeign = false;
  spellings = 0;
  readonly #spans = new Map<string, Span>();

  /** Undefined also for a repeated name. */
  get(name: string): Span | undefined {
    return this.repeated.has(name) ? undefined : this.#spans.get(name);
  }

  get members(): ReadonlyMap<string, Span> {
    return this.#spans;
  }

  add(name: string, span: Span, list: Divider<About> | null): void {
    if (this.#spans.has(name)) {
      this.repeated.add(name);
      // As in JSON.parse, the last list counts.
      this.lists.delete(name);
    }
    this.#spans.set(name, span);
    const parts = list?.read() ?? null;
    if (parts !== null) this.lists.set(name, parts);
  }
}

/** Scanned in less than a millisecond. */
const PIECE_BYTES = 512 * 1024;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Null: the source is not a JSON object. */
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

class Search<About> {
  readonly #json: Scanner;
  readonly #wanted: Wanted<About>;
  readonly #scan = new Scan<About>();
  #name = "";
  #start = -1;
  /** Null: the elements are not wanted. */
  #list: Divider<About> | null = null;
  #inMember = false;
  #others = 0;

  constructor(source: Uint8Array, wanted: Wanted<About>) {
    const hasMark = BYTE_ORDER_MARK.every((byte, at) => source[at] === byte);
    this.#json = new Scanner(source, hasMark ? BYTE_ORDER_MARK.length : 0);
    this.#wanted = wanted;
  }

  /** True: nothing is left. */
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
    this.#list = lists?.has(this.#name) === true ? this.#divide(lists) : null;
    this.#inMember = true;
    return true;
  }

  #divide(lists: ReadonlySet<string>): Divider<About> {
    // `#name` may be a slice, which would keep the whole text in memory.
    for (const list of lists) if (list === this.#name) this.#name = list;
    return new Divider(this.#json, this.#name, this.#wanted);
  }

  #leaveMember(): void {
    const { at: end, failed } = this.#json;
    this.#inMember = false;
    if (failed) return;
    const { names, others = 0 } = this.#wanted;
    if (!names.has(this.#name) && (this.#others += 1) > others) return;
    this.#scan.add(this.#name, { start: this.#start, end }, this.#list);
  }
}

/** A longer list is not divided: memory is bounded. */
const MAX_PARTS = 10_240;
/** Longer parts are not recognised: a hash takes milliseconds. */
export const MAX_PART_BYTES = 8 * 1024 * 1024;
const NULL_START = 0x6e;

class Divider<About> {
  #head: Head | null = null;
  #starts: number[] = [];
  #parts: ListPart<About>[] = [];
  /** How many parts at the beginning are those of an earlier list. */
  #shared = 0;
  readonly #json: Scanner;
  readonly #finder: PartFinder<About>;
  readonly #isStrict: boolean;
  readonly #from: number;
  readonly #isList: boolean;
  /** -1: between two parts. */
  #start = -1;
  #part: ListPart<About> | null = null;
  /** The list cannot be divided: it is skipped as a whole. */
  #isWhole = false;

  constructor(json: Scanner, name: string, { known = [], isStrict = false }: Wanted<About>) {
    this.#json = json;
    this.#finder = new PartFinder(json.bytes, known, name);
    this.#isStrict = isStrict;
    this.#from = json.at;
    this.#isList = json.peek() === OPEN_BRACKET;
  }

  /** Null: it could not be divided. The result does not keep the bytes. */
  read(): Parts<About> | null {
    if (this.#isWhole) return null;
    return {
      starts: this.#starts,
      parts: this.#parts,
      head: this.#readHead(),
      kept: this.#finder.list?.kept ?? null,
    };
  }

  #readHead(): Head | null {
    const count = this.#shared;
    if (count === this.#head?.count) return this.#head;
    const [start = 0] = this.#starts;
    const end = (this.#starts[count - 1] ?? 0) + (this.#parts[count - 1]?.length ?? 0);
    if (count < 1 || end - start > MAX_PART_BYTES) return null;
    return { count, length: end - start, hash: hashBytes(this.#json.bytes.subarray(start, end)) };
  }

  /** True: the list has ended. */
  advance(most: number): boolean {
    const json = this.#json;
    const until = json.at + most;
    while (!this.#isWhole) {
      if (this.#start < 0 && !this.#enterPart()) return true;
      if (this.#isWhole) break;
      if (this.#part !== null && !this.#isStrict) json.at += this.#part.length;
      else if (!json.skip(most)) return false;
      this.#leavePart();
      if (json.at >= until) return false;
    }
    return json.skip(most);
  }

  /** False: no further part. */
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
    else if (count === 0 && this.#passHead()) return this.#enterPart();
    else this.#part = this.#finder.find(json.at);
    return true;
  }

  #passHead(): boolean {
    const json = this.#json;
    const known = this.#isList && !this.#isStrict ? this.#finder.findHead(json.at) : null;
    if (known === null) return false;
    const { head, starts, parts } = known;
    const moved = json.at - (starts[0] ?? 0);
    this.#starts = starts.slice(0, head.count);
    if (moved !== 0) this.#starts = this.#starts.map((start) => start + moved);
    this.#parts = parts.slice(0, head.count);
    this.#shared = head.count;
    this.#head = head;
    this.#start = -1;
    json.at += head.length;
    return true;
  }

  #leavePart(): void {
    const json = this.#json;
    if (json.failed && this.#isList) return this.#giveUp();
    const known = this.#part?.length === json.at - this.#start ? this.#part : null;
    const shared = this.#finder.list?.parts[this.#shared];
    if (known === shared && this.#shared === this.#parts.length) this.#shared += 1;
    this.#starts.push(this.#start);
    this.#parts.push(known ?? makePart(json, this.#start));
    this.#start = -1;
  }

  #giveUp(): void {
    this.#isWhole = true;
    this.#json.rewind(this.#from);
  }
}

function makePart({ bytes, at: end }: Scanner, start: number): ListPart<never> {
  const length = end - start;
  const hash = length > MAX_PART_BYTES ? Number.NaN : hashBytes(bytes.subarray(start, end));
  return { length, hash, about: null };
}

export function hashBytes(bytes: Uint8Array): number {
  return Number(Bun.hash.xxHash3(bytes));
}

/** Finds parts of earlier lists, which agents send again and extend. */
class PartFinder<About> {
  /** The earlier list that is continued. */
  list: Parts<About> | null = null;
  readonly #bytes: Uint8Array;
  readonly #lists: Parts<About>[] = [];
  #next = 0;
  /** Parts since the last one that was found. */
  #missed = 0;
  /** Bytes that may be compared in vain: time stays linear. */
  #left: number;

  constructor(bytes: Uint8Array, known: readonly Lists<About>[], name: string) {
    this.#bytes = bytes;
    this.#left = bytes.length;
    for (const lists of known) {
      const list = lists.get(name);
      if (list !== undefined) this.#lists.push(list);
    }
  }

  findHead(start: number): (Parts<About> & { readonly head: Head }) | null {
    for (const list of this.#lists) {
      const { head, parts } = list;
      if (head === null || !this.#matches(parts[0], start) || !this.#matches(head, start)) continue;
      this.list = list;
      this.#next = head.count;
      return { ...list, head };
    }
    return null;
  }

  find(start: number): ListPart<About> | null {
    const [likeliest = null] = this.#lists;
    this.list ??= this.#lists.find(({ parts }) => this.#matches(parts[0], start)) ?? likeliest;
    // The first index is right if parts were replaced,
    // the second one if parts were inserted.
    const found = this.#findAt(this.#next + this.#missed, start) ?? this.#findAt(this.#next, start);
    if (found === null) this.#missed += 1;
    return found;
  }

  #findAt(index: number, start: number): ListPart<About> | null {
    const part = this.list?.parts[index];
    if (part === undefined || !this.#matches(part, start)) return null;
    this.#next = index + 1;
    this.#missed = 0;
    return part;
  }

  #matches(part: Pick<Head, "length" | "hash"> | undefined, start: number): boolean {
    if (part === undefined || this.#left < 0) return false;
    const { length, hash } = part;
    const end = start + length;
    const after = this.#bytes[end] ?? 0;
    if (after > 0x20 && after !== COMMA && after !== OPEN_BRACKET + 2 && after !== OPEN_BRACE + 2)
      return false;
    if (end > this.#bytes.length) return false;
    const isSame = hashBytes(this.#bytes.subarray(start, end)) === hash;
    if (!isSame) this.#left -= length;
    return isSame;
  }
}

const PLAIN_KEY = /^[a-z0-9_]*$/;

/** A name as the most lenient parser reads it:
 *  lower case, cut at a NUL, compatible letters. */
function foldKey(name: string): string {
  if (PLAIN_KEY.test(name)) return name;
  const [first = ""] = name.normalize("NFKC").toLowerCase().split("\0");
  return first.trim();
}
