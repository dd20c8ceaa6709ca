// One request to an upstream, from `send` to the end of its answer. It is sent on an idle connection or on a new one, and once
// more only where the upstream certainly has nothing of it, or where sending it twice is harmless.

import { Ahead } from "./body-queue.ts";
import { writeProxyLogin } from "./dial.ts";
import { type FaultKind, UpstreamFault } from "./faults.ts";
import { Malformed, writeFields } from "./fields.ts";
import { BodyDecoder, type BodyLength, readBodyLength, staysOpen } from "./framing.ts";
import { type ReadHead, readHead, type ResponseHead, writeRequestLine } from "./head.ts";
import type { Pool, Waiter } from "./pool.ts";
import { type Answer, type SentRequest, type UpstreamRequest, UpstreamResponse } from "./upstream.ts";
import type { Wire } from "./wire.ts";

/** Up to this length, a copy of the body costs less than a second packet. */
const MAX_COPIED_BYTES = 16 * 1024;
const MAX_INTERIM_RESPONSES = 32;
const NOTHING: Buffer = Buffer.alloc(0);

/** Gets the connection when the upstream speaks another protocol from now on. Throws Malformed. */
export type Upgrade = (wire: Wire, reply: ReadHead) => void;

export class Call implements SentRequest, Answer {
  readonly #request: UpstreamRequest;
  /** For the wire. The body follows it. */
  readonly #lines: Buffer;
  readonly #upgrade: Upgrade | null;
  readonly #pool: Pool;
  readonly #answer = Promise.withResolvers<Answer>();
  readonly #ahead = new Ahead(() => this.#next());
  #waiter: Waiter | null = null;
  #wire: Wire | null = null;
  #isSent = false;
  #isOver = false;
  #fault: UpstreamFault | null = null;
  #response: UpstreamResponse | null = null;
  #decoder: BodyDecoder | null = null;
  /** The part of the body that came with the head. */
  #first: Buffer | null = null;
  /** An answer without a body has announced one. If that body comes, it comes late, and would be taken for the answer to the
   *  next call. */
  #strayBodyPossible = false;
  /** How long the connection may be kept; null: not at all. */
  #keepMs: number | null = null;

  constructor(request: UpstreamRequest, pool: Pool, upgrade: Upgrade | null = null) {
    this.#request = request;
    this.#lines = Buffer.from(
      writeHead(request, upgrade === null ? "" : "connection: Upgrade\r\n"),
      "latin1",
    );
    this.#upgrade = upgrade;
    this.#pool = pool;
    this.#answer.promise.catch(() => {}); // nobody may be waiting
  }

  get answer(): Promise<Answer> {
    return this.#answer.promise;
  }

  start(): void {
    if (!this.#isOver) this.#run().catch((error: unknown) => this.#answer.reject(error));
  }

  get head(): UpstreamResponse {
    if (this.#response === null) throw new Error("there is no answer yet");
    return this.#response;
  }

  read(): Promise<Buffer | null> {
    return this.#ahead.read();
  }

  peek(ms: number): Promise<Buffer | null | "silent"> {
    return this.#ahead.peek(ms);
  }

  cancel(): void {
    if (!this.#isOver)
      this.#fail(this.#isSent ? "cancelled" : "withdrawn", "the gateway cancelled the request");
  }

  async #run(): Promise<void> {
    const { connectMs } = this.#request.deadlines;
    let wire = this.#pool.takeIdle();
    for (let isResent = false; ; isResent = true) {
      if (wire === undefined) {
        this.#waiter = this.#pool.wait(connectMs);
        wire = await this.#waiter.wire;
      }
      if (this.#fault !== null) {
        this.#pool.keep(wire);
        throw this.#fault;
      }
      const isReused = this.#send(wire);
      const reply = await this.#readHead(wire);
      if (reply !== null) return this.#begin(wire, reply);
      if (isResent || !isReused || !this.#mayResend(wire))
        throw this.#fail("reset", "the upstream closed the connection before its response", wire.error);
      this.#pool.retried += 1;
      wire = undefined;
    }
  }

  /** Returns whether the connection has served another call. */
  #send(wire: Wire): boolean {
    const { body } = this.#request;
    const isReused = wire.isUsed;
    this.#wire = wire;
    this.#isSent = true;
    wire.isUsed = true;
    wire.hasAnswered = false;
    wire.onLate = () => this.#expire();
    const isCopied = body !== null && body.length <= MAX_COPIED_BYTES;
    wire.write(isCopied ? Buffer.concat([this.#lines, body]) : this.#lines);
    if (body !== null && !isCopied) wire.write(body);
    return isReused;
  }

  /** The connection has ended without an answer. */
  #mayResend(wire: Wire): boolean {
    const { method, body, onResend } = this.#request;
    const isUntouched = wire.unsentBytes === this.#lines.length + (body?.length ?? 0);
    if (isUntouched) this.#isSent = false;
    // It changes nothing at the upstream (RFC 9110, section 9.2.1).
    else if (!wire.hasAnswered && (method === "GET" || method === "HEAD")) onResend?.();
    else return false;
    return true;
  }

  /** Null: the connection has ended before. */
  async #readHead(wire: Wire): Promise<ReadHead | null> {
    const { firstByteMs, idleMs } = this.#request.deadlines;
    try {
      let rest = NOTHING;
      for (let interims = 0; interims <= MAX_INTERIM_RESPONSES; interims += 1) {
        const reply = await readHead(wire, firstByteMs, idleMs, rest);
        if (reply === null || reply.head.status >= 200) return reply;
        if (reply.head.status === 101 && this.#upgrade !== null) return reply;
        if (reply.head.status === 101) break;
        if (announcesBody(readBodyLength(reply.head.fields, reply.head.minor)))
          this.#strayBodyPossible = true;
        rest = reply.bytes.subarray(reply.end);
      }
      throw new Malformed("an unexpected interim response");
    } catch (error) {
      throw this.#explain(error);
    }
  }

  #begin(wire: Wire, reply: ReadHead): void {
    const { head, bytes, end } = reply;
    try {
      if (head.status === 101) {
        this.#isOver = true;
        this.#pool.forget(wire);
        return this.#upgrade?.(wire, reply);
      }
      const decoder = this.#readLength(head);
      this.#decoder = decoder;
      this.#first = this.#decode(wire, decoder, bytes, end);
    } catch (error) {
      throw this.#explain(error);
    }
    this.#answer.resolve(this);
  }

  #readLength({ status, fields, minor }: ResponseHead): BodyDecoder {
    const announced = readBodyLength(fields, minor);
    const isBodiless = this.#request.method === "HEAD" || status === 204 || status === 304;
    if (isBodiless && announcesBody(announced)) this.#strayBodyPossible = true;
    const length = isBodiless ? 0 : announced;
    const isKept = !this.#strayBodyPossible && length !== "unknown" && staysOpen(fields, minor);
    if (isKept) this.#keepMs = readIdleMs(fields.get("keep-alive"));
    const announcedBytes = typeof announced === "number" ? announced : null;
    this.#response = new UpstreamResponse(status, fields, announcedBytes, length === "unknown");
    return new BodyDecoder(length);
  }

  async #next(): Promise<Buffer | null> {
    let piece = this.#first;
    this.#first = null;
    while (piece === null) {
      if (this.#fault !== null) throw this.#fault;
      if (this.#isOver || this.#wire === null || this.#decoder === null) return null;
      piece = await this.#readPiece(this.#wire, this.#decoder);
    }
    return piece;
  }

  async #readPiece(wire: Wire, decoder: BodyDecoder): Promise<Buffer | null> {
    const bytes = await wire.read(this.#request.deadlines.idleMs);
    if (bytes === null) {
      this.#isOver = wire.error === null && decoder.finish();
      if (this.#isOver) return null;
      throw this.#fail("cut", "the upstream closed the connection during its response", wire.error);
    }
    try {
      return this.#decode(wire, decoder, bytes, 0);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  #decode(wire: Wire, decoder: BodyDecoder, bytes: Buffer, from: number): Buffer | null {
    const piece = decoder.decode(bytes, from);
    if (!decoder.done) return piece;
    this.#isOver = true;
    this.#wire = null;
    if (decoder.isClean && this.#keepMs !== null && wire.unsentBytes === 0)
      this.#pool.keep(wire, this.#keepMs);
    else wire.terminate();
    return piece;
  }

  #expire(): void {
    if (this.#response === null) this.#fail("first_byte_timeout", "no response in time");
    else this.#fail("idle_timeout", "the response stopped arriving");
  }

  /** What a connection throws is the fault with which it was terminated. */
  #explain(error: unknown): unknown {
    return error instanceof Malformed ? this.#fail("malformed", error.message) : error;
  }

  #fail(kind: FaultKind, message: string, cause?: unknown): UpstreamFault {
    const fault = new UpstreamFault(kind, message, this.#wire?.hasAnswered, cause);
    this.#isOver = true;
    this.#fault = fault;
    this.#first = null;
    this.#waiter?.fail(fault);
    this.#wire?.terminate(fault);
    this.#answer.reject(fault);
    return fault;
  }
}

/** The head announces at least one byte. */
function announcesBody(length: BodyLength): boolean {
  return length !== "unknown" && length !== 0;
}

/** The upstream's `keep-alive: timeout=N`, minus one second for the way there; Infinity if it names none, null if that is
 *  too short. */
function readIdleMs(keepAlive: string | undefined): number | null {
  const seconds = keepAlive === undefined ? null : /\btimeout=(\d{1,9})/i.exec(keepAlive);
  return seconds === null ? Infinity : Number(seconds[1]) > 1 ? (Number(seconds[1]) - 1) * 1000 : null;
}

function writeHead({ origin, method, target, fields, body }: UpstreamRequest, connection: string): string {
  const { tls, host, port, proxy } = origin;
  const authority = port === (tls ? 443 : 80) ? host : `${host}:${port}`;
  // A proxy needs the complete address of a plain origin.
  const isProxied = proxy !== undefined && !tls;
  const line = writeRequestLine(method, isProxied ? `http://${authority}${target}` : target);
  const login = isProxied ? writeProxyLogin(proxy) : "";
  const sendsBody = body !== null || method === "POST" || method === "PUT" || method === "PATCH";
  const length = sendsBody ? `content-length: ${body?.length ?? 0}\r\n` : "";
  return `${line}host: ${authority}\r\n${login}${writeFields(fields)}${connection}${length}\r\n`;
}
