// A map that keeps the entries set last, in their order.

export class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number;
  /** Goes on from entry to entry: a new iterator would pass over all deleted entries. */
  #oldest: MapIterator<K> | undefined;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  /** An entry that is set again is the latest one. */
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
