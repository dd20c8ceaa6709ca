// The gateway's side of a WebSocket to an upstream, on a connection that has been upgraded. It answers pings, and performs
// the closing handshake.

import type { Socket } from "bun";
import { LARGE_BYTES, type MemoryBudget, type Reservation } from "../memory/memory-budget.ts";
import { Deadline } from "../time/deadline.ts";
import type { SocketListener } from "./dial.ts";
import { FrameError, FrameReader, writeClose, writeMessage, writePong } from "./frames.ts";
import { Outbox } from "./outbox.ts";
import {
  CLOSE_CODES,
  type Closing,
  type Message,
  type MessageLimits,
  type OpenPeer,
  type PausablePeer,
  type PeerListener,
} from "./web-socket.ts";

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

export class UpstreamPeer implements PausablePeer, SocketListener {
  readonly #socket: Socket<SocketListener>;
  readonly #listener: PeerListener;
  readonly #reader: FrameReader;
  readonly #outbox = new Outbox();
  readonly #deadline = new Deadline(() => this.#expire());
  readonly #budget: MemoryBudget;
  /** For the message that has begun. */
  #memory: Reservation | null = null;
  #awaitsMemory = false;
  #isPaused = false;
  readonly #pieceDeadline = new Deadline(() => this.#endSlow());
  /** Of the message that has begun, what had come when its deadline was set; null: none has begun. */
  #counted: number | null = null;
  #closeSent = false;
  /** The listener has heard of the end. What is unsent may still leave. */
  #ended = false;

  constructor(
    socket: Socket<SocketListener>,
    { maxMessageBytes, memory }: MessageLimits,
    open: OpenPeer<PausablePeer>,
  ) {
    this.#socket = socket;
    this.#budget = memory;
    this.#reader = new FrameReader(maxMessageBytes, {
      message: (message) => {
        const held = this.#memory;
        this.#memory = null;
        if (this.#ended) held?.free();
        else this.#listener.message(message, held);
      },
      ping: (payload) => {
        if (this.open && this.unsentBytes <= MAX_UNSENT_FOR_PONG) this.#write(writePong(payload));
      },
      closing: (closing) => this.#end(closing, closing),
    });
    this.#listener = open(this);
  }

  get open(): boolean {
    return !this.#closeSent && !this.#ended;
  }

  get unsentBytes(): number {
    return this.#outbox.size;
  }

  send(message: Message): boolean {
    return !this.open || this.#write(writeMessage(message));
  }

  pause(): void {
    this.#isPaused = true;
    this.#pieceDeadline.disarm();
    if (!this.#ended) this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#resume();
  }

  close(closing: Closing): void {
    if (!this.open) return;
    this.#closeSent = true;
    this.#write(writeClose(closing));
    this.#socket.resume();
    this.#deadline.arm(CLOSE_WAIT_MS);
  }

  reset(): void {
    this.#socket.terminate(); // calls `closed`
  }

  /** Reads, unless the listener has paused it. */
  start(): void {
    this.#resume();
  }

  // Called by the socket.

  receive(chunk: Buffer): void {
    if (this.#ended) return;
    try {
      this.#reader.feed(chunk);
      this.#watchMessage();
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#fail(error);
    }
  }

  drain(): void {
    if (this.#outbox.size === 0 || !this.#outbox.flush(this.#socket)) return;
    if (this.#ended) this.#socket.shutdown();
    else this.#listener.drained();
  }

  closed(): void {
    this.#end(LOST, null);
    this.#deadline.disarm();
  }

  // Steps.

  #write(frame: Uint8Array): boolean {
    return this.#outbox.send(this.#socket, frame);
  }

  #resume(): void {
    if (this.#isPaused || this.#awaitsMemory || this.#ended) return;
    this.#socket.resume();
    this.#counted = null;
    this.#watchMessage();
  }

  /** A message that has begun needs memory if it is large, and must go on. */
  #watchMessage(): void {
    if (this.#ended) return;
    const { received, announced } = this.#reader.unfinished;
    if (announced === 0) {
      this.#pieceDeadline.disarm();
      this.#counted = null;
      return;
    }
    if (announced > LARGE_BYTES && this.#memory === null && !this.#awaitsMemory)
      void this.#reserve(announced);
    if (this.#isPaused || this.#awaitsMemory) return this.#pieceDeadline.disarm();
    if (this.#counted !== null && received - this.#counted < PIECE_BYTES) return;
    this.#counted = received;
    this.#pieceDeadline.arm(PIECE_MS);
  }

  async #reserve(bytes: number): Promise<void> {
    this.#awaitsMemory = true;
    this.#socket.pause();
    const memory = await this.#budget.reserve(COPIES * bytes);
    this.#awaitsMemory = false;
    if (this.#ended || this.#reader.unfinished.announced === 0) memory.free();
    else this.#memory = memory;
    this.#resume();
  }

  #endSlow(): void {
    this.#fail(new FrameError(CLOSE_CODES.tooSlow, "a message stopped arriving"));
  }

  /** The other side broke the protocol: it gets the reason, and nothing more is read. */
  #fail({ code, message }: FrameError): void {
    const closing = { code, reason: message };
    this.#end(closing, closing);
  }

  /** The other side has not answered our close frame, or has not left. */
  #expire(): void {
    if (this.#ended) this.#socket.terminate();
    else this.#end(LOST, null);
  }

  /** What is unsent leaves first: a reset would discard what a slow reader has not read yet. */
  #end(closing: Closing, frame: Closing | null): void {
    if (this.#ended) return;
    if (frame !== null && !this.#closeSent) this.#write(writeClose(frame));
    this.#closeSent = true;
    this.#ended = true;
    this.#pieceDeadline.disarm();
    this.#memory?.free();
    this.#deadline.arm(LEAVE_MS);
    this.#socket.resume();
    if (this.#outbox.size === 0) this.#socket.shutdown();
    this.#listener.closed(closing);
  }
}
