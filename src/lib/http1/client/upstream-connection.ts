// One connection to an upstream: it carries one call after another, or none.
// What this file does not own: how it comes about (dial.ts) and who gets it
// next (pool.ts).

import type { Socket } from "bun";
import { Deadline } from "../../deadline.ts";
import { Gathering, writePacket, writeRest } from "../bytes.ts";
import type { PendingExchange, Carrier } from "./pending-exchange.ts";
import type { Peer } from "./dial.ts";
import { openDecoder, readLength, staysOpen, type BodyDecoder, type BodyLength } from "../framing.ts";
import {
  findField,
  findHeadEnd,
  MAX_HEAD_BYTES,
  mayBeginAnswer,
  parseAnswer,
  type AnswerHead,
} from "../head.ts";
import { hasNews } from "./idle-state.ts";
import { Malformed } from "../malformed.ts";
import type { FaultKind } from "../types.ts";

/** Who is told what becomes of a connection. */
export interface WireOwner {
  /** It has served its call and may serve another within `idleMs`. */
  release(wire: UpstreamConnection, idleMs: number): void;
  /** It is no more. */
  forget(wire: UpstreamConnection): void;
  /** A reused connection ended, and the call may go out on a new one. */
  retry(call: PendingExchange): void;
}

/** Of a large body this much leaves with the head; the rest is written from where it lies. */
const BODY_WITH_HEAD_BYTES = 64 * 1024;
const MAX_INTERIM_ANSWERS = 32;
/** Load balancers often close after 60 s. Who closes first sends no request into the other's close. */
const LONGEST_IDLE_MS = 55_000;
const TIMERS_ARE_LATE_MS = 1000;
const NOTHING = new Uint8Array(0);

export class UpstreamConnection implements Carrier, Peer {
  readonly #socket: Socket<Peer>;
  readonly #owner: WireOwner;
  readonly #deadline = new Deadline(() => this.#expire());
  readonly #head = new Gathering();
  #call: PendingExchange | null = null;
  #reused = false;
  #answered = false;
  #interim = 0;
  #decoder: BodyDecoder | null = null;
  /** An answer that can have no body has announced one. If it comes all the same, it comes late, and would be read as
   *  the answer to the next call. */
  #owesBody = false;
  #staysOpen = false;
  #idleMs = LONGEST_IDLE_MS;
  #restsUntil = 0;
  #unsent: Buffer | null = null;
  #bodySent = 0;
  #paused = false;
  #dead = false;

  constructor(socket: Socket<Peer>, owner: WireOwner) {
    this.#socket = socket;
    this.#owner = owner;
  }

  /** Sends a call. Only on a connection at rest. */
  carry(call: PendingExchange): void {
    this.#call = call;
    call.carrier = this;
    call.sent = true;
    call.reused = this.#reused;
    this.#reused = true;
    this.#answered = false;
    this.#interim = 0;
    this.#decoder = null;
    const body = call.body ?? NOTHING;
    const first = body.length <= BODY_WITH_HEAD_BYTES ? body : body.subarray(0, BODY_WITH_HEAD_BYTES);
    this.#unsent = writePacket(this.#socket, call.request, first, "");
    this.#bodySent = first.length;
    this.#sendOn(body);
    this.#deadline.arm(call.deadlines.firstByteMs);
  }

  /** At rest until it is taken again or `idleMs` have passed. */
  rest(idleMs: number): void {
    this.#deadline.arm(idleMs);
    this.#restsUntil = Date.now() + idleMs;
  }

  /** Asked right before an idle connection is used again. The clock on the wall counts: timers stand still while the
   *  machine sleeps. */
  get isUsable(): boolean {
    return Date.now() <= this.#restsUntil + TIMERS_ARE_LATE_MS && !hasNews(this.#socket);
  }

  // What the call asks.

  awaitBytes(): void {
    if (this.#call !== null) this.#deadline.arm(this.#call.deadlines.idleMs);
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
    this.#call = null;
    this.#socket.terminate();
    this.closed(null);
  }

  // What the socket reports.

  receive(chunk: Buffer): void {
    const call = this.#call;
    if (call === null) {
      this.abandon(); // an upstream that speaks unasked is not to be trusted with another call
      return;
    }
    this.#answered = true;
    this.#deadline.disarm();
    try {
      if (this.#decoder === null) this.#receiveHead(call, chunk);
      else this.#receiveBody(call, this.#decoder, chunk, 0);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.#fail("malformed", error.message);
    }
  }

  drain(): void {
    const call = this.#call;
    if (call === null || this.#isSent(call)) return;
    if (this.#unsent !== null) this.#unsent = writeRest(this.#socket, this.#unsent);
    if (this.#unsent === null && call.body !== null) this.#sendOn(call.body);
    if (!this.#answered) this.#deadline.arm(call.deadlines.firstByteMs);
  }

  closed(error: unknown): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#deadline.disarm();
    this.#owner.forget(this);
    const call = this.#call;
    if (call === null) return;
    const clean = error === null || error === undefined;
    if (clean && this.#decoder?.finish() === true) {
      this.#call = null;
      call.finish();
    } else if (call.begun) {
      this.#fail("cut", "the upstream closed the connection inside its answer", error);
    } else if (call.reused && (this.#isUntouched(call) || (!this.#answered && isSafe(call.method)))) {
      this.#sendAgain(call);
    } else {
      this.#fail("reset", "the upstream closed the connection before its answer", error);
    }
  }

  // Steps.

  /** The socket has taken no byte of the call: the upstream cannot have worked on it. */
  #isUntouched(call: PendingExchange): boolean {
    return this.#unsent?.length === call.request.length + this.#bodySent;
  }

  /** On a new connection, which is not replaced when it ends, too. */
  #sendAgain(call: PendingExchange): void {
    this.#call = null;
    if (this.#isUntouched(call)) call.sent = false;
    else call.reportResend();
    this.#owner.retry(call);
  }

  #receiveHead(call: PendingExchange, chunk: Buffer): void {
    this.#head.add(chunk);
    const bytes = this.#head.view();
    let from = 0;
    for (;;) {
      const end = findHeadEnd(bytes, from);
      if ((end < 0 ? bytes.length : end) - from > MAX_HEAD_BYTES)
        throw new Malformed("the head is too large");
      if (end < 0) {
        if (!mayBeginAnswer(bytes, from)) throw new Malformed("not HTTP/1");
        break;
      }
      const head = parseAnswer(bytes.toString("latin1", from, end - 4));
      if (head.status >= 200) {
        this.#head.clear();
        this.#begin(call, head, bytes, end);
        return;
      }
      this.#noteInterim(head);
      from = end;
    }
    if (from > 0) {
      this.#head.clear();
      if (from < bytes.length) this.#head.add(bytes.subarray(from));
    }
    this.#deadline.arm(from === bytes.length ? call.deadlines.firstByteMs : call.deadlines.idleMs);
  }

  #noteInterim(head: AnswerHead): void {
    if (head.status === 101 || ++this.#interim > MAX_INTERIM_ANSWERS)
      throw new Malformed("not an interim answer");
    if (announcesBody(readLength(head.fields, head.minor))) this.#owesBody = true;
  }

  #begin(call: PendingExchange, head: AnswerHead, bytes: Buffer, from: number): void {
    const said = readLength(head.fields, head.minor);
    const bodiless = isBodiless(call.method, head.status);
    const length = bodiless ? 0 : said;
    this.#decoder = openDecoder(length);
    if (bodiless && announcesBody(said)) this.#owesBody = true;
    this.#staysOpen = !this.#owesBody && length !== "unsaid" && staysOpen(head.fields, head.minor);
    this.#idleMs = readIdleMs(findField(head.fields, "keep-alive"));
    call.begin(head, typeof said === "number" ? said : null, length === "unsaid");
    this.#receiveBody(call, this.#decoder, bytes, from);
  }

  #receiveBody(call: PendingExchange, decoder: BodyDecoder, bytes: Buffer, from: number): void {
    const piece = decoder.decode(bytes, from);
    if (piece !== null) call.push(piece);
    // Bytes that only frame the body, such as a chunk's size, gave the reader nothing: it still waits.
    else if (call.reading) this.awaitBytes();
    if (decoder.done) this.#complete(call, decoder.consumed === bytes.length);
  }

  #complete(call: PendingExchange, clean: boolean): void {
    const reusable = clean && this.#staysOpen && this.#idleMs > 0 && this.#isSent(call);
    this.#call = null;
    this.#decoder = null;
    call.finish();
    this.resume();
    if (reusable) this.#owner.release(this, this.#idleMs);
    else this.abandon();
  }

  #isSent(call: PendingExchange): boolean {
    return this.#unsent === null && this.#bodySent === (call.body?.length ?? 0);
  }

  #sendOn(body: Uint8Array): void {
    while (this.#unsent === null && this.#bodySent < body.length) {
      const taken = this.#socket.write(body, this.#bodySent, body.length - this.#bodySent);
      if (taken <= 0) return;
      this.#bodySent += taken;
    }
  }

  #expire(): void {
    const call = this.#call;
    if (call === null) this.abandon();
    else if (!call.begun) this.#fail("first_byte_timeout", "no answer in time");
    else this.#fail("idle_timeout", "silence inside the answer");
  }

  #fail(kind: FaultKind, message: string, cause?: unknown): void {
    const call = this.#call;
    this.#call = null;
    call?.fail(kind, message, this.#answered, cause);
    if (!this.#dead) this.abandon();
  }
}

function isBodiless(method: string, status: number): boolean {
  return method === "HEAD" || status === 204 || status === 304;
}

/** A length that is more than none. */
function announcesBody(length: BodyLength): boolean {
  return length !== "unsaid" && length !== 0;
}

/** The request asks for nothing to be done (RFC 9110, section 9.2.1): sending it twice does no harm. */
function isSafe(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** The upstream's `keep-alive: timeout=N`, less a second for the way there. */
function readIdleMs(keepAlive: string | undefined): number {
  const seconds = keepAlive === undefined ? null : /\btimeout=(\d{1,9})/i.exec(keepAlive);
  if (seconds === null) return LONGEST_IDLE_MS;
  return Math.min(LONGEST_IDLE_MS, (Number(seconds[1]) - 1) * 1000);
}
