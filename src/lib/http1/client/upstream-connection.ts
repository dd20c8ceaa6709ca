// One connection to an upstream. It serves one exchange after another, never two at once.

import type { Socket } from "bun";
import { Deadline } from "../../time/deadline.ts";
import { atTurnEnd } from "../../time/next-turn.ts";
import { ByteCollector, Outbox } from "../packets.ts";
import type { RequestConnection, RunningRequest } from "./running-request.ts";
import type { SocketListener } from "./dial.ts";
import { openDecoder, readBodyLength, staysOpen, type BodyDecoder, type BodyLength } from "../framing.ts";
import { HeadSearch, MAX_HEAD_BYTES, canStartResponse, parseResponse, type ResponseHead } from "../head.ts";
import { SocketFlow } from "../socket-flow.ts";
import { findUnread } from "./idle-state.ts";
import { Malformed } from "../../http/fields.ts";
import { UpstreamResponse, type FaultKind } from "../../http/upstream.ts";

/** The pool that a connection belongs to. */
export interface ConnectionOwner {
  /** The exchange is complete, and the connection may serve another one: within `idleMs` if the upstream has named a limit. */
  release(connection: UpstreamConnection, idleMs: number | null): void;
  /** The connection has closed. */
  forget(connection: UpstreamConnection): void;
  /** The upstream has closed the connection while it waited for an exchange. */
  noteIdleEnd(connection: UpstreamConnection): void;
  /** The TLS session can be resumed by another connection. */
  keepSession(session: Buffer): void;
  /** A reused connection ended. The exchange may be sent on a new one. */
  retry(exchange: RunningRequest): void;
  /** An exchange of which nothing has been sent needs another connection. */
  send(exchange: RunningRequest): void;
  /** How many exchanges were sent on a connection that had served another one. */
  reused: number;
}

/** Up to this much of the body leaves in the same packet as the head. The rest is written from the caller's bytes. */
const BODY_WITH_HEAD_BYTES = 64 * 1024;
const MAX_INTERIM_RESPONSES = 32;
const TIMER_TOLERANCE_MS = 1000;
const NOTHING = new Uint8Array(0);

/** Connections whose requests leave at the end of this turn. */
let departing: UpstreamConnection[] = [];

function depart(): void {
  const leaving = departing;
  departing = [];
  const spoilt = findUnread(leaving.map(({ waited }) => waited));
  for (const [index, connection] of leaving.entries()) connection.depart(spoilt[index] === true);
}

export class UpstreamConnection implements RequestConnection, SocketListener {
  readonly #socket: Socket<SocketListener>;
  readonly #owner: ConnectionOwner;
  readonly #deadline = new Deadline(() => this.#expire());
  readonly #head = new ByteCollector();
  readonly #search = new HeadSearch();
  #exchange: RunningRequest | null = null;
  #reused = false;
  /** The exchange is on its way. Until then it can go to another connection. */
  #departed = false;
  #sessionSeen = false;
  #answered = false;
  #interimResponses = 0;
  #decoder: BodyDecoder | null = null;
  /** A response without a body announced one anyway. If such a body arrives, it arrives late, and would be read as the
   *  response to the next exchange. */
  #strayBodyPossible = false;
  #staysOpen = false;
  #idleMs: number | null = null;
  #idleSince = 0;
  #idleUntil = 0;
  readonly #outbox = new Outbox();
  #bodySent = 0;
  readonly #flow: SocketFlow;
  #closed = false;

  constructor(socket: Socket<SocketListener>, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#flow = new SocketFlow(socket);
    this.#owner = owner;
  }

  /** Starts an exchange, which leaves at the end of the turn. The connection must be idle. */
  send(exchange: RunningRequest): void {
    this.#exchange = exchange;
    exchange.connection = this;
    exchange.reused = this.#reused;
    this.#reused = true;
    this.#departed = false;
    this.#answered = false;
    this.#interimResponses = 0;
    this.#decoder = null;
    if (departing.push(this) === 1) atTurnEnd("requests", depart);
  }

  /** `spoilt`: the upstream has ended the connection while nothing was asked, or has sent something. */
  depart(spoilt: boolean): void {
    const exchange = this.#exchange;
    if (exchange === null || this.#departed) return;
    if (spoilt && this.#wasIdle) return this.#leave(exchange);
    this.#departed = true;
    exchange.sent = true;
    if (exchange.reused) this.#owner.reused += 1;
    const body = exchange.body ?? NOTHING;
    const first = body.length <= BODY_WITH_HEAD_BYTES ? body : body.subarray(0, BODY_WITH_HEAD_BYTES);
    this.#outbox.send(this.#socket, exchange.requestHead, first, "");
    this.#bodySent = first.length;
    this.#sendBody(body);
    this.#deadline.arm(exchange.deadlines.firstByteMs);
  }

  /** Another connection serves the exchange. */
  #leave(exchange: RunningRequest): void {
    this.abandon();
    this.#owner.send(exchange);
  }

  /** Waits for the next exchange for `idleMs`. */
  becomeIdle(idleMs: number): void {
    this.#deadline.arm(idleMs);
    this.#idleSince = Date.now();
    this.#idleUntil = this.#idleSince + idleMs;
  }

  /** It has waited for an exchange, and may have ended meanwhile. */
  get #wasIdle(): boolean {
    return this.#idleSince > 0;
  }

  /** What the system has to be asked about before the exchange leaves. */
  get waited(): object {
    return this.#wasIdle ? this.#socket : NOTHING;
  }

  /** It uses the wall clock, because timers stand still while the machine sleeps. */
  get isUsable(): boolean {
    return Date.now() <= this.#idleUntil + TIMER_TOLERANCE_MS;
  }

  /** Its limit is more than `ahead` away, or a fifth of itself. */
  isLasting(now: number, ahead: number): boolean {
    return this.#idleUntil - now > Math.min(ahead, (this.#idleUntil - this.#idleSince) / 5);
  }

  get idleSince(): number {
    return this.#idleSince;
  }

  /** It has served an exchange, or begun to. */
  get used(): boolean {
    return this.#reused;
  }

  // Called by the request.

  pause(): void {
    this.#flow.hold();
    this.#deadline.disarm();
  }

  resume(): void {
    this.#flow.release();
    if (this.#exchange !== null) this.#deadline.arm(this.#exchange.deadlines.idleMs);
  }

  abandon(): void {
    this.#exchange = null;
    this.#close();
    this.#socket.terminate();
  }

  // Called by the socket.

  receive(chunk: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === null) {
      this.abandon(); // an upstream that sends bytes without a request cannot be trusted with the next one
      return;
    }
    if (!this.#departed) {
      if (this.#wasIdle) this.#leave(exchange);
      else this.#fail("malformed", "the upstream answered before it was asked");
      return;
    }
    this.#answered = true;
    this.#deadline.disarm();
    this.#flow.noteRead(chunk.length);
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
    if (exchange === null || !this.#departed || this.#isSent(exchange)) return;
    if (this.#outbox.flush(this.#socket) && exchange.body !== null) this.#sendBody(exchange.body);
    if (!this.#answered) this.#deadline.arm(exchange.deadlines.firstByteMs);
  }

  closed(error: unknown): void {
    if (this.#closed) return;
    const exchange = this.#exchange;
    if (exchange !== null && !this.#departed && this.#wasIdle) return this.#leave(exchange);
    if (exchange === null) this.#owner.noteIdleEnd(this);
    this.#close();
    if (exchange !== null) this.#endBy(error, exchange);
  }

  #endBy(error: unknown, exchange: RunningRequest): void {
    const clean = error === null || error === undefined;
    if (clean && this.#decoder?.finish() === true) {
      this.#exchange = null;
      exchange.end();
    } else if (exchange.begun) {
      this.#fail("cut", "the upstream closed the connection during its response", error);
    } else if (
      exchange.reused &&
      (this.#isUntouched(exchange) || (!this.#answered && isSafe(exchange.method)))
    ) {
      this.#sendAgain(exchange);
    } else {
      this.#fail("reset", "the upstream closed the connection before its response", error);
    }
  }

  // Steps.

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#deadline.disarm();
    this.#owner.forget(this);
  }

  /** The socket has taken no byte of the request, so the upstream cannot have worked on it. */
  #isUntouched(exchange: RunningRequest): boolean {
    return !this.#departed || this.#outbox.size === exchange.requestHead.length + this.#bodySent;
  }

  /** The new connection is not reused, so there is no second resend. */
  #sendAgain(exchange: RunningRequest): void {
    this.#exchange = null;
    if (this.#isUntouched(exchange)) exchange.sent = false;
    else exchange.reportResend();
    this.#owner.retry(exchange);
  }

  #receiveHead(exchange: RunningRequest, chunk: Buffer): void {
    this.#head.add(chunk);
    const bytes = this.#head.view();
    let from = 0;
    for (;;) {
      const end = this.#search.findEnd(bytes, from);
      if ((end < 0 ? bytes.length : end) - from > MAX_HEAD_BYTES)
        throw new Malformed("the head is too large");
      if (end < 0) {
        if (!canStartResponse(bytes, from)) throw new Malformed("not HTTP/1");
        break;
      }
      const head = parseResponse(bytes, from, end - 2);
      if (head.status >= 200) {
        this.#head.clear();
        this.#begin(exchange, head, bytes, end);
        return;
      }
      this.#noteInterim(head);
      from = end;
    }
    if (from > 0) {
      this.#search.reset();
      this.#head.clear();
      if (from < bytes.length) this.#head.add(bytes.subarray(from));
    }
    this.#deadline.arm(from === bytes.length ? exchange.deadlines.firstByteMs : exchange.deadlines.idleMs);
  }

  #noteInterim(head: ResponseHead): void {
    if (head.status === 101 || ++this.#interimResponses > MAX_INTERIM_RESPONSES)
      throw new Malformed("an unexpected interim response");
    if (announcesBody(readBodyLength(head.fields, head.minor))) this.#strayBodyPossible = true;
  }

  #begin(exchange: RunningRequest, head: ResponseHead, bytes: Buffer, from: number): void {
    const announced = readBodyLength(head.fields, head.minor);
    const bodiless = isBodiless(exchange.method, head.status);
    const length = bodiless ? 0 : announced;
    this.#decoder = openDecoder(length);
    if (bodiless && announcesBody(announced)) this.#strayBodyPossible = true;
    this.#staysOpen = !this.#strayBodyPossible && length !== "unknown" && staysOpen(head.fields, head.minor);
    this.#idleMs = readIdleMs(head.fields.get("keep-alive"));
    this.#keepSession();
    const announcedBytes = typeof announced === "number" ? announced : null;
    exchange.begin(new UpstreamResponse(head.status, head.fields, announcedBytes, length === "unknown"));
    // The listener may have cancelled the request.
    if (this.#exchange === exchange) this.#receiveBody(exchange, this.#decoder, bytes, from);
  }

  #receiveBody(exchange: RunningRequest, decoder: BodyDecoder, bytes: Buffer, from: number): void {
    const piece = decoder.decode(bytes, from);
    const isClean = decoder.consumed === bytes.length;
    if (piece !== null) exchange.receive(piece);
    if (this.#exchange !== exchange) return;
    if (decoder.done) this.#complete(exchange, isClean);
    else if (!exchange.paused) this.#deadline.arm(exchange.deadlines.idleMs);
  }

  #complete(exchange: RunningRequest, clean: boolean): void {
    const reusable = clean && this.#staysOpen && this.#idleMs !== 0 && this.#isSent(exchange);
    this.#exchange = null;
    this.#decoder = null;
    this.#flow.release();
    if (reusable) this.#owner.release(this, this.#idleMs);
    else this.abandon();
    exchange.end();
  }

  /** Upstreams send it after the handshake. With TLS 1.2 it spares the next connection a round trip. With TLS 1.3 it
   *  spares both sides the certificates. */
  #keepSession(): void {
    if (this.#sessionSeen) return;
    this.#sessionSeen = true;
    if (!this.#socket.authorized || this.#socket.getTLSTicket() === undefined) return;
    const session: unknown = this.#socket.getSession();
    if (Buffer.isBuffer(session)) this.#owner.keepSession(session);
  }

  #isSent(exchange: RunningRequest): boolean {
    return this.#outbox.size === 0 && this.#bodySent === (exchange.body?.length ?? 0);
  }

  #sendBody(body: Uint8Array): void {
    while (this.#outbox.size === 0 && this.#bodySent < body.length) {
      const taken = this.#socket.write(body, this.#bodySent, body.length - this.#bodySent);
      if (taken <= 0) return;
      this.#bodySent += taken;
    }
  }

  #expire(): void {
    const exchange = this.#exchange;
    if (exchange === null) this.abandon();
    else if (!exchange.begun) this.#fail("first_byte_timeout", "no response in time");
    else this.#fail("idle_timeout", "the response stopped arriving");
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

/** The head announces at least one byte. */
function announcesBody(length: BodyLength): boolean {
  return length !== "unknown" && length !== 0;
}

/** The request changes nothing at the upstream (RFC 9110, section 9.2.1), so sending it twice is harmless. */
function isSafe(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** Reads the upstream's `keep-alive: timeout=N`, minus one second for the way there. Null if it names none. */
function readIdleMs(keepAlive: string | undefined): number | null {
  const seconds = keepAlive === undefined ? null : /\btimeout=(\d{1,9})/i.exec(keepAlive);
  return seconds === null ? null : Math.max(0, (Number(seconds[1]) - 1) * 1000);
}
