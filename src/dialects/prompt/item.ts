// The hash of one part of a prompt: a tool, a message, or a block of one. It leaves out the marks for the cache, which move
// from turn to turn, and is the same for a text and for a block that holds only this text.

import { asBuffer } from "../../lib/memory/bytes.ts";
import { hashBytes } from "../../lib/memory/hash-bytes.ts";
import { equalsAt, findStringEnd } from "../../lib/json/json-spans.ts";
import { matchTokens, skipValue, walkElements, walkMembers } from "../../lib/json/json-walk.ts";

const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
/** No client marks as many places: Anthropic allows four. */
const MAX_MARKS = 256;
/** Members that are looked at in search of the marks. Most items have fewer than ten. */
const MAX_VISITS = 4096;
/** A mark is shorter. */
const MAX_MARK_BYTES = 256;
/** Around the text of a block that holds only a text. */
const TEXT_OPENINGS = [
  ["{", '"type"', ":", '"text"', ",", '"text"', ":"],
  ["{", '"text"', ":"],
];
const TEXT_CLOSINGS = [["}"], [",", '"type"', ":", '"text"', "}"]];

export class ItemReader {
  readonly #bytes: Uint8Array;
  readonly #markName: string;
  readonly #markOpening: readonly string[];
  /** Where the body may have marks, in ascending order. The name may also be a text. */
  readonly #places: number[] = [];
  #next = 0;
  /** Members that were looked at in search of marks. */
  visited = 0;
  /** Of the last item that was read. */
  hash = 0;
  /** The JSON of its last mark; null: it is not marked. */
  mark: string | null = null;

  constructor(bytes: Uint8Array, markName: string) {
    this.#bytes = bytes;
    this.#markName = `"${markName}"`;
    this.#markOpening = [",", this.#markName, ":"];
    const body = asBuffer(bytes);
    // Quotes are frequent in JSON, so that a search for what is between them takes less time.
    const name = `${markName}"`;
    for (let at = body.indexOf(name); at >= 0 && !this.hasTooMany; at = body.indexOf(name, at + 1))
      this.#places.push(at - 1);
  }

  /** To read them all would take too long. */
  get hasTooMany(): boolean {
    return this.#places.length > MAX_MARKS || this.visited > MAX_VISITS;
  }

  /** Returns the index after the item. Items are read in the order of the body. */
  read(start: number): number {
    this.mark = null;
    const textEnd = this.#readText(this.#bytes, start);
    if (textEnd >= 0) return textEnd;
    const end = skipValue(this.#bytes, start);
    if (end < 0) return -1;
    while ((this.#places[this.#next] ?? end) < start) this.#next += 1;
    if ((this.#places[this.#next] ?? end) < end) this.#readMarked(start, end);
    else this.hash = hashBytes(this.#bytes, start, end);
    return end;
  }

  /** Reads an item that is only a text, or a text and a mark, as most are. Returns the index after it, or -1 if it is
   *  another. */
  #readText(bytes: Uint8Array, start: number): number {
    const text = bytes[start] === QUOTE ? start : matchAny(bytes, start, TEXT_OPENINGS);
    const textEnd = text < 0 ? -1 : findStringEnd(bytes, text);
    const end = text === start || textEnd < 0 ? textEnd : this.#readTextEnd(bytes, textEnd);
    if (end >= 0) this.hash = hashBytes(bytes, text + 1, textEnd - 1);
    return end;
  }

  #readTextEnd(bytes: Uint8Array, textEnd: number): number {
    const end = matchAny(bytes, textEnd, TEXT_CLOSINGS);
    if (end >= 0) return end;
    const mark = matchTokens(bytes, textEnd, this.#markOpening);
    const markEnd = mark < 0 ? -1 : skipValue(bytes, mark);
    const markedEnd = markEnd < 0 ? -1 : matchTokens(bytes, markEnd, ["}"]);
    if (markedEnd >= 0) this.#noteMark(bytes, mark, markEnd);
    return markedEnd;
  }

  /** Each mark is left out with the comma before it, or after it if it is the first member. What an item contains in a list
   *  may be marked too: the content of a message or of a tool's result. */
  #readMarked(start: number, end: number): void {
    const bytes = this.#bytes;
    const kept: Uint8Array[] = [];
    let from = start;
    const readMembers = (object: number, isOuter: boolean): number => {
      let before = -1;
      return walkMembers(bytes, object, (keyStart, _keyEnd, value) => {
        this.visited += 1;
        const valueEnd = this.visited > MAX_VISITS ? -1 : skipValue(bytes, value);
        if (valueEnd >= 0 && equalsAt(bytes, keyStart, this.#markName)) {
          kept.push(bytes.subarray(from, before < 0 ? keyStart : before));
          from = before < 0 ? Math.max(valueEnd, matchTokens(bytes, valueEnd, [","])) : valueEnd;
          this.#noteMark(bytes, value, valueEnd);
        } else if (isOuter && valueEnd >= 0) {
          walkElements(bytes, value, (element) =>
            bytes[element] === OPEN_BRACE ? readMembers(element, false) : skipValue(bytes, element),
          );
        }
        before = valueEnd;
        return valueEnd;
      });
    };
    readMembers(start, true);
    const bare = Buffer.concat([...kept, bytes.subarray(from, end)]);
    if (this.#readText(bare, 0) !== bare.length) this.hash = hashBytes(bare, 0, bare.length);
  }

  #noteMark(bytes: Uint8Array, start: number, end: number): void {
    const last = Math.min(end, start + MAX_MARK_BYTES);
    if (!equalsAt(bytes, start, "null")) this.mark = asBuffer(bytes).toString("latin1", start, last);
  }
}

function matchAny(bytes: Uint8Array, start: number, each: readonly (readonly string[])[]): number {
  for (const tokens of each) {
    const end = matchTokens(bytes, start, tokens);
    if (end >= 0) return end;
  }
  return -1;
}
