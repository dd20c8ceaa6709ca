// Which requests a reader of the ledger has met, and a fingerprint of the amounts
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
  add(id: string, amounts: string): boolean {
    if (this.#find(id) !== null) return false;
    if (this.#young.count >= GENERATION) {
      this.#old = this.#young;
      this.#young = createTable(FIRST_SLOTS);
    }
    if (this.#young.count * WORDS * 2 >= this.#young.words.length) this.#young = grow(this.#young);
    insert(this.#young, [hash(id, 1) || 1, hash(id, 2), hash(amounts, 3)]);
    return true;
  }

  /** Null: unknown, or forgotten. */
  hasAmounts(id: string, amounts: string): boolean | null {
    const found = this.#find(id);
    return found === null ? null : found.words[found.slot + 2] === hash(amounts, 3);
  }

  setAmounts(id: string, amounts: string): void {
    const found = this.#find(id);
    if (found !== null) found.words[found.slot + 2] = hash(amounts, 3);
  }

  /** Ids have been forgotten: an unknown one may be one of them. */
  get isComplete(): boolean {
    return this.#old === null;
  }

  #find(id: string): { words: Uint32Array; slot: number } | null {
    const first = hash(id, 1) || 1;
    const second = hash(id, 2);
    for (const table of [this.#young, this.#old]) {
      const slot = table === null ? -1 : findSlot(table.words, first, second);
      if (table !== null && table.words[slot] !== 0) return { words: table.words, slot };
    }
    return null;
  }
}

function createTable(slots: number): Table {
  return { words: new Uint32Array(slots * WORDS), count: 0 };
}

function grow(table: Table): Table {
  const larger = createTable((table.words.length / WORDS) * 2);
  const { words } = table;
  for (let slot = 0; slot < words.length; slot += WORDS) {
    if (words[slot] !== 0) insert(larger, [words[slot] ?? 0, words[slot + 1] ?? 0, words[slot + 2] ?? 0]);
  }
  return larger;
}

function insert(table: Table, entry: readonly [number, number, number]): void {
  table.words.set(entry, findSlot(table.words, entry[0], entry[1]));
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

/** FNV-1a with a final mix, so that near ids do not fall side by side. */
function hash(text: string, seed: number): number {
  let value = Math.imul(0x811c9dc5, seed * 2 + 1);
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}
