// Frames of WebSockets, as simulated clients and upstreams write and read them. This is not the gateway's code: if both
// sides had the same bug, they would agree.

import { createHash } from "node:crypto";
import { Pile } from "../pile.ts";

const TEXT = 1;
const CLOSE = 8;
export const PING = 9;
const CONTINUATION = 0;
const PONG = 10;

const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

export interface FrameShape {
  /** Clients must mask. */
  readonly masked: boolean;
  /** The most bytes of a message in one frame; 0: each message is one frame. */
  readonly fragment: number;
}

export function writeFrame(opcode: number, payload: Buffer, masked: boolean, final = true): Buffer {
  const { length } = payload;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + size);
  head[0] = (final ? 0x80 : 0) | opcode;
  head[1] = (masked ? 0x80 : 0) | (size === 0 ? length : size === 2 ? 126 : 127);
  if (size === 2) head.writeUInt16BE(length, 2);
  if (size === 8) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat(masked ? [head, MASK, mask(payload)] : [head, payload]);
}

export function writeText(text: string, { masked, fragment }: FrameShape): Buffer {
  const whole = Buffer.from(text);
  if (fragment === 0 || whole.length <= fragment) return writeFrame(TEXT, whole, masked);
  const frames: Buffer[] = [];
  for (let at = 0; at < whole.length; at += fragment) {
    const piece = whole.subarray(at, at + fragment);
    frames.push(writeFrame(at === 0 ? TEXT : CONTINUATION, piece, masked, at + fragment >= whole.length));
    // Control frames may come between the fragments of a message.
    if (at === 0) frames.push(writeFrame(PING, Buffer.from("between"), masked));
  }
  return Buffer.concat(frames);
}

/** Without a code, the close frame is empty. */
export function writeClose(code: number | null, reason: string, masked: boolean): Buffer {
  if (code === null) return writeFrame(CLOSE, Buffer.alloc(0), masked);
  return writeFrame(
    CLOSE,
    Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]),
    masked,
  );
}

function mask(payload: Buffer): Buffer {
  const masked = Buffer.allocUnsafe(payload.length);
  for (let at = 0; at < payload.length; at++) masked[at] = payload[at]! ^ MASK[at & 3]!;
  return masked;
}

/** The answer that the handshake requires for a key. */
export function acceptKey(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

export type Heard =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "close"; readonly code: number | null; readonly reason: string }
  | { readonly kind: "ping"; readonly payload: Buffer };

interface Frame {
  readonly opcode: number;
  readonly final: boolean;
  readonly payload: Buffer;
}

interface FrameHead extends Omit<Frame, "payload"> {
  readonly reserved: boolean;
  readonly masked: boolean;
  /** Of the payload. */
  readonly start: number;
  readonly length: number;
}

function readHead(came: Buffer): FrameHead | null {
  const first = came[0] ?? 0;
  const second = came[1] ?? 0;
  const short = second & 0x7f;
  const masked = second >> 7 === 1;
  const size = short === 126 ? 2 : short === 127 ? 8 : 0;
  const start = 2 + size + (masked ? 4 : 0);
  if (came.length < Math.max(2, start)) return null;
  const length = size === 0 ? short : size === 2 ? came.readUInt16BE(2) : Number(came.readBigUInt64BE(2));
  return {
    opcode: first & 15,
    final: first >> 7 === 1,
    reserved: (first & 0x70) !== 0,
    masked,
    start,
    length,
  };
}

/** Reads the gateway's frames. A binary message is a failure, and so is everything that the RFC forbids. */
export class Hearing {
  readonly #masked: boolean;
  readonly #came = new Pile();
  #parts: Buffer[] | null = null;
  #closed = false;
  /** Why the bytes are invalid. */
  broken: string | null = null;

  constructor(masked: boolean) {
    this.#masked = masked;
  }

  /** A message has begun and has not ended. */
  get isInside(): boolean {
    return this.#came.length > 0 || this.#parts !== null;
  }

  hear(bytes: Buffer): Heard[] {
    this.#came.add(bytes);
    const heard: Heard[] = [];
    while (this.broken === null) {
      const frame = this.#take();
      if (frame === null) break;
      const what = this.#join(frame);
      if (what !== null) heard.push(what);
    }
    return heard;
  }

  #take(): Frame | null {
    const came = this.#came.bytes;
    const head = readHead(came);
    if (head === null) return null;
    const { opcode, final, masked, start, length } = head;
    if (masked !== this.#masked || head.reserved || this.#closed) {
      this.broken = this.#closed ? "a frame behind a close frame" : "a frame with wrong bits";
      return null;
    }
    if (came.length < start + length) return null;
    const payload = Buffer.from(came.subarray(start, start + length));
    if (masked) for (let at = 0; at < length; at++) payload[at]! ^= came[start - 4 + (at & 3)]!;
    this.#came.take(start + length);
    return { opcode, final, payload };
  }

  #join({ opcode, final, payload }: Frame): Heard | null {
    if (opcode === PONG) return null;
    if (opcode === PING) return { kind: "ping", payload };
    if (opcode === CLOSE) {
      this.#closed = true;
      const code = payload.length < 2 ? null : payload.readUInt16BE(0);
      return { kind: "close", code, reason: payload.toString("utf8", 2) };
    }
    if (opcode !== (this.#parts === null ? TEXT : CONTINUATION)) {
      this.broken = `a frame of kind ${opcode}`;
      return null;
    }
    const parts = (this.#parts ??= []);
    parts.push(payload);
    if (!final) return null;
    this.#parts = null;
    return { kind: "text", text: Buffer.concat(parts).toString() };
  }
}

export function writePong(payload: Buffer, masked: boolean): Buffer {
  return writeFrame(PONG, payload, masked);
}
