// HTTP/1.1 as bytes. Ambiguous input is refused: all readers must agree on it.

import { cutBytes, NOTHING } from "../memory/bytes.ts";
import { Fields, Malformed } from "./fields.ts";
import type { Deadlines, FaultKind } from "./upstream.ts";
import type { Wire } from "./wire.ts";

const MAX_HEAD_BYTES = 64 * 1024;

const METHOD = /^[A-Z][A-Z-]{0,31}$/;
const TARGET = /^(?:https?:\/\/[^/?#\s]+)?\/[\x21\x22\x24-\x7e]*$/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const VERSION = "HTTP/1.";
const HEAD_END = Buffer.from("\r\n\r\n"); // finding a text takes five times as long
const [LF, CR] = [0x0a, 0x0d] as const;

export function writeRequestLine(method: string, target: string): string {
  if (METHOD.test(method) && TARGET.test(target)) return `${method} ${target} HTTP/1.1\r\n`;
  throw new Malformed("a forbidden character in the request line");
}

export interface ResponseHead {
  readonly status: number;
  readonly fields: Fields;
  readonly length: number | "chunked" | "unknown";
  readonly staysOpen: boolean;
  readonly rest: Buffer;
}

/** Null: the connection ended. `start`: bytes that have come. */
export async function readHead(
  wire: Wire,
  limits: Omit<Deadlines, "connectMs">,
  start: Buffer = NOTHING,
): Promise<ResponseHead | null> {
  const late: FaultKind = "first_byte_timeout";
  let bytes = start;
  for (;;) {
    const end = bytes.indexOf(HEAD_END);
    if ((end < 0 ? bytes.length : end) > MAX_HEAD_BYTES) throw new Malformed("the head is too large");
    if (end >= 0) return parseHead(bytes, end);
    // A peer of another protocol may wait forever for us to speak.
    if (!VERSION.startsWith(bytes.toString("latin1", 0, VERSION.length))) throw new Malformed("not HTTP/1");
    const chunk = await wire.read(bytes.length === 0 ? limits.firstByteMs : limits.idleMs, late);
    if (chunk === null) return null;
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
  }
}

function parseHead(bytes: Buffer, end: number): ResponseHead {
  const head = bytes.toString("latin1", 0, end + LINE_END.length);
  const lineEnd = head.indexOf(LINE_END);
  const line = STATUS_LINE.exec(head.slice(0, lineEnd));
  if (line === null) throw new Malformed("not a status line");
  const fields = Fields.read(head.slice(lineEnd + LINE_END.length, end));
  const isOld = line[1] === "0";
  return {
    status: Number(line[2]),
    fields,
    length: readLength(fields, isOld),
    staysOpen: !isOld && !hasToken(fields, "connection", "close"),
    rest: end + 4 === bytes.length ? NOTHING : bytes.subarray(end + 4),
  };
}

function readLength(fields: Fields, isOld: boolean): ResponseHead["length"] {
  const lengths = fields.getAll("content-length");
  const codings = fields.getAll("transfer-encoding");
  if (lengths.length + codings.length === 0) return "unknown";
  if (lengths.length + codings.length > 1) throw new Malformed("more than one length or transfer-encoding");
  const [length] = lengths;
  if (length === undefined) {
    if (isOld || codings[0]?.toLowerCase() !== "chunked")
      throw new Malformed("only the transfer-encoding chunked of HTTP/1.1 is supported");
    return "chunked";
  }
  if (!/^\d{1,15}$/.test(length)) throw new Malformed("not a content-length");
  return Number(length);
}

export function hasToken(fields: Fields, name: string, token: string): boolean {
  if (fields.get(name) === undefined) return false;
  const tokens = fields.getAll(name).join().toLowerCase().split(",");
  return tokens.some((each) => each.trim() === token);
}

const LINE_END = "\r\n";
/** A line end and a line with the size stand before each chunk.
 *  For the first chunk, the decoder adds the line end. */
const CHUNK_START = /^\r\n([\da-f]{1,12})(?:;[^\0\r\n]*)?\r\n$/i;
const MAX_CHUNK_START = 16 * 1024;
/** Digits of a plain size. The pattern reads all other forms. */
const MAX_DIGITS = 6;
const DIGITS = Int8Array.from({ length: 256 }, (_, code) =>
  "0123456789abcdef".indexOf(String.fromCharCode(code).toLowerCase()),
);

const endsLine = (bytes: Buffer, at: number): boolean => bytes[at] === CR && bytes[at + 1] === LF;

/** Returns a plain size, and in the last four bits the number of its digits.
 *  Zero: the size has another form. */
function readSize(bytes: Buffer, at: number): number {
  let size = 0;
  let end = at;
  // One read beyond the last byte would make all reads slow.
  const last = Math.min(at + MAX_DIGITS, bytes.length - LINE_END.length);
  for (let digit = 0; end < last && (digit = DIGITS[bytes[end] ?? 0] ?? -1) >= 0; end += 1)
    size = (size << 4) | digit;
  return size > 0 && endsLine(bytes, end) ? (size << 4) | (end - at) : 0;
}

/** Removes the framing in place: the chunks of a packet become one piece. */
export class BodyDecoder {
  done: boolean;
  /** The input ended with the body. */
  isClean = true;
  readonly #isChunked: boolean;
  /** Bytes left of the body, or of this chunk. */
  #left: number;
  /** The received part of the framing between two chunks. */
  #framing = LINE_END;
  #isBehindLast = false;
  #hasTrailers = false;
  #reached = 0;

  constructor(length: ResponseHead["length"]) {
    this.#isChunked = length === "chunked";
    this.#left = length === "unknown" ? Infinity : length === "chunked" ? 0 : length;
    this.done = length === 0;
  }

  /** Returns the part of the input that belongs to the body (null: none).
   *  Its bytes may be moved inside the input. */
  decode(input: Buffer): Buffer | null {
    let at = 0;
    let start = -1;
    let end = -1;
    while (!this.done && at < input.length) {
      if (this.#left === 0) at = this.#passFraming(input, at);
      else {
        if (start < 0) start = end = at;
        end = this.#moveData(input, at, end);
        at = this.#reached;
        this.done = this.#left === 0 && !this.#isChunked;
      }
    }
    this.isClean = at === input.length && !this.#hasTrailers;
    if (start < 0) return null;
    return start === 0 && end === input.length ? input : cutBytes(input, start, end);
  }

  /** Called when the connection ended cleanly. True if the body is complete. */
  finish(): boolean {
    this.done ||= this.#left === Infinity || this.#isBehindLast;
    return this.done;
  }

  /** Moves data and the plain chunks after it.
   *  One call for each chunk would take twice as long. */
  #moveData(input: Buffer, from: number, to: number): number {
    let at = from;
    let end = to;
    let left = this.#left;
    for (;;) {
      // `Math.min` would turn positions into doubles, which are slow.
      const rest = input.length - at;
      const taken = left < rest ? left : rest;
      if (end !== at) input.copyWithin(end, at, at + taken);
      end += taken;
      at += taken;
      left -= taken;
      const isFramed = left === 0 && this.#isChunked && at + 1 < input.length && endsLine(input, at);
      const size = isFramed ? readSize(input, at + LINE_END.length) : 0;
      if (size === 0) break;
      left = size >> 4;
      at += 2 * LINE_END.length + (size & 15);
    }
    this.#left = left;
    this.#reached = at;
    return end;
  }

  /** Reads at most one line. The pattern takes ten times as long as readSize. */
  #passFraming(input: Buffer, at: number): number {
    const size = this.#framing === LINE_END ? readSize(input, at) : 0;
    if (size > 0) {
      this.#left = size >> 4;
      this.#framing = "";
      return at + (size & 15) + LINE_END.length;
    }
    const lineEnd = input.indexOf(LF, at) + 1 || input.length;
    this.#readFraming((this.#framing += input.toString("latin1", at, lineEnd)));
    return lineEnd;
  }

  #readFraming(framing: string): void {
    const isFit = framing.startsWith(LINE_END.slice(0, framing.length));
    if (this.#isBehindLast) {
      // Trailers are not read, so the connection serves no other request.
      this.#hasTrailers = !isFit;
      this.done = !isFit || framing === LINE_END;
      return;
    }
    if (isFit && framing.length < MAX_CHUNK_START && (framing === LINE_END || !framing.endsWith("\n")))
      return;
    const [, size] = CHUNK_START.exec(framing) ?? [];
    if (size === undefined) throw new Malformed("broken chunk framing");
    this.#left = Number.parseInt(size, 16);
    this.#isBehindLast = this.#left === 0;
    this.#framing = "";
  }
}
