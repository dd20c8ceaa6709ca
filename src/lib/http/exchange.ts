// The seam towards clients: a request and the reply to it.

import type { Field, Fields, SentFields } from "./fields.ts";
import type { OpenPeer } from "./web-socket.ts";

/** A client's request. Reply with `answer`, or with `begin`, any number of `write`, then `end` or `reset`. */
export interface Exchange {
  readonly method: string;
  /** Path and query in their normal form: percent-encoded, without `.` and `..`. */
  readonly target: string;
  readonly fields: Fields;
  /** The value of a field, by its lower-case name. */
  field(name: string): string | undefined;
  /** Reads the whole body. Rejects with BodyTooLarge or ClientGone. */
  readBody(limit: number): Promise<Uint8Array>;

  /** Every reply carries these fields too. */
  addReplyFields(fields: readonly Field[]): void;
  /** Sends a whole reply. HEAD, 204 and 304 are framed correctly. */
  answer(status: number, fields: SentFields, body: Uint8Array | string): void;
  /** Starts a streamed reply. Its head leaves with the first bytes of its body. */
  begin(status: number, fields: SentFields): void;
  /** A promise, if the client reads slowly: it resolves when the client has taken everything, or has left. */
  write(chunk: Uint8Array): Promise<void> | null;
  end(last?: Uint8Array): void;
  /** Resets the TCP connection, so that no client can mistake the reply for a complete one. */
  reset(): void;
  /** Replies 101: the connection is a WebSocket from now on. False: the client has left, or its handshake is invalid. */
  acceptWebSocket(fields: SentFields, open: OpenPeer): boolean;

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

export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

export interface ListenOptions {
  readonly hostname: string;
  readonly port: number;
  /** Called for each request. If it throws, the connection is reset and `onError` gets the error. */
  readonly onExchange: (exchange: Exchange) => void;
  readonly onError: (error: unknown) => void;
  /** The longest message on a WebSocket. */
  readonly maxMessageBytes: number;
  /** How long a connection may wait between requests. */
  readonly idleSeconds?: number;
  /** The longest pause inside a body that is awaited. */
  readonly bodyMs?: number;
  /** How long a client may leave its reply unread. */
  readonly stallMs?: number;
}

export interface Server {
  readonly port: number;
  /** Accepts no new connections, closes idle ones and lets exchanges finish. Resolves when the last connection has ended. */
  stop(): Promise<void>;
  /** Ends everything at once. Running replies are broken off. */
  stopNow(): void;
}

export type Listen = (options: ListenOptions) => Server;
