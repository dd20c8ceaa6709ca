// node:zlib and node:stream as src uses them, without the runtime's threads: the result is the same, at a moment that the
// scheduler chooses. Streams are asynchronous iterators in a row, which their reader pulls.

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

interface Source extends AsyncIterable<Uint8Array> {
  source?: Source;
}

/** Decodes from the beginning for every piece, because answers are short. */
class Decoder implements Source {
  source?: Source;
  readonly #whole: Whole;
  readonly #flush: number;
  readonly #missesEnd: boolean;

  constructor(whole: Whole, flush: number, missesEnd: boolean) {
    this.#whole = whole;
    this.#flush = flush;
    this.#missesEnd = missesEnd;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    let came = Buffer.alloc(0);
    let given = 0;
    for await (const piece of this.source ?? []) {
      came = Buffer.concat([came, piece]);
      const plain = this.#whole(came, { finishFlush: this.#flush });
      if (plain.length > given) yield plain.subarray(given);
      given = plain.length;
    }
    if (!this.#missesEnd) this.#whole(came, {});
  }
}

export function makeStream(): object {
  return refuseOthers(
    {
      Readable: { from: (source: AsyncIterable<Uint8Array>): Source => source },
      pipeline: (parts: Source[], _done: () => void) => {
        for (const [index, part] of parts.entries()) {
          const before = parts[index - 1];
          if (before !== undefined) part.source = before;
        }
      },
    },
    "node:stream",
  );
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
