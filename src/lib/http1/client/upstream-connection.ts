// One connection to an upstream: it carries one exchange after another, or none.
// What this file does not own: how it comes about (dial.ts) and who gets it
// next (pool.ts).

import type { Socket } from "bun";
import { Deadline } from "../../deadline.ts";
import { ByteCollector, writePacket, writeUnsent } from "../packets.ts";
import type { PendingExchange, ExchangeConnection } from "./pending-exchange.ts";
import type { SocketListener } from "./dial.ts";
import { openDecoder, readBodyLength, staysOpen, type BodyDecoder, type BodyLength } from "../framing.ts";
import {
  findField,
  findHeadEnd,
  MAX_HEAD_BYTES,
  canStartResponse,
  parseResponse,
  type ResponseHead,
} from "../head.ts";
import { hasUnreadBytesOrEnd } from "./idle-state.ts";
import { Malformed, type FaultKind } from "../types.ts";

/** Who is told what becomes of a connection. */
export interface ConnectionOwner {
  /** It has served its exchange and may serve another within `idleMs`. */
  release(connection: UpstreamConnection, idleMs: number): void;
  /** It is no more. */
  forget(connection: UpstreamConnection): void;
  /** A reused connection ended, and the exchange may go out on a new one. */
  retry(exchange: PendingExchange): void;
}

/** Of a large body this much leaves with the head; the rest is written from where it lies. */
const BODY_WITH_HEAD_BYTES = 64 * 1024;
const MAX_INTERIM_RESPONSES = 32;
/** Load balancers often close after 60 s. Who closes first sends no request into the other's close. */
const MAX_IDLE_MS = 55_000;
const TIMER_TOLERANCE_MS = 1000;
const NOTHING = new Uint8Array(0);

export class UpstreamConnection implements ExchangeConnection, SocketListener {
  readonly #socket: Socket<SocketListener>;
  readonly #owner: ConnectionOwner;
  readonly #deadline = new Deadline(() => this.#expire());
  readonly #head = new ByteCollector();
  #exchange: PendingExchange | null = null;
  #reused = false;
  #answered = false;
  #interimResponses = 0;
  #decoder: BodyDecoder | null = null;
  /** An answer that can have no body has announced one. If it comes all the same, it comes late, and would be read as
   *  the answer to the next exchange. */
  #strayBodyPossible = false;
  #staysOpen = false;
  #idleMs = MAX_IDLE_MS;
  #idleUntil = 0;
  #unsent: Buffer | null = null;
  #bodySent = 0;
  #paused = false;
  #closed = false;

  constructor(socket: Socket<SocketListener>, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
  }

  /** Sends a exchange. Only on a connection at rest. */
  send(exchange: PendingExchange): void {
    this.#exchange = exchange;
    exchange.connection = this;
    exchange.sent = true;
    exchange.reused = this.#reused;
    this.#reused = true;
    this.#answered = false;
    this.#interimResponses = 0;
    this.#decoder = null;
    const body = exchange.body ?? NOTHING;
    const first = body.length <= BODY_WITH_HEAD_BYTES ? body : body.subarray(0, BODY_WITH_HEAD_BYTES);
    this.#unsent = writePacket(this.#socket, exchange.requestHead, first, "");
    this.#bodySent = first.length;
    this.#sendBody(body);
    this.#deadline.arm(exchange.deadlines.firstByteMs);
  }

  /** At rest until it is taken again or `idleMs` have passed. */
  becomeIdle(idleMs: number): void {
    this.#deadline.arm(idleMs);
    this.#idleUntil = Date.now() + idleMs;
  }

  /** Asked right before an idle connection is used again. The clock on the wall counts: timers stand still while the
   *  machine sleeps. */
  get isUsable(): boolean {
    return Date.now() <= this.#idleUntil + TIMER_TOLERANCE_MS && !hasUnreadBytesOrEnd(this.#socket);
  }

  // What the exchange asks.

  awaitBytes(): void {
    if (this.#exchange !== null) this.#deadline.arm(this.#exchange.deadlines.idleMs);
  }

  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  abandon(): void {
    this.#exchange = null;
    this.#socket.terminate();
    this.closed(null);
  }

  // What the socket reports.

  receive(chunk: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === null) {
      this.abandon(); // an upstream that speaks unasked is not to be trusted with another exchange
      return;
    }
    this.#answered = true;
    this.#deadline.disarm();
    try {
      if (this.#decoder === null) this.#receiveHead(exchange, chunk);
      else this.#receiveBody(exchange, this.#decoder, chunk, 0);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.#fail("malformed", error.message);
    }
  }

  drain(): void {
    const exchange = this.#exchange;
    if (exchange === null || this.#isSent(exchange)) return;
    if (this.#unsent !== null) this.#unsent = writeUnsent(this.#socket, this.#unsent);
    if (this.#unsent === null && exchange.body !== null) this.#sendBody(exchange.body);
    if (!this.#answered) this.#deadline.arm(exchange.deadlines.firstByteMs);
  }

  closed(error: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#deadline.disarm();
    this.#owner.forget(this);
    const exchange = this.#exchange;
    if (exchange === null) return;
    const clean = error === null || error === undefined;
    if (clean && this.#decoder?.finish() === true) {
      this.#exchange = null;
      exchange.finish();
    } else if (exchange.begun) {
      this.#fail("cut", "the upstream closed the connection inside its answer", error);
    } else if (
      exchange.reused &&
      (this.#isUntouched(exchange) || (!this.#answered && isSafe(exchange.method)))
    ) {
      this.#sendAgain(exchange);
    } else {
      this.#fail("reset", "the upstream closed the connection before its answer", error);
    }
  }

  // Steps.

  /** The socket has taken no byte of the exchange: the upstream cannot have worked on it. */
  #isUntouched(exchange: PendingExchange): boolean {
    return this.#unsent?.length === exchange.requestHead.length + this.#bodySent;
  }

  /** On a new connection, which is not replaced when it ends, too. */
  #sendAgain(exchange: PendingExchange): void {
    this.#exchange = null;
    if (this.#isUntouched(exchange)) exchange.sent = false;
    else exchange.reportResend();
    this.#owner.retry(exchange);
  }

  #receiveHead(exchange: PendingExchange, chunk: Buffer): void {
    this.#head.add(chunk);
    const bytes = this.#head.view();
    let from = 0;
    for (;;) {
      const end = findHeadEnd(bytes, from);
      if ((end < 0 ? bytes.length : end) - from > MAX_HEAD_BYTES)
        throw new Malformed("the head is too large");
      if (end < 0) {
        if (!canStartResponse(bytes, from)) throw new Malformed("not HTTP/1");
        break;
      }
      const head = parseResponse(bytes.toString("latin1", from, end - 4));
      if (head.status >= 200) {
        this.#head.clear();
        this.#begin(exchange, head, bytes, end);
        return;
      }
      this.#noteInterim(head);
      from = end;
    }
    if (from > 0) {
      this.#head.clear();
      if (from < bytes.length) this.#head.add(bytes.subarray(from));
    }
    this.#deadline.arm(from === bytes.length ? exchange.deadlines.firstByteMs : exchange.deadlines.idleMs);
  }

  #noteInterim(head: ResponseHead): void {
    if (head.status === 101 || ++this.#interimResponses > MAX_INTERIM_RESPONSES)
      throw new Malformed("not an interim answer");
    if (announcesBody(readBodyLength(head.fields, head.minor))) this.#strayBodyPossible = true;
  }

  #begin(exchange: PendingExchange, head: ResponseHead, bytes: Buffer, from: number): void {
    const announced = readBodyLength(head.fields, head.minor);
    const bodiless = isBodiless(exchange.method, head.status);
    const length = bodiless ? 0 : announced;
    this.#decoder = openDecoder(length);
    if (bodiless && announcesBody(announced)) this.#strayBodyPossible = true;
    this.#staysOpen = !this.#strayBodyPossible && length !== "unknown" && staysOpen(head.fields, head.minor);
    this.#idleMs = readIdleMs(findField(head.fields, "keep-alive"));
    exchange.begin(head, typeof announced === "number" ? announced : null, length === "unknown");
    this.#receiveBody(exchange, this.#decoder, bytes, from);
  }

  #receiveBody(exchange: PendingExchange, decoder: BodyDecoder, bytes: Buffer, from: number): void {
    const piece = decoder.decode(bytes, from);
    if (piece !== null) exchange.push(piece);
    if (decoder.done) this.#complete(exchange, decoder.consumed === bytes.length);
  }

  #complete(exchange: PendingExchange, clean: boolean): void {
    const reusable = clean && this.#staysOpen && this.#idleMs > 0 && this.#isSent(exchange);
    this.#exchange = null;
    this.#decoder = null;
    exchange.finish();
    this.resume();
    if (reusable) this.#owner.release(this, this.#idleMs);
    else this.abandon();
  }

  #isSent(exchange: PendingExchange): boolean {
    return this.#unsent === null && this.#bodySent === (exchange.body?.length ?? 0);
  }

  #sendBody(body: Uint8Array): void {
    while (this.#unsent === null && this.#bodySent < body.length) {
      const taken = this.#socket.write(body, this.#bodySent, body.length - this.#bodySent);
      if (taken <= 0) return;
      this.#bodySent += taken;
    }
  }

  #expire(): void {
    const exchange = this.#exchange;
    if (exchange === null) this.abandon();
    else if (!exchange.begun) this.#fail("first_byte_timeout", "no answer in time");
    else this.#fail("idle_timeout", "silence inside the answer");
  }

  #fail(kind: FaultKind, message: string, cause?: unknown): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    exchange?.fail(kind, message, this.#answered, cause);
    if (!this.#closed) this.abandon();
  }
}

function isBodiless(method: string, status: number): boolean {
  return method === "HEAD" || status === 204 || status === 304;
}

/** A length that is more than none. */
function announcesBody(length: BodyLength): boolean {
  return length !== "unknown" && length !== 0;
}

/** The request asks for nothing to be done (RFC 9110, section 9.2.1): sending it twice does no harm. */
function isSafe(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** The upstream's `keep-alive: timeout=N`, less a second for the way there. */
function readIdleMs(keepAlive: string | undefined): number {
  const seconds = keepAlive === undefined ? null : /\btimeout=(\d{1,9})/i.exec(keepAlive);
  if (seconds === null) return MAX_IDLE_MS;
  return Math.min(MAX_IDLE_MS, (Number(seconds[1]) - 1) * 1000);
}
