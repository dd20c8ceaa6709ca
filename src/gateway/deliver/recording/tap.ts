// What is kept of a request that is recorded, until it has ended: its body, and the answer as the client gets it.

import type { LineDraft } from "../../../billing/ledger/line.ts";
import type { Field, Fields, SentFields } from "../../../lib/http/fields.ts";
import type { Exchange } from "../../../lib/http/exchange.ts";
import type { OpenPeer } from "../../../lib/http/web-socket.ts";
import type { RecordedExchange } from "../../../recording/exchange.ts";
import type { Recorded } from "../../request.ts";

export interface Kept {
  readonly name: string;
  readonly request: Uint8Array | null;
  readonly status: number;
  readonly fields: readonly Field[];
  readonly chunks: readonly Uint8Array[];
  readonly times: readonly number[];
  readonly end: RecordedExchange["response"]["end"];
  readonly line: LineDraft | null;
}

export interface TapOptions {
  readonly name: string;
  /** Milliseconds, as `performance.now()`. */
  readonly arrived: number;
  /** Asked before bytes are kept. False: there are too many of them, and the request is not recorded. */
  readonly hold: (bytes: number) => boolean;
  readonly done: (kept: Kept) => void;
}

export class Tap implements Recorded {
  readonly name: string;
  readonly #options: TapOptions;
  #request: Uint8Array | null = null;
  #status = 0;
  #fields: readonly Field[] = [];
  readonly #chunks: Uint8Array[] = [];
  readonly #times: number[] = [];
  #end: Kept["end"] = "left";

  constructor(options: TapOptions) {
    this.name = options.name;
    this.#options = options;
  }

  keepRequest(body: Uint8Array): void {
    if (this.#options.hold(body.length)) this.#request = body;
  }

  begin(status: number, fields: Iterable<Field>): void {
    this.#status = status;
    this.#fields = [...fields];
  }

  note(bytes: Uint8Array): void {
    if (bytes.length === 0 || !this.#options.hold(bytes.length)) return;
    this.#chunks.push(bytes);
    this.#times.push(Math.max(0, Math.round(performance.now() - this.#options.arrived)));
  }

  close(end: "whole" | "reset"): void {
    this.#end = end;
  }

  finish(line: LineDraft | null): void {
    this.#options.done({
      name: this.name,
      request: this.#request,
      status: this.#status,
      fields: this.#fields,
      chunks: this.#chunks,
      times: this.#times,
      end: this.#end,
      line,
    });
  }
}

/** Shows the tap what passes, right after it has passed. */
export class TappedExchange implements Exchange {
  readonly #inner: Exchange;
  readonly #tap: Tap;

  constructor(inner: Exchange, tap: Tap) {
    this.#inner = inner;
    this.#tap = tap;
  }

  get method(): string {
    return this.#inner.method;
  }

  get target(): string {
    return this.#inner.target;
  }

  get fields(): Fields {
    return this.#inner.fields;
  }

  get begun(): boolean {
    return this.#inner.begun;
  }

  get gone(): boolean {
    return this.#inner.gone;
  }

  field(name: string): string | undefined {
    return this.#inner.field(name);
  }

  async readBody(limit: number): Promise<Uint8Array> {
    const body = await this.#inner.readBody(limit);
    this.#tap.keepRequest(body);
    return body;
  }

  addReplyFields(fields: readonly Field[]): void {
    this.#inner.addReplyFields(fields);
  }

  answer(status: number, fields: SentFields, body: Uint8Array | string): void {
    this.#inner.answer(status, fields, body);
    this.#tap.begin(status, fields);
    this.#tap.note(typeof body === "string" ? Buffer.from(body) : body);
    this.#tap.close("whole");
  }

  begin(status: number, fields: SentFields): void {
    this.#inner.begin(status, fields);
    this.#tap.begin(status, fields);
  }

  write(chunk: Uint8Array): Promise<void> | null {
    const { gone } = this.#inner;
    const slow = this.#inner.write(chunk);
    if (!gone) this.#tap.note(chunk);
    return slow;
  }

  end(last?: Uint8Array): void {
    const { gone } = this.#inner;
    this.#inner.end(last);
    if (gone) return;
    if (last !== undefined) this.#tap.note(last);
    this.#tap.close("whole");
  }

  reset(): void {
    const { gone } = this.#inner;
    this.#inner.reset();
    if (!gone) this.#tap.close("reset");
  }

  acceptWebSocket(fields: SentFields, open: OpenPeer): boolean {
    return this.#inner.acceptWebSocket(fields, open);
  }

  onGone(listener: () => void): void {
    this.#inner.onGone(listener);
  }
}
