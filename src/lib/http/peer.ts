// A WebSocket to an upstream: the handshake of RFC 6455, and our side.

import type { MemoryBudget } from "../memory/memory-budget.ts";
import { Deadline } from "../time/deadline.ts";
import { type Fields, Malformed } from "./fields.ts";
import { FrameReader, writeClose, writeMessage, writePong } from "./frames.ts";
import { hasToken } from "./message.ts";
import { UpstreamFault } from "./upstream.ts";
import { CLOSE_CODES, type Closing, type Payload, type Received, type UpstreamSocket } from "./web-socket.ts";
import type { Wire } from "./wire.ts";

const ACCEPT_SALT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** The longest silence inside a message. */
const PIECE_MS = 60_000;
/** The upstream has this long to answer a close frame,
 *  and then to read unsent bytes. */
const CLOSE_MS = 5_000;
const MAX_UNSENT_FOR_PONG = 64 * 1024;

export function writeHandshake(key: string): string {
  return `connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n`;
}

/** Throws Malformed if the 101 does not fit our handshake,
 *  which offers no extension or subprotocol. */
export function requireFit(fields: Fields, key: string): void {
  const isFit =
    hasToken(fields, "upgrade", "websocket") &&
    hasToken(fields, "connection", "upgrade") &&
    fields.get("sec-websocket-accept") === Bun.CryptoHasher.hash("sha1", key + ACCEPT_SALT, "base64") &&
    fields.get("sec-websocket-extensions") === undefined &&
    fields.get("sec-websocket-protocol") === undefined;
  if (!isFit) throw new Malformed("an invalid WebSocket handshake");
}

export class UpstreamPeer implements UpstreamSocket {
  readonly #wire: Wire;
  readonly #reader: FrameReader;
  readonly #deadline = new Deadline(() => this.#wire.terminate());
  #closeSent = false;
  #closing: Closing | null = null;

  constructor(wire: Wire, memory: MemoryBudget, start: Buffer) {
    this.#wire = wire;
    const read = (isInside: boolean) => wire.read(isInside ? PIECE_MS : Infinity, "idle_timeout");
    this.#reader = new FrameReader(memory, read, start);
  }

  get open(): boolean {
    return !this.#closeSent && !this.#wire.isClosed;
  }

  get unsent(): Promise<void> | null {
    return this.#wire.unsent;
  }

  send(message: Payload): Promise<void> | null {
    if (this.open) this.#wire.write(writeMessage(message));
    return this.unsent;
  }

  async read(): Promise<Received> {
    while (this.#closing === null) {
      const frame = await this.#reader.next().catch((error: unknown) => {
        // The connection was terminated, or was silent inside a message.
        if (error instanceof UpstreamFault) return null;
        throw error;
      });
      if (frame === null) this.#closing = { code: CLOSE_CODES.lost, reason: "" };
      else if ("message" in frame) return frame;
      else if ("closing" in frame) this.#finish(frame.closing);
      else if (this.open && this.#wire.unsentBytes <= MAX_UNSENT_FOR_PONG)
        this.#wire.write(writePong(frame.ping));
    }
    this.#reader.release();
    return { closing: this.#closing };
  }

  close(closing: Closing): void {
    if (!this.open) return;
    this.#closeSent = true;
    this.#wire.write(writeClose(closing));
    this.#deadline.arm(CLOSE_MS);
  }

  reset(): void {
    this.#wire.terminate();
  }

  /** Unsent bytes leave first:
   *  a reset discards what a slow reader has not read. */
  #finish(closing: Closing): void {
    this.close(closing);
    this.#closing = closing;
    this.#deadline.arm(CLOSE_MS);
    void (this.unsent ?? Promise.resolve()).then(() => this.#wire.socket?.shutdown());
  }
}
