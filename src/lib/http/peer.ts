// The gateway's side of a WebSocket to an upstream, on a connection that has been upgraded. It answers pings, and performs
// the closing handshake.

import { LARGE_BYTES, type MemoryBudget, type Reservation } from "../memory/memory-budget.ts";
import { Deadline } from "../time/deadline.ts";
import { FrameError, FrameReader, writeClose, writeMessage, writePong } from "./frames.ts";
import {
  CLOSE_CODES,
  type Closing,
  type Message,
  type MessageLimits,
  type OpenPeer,
  type PausablePeer,
  type PeerListener,
} from "./web-socket.ts";
import type { Wire } from "./wire.ts";

/** A message can exist twice: in pieces, and joined or in a frame for the other side. */
const COPIES = 2;
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

export class UpstreamPeer implements PausablePeer {
  readonly #wire: Wire;
  readonly #listener: PeerListener;
  readonly #budget: MemoryBudget;
  readonly #maxBytes: number;
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
  /** Null: it may be read. */
  #pause: PromiseWithResolvers<void> | null = null;
  #closeSent = false;
  /** The listener has heard of the end. What is unsent may still leave. */
  #ended = false;

  /** `start`: what has come behind the handshake. */
  constructor(
    wire: Wire,
    { maxMessageBytes, memory }: MessageLimits,
    open: OpenPeer<PausablePeer>,
    start: Buffer,
  ) {
    this.#wire = wire;
    this.#budget = memory;
    this.#maxBytes = maxMessageBytes;
    const source = {
      read: () => this.#read(),
      begin: (bytes: number, isLast: boolean) => this.#reserve(isLast ? bytes : this.#maxBytes, bytes),
    };
    this.#reader = new FrameReader(maxMessageBytes, source, start);
    wire.onDrained = () => this.#drained();
    wire.onClosed = () => this.#deadline.disarm();
    this.#listener = open(this);
  }

  start(): void {
    void this.#receive();
  }

  get open(): boolean {
    return !this.#closeSent && !this.#ended;
  }

  get unsentBytes(): number {
    return this.#wire.unsentBytes;
  }

  send(message: Message): boolean {
    return !this.open || this.#wire.write(writeMessage(message));
  }

  pause(): void {
    this.#pause ??= Promise.withResolvers();
    this.#pieceDeadline.disarm();
  }

  resume(): void {
    this.#pause?.resolve();
    this.#pause = null;
  }

  close(closing: Closing): void {
    if (!this.open) return;
    this.#closeSent = true;
    this.#wire.write(writeClose(closing));
    this.resume();
    this.#deadline.arm(CLOSE_WAIT_MS);
  }

  reset(): void {
    this.#wire.terminate();
    this.#end(LOST, null);
  }

  async #receive(): Promise<void> {
    try {
      while (!this.#ended) {
        const received = await this.#reader.next();
        if (received === null) return this.#end(LOST, null);
        if (received.kind === "message") this.#pass(received.message);
        else if (received.kind === "closing") return this.#end(received.closing, received.closing);
        else if (this.open && this.unsentBytes <= MAX_UNSENT_FOR_PONG)
          this.#wire.write(writePong(received.payload));
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#fail(error);
    }
  }

  #pass(message: Message): void {
    const held = this.#memory;
    this.#memory = null;
    this.#pieceDeadline.disarm();
    if (this.#ended) held?.free();
    else this.#listener.message(message, held);
  }

  async #read(): Promise<Buffer | null> {
    while (this.#pause !== null) await this.#pause.promise;
    if (this.#ended) return null;
    if (this.#reader.isInside && this.#pieceBytes === 0) this.#pieceDeadline.arm(PIECE_MS);
    const bytes = await this.#wire.read(Infinity);
    this.#pieceBytes += bytes?.length ?? 0;
    if (this.#pieceBytes >= PIECE_BYTES || !this.#reader.isInside) this.#pieceBytes = 0;
    return bytes;
  }

  /** A large message needs memory before it comes. */
  async #reserve(announced: number, soFar: number): Promise<void> {
    if (soFar <= LARGE_BYTES || this.#memory !== null) return;
    this.#pieceDeadline.disarm();
    this.#pieceBytes = 0;
    const memory = await this.#budget.reserve(COPIES * announced);
    if (this.#ended) memory.free();
    else this.#memory = memory;
  }

  #drained(): void {
    if (this.#ended) this.#wire.socket?.shutdown();
    else this.#listener.drained();
  }

  /** The other side broke the protocol: it gets the reason, and nothing more is read. */
  #fail({ code, message }: FrameError): void {
    const closing = { code, reason: message };
    this.#end(closing, closing);
  }

  /** The other side has not answered our close frame, or has not left. */
  #expire(): void {
    if (this.#ended) this.#wire.terminate();
    else this.#end(LOST, null);
  }

  /** What is unsent leaves first: a reset would discard what a slow reader has not read yet. */
  #end(closing: Closing, frame: Closing | null): void {
    if (this.#ended) return;
    if (frame !== null && !this.#closeSent) this.#wire.write(writeClose(frame));
    this.#closeSent = true;
    this.#ended = true;
    this.#pieceDeadline.disarm();
    this.#memory?.free();
    this.resume();
    if (!this.#wire.isClosed) this.#deadline.arm(LEAVE_MS);
    if (this.unsentBytes === 0 && !this.#wire.isClosed) this.#wire.socket?.shutdown();
    this.#listener.closed(closing);
  }
}
