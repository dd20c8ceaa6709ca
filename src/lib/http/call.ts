// One request to an upstream, from `send` to the end of its response. The caller holds this object, and a pool or a
// connection works on it. It passes on what arrives, and nothing after the end or a fault.

import type { Socket } from "bun";
import { type ResponseHead, writeRequestLine } from "../http1/head.ts";
import { Deadline } from "../time/deadline.ts";
import { describePlace, type SocketListener, writeProxyLogin } from "./dial.ts";
import { type FaultKind, UpstreamFault } from "./faults.ts";
import { type Fields, writeFields } from "./fields.ts";
import type {
  Deadlines,
  Origin,
  ResponseListener,
  SentRequest,
  UpstreamRequest,
  UpstreamResponse,
} from "./upstream.ts";

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
  readonly #origin: Origin;
  readonly #listener: ResponseListener;
  owner: CallOwner | null = null;
  /** Its connection has served another call. */
  reused = false;
  /** A connection has begun to send it. */
  sent = false;
  /** A byte of its response has come. */
  answered = false;
  /** The head of its response has come. */
  begun = false;
  /** The listener cannot take more now. */
  paused = false;
  ended = false;

  constructor(request: UpstreamRequest, listener: ResponseListener, upgrade: Upgrade | null = null) {
    this.method = request.method;
    this.head = writeHead(request, upgrade === null ? "" : "connection: Upgrade\r\n");
    this.body = request.body;
    this.deadlines = request.deadlines;
    this.#origin = request.origin;
    this.#listener = listener;
    this.upgrade = upgrade;
  }

  pause(): void {
    if (this.paused || this.ended) return;
    this.paused = true;
    this.deadline.disarm();
    this.owner?.pause();
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    if (this.ended) return;
    this.owner?.resume();
    if (this.begun) this.deadline.arm(this.deadlines.idleMs);
  }

  cancel(): void {
    this.fail(this.sent ? "cancelled" : "withdrawn", "the gateway cancelled the request");
  }

  // Called by its owner.

  begin(response: UpstreamResponse): void {
    this.begun = true;
    this.#listener.begin(response);
  }

  switchTo(socket: Socket<SocketListener>, head: ResponseHead, rest: Buffer): void {
    this.#finish();
    this.upgrade?.open(socket, head, rest);
  }

  /** The upstream may have received the request, and it is sent a second time. */
  reportResend(): void {
    this.#listener.resent();
  }

  receive(bytes: Buffer): void {
    if (!this.ended) this.#listener.receive(bytes);
  }

  end(): void {
    if (this.ended) return;
    this.#finish();
    this.#listener.end();
  }

  fail(kind: FaultKind, message: string, cause?: unknown): void {
    if (this.ended) return;
    const { owner } = this;
    this.#finish();
    owner?.abandon();
    this.#listener.fail(new UpstreamFault(kind, message, this.answered, cause));
  }

  #finish(): void {
    this.ended = true;
    this.owner = null;
    this.deadline.disarm();
  }

  #expire(): void {
    if (!this.sent)
      this.fail(
        "connect_timeout",
        `${describePlace(this.#origin)}: the connection was not established in time`,
      );
    else if (!this.begun) this.fail("first_byte_timeout", "no response in time");
    else this.fail("idle_timeout", "the response stopped arriving");
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
