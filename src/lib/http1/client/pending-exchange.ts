// One request to an upstream, from `send` to the end of its response. This is the object that the caller holds.
// It buffers the bytes that have arrived and are not read yet.

import { findField, type ResponseHead } from "../head.ts";
import {
  UpstreamFault,
  type Deadlines,
  type FaultKind,
  type Field,
  type UpstreamResponse,
  type UpstreamRequest,
  type SentRequest,
} from "../types.ts";

/** What an exchange requests from its connection, or from the dial for one. */
export interface ExchangeConnection {
  /** The reader waits, so the idle limit starts now. */
  awaitBytes(): void;
  /** The reader is too slow, or has caught up. */
  pause(): void;
  resume(): void;
  /** Closes the connection at once. */
  abandon(): void;
}

/** With more unread bytes than this, the upstream is paused. */
const MAX_UNREAD_BYTES = 256 * 1024;
/** Unread chunks are joined up to this size. Joining larger ones costs more than it saves. */
const JOIN_BYTES = 64 * 1024;

const NO_FIELDS: readonly Field[] = [];

export class PendingExchange implements SentRequest, UpstreamResponse {
  readonly head: Promise<UpstreamResponse>;
  readonly method: string;
  /** The request's head as bytes for the wire. The body follows it. */
  readonly requestHead: string;
  readonly body: Uint8Array | null;
  readonly deadlines: Deadlines;
  status = 0;
  fields = NO_FIELDS;
  length: number | null = null;
  closeDelimited = false;
  reused = false;
  connection: ExchangeConnection | null = null;
  /** True once a connection has started to send it. */
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

  constructor(request: UpstreamRequest, requestHead: string) {
    this.head = this.#head.promise;
    this.method = request.method;
    this.requestHead = requestHead;
    this.body = request.body;
    this.deadlines = request.deadlines;
    this.#onResend = request.onResend ?? (() => {});
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
    this.connection?.awaitBytes();
    return this.#reading.promise;
  }

  takeBuffered(): Uint8Array | null {
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
    this.fail(this.sent ? "cancelled" : "withdrawn", "the gateway cancelled the request", false);
  }

  // Called by the connection.

  /** The head is complete. The promise resolves later, after the bytes that arrived with the head were pushed, so `buffered`
   *  is right. */
  begin(head: ResponseHead, length: number | null, closeDelimited: boolean): void {
    this.status = head.status;
    this.fields = head.fields;
    this.length = length;
    this.closeDelimited = closeDelimited;
    this.#begun = true;
    this.#head.resolve(this);
  }

  /** The upstream may have received the request, and it is sent a second time. */
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
      this.connection?.pause();
    }
  }

  finish(): void {
    this.#ended = true;
    this.connection = null;
    this.#reading?.resolve(null);
    this.#reading = null;
  }

  /** Bytes that arrived before the fault can still be read. */
  fail(kind: FaultKind, message: string, answered: boolean, cause?: unknown): void {
    if (this.#ended || this.#fault !== null) return;
    const fault = new UpstreamFault(kind, message, answered || this.#begun, cause);
    this.#fault = fault;
    const { connection } = this;
    this.connection = null;
    connection?.abandon();
    if (!this.#begun) {
      if (kind === "cancelled" || kind === "withdrawn") this.head.catch(() => {}); // nobody may be waiting for the head
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
      this.connection?.resume();
    }
    return taken;
  }
}
