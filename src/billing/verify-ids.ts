// Which requests a reader of the ledger has met, and a fingerprint of the charge
// that each has now. Eight bytes of hash stand for an id, so that a million ids
// take some 25 MB, and the table stops growing at a few million: then the oldest
// are forgotten. Whatever repeats a line further back than that breaks the chain.

import { readPico } from "../lib/money.ts";

/** Ids in one generation; two are kept. */
const GENERATION = 1 << 21;
const FIRST_SLOTS = 1 << 12;
const WORDS = 3;

/** Its text or, the same, its bytes. */
type Id = string | Uint8Array;

/** Its text, or whole pico-dollars; null where it is not known. */
export type Charge = string | number | null;

interface Table {
  /** Two words of hash, one of fingerprint; a slot with no hash is free. */
  readonly words: Int32Array;
  /** Of slots: a power of two. */
  readonly size: number;
  count: number;
}

export class SeenIds {
  #young: Table = createTable(FIRST_SLOTS);
  #old: Table | null = null;

  /** False when the id is known already. */
  add(id: Id, charge: Charge): boolean {
    if (this.#young.count >= GENERATION) {
      this.#old = this.#young;
      this.#young = createTable(FIRST_SLOTS);
    }
    if (this.#young.count * 2 >= this.#young.size) this.#young = grow(this.#young);
    const first = hashFirst(id);
    const second = hashSecond(id);
    const slot = findSlot(this.#young, first, second);
    if (this.#young.words[slot] !== 0 || isIn(this.#old, first, second)) return false;
    const { words } = this.#young;
    words[slot] = first;
    words[slot + 1] = second;
    words[slot + 2] = hashCharge(charge);
    this.#young.count += 1;
    return true;
  }

  /** Null: unknown, or forgotten. */
  hasCharge(id: Id, charge: Charge): boolean | null {
    const found = this.#find(id);
    return found === null ? null : found.words[found.slot + 2] === hashCharge(charge);
  }

  setCharge(id: Id, charge: Charge): void {
    const found = this.#find(id);
    if (found !== null) found.words[found.slot + 2] = hashCharge(charge);
  }

  /** False when ids have been forgotten: an unknown one may be one of them. */
  get isComplete(): boolean {
    return this.#old === null;
  }

  #find(id: Id): { words: Int32Array; slot: number } | null {
    const first = hashFirst(id);
    const second = hashSecond(id);
    const table = isIn(this.#young, first, second) ? this.#young : this.#old;
    return table !== null && isIn(table, first, second)
      ? { words: table.words, slot: findSlot(table, first, second) }
      : null;
  }
}

function isIn(table: Table | null, first: number, second: number): boolean {
  return table !== null && table.words[findSlot(table, first, second)] !== 0;
}

/** Never 0, which marks a free slot. */
function hashFirst(id: Id): number {
  return Bun.hash.xxHash32(id, 1) | 0 || 1;
}

/** Of another make: ids are alike, and where xxHash32 confuses two with one seed, it may with every seed. */
function hashSecond(id: Id): number {
  return Bun.hash.murmur32v3(id, 2) | 0;
}

/** Of an amount, whether it was read as text or as a number. */
function hashCharge(charge: Charge): number {
  if (charge === null) return 0;
  const pico = typeof charge === "number" ? charge : readPico(charge);
  if (Number.isNaN(pico)) return Bun.hash.xxHash32(String(charge), 3) | 0;
  return Math.imul(pico, 0x9e3779b1) ^ Math.imul(pico / 2 ** 32, 0x85ebca6b);
}

function createTable(size: number): Table {
  return { words: new Int32Array(size * WORDS), size, count: 0 };
}

function grow(table: Table): Table {
  const larger = createTable(table.size * 2);
  larger.count = table.count;
  const { words } = table;
  for (let slot = 0; slot < words.length; slot += WORDS) {
    const first = words[slot] ?? 0;
    const second = words[slot + 1] ?? 0;
    if (first === 0) continue;
    const place = findSlot(larger, first, second);
    larger.words[place] = first;
    larger.words[place + 1] = second;
    larger.words[place + 2] = words[slot + 2] ?? 0;
  }
  return larger;
}

/** The slot that holds this hash, or the free one where it would go. */
function findSlot({ words, size }: Table, first: number, second: number): number {
  const mask = size - 1;
  let index = second & mask;
  for (;;) {
    const slot = index * WORDS;
    if (words[slot] === 0 || (words[slot] === first && words[slot + 1] === second)) return slot;
    index = (index + 1) & mask;
  }
}
