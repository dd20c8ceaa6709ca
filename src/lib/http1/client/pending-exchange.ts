// One request to an upstream, from `send` to the end of its answer: what the
// caller holds. It has the bytes that have come and are not read yet. What
// this file does not own: the connection (wire.ts) and which one (client.ts).

import { findField, type AnswerHead } from "../head.ts";
import {
  UpstreamFault,
  type Deadlines,
  type FaultKind,
  type Field,
  type UpstreamResponse,
  type UpstreamRequest,
  type SentRequest,
} from "../types.ts";

/** What a call asks of the connection that it runs on, or of the dialling for one. */
export interface Carrier {
  /** The reader waits: silence counts from here. */
  awaitBytes(): void;
  /** The reader is slow, or has caught up. */
  pause(): void;
  resume(): void;
  /** Closes at once. */
  abandon(): void;
}

/** More than this unread stops the upstream. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** Unread chunks are handed out as one up to this size; joining larger ones costs more than it saves. */
const JOIN_BYTES = 64 * 1024;

export class PendingExchange implements SentRequest, UpstreamResponse {
  readonly head: Promise<UpstreamResponse>;
  readonly method: string;
  /** The request's head as it goes out; the body follows. */
  readonly request: string;
  readonly body: Uint8Array | null;
  readonly deadlines: Deadlines;
  status = 0;
  fields: readonly Field[] = [];
  length: number | null = null;
  closeDelimited = false;
  reused = false;
  carrier: Carrier | null = null;
  /** A connection has begun to send it. */
  sent = false;
  readonly #head = Promise.withResolvers<UpstreamResponse>();
  readonly #onResend: () => void;
  #begun = false;
  #unread: Uint8Array[] = [];
  #unreadBytes = 0;
  #ended = false;
  #fault: UpstreamFault | null = null;
  #reading: PromiseWithResolvers<Uint8Array | null> | null = null;
  #paused = false;

  constructor(outbound: UpstreamRequest, request: string) {
    this.head = this.#head.promise;
    this.method = outbound.method;
    this.request = request;
    this.body = outbound.body;
    this.deadlines = outbound.deadlines;
    this.#onResend = outbound.onResend ?? (() => {});
  }

  field(name: string): string | undefined {
    return findField(this.fields, name);
  }

  get buffered(): boolean {
    return this.#ended || this.#unreadBytes > 0;
  }

  get finished(): boolean {
    return this.#ended && this.#unreadBytes === 0;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** A read waits for bytes. */
  get reading(): boolean {
    return this.#reading !== null;
  }

  read(): Promise<Uint8Array | null> {
    if (this.#reading !== null) throw new Error("one read at a time");
    if (this.#unreadBytes > 0) return Promise.resolve(this.#take());
    if (this.#ended) return Promise.resolve(null);
    if (this.#fault !== null) return Promise.reject(this.#fault);
    this.#reading = Promise.withResolvers<Uint8Array | null>();
    this.carrier?.awaitBytes();
    return this.#reading.promise;
  }

  takeRest(): Uint8Array | null {
    if (!this.#ended) return null;
    const rest = this.#unread.length === 1 ? this.#unread[0] : Buffer.concat(this.#unread);
    this.#unread = [];
    this.#unreadBytes = 0;
    return rest ?? null;
  }

  cancel(): void {
    if (this.#ended || this.#fault !== null) return;
    this.#unread = [];
    this.#unreadBytes = 0;
    this.fail(this.sent ? "cancelled" : "withdrawn", "left by the gateway", false);
  }

  // What the connection reports.

  /** The head is complete. Whoever awaits it runs later, when what came along has been pushed: `buffered` tells. */
  begin(head: AnswerHead, length: number | null, closeDelimited: boolean): void {
    this.status = head.status;
    this.fields = head.fields;
    this.length = length;
    this.closeDelimited = closeDelimited;
    this.#begun = true;
    this.#head.resolve(this);
  }

  /** The upstream may have received it, and it is sent once more. */
  reportResend(): void {
    this.#onResend();
  }

  push(bytes: Uint8Array): void {
    if (this.#reading !== null) {
      const reading = this.#reading;
      this.#reading = null;
      reading.resolve(bytes);
      return;
    }
    this.#unread.push(bytes);
    this.#unreadBytes += bytes.length;
    if (this.#unreadBytes > MAX_UNREAD_BYTES && !this.#paused) {
      this.#paused = true;
      this.carrier?.pause();
    }
  }

  finish(): void {
    this.#ended = true;
    this.carrier = null;
    this.#reading?.resolve(null);
    this.#reading = null;
  }

  /** What has come before the fault can still be read. */
  fail(kind: FaultKind, message: string, answered: boolean, cause?: unknown): void {
    if (this.#ended || this.#fault !== null) return;
    const fault = new UpstreamFault(kind, message, answered || this.#begun, cause);
    this.#fault = fault;
    const { carrier } = this;
    this.carrier = null;
    carrier?.abandon();
    if (!this.#begun) {
      if (kind === "cancelled" || kind === "withdrawn") this.head.catch(() => {}); // the one who cancels may not be the one who waits
      this.#head.reject(fault);
    }
    this.#reading?.reject(fault);
    this.#reading = null;
  }

  #take(): Uint8Array {
    const unread = this.#unread;
    const first = unread[0];
    let taken: Uint8Array;
    if (first !== undefined && this.#unreadBytes > JOIN_BYTES) {
      unread.shift();
      taken = first;
    } else {
      taken = first !== undefined && unread.length === 1 ? first : Buffer.concat(unread);
      this.#unread = [];
    }
    this.#unreadBytes -= taken.length;
    if (this.#paused && this.#unreadBytes <= JOIN_BYTES) {
      this.#paused = false;
      this.carrier?.resume();
    }
    return taken;
  }
}
