// A map that drops its oldest entries. `set` makes an entry the newest.

export class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number;
  /** A new iterator would step through all deleted entries. */
  #oldest: MapIterator<K> | undefined;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size <= this.#most) return this;
    this.#oldest ??= this.keys();
    const oldest = this.#oldest.next();
    if (oldest.done !== true) this.delete(oldest.value);
    return this;
  }
}

/** Keeps the results for short texts, which traffic repeats. */
export function remember<V>(most: number, judge: (text: string) => V, longest = 256): (text: string) => V {
  const known = new BoundedMap<string, V>(most);
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const judged = judge(text);
    if (text.length <= longest) known.set(text, judged);
    return judged;
  };
}
