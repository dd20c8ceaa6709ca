// A WebSocket on either side, above frames, pings and the handshake.

export interface Payload {
  readonly kind: "text" | "binary";
  readonly bytes: Uint8Array;
}

export interface Closing {
  /** `none` without a code, `lost` without a close frame. Both are never sent. */
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

/** Codes that may be in a close frame (RFC 6455, section 7.4, and the registry that it opened). */
export function isSendable(code: number): boolean {
  return (code >= 1000 && code <= 1014 && !NEVER_SENT.has(code)) || (code >= 3000 && code <= 4999);
}

/** A client that leaves more than this unread is closed, as is one that sends more than this ahead. */
export const MAX_WAITING_BYTES = 16 * 1024 * 1024;

export interface WebSocketPeer {
  /** False once a close frame has been sent or the connection has ended. */
  readonly open: boolean;
  /** A promise, if the other side reads slowly: it resolves when everything has left, or when the connection has ended. */
  readonly unsent: Promise<void> | null;
  send(message: Payload): Promise<void> | null;
  /** Starts the closing handshake. The end follows when the other side has answered, or after a limit. */
  close(closing: Closing): void;
  /** Ends the connection without a closing handshake: the other side sees code 1006. */
  reset(): void;
}

export type Received = { readonly message: Payload } | { readonly closing: Closing };

/** An upstream's side. While nobody reads, the upstream is not read. */
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

/** Gets the client's side, and returns its listener. The listener gets nothing before this has returned. */
export type OpenPeer = (peer: WebSocketPeer) => ClientListener;
