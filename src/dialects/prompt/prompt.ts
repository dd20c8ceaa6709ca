// A prompt as a cache sees it: its parts in order, each as a hash. No text is kept.

/** The three sections of a prompt, in the order in which they are cached. */
export const [TOOLS, SYSTEM, MESSAGES] = [0, 1, 2] as const;
export type Section = 0 | 1 | 2;

/** A list that only grows. It shares its items with the lists that begin as it does. */
export class Row<T> {
  #items: T[] = [];
  length = 0;

  /** The same list, for somebody who adds other items to it. */
  fork(): Row<T> {
    const row = new Row<T>();
    row.#items = this.#items;
    row.length = this.length;
    return row;
  }

  add(item: T, isSame = Object.is as (a: T, b: T) => boolean): void {
    const known = this.#items[this.length];
    if (this.length < this.#items.length && (known === undefined || !isSame(known, item)))
      this.#items = this.#items.slice(0, this.length);
    if (this.length === this.#items.length) this.#items.push(item);
    this.length += 1;
  }

  at(index: number): T | undefined {
    return index < this.length ? this.#items[index] : undefined;
  }

  slice(from = 0): T[] {
    return this.#items.slice(from, this.length);
  }

  /** True: the other list is a beginning of this one. False: it may be one, too. */
  continues(other: Row<T>): boolean {
    return this.#items === other.#items && other.length <= this.length;
  }
}

/** How far a prompt is in the cache: all sections before this one, and this many parts of it. */
export interface Place {
  readonly section: Section;
  readonly parts: number;
}

/** A place up to which the client wants its prompt cached, and for how long; null: the upstream's own lifetime. */
export interface Mark extends Place {
  readonly lifetimeMs: number | null;
}

export interface Prompt {
  /** The hash of each tool, each part of the system prompt, and each message or block of a message. */
  readonly parts: readonly [tools: Row<number>, system: Row<number>, messages: Row<number>];
  /** For each part of the third section, a hash of all parts up to it. */
  readonly chain: Row<number>;
  /** For each part of the system prompt, what stays the same if only its digits change. */
  readonly shapes: Row<number>;
  /** The message of each part of the third section, counted from 1 as in the request's own list. */
  readonly numbers: Row<number>;
  /** Settings that are part of what is cached: a hash by name. */
  readonly settings: ReadonlyMap<string, number>;
  /** The service tier that is requested, as a hash. */
  readonly tier: number;
  /** In the order of the request. Empty: the client marks none. */
  readonly marks: readonly Mark[];
  /** The lifetime that the client wants for the whole prompt; null: the upstream's own. */
  readonly lifetimeMs: number | null;
  /** A hash of the id under which the upstream has the conversation so far; null: the prompt is whole. */
  readonly continues: number | null;
  /** Part of the prompt is kept by the upstream under a name, and is read from there in any case. */
  readonly named: boolean;
  /** The upstream removes parts of the conversation by rule: old thinking, or what `context_management` says. */
  readonly edited: boolean;
}

/** What a dialect's upstreams do with prompts. */
export interface CacheRules {
  /** Only what the client marks is cached, and what is written is reported. */
  readonly marked: boolean;
  /** Cached tokens are read in multiples of this. */
  readonly blockTokens: number;
  /** Shorter prompts are not cached. */
  minimumTokens(model: string): number;
  /** How long a prompt is kept after its last use. */
  readonly lifetimeMs: number;
  /** The same for upstreams that report what they write. */
  readonly reportedLifetimeMs: number;
}

/** The last place that is marked; null if none is. */
export function findLastMark({ marks }: Prompt): Mark | null {
  let last: Mark | null = null;
  for (const mark of marks) if (last === null || !isBefore(mark, last)) last = mark;
  return last;
}

export function isBefore(a: Place, b: Place): boolean {
  return a.section === b.section ? a.parts < b.parts : a.section < b.section;
}
