// node:zlib as src uses it, without the runtime's threads: the result is the same, at a moment that the scheduler chooses.

import * as zlib from "node:zlib";
import type { Owner, Scheduler } from "./scheduler.ts";

interface ThreadHost extends Owner {
  readonly scheduler: Scheduler;
}

type Whole = (bytes: Uint8Array, options: { maxOutputLength?: number; finishFlush?: number }) => Buffer;
type Done = (error: Error | null, bytes?: Buffer) => void;

const THREAD_US = 80;

const { constants } = zlib;

const CODINGS: ReadonlyArray<readonly [name: string, whole: Whole, flush: number, missesEnd: boolean]> = [
  ["Gunzip", zlib.gunzipSync, constants.Z_SYNC_FLUSH, false],
  ["Inflate", zlib.inflateSync, constants.Z_SYNC_FLUSH, false],
  ["InflateRaw", zlib.inflateRawSync, constants.Z_SYNC_FLUSH, false],
  ["BrotliDecompress", zlib.brotliDecompressSync, constants.BROTLI_OPERATION_FLUSH, false],
  ["ZstdDecompress", zlib.zstdDecompressSync, constants.ZSTD_e_flush, true],
];

export function makeZlib(host: ThreadHost): object {
  const replaced: Record<string, unknown> = { constants };
  for (const [name, whole, flush, missesEnd] of CODINGS) {
    replaced[name[0]!.toLowerCase() + name.slice(1)] = (
      bytes: Uint8Array,
      options: { maxOutputLength?: number },
      done: Done,
    ) => {
      const run = (): [Error | null, Buffer?] => {
        try {
          return [null, whole(bytes, options)];
        } catch (error) {
          return [error instanceof Error ? error : new Error(String(error))];
        }
      };
      host.scheduler.after(THREAD_US, host, `thread: ${name}`, () => done(...run()));
    };
    replaced[`create${name}`] = () => new Decoder(whole, flush, missesEnd);
  }
  return refuseOthers(replaced, "node:zlib");
}

type Event = "data" | "end" | "error" | "drain";

/** Decodes from the beginning for every piece, because answers are short. */
class Decoder {
  readonly #whole: Whole;
  readonly #flush: number;
  readonly #missesEnd: boolean;
  readonly #listeners = new Map<Event, ((value?: unknown) => void)[]>();
  #steps: Promise<void> = Promise.resolve();
  #came = Buffer.alloc(0);
  #given = 0;
  #resumed: PromiseWithResolvers<void> | null = null;
  #isDestroyed = false;

  constructor(whole: Whole, flush: number, missesEnd: boolean) {
    this.#whole = whole;
    this.#flush = flush;
    this.#missesEnd = missesEnd;
  }

  on(event: Event, listener: (value?: unknown) => void): this {
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
    return this;
  }

  pipe(next: Decoder): Decoder {
    this.on("data", (bytes) => void (bytes instanceof Uint8Array && next.write(bytes)));
    this.on("end", () => next.end());
    return next;
  }

  write(bytes: Uint8Array, done: () => void = () => {}): boolean {
    this.#later(() => {
      this.#came = Buffer.concat([this.#came, bytes]);
      const plain = this.#whole(this.#came, { finishFlush: this.#flush });
      if (plain.length > this.#given) this.#emit("data", plain.subarray(this.#given));
      this.#given = plain.length;
    }, done);
    return true;
  }

  end(): void {
    this.#later(() => {
      if (!this.#missesEnd) this.#whole(this.#came, {});
      this.#emit("end");
    });
  }

  pause(): void {
    this.#resumed ??= Promise.withResolvers();
  }

  resume(): void {
    this.#resumed?.resolve();
    this.#resumed = null;
  }

  destroy(): void {
    this.#isDestroyed = true;
  }

  #later(step: () => void, done: () => void = () => {}): void {
    this.#steps = this.#steps.then(async () => {
      await this.#resumed?.promise;
      try {
        if (!this.#isDestroyed) step();
      } catch (error) {
        this.#emit("error", error);
      }
      done();
    });
  }

  #emit(event: Event, value?: unknown): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(value);
  }
}

/** A function that is not replaced throws. */
export function refuseOthers<T extends object>(replaced: T, name: string): T {
  return new Proxy(replaced, {
    get(target, property) {
      if (property in target || typeof property === "symbol") return Reflect.get(target, property);
      if (property === "__esModule" || property === "default") return undefined;
      throw new Error(`the simulator does not replace ${name}.${property}`);
    },
  });
}
