// Reads one part of a prompt: a tool, a message, or a block of one. Its hash leaves out the marks for the cache, which
// move from turn to turn, and is the same for a text and for a block that holds only this text.

import { asBuffer } from "../../lib/memory/bytes.ts";
import { hashBytes } from "../../lib/memory/hash-bytes.ts";
import { equalsAt } from "../../lib/json/json-spans.ts";
import { StringHasher } from "../../lib/json/json-string-hash.ts";
import { skipValue, walkElements, walkMembers } from "../../lib/json/json-walk.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const TEXT_FIRST = '{"text":';
const TYPE_FIRST = '{"type":"text","text":';
const TYPE_LAST = ',"type":"text"}';
/** No client marks as many places: Anthropic allows four. */
const MAX_MARKS = 256;
/** Members that are looked at in search of the marks. Most items have fewer than ten. */
const MAX_VISITS = 4096;

export class ItemReader {
  readonly #bytes: Uint8Array;
  readonly #strings = new StringHasher();
  readonly #markName: string;
  /** Where the body may have marks, in ascending order. A text may contain their name too. */
  readonly #places: readonly number[];
  #nextPlace = 0;
  #visits = 0;
  /** Of the last item that was read. */
  hash = 0;
  isMarked = false;
  /** The mark is for an hour. */
  isLong = false;

  constructor(bytes: Uint8Array, markName: string) {
    this.#bytes = bytes;
    this.#markName = markName;
    this.#places = findNames(bytes, markName);
  }

  /** Reading them all would take too long. */
  get isCrowded(): boolean {
    return this.#places.length > MAX_MARKS || this.#visits > MAX_VISITS;
  }

  /** Returns the index after the item. Items are read in the order of the body. */
  read(start: number): number {
    this.isMarked = this.isLong = false;
    const textEnd = this.#readText(this.#bytes, start);
    if (textEnd >= 0) return textEnd;
    const end = skipValue(this.#bytes, start);
    if (end < 0) return -1;
    if (this.#mayHaveMark(start, end)) this.#readMarked(start, end);
    else this.hash = hashBytes(this.#bytes, start, end);
    return end;
  }

  #readMarked(start: number, end: number): void {
    const bytes = this.#dropMarks(start, end);
    if (this.#readText(bytes, 0) !== bytes.length) this.hash = hashBytes(bytes, 0, bytes.length);
  }

  /** Reads an item that is only a text, as most are, in one pass. Returns the index after it, or -1 if it is another. */
  #readText(bytes: Uint8Array, start: number): number {
    const text = bytes[start] === QUOTE ? start : findTextStart(bytes, start);
    if (text < 0) return -1;
    const textEnd = this.#strings.read(bytes, text);
    const end = text === start ? textEnd : findTextItemEnd(bytes, textEnd);
    if (end >= 0) this.hash = this.#strings.hash;
    return end;
  }

  /** The bytes of an item that ends at `end`, without its marks. Items may be cut in any order. */
  cut(start: number, end: number): Uint8Array {
    const place = this.#places[findFirst(this.#places, start)] ?? end;
    return place < end ? this.#dropMarks(start, end) : this.#bytes.subarray(start, end);
  }

  #mayHaveMark(start: number, end: number): boolean {
    if (this.#places.length === 0) return false;
    while ((this.#places[this.#nextPlace] ?? end) < start) this.#nextPlace += 1;
    return (this.#places[this.#nextPlace] ?? end) < end;
  }

  /** A copy without the marks, each with the comma before it, or after it if it is the first member. What an item
   *  contains in a list may be marked too: the content of a message or of a tool's result. */
  #dropMarks(start: number, end: number): Uint8Array {
    const bytes = this.#bytes;
    const kept: Uint8Array[] = [];
    let from = start;
    const readMembers = (object: number, isOuter: boolean): number =>
      walkMembers(bytes, object, (keyStart, keyEnd, value) => {
        this.#visits += 1;
        const valueEnd = this.isCrowded ? -1 : skipValue(bytes, value);
        if (valueEnd >= 0 && this.#isMark(keyStart, keyEnd)) {
          const isFirst = bytes[keyStart - 1] !== COMMA;
          kept.push(bytes.subarray(from, isFirst ? keyStart : keyStart - 1));
          from = isFirst && bytes[valueEnd] === COMMA ? valueEnd + 1 : valueEnd;
          this.#noteMark(value, valueEnd);
        } else if (isOuter && valueEnd >= 0) {
          walkElements(bytes, value, (element) =>
            bytes[element] === OPEN_BRACE ? readMembers(element, false) : skipValue(bytes, element),
          );
        }
        return valueEnd;
      });
    readMembers(start, true);
    return kept.length === 0
      ? bytes.subarray(start, end)
      : Buffer.concat([...kept, bytes.subarray(from, end)]);
  }

  #isMark(keyStart: number, keyEnd: number): boolean {
    const { length } = this.#markName;
    return keyEnd - keyStart === length + 2 && equalsAt(this.#bytes, keyStart + 1, this.#markName);
  }

  #noteMark(start: number, end: number): void {
    if (equalsAt(this.#bytes, start, "null")) return;
    this.isMarked = true;
    this.isLong = asBuffer(this.#bytes)
      .toString("latin1", start, Math.min(end, start + 256))
      .includes('"1h"');
  }
}

/** Where a name in quotes may be, up to one place more than are read. Quotes are frequent in JSON, so that a search for
 *  what is between them takes less time. */
function findNames(bytes: Uint8Array, name: string): number[] {
  const found: number[] = [];
  const body = asBuffer(bytes);
  for (let at = 0; found.length <= MAX_MARKS; at += name.length) {
    at = body.indexOf(`${name}"`, at, "latin1");
    if (at < 0) break;
    found.push(at - 1);
  }
  return found;
}

/** The index of the first place from `start` on. */
function findFirst(places: readonly number[], start: number): number {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((places[middle] ?? start) < start) low = middle + 1;
    else high = middle;
  }
  return low;
}

function findTextStart(bytes: Uint8Array, start: number): number {
  if (equalsAt(bytes, start, TYPE_FIRST)) return start + TYPE_FIRST.length;
  return equalsAt(bytes, start, TEXT_FIRST) ? start + TEXT_FIRST.length : -1;
}

/** The index after an item whose text ends at `textEnd`; -1 if it holds more. */
function findTextItemEnd(bytes: Uint8Array, textEnd: number): number {
  if (textEnd < 0) return -1;
  if (bytes[textEnd] === CLOSE_BRACE) return textEnd + 1;
  return equalsAt(bytes, textEnd, TYPE_LAST) ? textEnd + TYPE_LAST.length : -1;
}
