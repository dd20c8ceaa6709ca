// The types that both sides of HTTP/1.1 share: the exchange with a client, and the request to an upstream.

import type { Field, Fields, SentFields } from "./fields.ts";

export { type Field, Malformed } from "./fields.ts";

/** One request of a client and the reply to it. Reply either with `answer`, or with `begin`, any number of `write`, then
 *  `end` or `reset`. */
export interface Exchange {
  readonly method: string;
  /** The request target as it arrived: path and query, not decoded. */
  readonly target: string;
  readonly fields: Fields;
  /** The first value of a field, by its lower-case name. */
  field(name: string): string | undefined;
  /** Reads the whole body. Rejects with BodyTooLarge, BodyBroken or ClientGone. Sends 100-continue if the client waits for it. */
  readBody(limit: number): Uint8Array | Promise<Uint8Array>;

  /** Every reply carries these fields too. */
  addReplyFields(fields: readonly Field[]): void;
  /** Sends a whole reply with content-length, in one write. HEAD, 204 and 304 are framed correctly. */
  answer(status: number, fields: SentFields, body: Uint8Array | string): void;
  /** Starts a streamed reply, with content-length if `length` is given, otherwise chunked (HTTP/1.0: until close).
   *  The head is held until the first write or `flush()`, so that both leave in one packet. */
  begin(status: number, fields: SentFields, length?: number): void;
  /** False: the client reads slowly. Use `onceSent` before the next write. */
  write(chunk: Uint8Array): boolean;
  /** Sends the held head now. */
  flush(): void;
  /** Calls `listener` once: when the client has taken everything written, or has left. */
  onceSent(listener: () => void): void;
  /** Ends the reply. `last` and the end of the framing leave in one packet. */
  end(last?: Uint8Array): void;
  /** Resets the TCP connection, so that no client can mistake the reply for a complete one. */
  reset(): void;
  /** Replies 101 and gives the connection to another protocol. `listen` gets the connection and returns its listener. */
  upgrade(fields: SentFields, listen: (wire: Wire) => WireListener): void;

  /** True after `answer` or `begin`. No other reply is possible then. */
  readonly begun: boolean;
  /** True as soon as the client has left before `end` or `answer`. */
  readonly gone: boolean;
  /** Calls `listener` once if the client leaves before the reply has ended, at once if it already has. */
  onGone(listener: () => void): void;
}

/** A connection after an upgrade: bytes of another protocol, in both directions. */
export interface Wire {
  /** False: the other side reads slowly. The listener's `drain` is called when everything has left. */
  write(bytes: Uint8Array): boolean;
  readonly unsentBytes: number;
  pause(): void;
  resume(): void;
  /** Sends what is unsent, then closes our side, and the connection soon after. */
  end(): void;
  /** Closes the connection at once. */
  reset(): void;
}

export interface WireListener {
  /** The bytes belong to the listener, which may change them. */
  receive(chunk: Buffer): void;
  drain(): void;
  /** Called once, also after `end` and `reset`. */
  closed(): void;
  /** The server stops accepting, and the connection should end soon. */
  stopping(): void;
}

/** Where a channel's requests are sent. */
export interface Origin {
  readonly tls: boolean;
  readonly host: string;
  readonly port: number;
  /** An HTTP(S) proxy: CONNECT for TLS origins, absolute-form for plain ones. */
  readonly proxy?: URL;
  /** Additional certificate authorities, as PEM text. */
  readonly ca?: string;
}

export interface Deadlines {
  readonly connectMs: number;
  /** From the end of sending to the first byte of the response's head. */
  readonly firstByteMs: number;
  /** The longest silence while the body arrives. While the listener has paused it, the limit does not run. */
  readonly idleMs: number;
}

export interface UpstreamRequest {
  readonly origin: Origin;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Without host, content-length and connection, which the HTTP client writes. */
  readonly fields: SentFields;
  readonly body: Uint8Array | null;
  readonly deadlines: Deadlines;
}

/** The head of an upstream's response. */
export class UpstreamResponse {
  readonly status: number;
  readonly fields: Fields;
  /** The content-length, if the upstream sent one. */
  readonly length: number | null;
  /** True if only the end of the connection ends the body. An early end then looks like the real one. */
  readonly closeDelimited: boolean;

  constructor(status: number, fields: Fields, length: number | null, closeDelimited = false) {
    this.status = status;
    this.fields = fields;
    this.length = length;
    this.closeDelimited = closeDelimited;
  }

  field(name: string): string | undefined {
    return this.fields.get(name);
  }
}

/** Gets a body as it arrives: any number of `receive`, then `end`. Or `fail`, at any time, and nothing after it. */
export interface BodyListener {
  /** The bytes belong to the listener, which may change them. */
  receive(bytes: Buffer): void;
  /** The body is whole. */
  end(): void;
  /** The response has not come, or is cut, reset or silent. */
  fail(fault: UpstreamFault): void;
}

/** Gets a response. `begin` comes first, unless it fails before. */
export interface ResponseListener extends BodyListener {
  /** The head. What arrived with it follows before the event loop turns. */
  begin(response: UpstreamResponse): void;
  /** The request is sent a second time, because a kept-alive connection ended before the response. This happens to GET
   *  and HEAD only: an upstream may charge for anything else that it has started. */
  resent(): void;
}

export type FaultKind =
  | "connect" // name not resolved, refused, unreachable, or the proxy refused
  | "connect_timeout"
  | "shortage" // this process lacks files, ports or memory: not the upstream's fault, nothing was sent
  | "tls"
  | "first_byte_timeout"
  | "idle_timeout"
  | "reset" // closed or reset before the head was complete
  | "cut" // closed or reset inside the body
  | "malformed" // not the HTTP/1.1 that we accept
  | "withdrawn" // we cancelled while a connection was dialled: nothing was sent
  | "cancelled"; // we cancelled it

export class UpstreamFault extends Error {
  readonly kind: FaultKind;
  /** True once a byte of the response had arrived: the request must not be sent again. */
  readonly answered: boolean;
  constructor(kind: FaultKind, message: string, answered: boolean, cause?: unknown) {
    super(message, { cause });
    this.name = "UpstreamFault";
    this.kind = kind;
    this.answered = answered;
  }
}

/** A request on its way, until its response has ended. */
export interface SentRequest {
  /** True if it uses a kept-alive connection. */
  readonly reused: boolean;
  /** The listener cannot take more now. Bytes that have been read already may still come. */
  pause(): void;
  resume(): void;
  /** Closes the connection. The listener's `fail` is called with kind `cancelled`, or `withdrawn` if nothing was sent.
   *  Does nothing after the end. */
  cancel(): void;
}

export class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
}

/** The framing of the request's body is invalid. */
export class InvalidBody extends Error {
  override readonly name = "BodyBroken";
}

export class ClientGone extends Error {
  override readonly name = "ClientGone";
}
