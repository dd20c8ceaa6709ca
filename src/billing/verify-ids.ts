// Which requests a reader of the ledger has met, and a fingerprint of the charge
// that each has now. Eight bytes of hash stand for an id, so that a million ids
// take some 25 MB, and the table stops growing at a few million: then the oldest
// are forgotten. Whatever repeats a line further back than that breaks the chain.

/** Ids in one generation; two are kept. */
const GENERATION = 1 << 21;
const FIRST_SLOTS = 1 << 12;
const WORDS = 3;

interface Table {
  /** Two words of hash, one of fingerprint; a slot with no hash is free. */
  words: Uint32Array;
  count: number;
}

export class SeenIds {
  #young: Table = createTable(FIRST_SLOTS);
  #old: Table | null = null;

  /** False when the id is known already. */
  add(id: string, charge: string | null): boolean {
    if (this.#young.count >= GENERATION) {
      this.#old = this.#young;
      this.#young = createTable(FIRST_SLOTS);
    }
    if (this.#young.count * WORDS * 2 >= this.#young.words.length) this.#young = grow(this.#young);
    const first = hashFirst(id);
    const second = hashSecond(id);
    const { words } = this.#young;
    const slot = findSlot(words, first, second);
    if (words[slot] !== 0 || isIn(this.#old, first, second)) return false;
    fill(this.#young, slot, [first, second, hashCharge(charge)]);
    return true;
  }

  /** Null: unknown, or forgotten. */
  hasCharge(id: string, charge: string | null): boolean | null {
    const found = this.#find(id);
    return found === null ? null : found.words[found.slot + 2] === hashCharge(charge);
  }

  setCharge(id: string, charge: string | null): void {
    const found = this.#find(id);
    if (found !== null) found.words[found.slot + 2] = hashCharge(charge);
  }

  /** False when ids have been forgotten: an unknown one may be one of them. */
  get isComplete(): boolean {
    return this.#old === null;
  }

  #find(id: string): { words: Uint32Array; slot: number } | null {
    const first = hashFirst(id);
    const second = hashSecond(id);
    const table = isIn(this.#young, first, second) ? this.#young : this.#old;
    return table !== null && isIn(table, first, second)
      ? { words: table.words, slot: findSlot(table.words, first, second) }
      : null;
  }
}

function isIn(table: Table | null, first: number, second: number): boolean {
  return table !== null && table.words[findSlot(table.words, first, second)] !== 0;
}

/** Never 0, which marks a free slot. */
function hashFirst(id: string): number {
  return Bun.hash.xxHash32(id, 1) || 1;
}

/** Of another make: ids are alike, and where xxHash32 confuses two with one seed, it may with every seed. */
function hashSecond(id: string): number {
  return Bun.hash.murmur32v3(id, 2);
}

function hashCharge(charge: string | null): number {
  return Bun.hash.xxHash32(charge ?? "", 3);
}

function createTable(slots: number): Table {
  return { words: new Uint32Array(slots * WORDS), count: 0 };
}

function grow(table: Table): Table {
  const larger = createTable((table.words.length / WORDS) * 2);
  const { words } = table;
  for (let slot = 0; slot < words.length; slot += WORDS) {
    const first = words[slot] ?? 0;
    const second = words[slot + 1] ?? 0;
    if (first !== 0)
      fill(larger, findSlot(larger.words, first, second), [first, second, words[slot + 2] ?? 0]);
  }
  return larger;
}

function fill(table: Table, slot: number, entry: readonly [number, number, number]): void {
  [table.words[slot], table.words[slot + 1], table.words[slot + 2]] = entry;
  table.count += 1;
}

/** The slot that holds this hash, or the free one where it would go. */
function findSlot(words: Uint32Array, first: number, second: number): number {
  const mask = words.length / WORDS - 1;
  let index = second & mask;
  for (;;) {
    const slot = index * WORDS;
    if (words[slot] === 0 || (words[slot] === first && words[slot + 1] === second)) return slot;
    index = (index + 1) & mask;
  }
}
