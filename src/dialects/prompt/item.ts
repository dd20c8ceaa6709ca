// Reads one part of a prompt: a tool, a message, or a block of one. Its hash leaves out the marks for the cache, which
// move from turn to turn, and is the same for a text and for a block that holds only this text.

import { asBuffer } from "../../lib/memory/bytes.ts";
import { equalsAt, findStringEnd } from "../../lib/json/json-spans.ts";
import { skipValue, walkElements, walkMembers } from "../../lib/json/json-walk.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const TEXT_SEED = 1n;
const TEXT_FIRST = '{"text":';
const TYPE_FIRST = '{"type":"text","text":';
const TYPE_LAST = ',"type":"text"}';

export class ItemReader {
  readonly #bytes: Uint8Array;
  readonly #markName: string;
  /** Where the body may have marks, in ascending order. A text may contain their name too. */
  readonly #places: readonly number[];
  #nextPlace = 0;
  /** Of the last item that was read. */
  hash = 0;
  isMarked = false;
  /** The mark is for an hour. */
  isLong = false;

  constructor(bytes: Uint8Array, markName: string) {
    this.#bytes = bytes;
    this.#markName = markName;
    this.#places = findAll(bytes, `"${markName}"`);
  }

  /** Returns the index after the item. Items are read in the order of the body. */
  read(start: number): number {
    this.isMarked = this.isLong = false;
    const end = skipValue(this.#bytes, start);
    if (end < 0) return -1;
    if (this.#mayHaveMark(start, end)) {
      const bytes = this.#dropMarks(start, end);
      this.hash = hashItem(bytes, 0, bytes.length);
    } else this.hash = hashItem(this.#bytes, start, end);
    return end;
  }

  #mayHaveMark(start: number, end: number): boolean {
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
        const valueEnd = skipValue(bytes, value);
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

function findAll(bytes: Uint8Array, text: string): number[] {
  const found: number[] = [];
  const name = Buffer.from(text);
  const body = asBuffer(bytes);
  for (let at = body.indexOf(name); at >= 0; at = body.indexOf(name, at + name.length)) found.push(at);
  return found;
}

function hashItem(bytes: Uint8Array, start: number, end: number): number {
  if (bytes[start] === QUOTE) return hashText(bytes, start, end);
  const text = findTextStart(bytes, start);
  if (text >= 0) {
    const textEnd = findStringEnd(bytes, text);
    const isAll = textEnd === end - 1 ? bytes[textEnd] === CLOSE_BRACE : false;
    if (isAll || (textEnd === end - TYPE_LAST.length && equalsAt(bytes, textEnd, TYPE_LAST)))
      return hashText(bytes, text, textEnd);
  }
  return Number(Bun.hash.wyhash(bytes.subarray(start, end)));
}

function findTextStart(bytes: Uint8Array, start: number): number {
  if (equalsAt(bytes, start, TYPE_FIRST)) return start + TYPE_FIRST.length;
  return equalsAt(bytes, start, TEXT_FIRST) ? start + TEXT_FIRST.length : -1;
}

function hashText(bytes: Uint8Array, start: number, end: number): number {
  return Number(Bun.hash.wyhash(bytes.subarray(start, end), TEXT_SEED));
}
