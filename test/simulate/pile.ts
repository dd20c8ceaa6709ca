// Bytes in the order in which they came. Most pieces are small, so its memory grows by doubling.

export class Pile {
  #memory: Buffer = Buffer.alloc(0);
  #from = 0;
  #to = 0;

  get length(): number {
    return this.#to - this.#from;
  }

  /** All of them. Later ones do not change it. */
  get bytes(): Buffer {
    return this.#memory.subarray(this.#from, this.#to);
  }

  /** The pile keeps `bytes`: nobody may change them. */
  add(bytes: Buffer): void {
    const { length } = this;
    if (length === 0) {
      this.#memory = bytes;
      this.#from = 0;
      this.#to = bytes.length;
      return;
    }
    if (this.#to + bytes.length > this.#memory.length) {
      const grown = Buffer.allocUnsafeSlow(2 * (length + bytes.length));
      grown.set(this.bytes);
      this.#memory = grown;
      this.#from = 0;
      this.#to = length;
    }
    this.#memory.set(bytes, this.#to);
    this.#to += bytes.length;
  }

  /** Removes the first `count` bytes, or as many as there are. */
  take(count: number): Buffer {
    const end = Math.min(this.#from + count, this.#to);
    const taken = this.#memory.subarray(this.#from, end);
    this.#from = end;
    return taken;
  }
}
