// What has come of a body and was not read. Its sender is paused while too much waits here.

/** As much as the runtime reads at once: a sender that fills it would deliver many megabytes in one turn of the loop. */
const MAX_UNREAD_BYTES = 256 * 1024;

export interface Flow {
  pause(): void;
  resume(): void;
  /** Somebody waits for bytes from now on. */
  awaitBytes(): void;
}

export class BodyQueue {
  readonly #flow: Flow;
  readonly #chunks: Buffer[] = [];
  #unread = 0;
  #isPaused = false;
  /** Null until the body has ended; with a fault if it is not complete. */
  #end: { readonly fault: unknown } | null = null;
  #reader: PromiseWithResolvers<Buffer | null> | null = null;

  constructor(flow: Flow) {
    this.#flow = flow;
  }

  /** Somebody waits for bytes. */
  get isAwaited(): boolean {
    return this.#reader !== null;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  push(bytes: Buffer): void {
    if (this.#end !== null) return;
    if (bytes.length >= MAX_UNREAD_BYTES || this.#unread >= MAX_UNREAD_BYTES) this.#pause();
    const reader = this.#reader;
    this.#reader = null;
    if (reader !== null) return reader.resolve(bytes);
    this.#chunks.push(bytes);
    this.#unread += bytes.length;
  }

  /** Nothing more comes. What has come can still be read. */
  end(fault: unknown): void {
    if (this.#end !== null) return;
    this.#end = { fault };
    const reader = this.#reader;
    this.#reader = null;
    if (fault === null) reader?.resolve(null);
    else reader?.reject(fault);
  }

  /** Forgets what was not read. */
  clear(): void {
    this.#chunks.length = 0;
    this.#unread = 0;
  }

  /** Null: the body has ended. Rejects if it has broken off. */
  read(): Promise<Buffer | null> {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#unread -= chunk.length;
      return Promise.resolve(chunk);
    }
    if (this.#end !== null)
      return this.#end.fault === null ? Promise.resolve(null) : Promise.reject(this.#end.fault);
    this.#reader = Promise.withResolvers();
    // Everything else has a turn of the event loop first.
    if (this.#isPaused) setImmediate(() => this.resume());
    this.#flow.awaitBytes();
    return this.#reader.promise;
  }

  resume(): void {
    if (!this.#isPaused || this.#end !== null) return;
    this.#isPaused = false;
    this.#flow.resume();
  }

  #pause(): void {
    if (this.#isPaused || this.#end !== null) return;
    this.#isPaused = true;
    this.#flow.pause();
  }
}

/** Reads that can be looked at before. */
export class Ahead {
  readonly #next: () => Promise<Buffer | null>;
  #ahead: Promise<Buffer | null> | null = null;

  constructor(next: () => Promise<Buffer | null>) {
    this.#next = next;
  }

  read(): Promise<Buffer | null> {
    const ahead = this.#ahead;
    this.#ahead = null;
    return ahead ?? this.#next();
  }

  /** What the next `read` will get. "silent": nothing came within `ms`. */
  async peek(ms: number): Promise<Buffer | null | "silent"> {
    if (this.#ahead === null) {
      this.#ahead = this.#next();
      this.#ahead.catch(() => {}); // the next `read` reports it
    }
    if (ms === Infinity) return await this.#ahead;
    const late = Promise.withResolvers<"silent">();
    const timer = setTimeout(() => late.resolve("silent"), ms);
    try {
      return await Promise.race([this.#ahead, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}
