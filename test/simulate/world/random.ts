// Random numbers from a seed, in plain 32-bit integers, so that they are the same on every machine. Each part of the world
// has its own source, named after it: when a plan is shortened, the other parts keep their numbers.

export class Random {
  #state: number;

  constructor(...words: readonly (string | number)[]) {
    this.#state = hash(words.join(" "));
  }

  /** Returns 32 random bits as a number that is not negative, by splitmix32. */
  bits(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let mixed = this.#state ^ (this.#state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  }

  /** Returns an integer from 0 to `below` - 1. */
  int(below: number): number {
    return below <= 1 ? 0 : Math.floor((this.bits() / 0x1_0000_0000) * below);
  }

  /** Returns an integer from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + this.int(to - from + 1);
  }

  /** Returns an integer from `from` to `to`, mostly a small one and sometimes a large one. */
  skewed(from: number, to: number): number {
    return from + this.int(this.between(1, Math.max(1, to - from + 1)));
  }

  /** Returns true with this probability, in thousandths. */
  chance(perMille: number): boolean {
    return this.int(1000) < perMille;
  }

  pick<T>(list: readonly T[]): T {
    const picked = list[this.int(list.length)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }

  /** Returns a float from 0 to 1, as Math.random does. */
  float(): number {
    return this.bits() / 0x1_0000_0000;
  }
}

/** Hashes a text by FNV-1a, with a final mix. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193);
  state ^= state >>> 16;
  state = Math.imul(state, 0x85ebca6b);
  return (state ^ (state >>> 13)) >>> 0;
}
