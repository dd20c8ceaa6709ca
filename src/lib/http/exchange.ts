// What the gateway sees of a client's request, and how it replies.

import type { Slices } from "../json/slices.ts";
import type { Field, Fields, SentFields } from "./fields.ts";
import type { OpenPeer } from "./web-socket.ts";

/** Reply with `answer`, or with `begin`, some `write`, then `end` or `reset`. */
export interface Exchange {
  readonly method: string;
  /** Path and query in their normal form:
   *  percent-encoded, without `.` and `..`. */
  readonly target: string;
  readonly fields: Fields;
  field(name: string): string | undefined;
  /** Rejects with BodyTooLarge or ClientGone. */
  readBody(limit: number): Promise<Uint8Array>;

  replyFields: readonly Field[];
  answer(status: number, fields: SentFields, body: Uint8Array | string): void;
  /** The head leaves with the first bytes of the body. */
  begin(status: number, fields: SentFields): void;
  /** For a slow client, a promise that resolves
   *  when the client has everything or has left. */
  write(chunk: Uint8Array): Promise<void> | null;
  /** Slices become bytes as the client reads. */
  end(rest?: Uint8Array | Slices): void;
  /** No client can mistake the reply for a complete one. */
  reset(): void;
  /** False: the client has left, or its handshake is invalid. */
  acceptWebSocket(fields: SentFields, open: OpenPeer): boolean;

  /** True after `answer` or `begin`: no other reply is possible. */
  readonly begun: boolean;
  /** The client left before `end` or `answer`. */
  readonly gone: boolean;
  /** Resolves also when the client has left. */
  readonly sent: Promise<void>;
  /** Called once, if the client leaves before the end. */
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
  /** If it throws, the connection is reset and `onError` gets the error. */
  readonly onExchange: (exchange: Exchange) => void;
  readonly onError: (error: unknown) => void;
  readonly maxMessageBytes: number;
  /** Between requests. */
  readonly idleSeconds?: number;
  /** The longest pause inside a body. */
  readonly bodyMs?: number;
  /** How long a client may leave its reply unread. */
  readonly stallMs?: number;
}

export interface Server {
  readonly port: number;
  /** Closes idle connections, and resolves when all have ended. */
  stop(): Promise<void>;
  /** Ends everything at once, running replies too. */
  stopNow(): void;
}

export type Listen = (options: ListenOptions) => Server;
