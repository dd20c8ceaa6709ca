// One request to an upstream, from `send` to the end of its response. The caller holds this object, and a pool or a
// connection works on it.

import type { Socket } from "bun";
import { type ResponseHead, writeRequestLine } from "./head.ts";
import { Deadline } from "../time/deadline.ts";
import { BodyQueue } from "./body-queue.ts";
import { describePlace, type SocketListener, writeProxyLogin } from "./dial.ts";
import { type FaultKind, UpstreamFault } from "./faults.ts";
import { type Fields, writeFields } from "./fields.ts";
import type { Answer, Deadlines, SentRequest, UpstreamRequest, UpstreamResponse } from "./upstream.ts";

/** What works on a call. */
export interface CallOwner {
  pause(): void;
  resume(): void;
  /** The call has ended. */
  abandon(): void;
}

/** What a call asks for that wants to speak another protocol. */
export interface Upgrade {
  /** What is wrong with the 101; null if nothing is. */
  check(fields: Fields): string | null;
  /** `rest`: what has come after the head. */
  open(socket: Socket<SocketListener>, head: ResponseHead, rest: Buffer): void;
}

export class Call implements SentRequest {
  readonly method: string;
  /** For the wire. The body follows it. */
  readonly head: string;
  readonly body: Uint8Array | null;
  readonly deadlines: Deadlines;
  readonly upgrade: Upgrade | null;
  readonly queuedAt = performance.now();
  readonly deadline = new Deadline(() => this.#expire());
  readonly #request: UpstreamRequest;
  readonly #answer = Promise.withResolvers<Answer>();
  readonly #queue: BodyQueue;
  owner: CallOwner | null = null;
  /** Its connection has served another call. */
  reused = false;
  /** A connection has begun to send it. */
  sent = false;
  /** A byte of its response has come. */
  answered = false;
  /** The head of its response has come. */
  begun = false;
  ended = false;

  constructor(request: UpstreamRequest, upgrade: Upgrade | null = null) {
    this.method = request.method;
    this.head = writeHead(request, upgrade === null ? "" : "connection: Upgrade\r\n");
    this.body = request.body;
    this.deadlines = request.deadlines;
    this.#request = request;
    this.upgrade = upgrade;
    this.#answer.promise.catch(() => {}); // nobody may be waiting
    this.#queue = new BodyQueue({
      pause: () => this.owner?.pause(),
      resume: () => this.owner?.resume(),
      awaitBytes: () => this.deadline.arm(this.deadlines.idleMs),
    });
  }

  get answer(): Promise<Answer> {
    return this.#answer.promise;
  }

  cancel(): void {
    if (!this.ended) this.#queue.clear();
    this.fail(this.sent ? "cancelled" : "withdrawn", "the gateway cancelled the request");
  }

  // Called by its owner.

  begin(head: UpstreamResponse): void {
    this.begun = true;
    this.deadline.disarm();
    this.#answer.resolve({
      head,
      read: () => this.#queue.read(),
      peek: (ms) => this.#queue.peek(ms),
      cancel: () => this.cancel(),
    });
  }

  switchTo(socket: Socket<SocketListener>, head: ResponseHead, rest: Buffer): void {
    this.#finish();
    this.upgrade?.open(socket, head, rest);
  }

  /** The upstream may have received the request, and it is sent a second time. */
  reportResend(): void {
    this.#request.onResend?.();
  }

  /** `bytes`: null if only framing has come. */
  receive(bytes: Buffer | null): void {
    if (bytes !== null) this.#queue.push(bytes);
    else if (this.#queue.isAwaited) this.deadline.arm(this.deadlines.idleMs);
  }

  end(): void {
    if (this.ended) return;
    this.#finish();
    this.#queue.end(null);
  }

  fail(kind: FaultKind, message: string, cause?: unknown): void {
    if (this.ended) return;
    const { owner } = this;
    this.#finish();
    owner?.abandon();
    const fault = new UpstreamFault(kind, message, this.answered, cause);
    if (this.begun) this.#queue.end(fault);
    else this.#answer.reject(fault);
  }

  #finish(): void {
    this.ended = true;
    this.owner = null;
    this.deadline.disarm();
  }

  #expire(): void {
    const place = describePlace(this.#request.origin);
    if (!this.sent) this.fail("connect_timeout", `${place}: the connection was not established in time`);
    else if (!this.begun) this.fail("first_byte_timeout", "no response in time");
    // Bytes that nobody reads do not have to come.
    else if (this.#queue.isAwaited) this.fail("idle_timeout", "the response stopped arriving");
  }
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
