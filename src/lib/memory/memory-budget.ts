// Memory for the large bodies of all requests. A request may wait in line.

/** Bodies up to this size are not counted. */
export const LARGE_BYTES = 1024 * 1024;
/** An answer takes this many times its size:
 *  as pieces, text, values, output and garbage. */
export const ANSWER_COPIES = 10;

export interface Reservation {
  readonly shrink: (bytes: number) => void;
  /** May be called more than once. */
  readonly free: () => void;
}

export class MemoryBudget {
  readonly #total: number;
  #left: number;
  /** Bytes that were given back,
   *  but may still wait for the garbage collector. */
  #dropped = 0;
  readonly #waiting = new Map<() => void, number>();

  constructor(totalBytes: number) {
    this.#total = totalBytes;
    this.#left = totalBytes;
  }

  get usedBytes(): number {
    return this.#total - this.#left - this.#dropped;
  }

  /** A request for more than the total waits until all is free,
   *  and gets all of it. */
  async reserve(bytes: number): Promise<Reservation> {
    const wanted = Math.min(bytes, this.#total);
    if (!this.#take(wanted)) {
      const granted = Promise.withResolvers<void>();
      this.#waiting.set(granted.resolve, wanted);
      await granted.promise;
    }
    let held = wanted;
    const shrink = (to: number): void => {
      if (to >= held) return;
      this.#dropped += held - to;
      held = to;
      this.#serve();
    };
    return { shrink, free: () => shrink(0) };
  }

  /** A request that fits does not wait behind one that does not. */
  #serve(): void {
    for (const [grant, bytes] of this.#waiting) {
      if (!this.#take(bytes)) continue;
      this.#waiting.delete(grant);
      grant();
    }
  }

  #take(bytes: number): boolean {
    if (bytes > this.#left + this.#dropped) return false;
    if (bytes > this.#left) {
      Bun.gc(true);
      this.#left += this.#dropped;
      this.#dropped = 0;
    }
    this.#left -= bytes;
    return true;
  }
}
