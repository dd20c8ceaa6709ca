// The words of HTTP/1.1 as both sides of the gateway use them: the exchange
// with a client (server.ts) and the answer of an upstream (client.ts).

/** A header field. Names are lower case, values as they came, order kept, repeats kept. */
export type Field = readonly [name: string, value: string];

/** One request of a client and the reply to it. The reply is sent in one of two ways:
 *  `answer` once, or `begin`, any number of `write`, then `end` or `reset`. */
export interface Exchange {
  readonly method: string;
  /** The request target as it came: path and query, not decoded. */
  readonly target: string;
  readonly fields: readonly Field[];
  /** First value of a field, by lower-case name. */
  field(name: string): string | undefined;
  /** The whole body, held once. Rejects with BodyTooLarge, BodyBroken or ClientGone. Sends 100-continue when asked to. */
  readBody(limit: number): Promise<Uint8Array>;

  /** A whole reply with content-length, in one write. HEAD, 204 and 304 are framed right by themselves. */
  answer(status: number, fields: readonly Field[], body: Uint8Array | string): void;
  /** The head of a streamed reply: content-length when `length` is given, else chunked (close-delimited for HTTP/1.0).
   *  Held until the first write or `flush()`, so that head and first bytes leave in one packet. */
  begin(status: number, fields: readonly Field[], length?: number): void;
  /** True: go on. False: the client reads slowly, await `drained()` before the next write. */
  write(chunk: Uint8Array): boolean;
  /** Sends a held head now. */
  flush(): void;
  /** Resolves when the client has taken what was written, or has gone. */
  drained(): Promise<void>;
  /** Ends the reply; `last` and the end of the framing leave in one packet. */
  end(last?: Uint8Array): void;
  /** Breaks the connection so that no client can mistake the reply for a finished one (TCP reset). */
  reset(): void;

  /** True once `answer` or `begin` was called: nothing else can be answered then. */
  readonly begun: boolean;
  /** True as soon as the client has left before `end`/`answer`. */
  readonly gone: boolean;
  /** Called at most once, when the client leaves before the reply has ended. At once if it already has. */
  onGone(listener: () => void): void;
}

/** Where a channel's requests go. */
export interface Origin {
  readonly tls: boolean;
  readonly host: string;
  readonly port: number;
  /** An HTTP(S) proxy: CONNECT for TLS origins, absolute-form for plain ones. */
  readonly proxy?: URL;
  /** PEM text of extra certificate authorities. */
  readonly ca?: string;
}

export interface Deadlines {
  readonly connectMs: number;
  /** From the request being sent to the first byte of the answer's head. */
  readonly firstByteMs: number;
  /** The longest silence while the body comes. A reader that does not read is not silence. */
  readonly idleMs: number;
}

export interface UpstreamRequest {
  readonly origin: Origin;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Without host, content-length and connection: the client of HTTP writes those. */
  readonly fields: readonly Field[];
  readonly body: Uint8Array | null;
  readonly deadlines: Deadlines;
  /** Called when the request is sent a second time, because a kept-alive connection ended before its answer. Only GET
   *  and HEAD are: an upstream that works on anything else wants to be paid for it. */
  readonly onResend?: () => void;
}

/** The answer of an upstream, its body read by pulling. */
export interface UpstreamResponse {
  readonly status: number;
  readonly fields: readonly Field[];
  field(name: string): string | undefined;
  /** content-length when the upstream said it. */
  readonly length: number | null;
  /** True when only the end of the connection ends the body: then an early end cannot be told from the true one. */
  readonly closeDelimited: boolean;
  /** True when `read()` would not have to wait: body bytes, or the body's end, came along with the head. */
  readonly buffered: boolean;
  /** True when the request went over a kept-alive connection. */
  readonly reused: boolean;
  /** The next bytes; null at the true end of the body; rejects with UpstreamFault when it is cut, reset or silent.
   *  Not reading stops the upstream (back-pressure). Only one read at a time. */
  read(): Promise<Uint8Array | null>;
  /** All that is left of the body, when its end has come already; null when that may take a while, or fail. */
  takeRest(): Uint8Array | null;
  /** True once `read` has handed out the last byte: the next `read` gives null. */
  readonly finished: boolean;
  /** Leaves: the connection is closed, a pending read rejects with kind `cancelled`. Idempotent; nothing after the end. */
  cancel(): void;
}

export type FaultKind =
  | "connect" // name not resolved, refused, unreachable, or proxy refused
  | "connect_timeout"
  | "shortage" // this process lacks files, ports or memory: not the upstream's doing, nothing was sent
  | "tls"
  | "first_byte_timeout"
  | "idle_timeout"
  | "reset" // closed or reset before a whole head
  | "cut" // closed or reset inside the body
  | "malformed" // not HTTP/1.1 as we accept it
  | "withdrawn" // cancelled by us while a connection was dialled: nothing was sent
  | "cancelled"; // by us

export class UpstreamFault extends Error {
  readonly kind: FaultKind;
  /** True once a byte of the answer had come: the request must not be sent again. */
  readonly answered: boolean;
  constructor(kind: FaultKind, message: string, answered: boolean, cause?: unknown) {
    super(message, { cause });
    this.name = "UpstreamFault";
    this.kind = kind;
    this.answered = answered;
  }
}

/** A pending request to an upstream: cancellable before its head has come. */
export interface SentRequest {
  readonly head: Promise<UpstreamResponse>;
  cancel(): void;
}

export class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
}

/** Its framing is. */
export class BodyBroken extends Error {
  override readonly name = "BodyBroken";
}

export class ClientGone extends Error {
  override readonly name = "ClientGone";
}
