// A WebSocket on either side, without its frames, pings and handshake.

export interface Payload {
  readonly kind: "text" | "binary";
  readonly bytes: Uint8Array;
}

export interface Closing {
  /** `none`: no code came. `lost`: no close frame came. Neither is ever sent. */
  readonly code: number;
  readonly reason: string;
}

export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  none: 1005,
  lost: 1006,
  invalidText: 1007,
  tooSlow: 1008,
  tooBig: 1009,
  internal: 1011,
} as const;

const NEVER_SENT: ReadonlySet<number> = new Set([1004, CLOSE_CODES.none, CLOSE_CODES.lost]);

/** RFC 6455, section 7.4 */
export function isSendable(code: number): boolean {
  return (code >= 1000 && code <= 1014 && !NEVER_SENT.has(code)) || (code >= 3000 && code <= 4999);
}

/** If more bytes wait in one direction, a client's connection is ended. */
export const MAX_WAITING_BYTES = 16 * 1024 * 1024;

export interface WebSocketPeer {
  /** False once a close frame has been sent or the connection has ended. */
  readonly open: boolean;
  /** A promise if the other side reads slowly. */
  readonly unsent: Promise<void> | null;
  send(message: Payload): Promise<void> | null;
  /** The connection ends when the other side answers, or at a time limit. */
  close(closing: Closing): void;
  /** The other side sees code 1006: there is no closing handshake. */
  reset(): void;
}

export type Received = { readonly message: Payload } | { readonly closing: Closing };

/** While nobody reads it, nothing is read from the upstream. */
export interface UpstreamSocket extends WebSocketPeer {
  read(): Promise<Received>;
}

/** A client's side cannot be paused. */
export interface ClientListener {
  message(message: Payload): void;
  /** Called once. `code` is 1006 if the connection ended without a close frame. */
  closed(closing: Closing): void;
  stopping(): void;
}

/** The listener of a client's side gets nothing before this returns. */
export type OpenPeer = (peer: WebSocketPeer) => ClientListener;
