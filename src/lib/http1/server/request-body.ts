// The body of a client's request: gathered as it comes, handed out whole,
// limited. What this file does not own: the socket and when it is paused.

import { Gathering } from "../bytes.ts";
import { openDecoder, type BodyDecoder, type BodyLength } from "../framing.ts";
import { BodyBroken, BodyTooLarge } from "../types.ts";

/** What may come before anybody has asked for the body. */
const UNASKED_BYTES = 64 * 1024;

export class RequestBody {
  readonly #length: BodyLength;
  #decoder: BodyDecoder;
  readonly #gathering: Gathering;
  #limit = Infinity;
  #reading: PromiseWithResolvers<Uint8Array> | null = null;
  #discarding = false;

  constructor(length: BodyLength) {
    this.#length = length;
    this.#decoder = openDecoder(length);
    this.#gathering = new Gathering(typeof length === "number" ? length : 0);
  }

  /** The whole body has come, read or not. */
  get done(): boolean {
    return this.#decoder.done;
  }

  get awaited(): boolean {
    return this.#reading !== null;
  }

  get untouched(): boolean {
    return this.#gathering.size === 0;
  }

  /** False: enough has come unasked, the client has to wait. */
  get wantsMore(): boolean {
    return this.#discarding || this.#reading !== null || this.#gathering.size < UNASKED_BYTES;
  }

  /** Takes what belongs to the body from `input`; returns where the rest starts. Throws Malformed. */
  feed(input: Buffer, from: number): number {
    const piece = this.#decoder.decode(input, from);
    if (piece !== null && !this.#discarding) this.#gathering.add(piece);
    if (this.#reading !== null) {
      if (this.#gathering.size > this.#limit) this.fail(tooLarge(this.#limit));
      else if (this.#decoder.done) this.#deliver(this.#reading);
    }
    return this.#decoder.consumed;
  }

  read(limit: number): Promise<Uint8Array> {
    const announced = typeof this.#length === "number" ? this.#length : 0;
    if (Math.max(announced, this.#gathering.size) > limit) {
      this.discard();
      return Promise.reject(tooLarge(limit));
    }
    if (this.#decoder.done) return Promise.resolve(this.#gathering.view());
    this.#limit = limit;
    this.#reading = Promise.withResolvers<Uint8Array>();
    return this.#reading.promise;
  }

  /** Nobody wants the rest: it is dropped as it comes. */
  discard(): void {
    this.#discarding = true;
    this.#gathering.clear();
  }

  /** Whoever waits for it is told, and what still comes belongs to nothing. */
  break(why: string): void {
    this.#decoder = openDecoder("unsaid");
    this.fail(new BodyBroken(why));
  }

  fail(error: Error): void {
    const reading = this.#reading;
    this.#reading = null;
    this.discard();
    reading?.reject(error);
  }

  #deliver(reading: PromiseWithResolvers<Uint8Array>): void {
    this.#reading = null;
    reading.resolve(this.#gathering.view());
  }
}

function tooLarge(limit: number): BodyTooLarge {
  return new BodyTooLarge(`the body is larger than ${limit} bytes`);
}
