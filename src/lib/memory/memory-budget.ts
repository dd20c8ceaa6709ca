// Memory for large bodies, over all requests. A request that needs more than is left waits, first come first served.

/** Bodies up to this size are not counted. */
export const LARGE_BYTES = 1024 * 1024;

export interface Reservation {
  /** Less is needed than was reserved. */
  readonly shrink: (bytes: number) => void;
  /** Can be called more than once. */
  readonly free: () => void;
}

interface Waiting {
  readonly bytes: number;
  readonly grant: () => void;
}

export class MemoryBudget {
  readonly #total: number;
  #left: number;
  readonly #waiting: Waiting[] = [];

  constructor(totalBytes: number) {
    this.#total = totalBytes;
    this.#left = totalBytes;
  }

  get usedBytes(): number {
    return this.#total - this.#left;
  }

  /** Resolves when this much is free. A request for more than there is gets everything, alone. */
  async reserve(bytes: number): Promise<Reservation> {
    const wanted = Math.min(bytes, this.#total);
    if (this.#waiting.length > 0 || wanted > this.#left) {
      const granted = Promise.withResolvers<void>();
      this.#waiting.push({ bytes: wanted, grant: granted.resolve });
      await granted.promise;
    } else {
      this.#left -= wanted;
    }
    let held = wanted;
    const shrink = (to: number): void => {
      if (to >= held) return;
      this.#left += held - to;
      held = to;
      this.#serve();
    };
    return { shrink, free: () => shrink(0) };
  }

  #serve(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (first.bytes > this.#left) return;
      this.#waiting.shift();
      this.#left -= first.bytes;
      first.grant();
    }
  }
}
