// One side of a WebSocket, on a connection that has been upgraded. It answers pings, and performs the closing handshake.

import { Deadline } from "../time/deadline.ts";
import type { Wire, WireListener } from "../http1/types.ts";
import {
  CLOSE_CODES,
  type Closing,
  FrameError,
  FrameReader,
  type Message,
  writeClose,
  writeMessage,
  writePong,
} from "./frames.ts";

export interface PeerListener {
  message(message: Message): void;
  /** Everything that was sent has left. */
  drained(): void;
  /** Called once. `code` is 1006 if the connection ended without a close frame. */
  closed(closing: Closing): void;
  /** The server stops accepting. Only on a server's side. */
  stopping(): void;
}

export interface PeerOptions {
  /** The side that this peer has. A client masks its frames. */
  readonly side: "server" | "client";
  readonly maxMessageBytes: number;
}

/** How long the other side may take to answer a close frame. */
const CLOSE_WAIT_MS = 5_000;
/** Pongs wait behind unsent bytes. With more than this, pings are not answered, so that a flood of them costs nothing. */
const MAX_UNSENT_FOR_PONG = 64 * 1024;

export class WebSocketPeer implements WireListener {
  readonly #wire: Wire;
  readonly #listener: PeerListener;
  readonly #masks: boolean;
  readonly #reader: FrameReader;
  readonly #deadline = new Deadline(() => this.#giveUp());
  #closeSent = false;
  #ended = false;

  constructor(wire: Wire, { side, maxMessageBytes }: PeerOptions, listener: PeerListener) {
    this.#wire = wire;
    this.#listener = listener;
    this.#masks = side === "client";
    this.#reader = new FrameReader(
      { masked: side === "server", maxMessageBytes },
      {
        message: (message) => {
          if (!this.#ended) this.#listener.message(message);
        },
        ping: (payload) => this.#answerPing(payload),
        closing: (closing) => this.#answerClose(closing),
      },
    );
  }

  /** False once a close frame has been sent or the connection has ended. */
  get open(): boolean {
    return !this.#closeSent && !this.#ended;
  }

  get unsentBytes(): number {
    return this.#wire.unsentBytes;
  }

  /** False: the other side reads slowly. `drained` is called when everything has left. */
  send(message: Message): boolean {
    return !this.open || this.#wire.write(writeMessage(message, this.#masks));
  }

  pause(): void {
    this.#wire.pause();
  }

  resume(): void {
    this.#wire.resume();
  }

  /** Starts the closing handshake. `closed` is called when the other side has answered, or after a limit. */
  close(closing: Closing): void {
    if (!this.open) return;
    this.#closeSent = true;
    this.#wire.write(writeClose(closing, this.#masks));
    this.#wire.resume();
    this.#deadline.arm(CLOSE_WAIT_MS);
  }

  /** Ends the connection without a closing handshake: the other side sees code 1006. */
  reset(): void {
    this.#wire.reset();
    this.#end({ code: CLOSE_CODES.lost, reason: "" });
  }

  // Called by the connection.

  receive(chunk: Buffer): void {
    if (this.#ended) return;
    try {
      this.#reader.feed(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#fail(error);
    }
  }

  drain(): void {
    if (!this.#ended) this.#listener.drained();
  }

  closed(): void {
    this.#end({ code: CLOSE_CODES.lost, reason: "" });
  }

  stopping(): void {
    if (!this.#ended) this.#listener.stopping();
  }

  // Steps.

  #answerPing(payload: Uint8Array): void {
    if (this.open && this.#wire.unsentBytes <= MAX_UNSENT_FOR_PONG)
      this.#wire.write(writePong(payload, this.#masks));
  }

  #answerClose(closing: Closing): void {
    if (!this.#closeSent) this.#wire.write(writeClose(closing, this.#masks));
    this.#closeSent = true;
    this.#wire.end();
    this.#end(closing);
  }

  /** The other side broke the protocol: it gets the reason, and nothing more is read. */
  #fail({ code, message }: FrameError): void {
    if (!this.#closeSent) this.#wire.write(writeClose({ code, reason: message }, this.#masks));
    this.#closeSent = true;
    this.#wire.end();
    this.#end({ code, reason: message });
  }

  /** No answer to our close frame. A reset would discard what a slow reader has not read yet. */
  #giveUp(): void {
    this.#wire.end();
    this.#end({ code: CLOSE_CODES.lost, reason: "" });
  }

  #end(closing: Closing): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#deadline.disarm();
    this.#listener.closed(closing);
  }
}
