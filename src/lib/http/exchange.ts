// The seam towards clients: a request and the reply to it. The gateway knows nothing of what is below.

import type { Field, Fields, Malformed, SentFields } from "./fields.ts";
import type { MessageLimits, OpenPeer } from "./web-socket.ts";

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
  /** Replies 101 to a valid handshake: the connection is a WebSocket from now on. Does nothing if the client has left. */
  acceptWebSocket(fields: SentFields, limits: MessageLimits, open: OpenPeer): void;

  /** True after `answer` or `begin`. No other reply is possible then. */
  readonly begun: boolean;
  /** True as soon as the client has left before `end` or `answer`. */
  readonly gone: boolean;
  /** Calls `listener` once if the client leaves before the reply has ended, at once if it already has. */
  onGone(listener: () => void): void;
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

/** A temporary condition of this process. The same request may work later. */
export class Shortage extends Error {
  override readonly name = "Shortage";
  readonly status = 503;
}

/** The client broke the protocol, or the process lacks files to serve it. */
export type RequestRefusal = Malformed | Shortage;

/** A TCP address (port 0 picks a free one), or the path of a unix socket. */
export type ListenAddress = { readonly hostname: string; readonly port: number } | { readonly unix: string };

export interface ServerOptions {
  /** Called for each request. If it throws, the connection is reset and `onError` gets the error. */
  readonly onExchange: (exchange: Exchange) => void;
  /** Called for bytes that cannot be accepted as a request. It must answer at once. The exchange has the readable part
   *  of the head and no body, and the connection ends with it. The default answers in plain text. */
  readonly onRefusal?: (exchange: Exchange, refusal: RequestRefusal) => void;
  readonly onError?: (error: unknown) => void;
  readonly maxHeadBytes?: number;
  /** How long a connection may wait between requests. */
  readonly idleMs?: number;
  /** How long a head may take, and the longest pause inside a body that is awaited. */
  readonly headMs?: number;
  /** How long a client may leave its reply unread. */
  readonly stallMs?: number;
}

export type ListenOptions = ListenAddress & ServerOptions;

export interface Server {
  /** 0 for a unix socket. */
  readonly port: number;
  /** All connections, idle ones included. */
  readonly open: number;
  /** Accepts no new connections, closes idle ones and lets exchanges finish. Resolves when the last connection has ended. */
  stop(): Promise<void>;
  /** Ends everything at once. Running replies are reset. */
  stopNow(): void;
}

export type Listen = (options: ListenOptions) => Server;
