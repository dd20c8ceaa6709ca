// Frames of RFC 6455 on a client's side: bytes ↔ messages. Pure. A message that comes in fragments is joined; its bytes are not changed.
// Everything that the RFC forbids ends the connection with a close code.

import { isUtf8 } from "node:buffer";
import { CLOSE_CODES, type Closing, isSendable, type Message } from "./web-socket.ts";
import { joinChunks } from "../memory/bytes.ts";
import { LARGE_BYTES } from "../memory/memory-budget.ts";

const CONTINUATION = 0x0;
const TEXT = 0x1;
const BINARY = 0x2;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;

const FINAL = 0x80;
const MASKED = 0x80;
const RESERVED_BITS = 0x70;
const MAX_CONTROL_BYTES = 125;
const MASK_BYTES = 4;
/** A message in more fragments than this is refused: each fragment costs memory. */
const MAX_FRAGMENTS = 65_536;

/** The peer broke the protocol. The connection ends with this close code. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export interface FrameListener {
  message(message: Message): void;
  ping(payload: Uint8Array): void;
  closing(closing: Closing): void;
}

/** Reads frames from chunks of any size. Keeps slices of the chunks, so the caller must not change them afterwards. */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #listener: FrameListener;
  /** The header so far: at most 2 bytes and 8 of length. */
  readonly #header = new Uint8Array(10);
  #headerBytes = 0;
  #headerNeeded = 2;
  #inPayload = false;
  #opcode = 0;
  #final = false;
  #length = 0;
  #left = 0;
  #payload: Uint8Array[] = [];
  /** The kind of the message whose fragments are arriving; null between messages. */
  #kind: Message["kind"] | null = null;
  #fragments: Uint8Array[] = [];
  #messageBytes = 0;
  #closed = false;

  constructor(maxMessageBytes: number, listener: FrameListener) {
    this.#maxBytes = maxMessageBytes;
    this.#listener = listener;
  }

  /** Throws FrameError. Nothing can be read after that, nor after a close frame. */
  feed(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && !this.#closed) {
      at = this.#inPayload ? this.#readPayload(chunk, at) : this.#readHeader(chunk, at);
    }
  }

  /** How much of the message that has begun has come, and how long it will be, as far as frames say; 0: none has begun. */
  get unfinished(): { readonly received: number; readonly announced: number } {
    const isMessage = this.#inPayload && this.#opcode < CLOSE;
    const announced = this.#messageBytes + (isMessage ? this.#length : 0);
    if (announced === 0) return { received: 0, announced: this.#kind === null ? this.#headerBytes : 1 };
    const isLast = isMessage && this.#final;
    return {
      received: announced - (isMessage ? this.#left : 0),
      announced: isLast || announced <= LARGE_BYTES ? announced : this.#maxBytes,
    };
  }

  #readHeader(chunk: Uint8Array, from: number): number {
    const taken = Math.min(this.#headerNeeded - this.#headerBytes, chunk.length - from);
    this.#header.set(chunk.subarray(from, from + taken), this.#headerBytes);
    this.#headerBytes += taken;
    if (this.#headerBytes === 2 && this.#headerNeeded === 2) this.#headerNeeded = this.#checkStart();
    if (this.#headerBytes === this.#headerNeeded) this.#startPayload();
    return from + taken;
  }

  /** Checks the first two bytes. Returns the size of the whole header. */
  #checkStart(): number {
    const [first = 0, second = 0] = this.#header;
    if ((first & RESERVED_BITS) !== 0) throw broken("a reserved bit is set, but no extension was agreed on");
    this.#opcode = first & 0x0f;
    this.#final = (first & FINAL) !== 0;
    const length = second & 0x7f;
    this.#checkOpcode(length);
    if ((second & MASKED) !== 0) throw broken("a server's frame is masked");
    return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0);
  }

  #checkOpcode(length: number): void {
    switch (this.#opcode) {
      case CLOSE:
      case PING:
      case PONG:
        if (!this.#final) throw broken("a control frame is fragmented");
        if (length > MAX_CONTROL_BYTES) throw broken("a control frame is longer than 125 bytes");
        return;
      case CONTINUATION:
        if (this.#kind === null) throw broken("a continuation frame continues no message");
        return;
      case TEXT:
      case BINARY:
        if (this.#kind !== null) throw broken("a new message begins inside another one");
        return;
      default:
        throw broken(`the opcode ${this.#opcode} is not known`);
    }
  }

  #startPayload(): void {
    const length = this.#readLength();
    this.#headerBytes = 0;
    this.#headerNeeded = 2;
    if (this.#opcode < CLOSE) this.#checkSize(length);
    this.#length = length;
    this.#left = length;
    this.#inPayload = true;
    if (length === 0) this.#finishFrame();
  }

  #readLength(): number {
    const short = (this.#header[1] ?? 0) & 0x7f;
    const view = new DataView(this.#header.buffer);
    const size = short === 126 ? 2 : short === 127 ? 8 : 0;
    const length = size === 0 ? short : size === 2 ? view.getUint16(2) : Number(view.getBigUint64(2));
    if ((size === 2 && length < 126) || (size === 8 && length < 65_536))
      throw broken("a length is written in more bytes than it needs");
    return length;
  }

  #checkSize(length: number): void {
    if (this.#messageBytes + length > this.#maxBytes)
      throw new FrameError(CLOSE_CODES.tooBig, `a message is larger than ${this.#maxBytes} bytes`);
    if (this.#fragments.length >= MAX_FRAGMENTS)
      throw new FrameError(CLOSE_CODES.tooBig, `a message has more than ${MAX_FRAGMENTS} fragments`);
  }

  #readPayload(chunk: Uint8Array, from: number): number {
    const end = Math.min(chunk.length, from + this.#left);
    this.#payload.push(chunk.subarray(from, end));
    this.#left -= end - from;
    if (this.#left === 0) this.#finishFrame();
    return end;
  }

  #finishFrame(): void {
    const payload = joinChunks(this.#payload);
    this.#payload = [];
    this.#inPayload = false;
    if (this.#opcode === PING) this.#listener.ping(payload);
    else if (this.#opcode === CLOSE) this.#readClosing(payload);
    else if (this.#opcode !== PONG) this.#addFragment(payload);
  }

  #addFragment(payload: Uint8Array): void {
    this.#kind ??= this.#opcode === TEXT ? "text" : "binary";
    this.#fragments.push(payload);
    this.#messageBytes += payload.length;
    if (!this.#final) return;
    const message = { kind: this.#kind, bytes: joinChunks(this.#fragments) };
    this.#kind = null;
    this.#fragments = [];
    this.#messageBytes = 0;
    if (message.kind === "text" && !isUtf8(message.bytes))
      throw new FrameError(CLOSE_CODES.invalidText, "a text message is not UTF-8");
    this.#listener.message(message);
  }

  #readClosing(payload: Uint8Array): void {
    this.#closed = true;
    if (payload.length === 0) {
      this.#listener.closing({ code: CLOSE_CODES.none, reason: "" });
      return;
    }
    const code = ((payload[0] ?? 0) << 8) | (payload[1] ?? 0);
    if (payload.length === 1 || !isSendable(code)) throw broken("a close frame has no valid code");
    const reason = payload.subarray(2);
    if (!isUtf8(reason)) throw new FrameError(CLOSE_CODES.invalidText, "a close reason is not UTF-8");
    this.#listener.closing({ code, reason: new TextDecoder().decode(reason) });
  }
}

export function writeMessage({ kind, bytes }: Message): Uint8Array {
  return writeFrame(kind === "text" ? TEXT : BINARY, bytes);
}

export function writePong(payload: Uint8Array): Uint8Array {
  return writeFrame(PONG, payload);
}

/** A code that may not be sent gives a close frame without a code. */
export function writeClose({ code, reason }: Closing): Uint8Array {
  if (!isSendable(code)) return writeFrame(CLOSE, new Uint8Array(0));
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

function broken(message: string): FrameError {
  return new FrameError(CLOSE_CODES.protocolError, message);
}
