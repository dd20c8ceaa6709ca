// One connection to an upstream. It serves one call after another, never two at once.

import { readSync } from "node:fs";
import type { Socket } from "bun";
import { getErrorCode } from "../errors.ts";
import { type BodyDecoder, type BodyLength, openDecoder, readBodyLength, staysOpen } from "./framing.ts";
import { canStartResponse, findHeadEnd, MAX_HEAD_BYTES, parseResponse, type ResponseHead } from "./head.ts";
import { Outbox } from "./outbox.ts";
import { Deadline } from "../time/deadline.ts";
import type { Call, CallOwner } from "./call.ts";
import type { SocketListener } from "./dial.ts";
import type { FaultKind } from "./faults.ts";
import { Malformed } from "./fields.ts";
import { UpstreamResponse } from "./upstream.ts";

/** The pool that a connection belongs to. */
export interface ConnectionOwner {
  /** It may serve another call: within `idleMs`, if the upstream has named a limit. */
  release(connection: Connection, idleMs: number | null): void;
  /** It has closed, or belongs to somebody else now. */
  forget(connection: Connection): void;
  /** The upstream has closed it while it waited for a call. */
  noteIdleEnd(connection: Connection): void;
  /** A connection that had served another call has ended. This call may be sent on a new one. */
  retry(call: Call): void;
}

/** Up to this much of the body leaves in the same packet as the head. */
const BODY_WITH_HEAD_BYTES = 64 * 1024;
const MAX_INTERIM_RESPONSES = 32;
/** Timers stand still while the machine sleeps, so the wall clock decides, with this tolerance. */
const TIMER_TOLERANCE_MS = 1000;
const NOTHING = Buffer.alloc(0);

export class Connection implements CallOwner, SocketListener {
  readonly #socket: Socket<SocketListener>;
  readonly #owner: ConnectionOwner;
  readonly #outbox = new Outbox();
  #call: Call | null = null;
  /** It has served a call, or begun to. */
  isUsed = false;
  /** The bytes of the call; the socket has taken none while the outbox holds all. */
  #callBytes = 0;
  /** The beginning of a head. */
  #held: Buffer = NOTHING;
  #interimResponses = 0;
  #decoder: BodyDecoder | null = null;
  /** A response without a body has announced one. If that body comes, it comes late, and would be taken for the response to
   *  the next call. */
  #strayBodyPossible = false;
  #staysOpen = false;
  #idleMs: number | null = null;
  readonly #idleEnd = new Deadline(() => this.abandon());
  idleSince = 0;
  #idleUntil = 0;
  #isPaused = false;
  #isClosed = false;

  constructor(socket: Socket<SocketListener>, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.data = this;
  }

  /** The connection must be idle. */
  send(call: Call): void {
    this.#idleEnd.disarm();
    this.#call = call;
    call.owner = this;
    call.reused = this.isUsed;
    call.sent = true;
    this.isUsed = true;
    this.#interimResponses = 0;
    call.deadline.arm(call.deadlines.firstByteMs);
    const body = call.body ?? NOTHING;
    const head = Buffer.from(call.head, "latin1");
    this.#callBytes = head.length + body.length;
    const first = Buffer.concat([head, body.subarray(0, BODY_WITH_HEAD_BYTES)]);
    this.#outbox.send(this.#socket, first);
    if (body.length > BODY_WITH_HEAD_BYTES)
      this.#outbox.send(this.#socket, body.subarray(BODY_WITH_HEAD_BYTES));
  }

  /** Waits for the next call. */
  becomeIdle(idleMs: number): void {
    this.#idleEnd.arm(idleMs);
    this.idleSince = Date.now();
    this.#idleUntil = this.idleSince + idleMs;
  }

  /** It has not ended, as far as the system knows. */
  get isUsable(): boolean {
    return Date.now() <= this.#idleUntil + TIMER_TOLERANCE_MS && !hasUnread(this.#socket);
  }

  /** It stays open for longer than this. */
  lasts(ms: number, now: number): boolean {
    return this.#idleUntil - now > ms;
  }

  // Called by the call.

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#socket.resume();
  }

  abandon(): void {
    this.#call = null;
    this.#close();
    this.#socket.terminate();
  }

  // Called by the socket.

  receive(chunk: Buffer): void {
    const call = this.#call;
    if (call === null) return this.abandon(); // bytes that nobody asked for
    call.answered = true;
    try {
      if (this.#decoder === null) this.#receiveHead(call, chunk);
      else this.#receiveBody(call, this.#decoder, chunk, 0);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.#fail("malformed", error.message);
    }
  }

  drain(): void {
    if (this.#outbox.size === 0) return;
    this.#outbox.flush(this.#socket);
    const call = this.#call;
    if (call !== null && !call.answered) call.deadline.arm(call.deadlines.firstByteMs);
  }

  closed(error: unknown): void {
    if (this.#isClosed) return;
    const call = this.#call;
    if (call === null) this.#owner.noteIdleEnd(this);
    this.#close();
    if (call !== null) this.#endBy(error ?? null, call);
  }

  // Steps.

  #endBy(error: unknown, call: Call): void {
    if (error === null && this.#decoder?.finish() === true) {
      this.#call = null;
      call.end();
    } else if (call.begun) {
      this.#fail("cut", "the upstream closed the connection during its response", error);
    } else if (call.reused && (this.#isUntouched || (!call.answered && isSafe(call.method)))) {
      this.#sendAgain(call);
    } else {
      this.#fail("reset", "the upstream closed the connection before its response", error);
    }
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#idleEnd.disarm();
    this.#owner.forget(this);
  }

  /** The socket has taken no byte of the call, so the upstream cannot have worked on it. */
  get #isUntouched(): boolean {
    return this.#outbox.size === this.#callBytes;
  }

  /** The new connection is not reused, so there is no second resend. */
  #sendAgain(call: Call): void {
    this.#call = null;
    if (this.#isUntouched) call.sent = false;
    else call.reportResend();
    this.#owner.retry(call);
  }

  #receiveHead(call: Call, chunk: Buffer): void {
    let searched = Math.max(0, this.#held.length - 3);
    let bytes: Buffer = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    for (;;) {
      const end = findHeadEnd(bytes, searched);
      if ((end < 0 ? bytes.length : end) > MAX_HEAD_BYTES) throw new Malformed("the head is too large");
      if (end < 0) break;
      const head = parseResponse(bytes, 0, end - 2);
      if (head.status === 101 && call.upgrade !== null) return this.#switch(call, head, bytes.subarray(end));
      if (head.status >= 200) {
        this.#held = NOTHING;
        return this.#begin(call, head, bytes, end);
      }
      this.#noteInterim(head);
      bytes = bytes.subarray(end);
      searched = 0;
    }
    if (!canStartResponse(bytes, 0)) throw new Malformed("not HTTP/1");
    this.#held = bytes;
    call.deadline.arm(bytes.length === 0 ? call.deadlines.firstByteMs : call.deadlines.idleMs);
  }

  #noteInterim(head: ResponseHead): void {
    if (head.status === 101 || ++this.#interimResponses > MAX_INTERIM_RESPONSES)
      throw new Malformed("an unexpected interim response");
    if (announcesBody(readBodyLength(head.fields, head.minor))) this.#strayBodyPossible = true;
  }

  /** The upstream speaks another protocol from now on. */
  #switch(call: Call, head: ResponseHead, rest: Buffer): void {
    const fault = call.upgrade?.check(head.fields) ?? null;
    if (fault !== null) throw new Malformed(fault);
    this.#call = null;
    this.#close();
    call.switchTo(this.#socket, head, Buffer.from(rest));
  }

  #begin(call: Call, head: ResponseHead, bytes: Buffer, from: number): void {
    const announced = readBodyLength(head.fields, head.minor);
    const bodiless = isBodiless(call.method, head.status);
    const length = bodiless ? 0 : announced;
    const decoder = openDecoder(length);
    this.#decoder = decoder;
    if (bodiless && announcesBody(announced)) this.#strayBodyPossible = true;
    this.#staysOpen = !this.#strayBodyPossible && length !== "unknown" && staysOpen(head.fields, head.minor);
    this.#idleMs = readIdleMs(head.fields.get("keep-alive"));
    const announcedBytes = typeof announced === "number" ? announced : null;
    call.begin(new UpstreamResponse(head.status, head.fields, announcedBytes, length === "unknown"));
    this.#receiveBody(call, decoder, bytes, from);
  }

  #receiveBody(call: Call, decoder: BodyDecoder, bytes: Buffer, from: number): void {
    const piece = decoder.decode(bytes, from);
    const isClean = decoder.consumed === bytes.length;
    call.receive(piece);
    if (decoder.done) this.#complete(call, isClean);
  }

  #complete(call: Call, isClean: boolean): void {
    const isReusable = isClean && this.#staysOpen && this.#idleMs !== 0 && this.#outbox.size === 0;
    this.#call = null;
    this.#decoder = null;
    this.resume();
    if (isReusable) this.#owner.release(this, this.#idleMs);
    else this.abandon();
    call.end();
  }

  #fail(kind: FaultKind, message: string, cause?: unknown): void {
    const call = this.#call;
    this.#call = null;
    call?.fail(kind, message, cause);
    if (!this.#isClosed) this.abandon();
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

const byte = Buffer.allocUnsafeSlow(1);

/** Asks the system, which knows before the event loop does, whether an idle connection has ended or has bytes that nobody
 *  asked for. This may consume a byte, so the connection must be closed then. On Windows a socket is not a file. */
export function hasUnread(socket: object): boolean {
  if (process.platform === "win32" || !("fd" in socket) || typeof socket.fd !== "number") return false;
  try {
    readSync(socket.fd, byte);
    return true;
  } catch (error) {
    const code = getErrorCode(error);
    return code !== "EAGAIN" && code !== "EWOULDBLOCK";
  }
}
