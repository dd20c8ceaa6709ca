// The body of a client's request. Collects it as it arrives, up to a limit, and delivers it whole.

import { ByteCollector } from "../packets.ts";
import { openDecoder, type BodyDecoder, type BodyLength } from "../framing.ts";
import { InvalidBody, BodyTooLarge } from "../../http/exchange.ts";

/** This much of a body may arrive before anyone reads it. */
const MAX_UNREQUESTED_BYTES = 64 * 1024;

export class IncomingBody {
  readonly #length: BodyLength;
  #decoder: BodyDecoder;
  readonly #collector: ByteCollector;
  #limit = Infinity;
  #reading: PromiseWithResolvers<Uint8Array> | null = null;
  #discarding = false;

  constructor(length: BodyLength) {
    this.#length = length;
    this.#decoder = openDecoder(length);
    this.#collector = new ByteCollector(typeof length === "number" ? length : 0);
  }

  /** The whole body has arrived, whether it was read or not. */
  get done(): boolean {
    return this.#decoder.done;
  }

  get awaited(): boolean {
    return this.#reading !== null;
  }

  get untouched(): boolean {
    return this.#collector.size === 0;
  }

  /** False: enough has arrived, and nobody has read it yet. The client has to wait. Behind a whole body the socket is
   *  read, or nobody would notice that the client leaves. */
  get wantsMore(): boolean {
    return (
      this.done || this.#discarding || this.#reading !== null || this.#collector.size < MAX_UNREQUESTED_BYTES
    );
  }

  /** Takes the body's bytes from `input`. Returns the index after them. Throws Malformed. */
  feed(input: Buffer, from: number): number {
    const piece = this.#decoder.decode(input, from);
    if (piece !== null && !this.#discarding) this.#collector.add(piece);
    if (this.#reading !== null) {
      if (this.#collector.size > this.#limit) this.fail(tooLarge(this.#limit));
      else if (this.#decoder.done) this.#deliver(this.#reading);
    }
    return this.#decoder.consumed;
  }

  /** No promise if it has arrived with its head, as most do. */
  read(limit: number): Uint8Array | Promise<Uint8Array> {
    const announced = typeof this.#length === "number" ? this.#length : 0;
    if (Math.max(announced, this.#collector.size) > limit) {
      this.discard();
      return Promise.reject(tooLarge(limit));
    }
    if (this.#decoder.done) return this.#collector.view();
    this.#limit = limit;
    this.#reading = Promise.withResolvers<Uint8Array>();
    return this.#reading.promise;
  }

  /** Drops the rest of the body as it arrives. */
  discard(): void {
    this.#discarding = true;
    this.#collector.clear();
  }

  /** Rejects a pending read. Everything that still arrives is dropped. */
  break(why: string): void {
    this.#decoder = openDecoder("unknown");
    this.fail(new InvalidBody(why));
  }

  fail(error: Error): void {
    const reading = this.#reading;
    this.#reading = null;
    this.discard();
    reading?.reject(error);
  }

  #deliver(reading: PromiseWithResolvers<Uint8Array>): void {
    this.#reading = null;
    reading.resolve(this.#collector.view());
  }
}

function tooLarge(limit: number): BodyTooLarge {
  return new BodyTooLarge(`the body is larger than ${limit} bytes`);
}
