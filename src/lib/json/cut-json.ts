// Reads JSON that may be cut anywhere, as far as it goes, in linear time.

import { parseWithAmounts } from "../exact.ts";
import { endsEscaped } from "./scanner.ts";

export interface CutJson {
  /** Undefined: the text is not JSON. */
  readonly value: unknown;
  /** Containers that have not ended. */
  readonly depth: number;
  /** The text ends inside a string, a number or a name. */
  readonly isInside: boolean;
}

export function parseCut(text: string): CutJson {
  const walk = new Walk(text);
  while (walk.step());
  return walk.close();
}

const BARE = /[\w.+-]+/y;
const CUT_ESCAPE = /\\(?:u[\da-f]{0,3})?$/i;
const CLOSERS = new Map([
  ["{", "}"],
  ["[", "]"],
]);

class Walk {
  readonly #text: string;
  readonly #closers: string[] = [];
  #at = 0;
  /** Up to here, the text is JSON once its containers are closed. */
  #safe = 0;
  #isNaming = false;
  #isInside = false;
  /** The text ends inside a string that is a value. */
  #isCutText = false;

  constructor(text: string) {
    this.#text = text;
  }

  /** False: nothing is left. */
  step(): boolean {
    const character = this.#text[this.#at];
    if (character === undefined) return false;
    if (character === '"') return this.#passText();
    BARE.lastIndex = this.#at;
    if (BARE.test(this.#text)) return this.#passBare(BARE.lastIndex);
    this.#at += 1;
    this.#passSign(character);
    return true;
  }

  #passText(): boolean {
    const end = findQuote(this.#text, this.#at + 1);
    this.#isInside = end < 0;
    this.#isCutText = end < 0 && !this.#isNaming;
    this.#at = end + 1;
    if (end >= 0 && !this.#isNaming) this.#safe = this.#at;
    return end >= 0;
  }

  /** A number or a word may go on: it counts only if something follows. */
  #passBare(end: number): boolean {
    this.#at = end;
    this.#isInside = end === this.#text.length;
    if (!this.#isInside) this.#safe = end;
    return !this.#isInside;
  }

  #passSign(sign: string): void {
    const closer = CLOSERS.get(sign);
    if (closer !== undefined) this.#closers.push(closer);
    else if (sign === this.#closers.at(-1)) this.#closers.pop();
    else {
      if (sign === "," || sign === ":") this.#isNaming = sign === "," && this.#closers.at(-1) === "}";
      return;
    }
    this.#isNaming = sign === "{";
    this.#safe = this.#at;
  }

  close(): CutJson {
    const depth = this.#closers.length;
    const part = this.#isCutText ? `${dropCutEscape(this.#text)}"` : this.#text.slice(0, this.#safe);
    const isWhole = depth === 0 && !this.#isCutText;
    const whole = isWhole ? this.#text : part + this.#closers.toReversed().join("");
    return { value: parseWithAmounts(whole), depth, isInside: this.#isInside };
  }
}

function findQuote(text: string, from: number): number {
  let quote = text.indexOf('"', from);
  while (quote >= 0 && endsEscaped(text, from, quote)) quote = text.indexOf('"', quote + 1);
  return quote;
}

function dropCutEscape(text: string): string {
  const cut = CUT_ESCAPE.exec(text.slice(-6))?.[0].length ?? 0;
  const isEscape = cut > 0 && endsEscaped(text, 0, text.length - cut + 1);
  return isEscape ? text.slice(0, -cut) : text;
}
