// Finds where the body of a response ends and removes its framing.

import { cutBytes } from "../memory/bytes.ts";
import { hasToken } from "./head.ts";
import { type Fields, Malformed } from "./fields.ts";

/** Chunk extensions and trailers are ignored, up to this size. */
const MAX_SKIPPED_BYTES = 16 * 1024;
const NOTHING: Buffer = Buffer.alloc(0);
const HEX = Int8Array.from({ length: 256 }, (_, code) =>
  "0123456789abcdef".indexOf(String.fromCharCode(code)),
);
const CHUNK_SIZE = /^([\da-f]{1,12})[\t ]*(?:;.*)?$/i;

/** What the next line of chunk framing is. */
type Line = "size" | "end of a chunk" | "trailer";

/** It returns views of its input. Several chunks in one packet are moved together in place, so that a packet gives at most one
 *  view. */
export class BodyDecoder {
  /** True once the last byte of the body was decoded. */
  done: boolean;
  /** The last input ended with the message. */
  isClean = true;
  readonly #isChunked: boolean;
  readonly #isEndless: boolean;
  /** Of the body, or of this chunk. */
  #left: number;
  #line: Line = "size";
  /** The beginning of a line. */
  #held: Buffer = NOTHING;
  #skipped = 0;

  constructor(length: BodyLength) {
    this.#isChunked = length === "chunked";
    this.#isEndless = length === "unknown";
    this.#left = length === "unknown" ? Infinity : length === "chunked" ? 0 : length;
    this.done = length === 0;
  }

  /** The body bytes of `input` after `from`, or null. It may rearrange the input. */
  decode(input: Buffer, from: number): Buffer | null {
    const isHeld = this.#held.length > 0;
    const bytes = isHeld ? Buffer.concat([this.#held, input.subarray(from)]) : input;
    let at = isHeld ? 0 : from;
    this.#held = NOTHING;
    let start = -1;
    let end = -1;
    while (!this.done && at < bytes.length) {
      if (this.#left === 0) {
        at = this.#readLine(bytes, at);
        continue;
      }
      const taken = Math.min(this.#left, bytes.length - at);
      if (start < 0) start = end = at;
      else if (end !== at) bytes.copyWithin(end, at, at + taken);
      end += taken;
      at += taken;
      this.#left -= taken;
      if (this.#left === 0) this.done = !this.#isChunked;
    }
    this.isClean = at === bytes.length;
    if (start < 0) return null;
    return start === 0 && end === bytes.length ? bytes : cutBytes(bytes, start, end);
  }

  /** The connection ended cleanly. True if the body is complete. */
  finish(): boolean {
    return this.done || this.#isEndless;
  }

  /** What is between two chunks of nearly every stream: the end of one, and the short size of the next. Returns where the next
   *  one begins; 0: it is something else. */
  #passPlain(bytes: Buffer, from: number): number {
    if (this.#line !== "end of a chunk" || !isLineEnd(bytes, from)) return 0;
    let at = from + 2;
    let size = 0;
    for (; at < from + 8; at += 1) {
      const digit = HEX[bytes[at] ?? 0] ?? -1;
      if (digit < 0) break;
      size = size * 16 + digit;
    }
    if (size === 0 || !isLineEnd(bytes, at)) return 0;
    this.#left = size;
    return at + 2;
  }

  /** Returns where the line ends. */
  #readLine(bytes: Buffer, from: number): number {
    const plain = this.#passPlain(bytes, from);
    if (plain > 0) return plain;
    const end = bytes.indexOf("\r\n", from, "latin1");
    if (end < 0) {
      this.#held = Buffer.from(bytes.subarray(from));
      this.#skip(0);
      return bytes.length;
    }
    this.#checkLine(bytes.toString("latin1", from, end));
    return end + 2;
  }

  #checkLine(line: string): void {
    if (/[\n\r\0]/.test(line)) throw new Malformed("a forbidden character in the chunk framing");
    switch (this.#line) {
      case "size": {
        const size = CHUNK_SIZE.exec(line)?.[1];
        if (size === undefined) throw new Malformed("not a chunk size");
        this.#skip(line.length - size.length);
        this.#left = Number.parseInt(size, 16);
        this.#line = this.#left === 0 ? "trailer" : "end of a chunk";
        return;
      }
      case "end of a chunk":
        if (line !== "") throw new Malformed("broken chunk framing");
        this.#line = "size";
        return;
      case "trailer":
        this.#skip(line.length);
        this.done = line === "";
    }
  }

  #skip(bytes: number): void {
    this.#skipped += bytes;
    if (this.#skipped + this.#held.length > MAX_SKIPPED_BYTES)
      throw new Malformed("chunk extensions or trailers are too long");
  }
}

function isLineEnd(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0x0d && bytes[at + 1] === 0x0a;
}

/** A body's length as its head announces it. `unknown`: the head does not say. */
export type BodyLength = number | "chunked" | "unknown";

/** Refuses every head that two readers could interpret differently. */
export function readBodyLength(fields: Fields, minor: 0 | 1): BodyLength {
  const lengths = fields.getAll("content-length");
  const codings = fields.getAll("transfer-encoding");
  if (lengths.length > 1) throw new Malformed("more than one content-length");
  if (codings.length > 1) throw new Malformed("more than one transfer-encoding");
  const [length] = lengths;
  const [coding] = codings;
  if (coding !== undefined) {
    if (length !== undefined) throw new Malformed("content-length and transfer-encoding together");
    if (minor === 0) throw new Malformed("transfer-encoding in HTTP/1.0");
    if (coding.toLowerCase() !== "chunked")
      throw new Malformed("only the transfer-encoding chunked is supported");
    return "chunked";
  }
  if (length === undefined) return "unknown";
  if (!/^\d{1,15}$/.test(length)) throw new Malformed("not a content-length");
  return Number(length);
}

/** Whether the connection can serve another message after this one. */
export function staysOpen(fields: Fields, minor: 0 | 1): boolean {
  return minor === 1 && !fields.getAll("connection").some((value) => hasToken(value, "close"));
}
