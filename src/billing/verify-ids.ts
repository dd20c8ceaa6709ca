// Which requests a reader of the ledger has met, and a fingerprint of the charge that each
// has now. A gateway counts its requests (gateway/call.ts), so the ids of one process stand
// in pages of numbers that follow one another: exactly, in nine bytes each where most of them
// are billed. Two to five million are known; a line that repeats an older one breaks the chain.

import { readPico } from "../lib/money.ts";

/** In one generation; two are kept. */
const PAGES = 1 << 16;
/** `req_`, nine digits of time, six of the number, eight of the process. */
const ID_LENGTH = 27;
/**
 * What the ids of a page share: all but the lower digits of the time and the last of the number. These digits of
 * the time say nothing more: a process gives a number once.
 */
const SHARED = [0, 1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 25, 26] as const;
const LAST_DIGIT = 18;
const DIGITS = 36;

/** Its text, or whole pico-dollars; null where it is not known. */
export type Charge = string | number | null;

/** How a charge compares with the one that a request has now; or there is none to compare with. */
export type Comparison = "same" | "other" | "absent" | "forgotten";

/** Fingerprints of charges, by the last digit of the number; 0 where the request has not been met. */
type Page = Int32Array;

class Pages {
  #young = new Map<string, Page>();
  #old = new Map<string, Page>();
  /** Nothing has been forgotten. */
  isComplete = true;

  open(name: string, size: number): Page {
    const known = this.#young.get(name) ?? this.#old.get(name);
    if (known !== undefined) return known;
    if (this.#young.size >= PAGES) {
      this.isComplete = this.#old.size === 0;
      this.#old = this.#young;
      this.#young = new Map();
    }
    const page = new Int32Array(size);
    this.#young.set(name, page);
    return page;
  }
}

export class SeenIds {
  readonly #requests = new Pages();
  /** Of ids that are no request's of a gateway, such as those of corrections: each has a page of its own. */
  readonly #others = new Pages();
  /** Most ids are of the page of the one before. */
  #page: Page = new Int32Array(DIGITS);
  readonly #shared = Buffer.alloc(SHARED.length);

  /** False when the id, which stands from `from` to `to`, is known already. */
  add(bytes: Buffer, from: number, to: number, charge: Charge): boolean {
    const slot = this.#turnTo(bytes, from, to);
    if (this.#page[slot] !== 0) return false;
    this.#page[slot] = hashCharge(charge);
    return true;
  }

  addText(id: string, charge: Charge): boolean {
    const bytes = Buffer.from(id);
    return this.add(bytes, 0, bytes.length, charge);
  }

  compareCharge(id: string, charge: Charge): Comparison {
    const bytes = Buffer.from(id);
    const slot = this.#turnTo(bytes, 0, bytes.length);
    const known = this.#page[slot];
    if (known !== 0) return known === hashCharge(charge) ? "same" : "other";
    return (this.#page.length === DIGITS ? this.#requests : this.#others).isComplete ? "absent" : "forgotten";
  }

  /** Of an id that is known. */
  setCharge(id: string, charge: Charge): void {
    const bytes = Buffer.from(id);
    const slot = this.#turnTo(bytes, 0, bytes.length);
    if (this.#page[slot] !== 0) this.#page[slot] = hashCharge(charge);
  }

  /** Opens the id's page. Returns its place there. */
  #turnTo(bytes: Buffer, from: number, to: number): number {
    const digit = to - from === ID_LENGTH ? readDigit(bytes[from + LAST_DIGIT] ?? 0) : -1;
    if (digit < 0) {
      this.#shared.fill(0);
      this.#page = this.#others.open(bytes.toString("latin1", from, to), 1);
      return 0;
    }
    if (!this.#isOpen(bytes, from)) this.#page = this.#requests.open(this.#shared.toString("latin1"), DIGITS);
    return digit;
  }

  /** Else `shared` is the id's from now on. */
  #isOpen(bytes: Buffer, from: number): boolean {
    const shared = this.#shared;
    let isOpen = true;
    for (let index = 0; index < SHARED.length; index += 1) {
      const byte = bytes[from + (SHARED[index] ?? 0)] ?? 0;
      isOpen &&= shared[index] === byte;
      shared[index] = byte;
    }
    return isOpen;
  }
}

/** Of base 36; -1: it is none. */
function readDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  return code >= 97 && code <= 122 ? code - 87 : -1;
}

/** Of an amount, whether it was read as text or as a number; never 0. */
function hashCharge(charge: Charge): number {
  if (charge === null) return 1;
  const pico = typeof charge === "number" ? charge : readPico(charge);
  if (Number.isNaN(pico)) return Bun.hash.xxHash32(String(charge), 3) | 0 || 1;
  return Math.imul(pico, 0x9e3779b1) ^ Math.imul(pico / 2 ** 32, 0x85ebca6b) || 1;
}
