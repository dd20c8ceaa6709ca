// One side of a WebSocket, on a connection that has been upgraded. It answers pings, and performs the closing handshake.

import { Deadline } from "../../time/deadline.ts";
import type { Wire, WireListener } from "../wire.ts";
import { LARGE_BYTES, type MemoryBudget, type Reservation } from "../../memory/memory-budget.ts";
import {
  CLOSE_CODES,
  type Closing,
  type Message,
  type MessageLimits,
  type OpenPeer,
  type PeerListener,
  type PausablePeer,
} from "../../http/web-socket.ts";
import { FrameError, FrameReader, writeClose, writeMessage, writePong } from "./frames.ts";

interface PeerOptions extends MessageLimits {
  /** A message that has begun must bring 256 KiB, or its end, in this time. */
  readonly pieceMs?: number;
}

/** A message can exist twice: in pieces, and joined or in a frame for the other side. */
const COPIES = 2;
const PIECE_BYTES = 256 * 1024;
const PIECE_MS = 60_000;

/** How long the other side may take to answer a close frame. */
const CLOSE_WAIT_MS = 5_000;
/** Pongs wait behind unsent bytes. With more than this, pings are not answered, so that a flood of them costs nothing. */
const MAX_UNSENT_FOR_PONG = 64 * 1024;

export class FramedPeer implements PausablePeer, WireListener {
  readonly #wire: Wire;
  readonly #listener: PeerListener;
  readonly #reader: FrameReader;
  readonly #deadline = new Deadline(() => this.#giveUp());
  readonly #budget: MemoryBudget;
  /** For the message that has begun. */
  #memory: Reservation | null = null;
  #awaitsMemory = false;
  readonly #pieceMs: number;
  #isPaused = false;
  readonly #pieceDeadline = new Deadline(() => this.#endSlow());
  /** Of the message that has begun, what had come when its deadline was set; null: none has begun. */
  #counted: number | null = null;
  #closeSent = false;
  #ended = false;

  constructor(wire: Wire, options: PeerOptions, open: OpenPeer<PausablePeer>) {
    const { maxMessageBytes, memory, pieceMs = PIECE_MS } = options;
    this.#wire = wire;
    this.#budget = memory;
    this.#pieceMs = pieceMs;
    this.#reader = new FrameReader(
      { maxMessageBytes },
      {
        message: (message) => {
          const memory = this.#memory;
          this.#memory = null;
          if (this.#ended) memory?.free();
          else this.#listener.message(message, memory);
        },
        ping: (payload) => this.#answerPing(payload),
        closing: (closing) => this.#answerClose(closing),
      },
    );
    this.#listener = open(this);
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
    this.#isPaused = true;
    this.#wire.pause();
    this.#pieceDeadline.disarm();
  }

  resume(): void {
    this.#isPaused = false;
    this.#resume();
  }

  #resume(): void {
    if (this.#isPaused || this.#awaitsMemory) return;
    this.#wire.resume();
    this.#counted = null;
    this.#watchMessage();
  }

  close(closing: Closing): void {
    if (!this.open) return;
    this.#closeSent = true;
    this.#wire.write(writeClose(closing));
    this.#wire.resume();
    this.#deadline.arm(CLOSE_WAIT_MS);
  }

  reset(): void {
    this.#wire.reset();
    this.#end({ code: CLOSE_CODES.lost, reason: "" });
  }

  // Called by the connection.

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
    this.#pieceDeadline.arm(this.#pieceMs);
  }

  async #reserve(bytes: number): Promise<void> {
    this.#awaitsMemory = true;
    this.#wire.pause();
    const memory = await this.#budget.reserve(COPIES * bytes);
    this.#awaitsMemory = false;
    if (this.#ended || this.#reader.unfinished.announced === 0) memory.free();
    else this.#memory = memory;
    this.#resume();
  }

  #endSlow(): void {
    this.#fail(new FrameError(CLOSE_CODES.tooSlow, "a message stopped arriving"));
  }

  drain(): void {
    if (!this.#ended) this.#listener.drained();
  }

  closed(): void {
    this.#end({ code: CLOSE_CODES.lost, reason: "" });
  }

  // Steps.

  #answerPing(payload: Uint8Array): void {
    if (this.open && this.#wire.unsentBytes <= MAX_UNSENT_FOR_PONG) this.#wire.write(writePong(payload));
  }

  #answerClose(closing: Closing): void {
    if (!this.#closeSent) this.#wire.write(writeClose(closing));
    this.#closeSent = true;
    this.#wire.end();
    this.#end(closing);
  }

  /** The other side broke the protocol: it gets the reason, and nothing more is read. */
  #fail({ code, message }: FrameError): void {
    if (!this.#closeSent) this.#wire.write(writeClose({ code, reason: message }));
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
    this.#pieceDeadline.disarm();
    this.#memory?.free();
    this.#listener.closed(closing);
  }
}
