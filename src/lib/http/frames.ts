// Reads and writes frames of RFC 6455 as a client.
// Forbidden bytes end the connection.

import { isUtf8 } from "node:buffer";
import { joinChunks, NOTHING } from "../memory/bytes.ts";
import { ANSWER_COPIES, LARGE_BYTES, type MemoryBudget, type Reservation } from "../memory/memory-budget.ts";
import { nextTurn } from "../time/next-turn.ts";
import { CLOSE_CODES, type Closing, isSendable, type Payload } from "./web-socket.ts";

const [CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG] = [0, 1, 2, 8, 9, 10] as const;

const FINAL = 0x80;
const MASKED = 0x80;
const RESERVED_BITS = 0x70;
const MAX_CONTROL_BYTES = 125;
const MASK_BYTES = 4;
/** A message may contain an image. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** Each fragment costs memory, too. */
const MAX_FRAGMENTS = 65_536;
/** After this many steps, other work gets a turn. */
const STEPS_IN_TURN = 128;

export type Frame =
  | { readonly message: Payload }
  | { readonly ping: Uint8Array }
  /** The other side's close, or our own if that side broke the protocol. */
  | { readonly closing: Closing };

/** Reads frames from bytes that must not change afterwards. */
export class FrameReader {
  readonly #memory: MemoryBudget;
  /** Memory for a large message, until the next message is asked for. */
  #held: Reservation | null = null;
  readonly #read: (isInside: boolean) => Promise<Buffer | null>;
  #rest: Buffer;
  #kind: Payload["kind"] | null = null;
  #fragments: Uint8Array[] = [];
  #messageBytes = 0;
  #steps = 0;

  /** `start`: bytes that have come. `isInside`: a message has begun. */
  constructor(memory: MemoryBudget, read: (isInside: boolean) => Promise<Buffer | null>, start: Buffer) {
    this.#memory = memory;
    this.#read = read;
    this.#rest = start;
  }

  /** Null: the connection has ended. Nothing follows null or a closing. */
  async next(): Promise<Frame | null> {
    if (this.#kind === null) this.release();
    for (;;) {
      const start = await this.#readNumber(2, this.#kind !== null);
      if (start === null) return null;
      const [first, second] = [start >> 8, start & 0xff] as const;
      if (!this.#isAllowed(first, second)) return refuse("a frame that RFC 6455 does not allow here");
      const opcode = first & 0x0f;
      const payload = await this.#readPayload(first, second & 0x7f);
      if (!(payload instanceof Uint8Array)) return payload;
      if (opcode === PING) return { ping: payload };
      if (opcode === CLOSE) return readClosing(payload);
      if (opcode === PONG) continue;
      this.#fragments.push(payload);
      if (opcode !== CONTINUATION) this.#kind = opcode === TEXT ? "text" : "binary";
      if ((first & FINAL) !== 0) return this.#join();
    }
  }

  release(): void {
    this.#held?.free();
  }

  async #take(count: number, isInside = true): Promise<Uint8Array | null> {
    if ((this.#steps += 1) % STEPS_IN_TURN === 0) await nextTurn();
    const pieces: Uint8Array[] = [];
    let missing = count;
    while (missing > this.#rest.length) {
      if (this.#rest.length > 0) pieces.push(this.#rest);
      missing -= this.#rest.length;
      this.#rest = (await this.#read(isInside || pieces.length > 0)) ?? NOTHING;
      if (this.#rest.length === 0) return null;
    }
    pieces.push(this.#rest.subarray(0, missing));
    this.#rest = this.#rest.subarray(missing);
    return joinChunks(pieces);
  }

  async #readNumber(bytes: number, isInside = true): Promise<number | null> {
    const taken = await this.#take(bytes, isInside);
    return taken && taken.reduce((number, byte) => 256 * number + byte, 0);
  }

  async #readPayload(first: number, short: number): Promise<Uint8Array | Frame | null> {
    const length = short < 126 ? short : await this.#readNumber(short === 126 ? 2 : 8);
    if (length === null) return null;
    if ((first & 0x0f) >= CLOSE) return this.#take(length);
    const wasLarge = this.#messageBytes > LARGE_BYTES;
    const bytes = (this.#messageBytes += length);
    if (bytes > MAX_MESSAGE_BYTES || this.#fragments.length >= MAX_FRAGMENTS)
      return refuse("a message is too large", CLOSE_CODES.tooBig);
    // A fragment does not say how long its message is.
    const most = (first & FINAL) === 0 ? MAX_MESSAGE_BYTES : bytes;
    if (bytes > LARGE_BYTES && !wasLarge) this.#held = await this.#memory.reserve(ANSWER_COPIES * most);
    return this.#take(length);
  }

  /** No extension was agreed on, and servers do not mask. */
  #isAllowed(first: number, second: number): boolean {
    const opcode = first & 0x0f;
    if ((first & RESERVED_BITS) !== 0 || (second & MASKED) !== 0) return false;
    if (opcode <= BINARY) return (opcode === CONTINUATION) === (this.#kind !== null);
    const isShort = (first & FINAL) !== 0 && (second & 0x7f) <= MAX_CONTROL_BYTES;
    return isShort && opcode >= CLOSE && opcode <= PONG;
  }

  #join(): Frame {
    const kind = this.#kind ?? "binary";
    const bytes = joinChunks(this.#fragments);
    this.#kind = null;
    this.#fragments = [];
    this.#messageBytes = 0;
    const held = this.#held;
    // In the next turn, the message has been read,
    // and one copy of it waits for the client.
    setImmediate(() => held?.shrink(bytes.length));
    if (kind === "text" && !isUtf8(bytes)) return refuse("a text is not UTF-8", CLOSE_CODES.invalidText);
    return { message: { kind, bytes } };
  }
}

function refuse(reason: string, code: number = CLOSE_CODES.protocolError): Frame {
  return { closing: { code, reason } };
}

function readClosing(payload: Uint8Array): Frame {
  if (payload.length === 0) return { closing: { code: CLOSE_CODES.none, reason: "" } };
  const code = ((payload[0] ?? 0) << 8) | (payload[1] ?? 0);
  if (payload.length === 1 || !isSendable(code)) return refuse("a close frame has no valid code");
  const reason = payload.subarray(2);
  if (!isUtf8(reason)) return refuse("a close reason is not UTF-8", CLOSE_CODES.invalidText);
  return { closing: { code, reason: Buffer.from(reason).toString() } };
}

export const writeMessage = ({ kind, bytes }: Payload): Uint8Array =>
  writeFrame(kind === "text" ? TEXT : BINARY, bytes);

export const writePong = (payload: Uint8Array): Uint8Array => writeFrame(PONG, payload);

/** For a code that may not be sent, the frame has no code. */
export function writeClose({ code, reason }: Closing): Uint8Array {
  if (!isSendable(code)) return writeFrame(CLOSE, NOTHING);
  const payload = new Uint8Array(MAX_CONTROL_BYTES);
  payload[0] = code >> 8;
  payload[1] = code & 0xff;
  // `encodeInto` never writes a part of a character.
  const { written } = new TextEncoder().encodeInto(reason, payload.subarray(2));
  return writeFrame(CLOSE, payload.subarray(0, 2 + written));
}

function writeFrame(opcode: number, payload: Uint8Array): Uint8Array {
  const { length } = payload;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const start = 2 + size + MASK_BYTES;
  const frame = Buffer.allocUnsafe(start + length);
  frame[0] = FINAL | opcode;
  frame[1] = MASKED | (size === 0 ? length : size === 2 ? 126 : 127);
  if (size === 2) frame.writeUInt16BE(length, 2);
  else if (size === 8) frame.writeBigUInt64BE(BigInt(length), 2);
  const mask = crypto.getRandomValues(frame.subarray(2 + size, start));
  for (let at = 0; at < length; at++) frame[start + at] = (payload[at] ?? 0) ^ (mask[at & 3] ?? 0);
  return frame;
}
