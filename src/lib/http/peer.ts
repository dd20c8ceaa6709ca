// The gateway's side of a WebSocket to an upstream, on a connection that has been upgraded. It answers pings, and performs
// the closing handshake.

import { LARGE_BYTES, type Reservation } from "../memory/memory-budget.ts";
import { Deadline } from "../time/deadline.ts";
import { FrameError, FrameReader, writeClose, writeMessage, writePong } from "./frames.ts";
import {
  CLOSE_CODES,
  type Closing,
  type Message,
  type MessageLimits,
  type Received,
  type UpstreamSocket,
} from "./web-socket.ts";
import type { Wire } from "./wire.ts";

/** A message can exist in pieces, joined, as a text, and in what the client has not read. */
const COPIES = 4;
/** A message that has begun must bring this much, or its end, in this time. */
const PIECE_BYTES = 256 * 1024;
const PIECE_MS = 60_000;
/** How long the other side may take to answer a close frame. */
const CLOSE_WAIT_MS = 5_000;
/** After the closing, unsent bytes and the other side have this long. */
const LEAVE_MS = 2_000;
/** Pongs wait behind unsent bytes. With more than this, pings are not answered, so that a flood of them costs nothing. */
const MAX_UNSENT_FOR_PONG = 64 * 1024;
const LOST: Closing = { code: CLOSE_CODES.lost, reason: "" };

export class UpstreamPeer implements UpstreamSocket {
  readonly #wire: Wire;
  readonly #limits: MessageLimits;
  readonly #reader: FrameReader;
  /** Of the closing. */
  readonly #deadline = new Deadline(() => this.#expire());
  readonly #pieceDeadline = new Deadline(() =>
    this.#fail(new FrameError(CLOSE_CODES.tooSlow, "a message stopped arriving")),
  );
  /** What has come of a message since its deadline was set. */
  #pieceBytes = 0;
  /** For the message that has begun. */
  #memory: Reservation | null = null;
  #unsent: PromiseWithResolvers<void> | null = null;
  #closeSent = false;
  /** It has ended so. What is unsent may still leave. */
  #closing: Closing | null = null;

  /** `start`: what has come behind the handshake. */
  constructor(wire: Wire, limits: MessageLimits, start: Buffer) {
    this.#wire = wire;
    this.#limits = limits;
    const source = {
      read: () => this.#readBytes(),
      begin: (bytes: number, isLast: boolean) => this.#reserve(bytes, isLast),
    };
    this.#reader = new FrameReader(limits.maxMessageBytes, source, start);
    wire.onDrained = () => this.#drained();
    wire.onClosed = () => {
      this.#deadline.disarm();
      this.#unsent?.resolve();
    };
  }

  get open(): boolean {
    return !this.#closeSent && this.#closing === null && !this.#wire.isClosed;
  }

  get unsent(): Promise<void> | null {
    return this.#unsent?.promise ?? null;
  }

  send(message: Message): Promise<void> | null {
    if (!this.open) return null;
    if (!this.#wire.write(writeMessage(message))) this.#unsent ??= Promise.withResolvers();
    return this.unsent;
  }

  async read(): Promise<Received> {
    try {
      while (this.#closing === null) {
        const received = await this.#reader.next();
        if (received === null) return { closing: this.#end(LOST, null) };
        if (received.kind === "closing") return { closing: this.#end(received.closing, received.closing) };
        if (received.kind === "message") return { message: received.message, memory: this.#finishMessage() };
        if (this.open && this.#wire.unsentBytes <= MAX_UNSENT_FOR_PONG)
          this.#wire.write(writePong(received.payload));
      }
      return { closing: this.#closing };
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return { closing: this.#fail(error) };
    }
  }

  close(closing: Closing): void {
    if (!this.open) return;
    this.#closeSent = true;
    this.#wire.write(writeClose(closing));
    this.#deadline.arm(CLOSE_WAIT_MS);
  }

  reset(): void {
    this.#end(LOST, null);
    this.#wire.terminate();
  }

  #finishMessage(): Reservation | null {
    const memory = this.#memory;
    this.#memory = null;
    this.#pieceDeadline.disarm();
    return memory;
  }

  async #readBytes(): Promise<Buffer | null> {
    if (this.#reader.isInside && this.#pieceBytes === 0) this.#pieceDeadline.arm(PIECE_MS);
    const bytes = await this.#wire.read(Infinity);
    this.#pieceBytes += bytes?.length ?? 0;
    if (this.#pieceBytes >= PIECE_BYTES || !this.#reader.isInside) this.#pieceBytes = 0;
    return bytes;
  }

  /** A large message needs memory before it comes. */
  async #reserve(bytes: number, isLast: boolean): Promise<void> {
    if (bytes <= LARGE_BYTES || this.#memory !== null) return;
    const { memory, maxMessageBytes } = this.#limits;
    this.#pieceDeadline.disarm();
    this.#pieceBytes = 0;
    const reserved = await memory.reserve(COPIES * (isLast ? bytes : maxMessageBytes));
    if (this.#closing === null) this.#memory = reserved;
    else reserved.free();
  }

  #drained(): void {
    if (this.#closing !== null) this.#wire.socket?.shutdown();
    this.#unsent?.resolve();
    this.#unsent = null;
  }

  /** The other side broke the protocol: it gets the reason, and nothing more is read. */
  #fail({ code, message }: FrameError): Closing {
    const closing = { code, reason: message };
    return this.#end(closing, closing);
  }

  /** The other side has not answered our close frame, or has not left. */
  #expire(): void {
    if (this.#closing === null) this.#end(LOST, null);
    else this.#wire.terminate();
  }

  /** What is unsent leaves first: a reset would discard what a slow reader has not read yet. */
  #end(closing: Closing, frame: Closing | null): Closing {
    if (this.#closing !== null) return this.#closing;
    if (frame !== null && !this.#closeSent) this.#wire.write(writeClose(frame));
    this.#closeSent = true;
    this.#closing = closing;
    this.#finishMessage()?.free();
    this.#wire.stopReading();
    if (this.#wire.isClosed) return closing;
    this.#deadline.arm(LEAVE_MS);
    if (this.#wire.unsentBytes === 0) this.#wire.socket?.shutdown();
    return closing;
  }
}
