// A WebSocket on either side, above frames, pings and the handshake.

export interface Payload {
  readonly kind: "text" | "binary";
  readonly bytes: Uint8Array;
}

export interface Closing {
  /** `none`: without a code. `lost`: without a close frame. */
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

/** RFC 6455, section 7.4, and its registry. */
export function isSendable(code: number): boolean {
  return (code >= 1000 && code <= 1014 && !NEVER_SENT.has(code)) || (code >= 3000 && code <= 4999);
}

/** Who leaves more unread is closed. */
export const MAX_WAITING_BYTES = 16 * 1024 * 1024;

export interface WebSocketPeer {
  /** False after a close frame or the end. */
  readonly open: boolean;
  /** It resolves when all has left, or at the end. */
  readonly unsent: Promise<void> | null;
  send(message: Payload): Promise<void> | null;
  /** The end follows the answer, or a limit. */
  close(closing: Closing): void;
  /** The other side sees code 1006. */
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
  /** Once. 1006: no close frame came. */
  closed(closing: Closing): void;
  stopping(): void;
}

/** The listener gets nothing before the return. */
export type OpenPeer = (peer: WebSocketPeer) => ClientListener;
