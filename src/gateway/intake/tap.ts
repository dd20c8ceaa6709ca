// What is kept of a recorded request until it ends: body and answer.

import type { Exchange } from "../../lib/http/exchange.ts";
import type { Field } from "../../lib/http/fields.ts";
import { NOTHING } from "../../lib/memory/bytes.ts";
import type { RecordedExchange } from "../../recording/store.ts";

/** Running and waiting requests share this. */
const MAX_HELD_BYTES = 256 * 1024 * 1024;

export class Tap {
  readonly name: string;
  request: Uint8Array = new Uint8Array(0);
  /** 0: no answer. */
  status = 0;
  fields: readonly Field[] = [];
  readonly chunks: Uint8Array[] = [];
  /** Milliseconds since the request. */
  readonly times: number[] = [];
  end: RecordedExchange["response"]["end"] = "left";
  /** False: too many bytes wait to be recorded. */
  fits = true;
  bytes = 0;
  readonly #since: number;
  readonly #held: { bytes: number };

  constructor(name: string, since: number, held: { bytes: number }) {
    this.name = name;
    this.#since = since;
    this.#held = held;
  }

  keepRequest(body: Uint8Array): void {
    if (this.#hold(body.length)) this.request = body;
  }

  begin(status: number, fields: Iterable<Field>): void {
    this.status = status;
    this.fields = [...fields];
  }

  note(bytes: Uint8Array): void {
    if (bytes.length === 0 || !this.#hold(bytes.length)) return;
    this.chunks.push(bytes);
    this.times.push(Math.max(0, Math.round(performance.now() - this.#since)));
  }

  #hold(bytes: number): boolean {
    this.fits &&= this.#held.bytes + bytes <= MAX_HELD_BYTES;
    if (!this.fits) return false;
    this.bytes += bytes;
    this.#held.bytes += bytes;
    return true;
  }
}

export function tapExchange(inner: Exchange, tap: Tap): Exchange {
  const tapped: Partial<Exchange> = {
    readBody: async (limit) => {
      const body = await inner.readBody(limit);
      tap.keepRequest(body);
      return body;
    },
    answer: (status, fields, body) => {
      inner.answer(status, fields, body);
      tap.begin(status, fields);
      tap.note(typeof body === "string" ? Buffer.from(body) : body);
      tap.end = "whole";
    },
    begin: (status, fields) => {
      inner.begin(status, fields);
      tap.begin(status, fields);
    },
    write: (chunk) => {
      const { gone } = inner;
      const slow = inner.write(chunk);
      if (!gone) tap.note(chunk);
      return slow;
    },
    end: (rest = NOTHING) => {
      const { gone } = inner;
      inner.end(rest);
      if (gone) return;
      if (rest instanceof Uint8Array) tap.note(rest);
      else for (const text of rest) tap.note(Buffer.from(text));
      tap.end = "whole";
    },
    reset: () => {
      const { gone } = inner;
      inner.reset();
      if (!gone) tap.end = "reset";
    },
  };
  return new Proxy(inner, {
    get: (_, name): unknown => {
      const own: unknown = Reflect.get(tapped, name) ?? Reflect.get(inner, name);
      return typeof own === "function" ? own.bind(inner) : own;
    },
  });
}
