// Memory for large bodies, over all requests. A request that needs more than is left waits, first come first served.

/** Bodies up to this size are not counted. */
export const LARGE_BYTES = 1024 * 1024;

const COLLECT_MS = 50;
/** After this long they count as collected. */
const MAX_HELD_MS = 10_000;

export interface Reservation {
  /** Less is needed than was reserved. */
  readonly shrink: (bytes: number) => void;
  /** Can be called more than once. */
  readonly free: () => void;
  /** From now on, `free` counts only when nobody has these bytes any more: until then they take memory. */
  readonly holdFor: (bytes: object) => void;
}

interface Waiting {
  readonly bytes: number;
  readonly grant: () => void;
}

export class MemoryBudget {
  readonly #total: number;
  #left: number;
  readonly #waiting: Waiting[] = [];
  readonly #collected = new FinalizationRegistry((end: () => void) => end());
  /** Freed, and not collected yet. */
  #uncollected = 0;
  #isCollecting = false;

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
      this.#collect();
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
    let isHeldFor = false;
    let isFree = false;
    const release = (): void => {
      if (isFree && isHeldFor) this.#uncollected -= 1;
      isHeldFor = false;
      if (isFree) shrink(0);
    };
    const free = (): void => {
      if (isFree) return;
      isFree = true;
      if (!isHeldFor) return shrink(0);
      this.#uncollected += 1;
      setTimeout(release, MAX_HELD_MS).unref();
      this.#collect();
    };
    const holdFor = (content: object): void => {
      isHeldFor = true;
      this.#collected.register(content, release);
    };
    return { shrink, free, holdFor };
  }

  /** The runtime does not know that somebody waits. */
  #collect(): void {
    if (this.#waiting.length === 0 || this.#uncollected === 0 || this.#isCollecting) return;
    this.#isCollecting = true;
    setTimeout(() => {
      this.#isCollecting = false;
      Bun.gc(true);
      this.#collect();
    }, COLLECT_MS);
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
