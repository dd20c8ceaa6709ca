// HTTP/1.1 as bytes: the head of a request written, the head and the body of a response read. What another reader could read
// differently is refused, so that no two readers disagree about where a message ends.

import { cutBytes } from "../memory/bytes.ts";
import { Fields, Malformed } from "./fields.ts";
import type { FaultKind } from "./upstream.ts";
import type { Wire } from "./wire.ts";

const MAX_HEAD_BYTES = 64 * 1024;
const MAX_SIZE_DIGITS = 12;
const NOTHING: Buffer = Buffer.alloc(0);

const METHOD = /^[A-Z][A-Z-]{0,31}$/;
const TARGET = /^(?:https?:\/\/[^/?#\s]+)?\/[\x21\x22\x24-\x7e]*$/;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const VERSION = "HTTP/1.";

export function writeRequestLine(method: string, target: string): string {
  if (METHOD.test(method) && TARGET.test(target)) return `${method} ${target} HTTP/1.1\r\n`;
  throw new Malformed("a forbidden character in the request line");
}

export interface ResponseHead {
  readonly status: number;
  readonly fields: Fields;
  /** Of the body, as it is announced. `unknown`: the head does not say. */
  readonly length: number | "chunked" | "unknown";
  /** The connection can serve another request afterwards. */
  readonly staysOpen: boolean;
  /** What has come behind it. */
  readonly rest: Buffer;
}

interface HeadLimits {
  readonly firstByteMs: number;
  readonly idleMs: number;
}

/** Null: the connection has ended before. `start`: what has already come of the head. */
export async function readHead(
  wire: Wire,
  limits: HeadLimits,
  start: Buffer = NOTHING,
): Promise<ResponseHead | null> {
  const late: FaultKind = "first_byte_timeout";
  let bytes = start;
  let searched = 0;
  for (;;) {
    const end = bytes.indexOf("\r\n\r\n", searched, "latin1");
    if ((end < 0 ? bytes.length : end) > MAX_HEAD_BYTES) throw new Malformed("the head is too large");
    if (end >= 0) return parseHead(bytes, end);
    // A peer of another protocol may wait forever for us to speak.
    if (!VERSION.startsWith(bytes.toString("latin1", 0, VERSION.length))) throw new Malformed("not HTTP/1");
    const chunk = await wire.read(bytes.length === 0 ? limits.firstByteMs : limits.idleMs, late);
    if (chunk === null) return null;
    searched = Math.max(0, bytes.length - 3);
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
  }
}

function parseHead(bytes: Buffer, end: number): ResponseHead {
  const lineEnd = bytes.indexOf("\r\n", 0, "latin1");
  const line = STATUS_LINE.exec(bytes.toString("latin1", 0, lineEnd));
  if (line === null) throw new Malformed("not a status line");
  const fields = Fields.read(bytes.toString("latin1", Math.min(lineEnd + 2, end), end));
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

/** Whether a comma-separated field names `token`, which must be lower case. */
export function hasToken(fields: Fields, name: string, token: string): boolean {
  const tokens = fields.getAll(name).flatMap((value) => value.toLowerCase().split(","));
  return tokens.some((each) => each.trim() === token);
}

const HEX = Int8Array.from({ length: 256 }, (_, code) =>
  "0123456789abcdef".indexOf(String.fromCharCode(code).toLowerCase()),
);
const LF = 0x0a;
const CR = 0x0d;
const SEMICOLON = 0x3b;

/** What the next byte of a chunked body belongs to. */
const DATA = 0;
const SIZE = 1;
const EXTENSION = 2;
const SIZE_LF = 3;
const CHUNK_CR = 4;
const CHUNK_LF = 5;
const LAST_CR = 6;
const LAST_LF = 7;

/** Finds where the body of a response ends and removes its framing. It returns views of its input. Several chunks in one packet
 *  are moved together in place, so that a packet gives at most one view. */
export class BodyDecoder {
  /** The last byte of the body was decoded. */
  done: boolean;
  /** The last input ended with the body. */
  isClean = true;
  readonly #isChunked: boolean;
  /** Of the body, or of this chunk. */
  #left: number;
  #place: number;
  #digits = 0;
  #hasTrailers = false;

  constructor(length: ResponseHead["length"]) {
    this.#isChunked = length === "chunked";
    this.#place = length === "chunked" ? SIZE : DATA;
    this.#left = length === "unknown" ? Infinity : length === "chunked" ? 0 : length;
    this.done = length === 0;
  }

  /** The body bytes of `input`, or null. It may rearrange the input. */
  decode(input: Buffer): Buffer | null {
    let at = 0;
    let start = -1;
    let end = -1;
    while (!this.done && at < input.length) {
      if (this.#place !== DATA) {
        this.#pass(input[at] ?? 0);
        at += 1;
        continue;
      }
      const taken = Math.min(this.#left, input.length - at);
      if (start < 0) start = end = at;
      else if (end !== at) input.copyWithin(end, at, at + taken);
      end += taken;
      at += taken;
      this.#left -= taken;
      if (this.#left > 0) continue;
      this.#place = CHUNK_CR;
      this.done = !this.#isChunked;
    }
    this.isClean = at === input.length && !this.#hasTrailers;
    if (start < 0) return null;
    return start === 0 && end === input.length ? input : cutBytes(input, start, end);
  }

  /** The connection ended cleanly. True if the body is complete. */
  finish(): boolean {
    return this.done || this.#left === Infinity || this.#place >= LAST_CR;
  }

  /** One byte of the framing. */
  #pass(byte: number): void {
    switch (this.#place) {
      case SIZE:
        return this.#passSize(byte);
      case EXTENSION:
        return byte === CR
          ? void (this.#place = SIZE_LF)
          : this.#expect(byte !== LF && byte !== 0, EXTENSION);
      case SIZE_LF:
        return this.#expect(byte === LF, this.#left === 0 ? LAST_CR : DATA);
      case CHUNK_CR:
        return this.#expect(byte === CR, CHUNK_LF);
      case CHUNK_LF:
        return this.#expect(byte === LF, SIZE);
      default:
        return this.#passLast(byte);
    }
  }

  #passSize(byte: number): void {
    const digit = HEX[byte] ?? -1;
    if (digit >= 0 && this.#digits < MAX_SIZE_DIGITS) {
      this.#left = this.#left * 16 + digit;
      this.#digits += 1;
      return;
    }
    this.#expect(this.#digits > 0 && (byte === CR || byte === SEMICOLON), byte === CR ? SIZE_LF : EXTENSION);
    this.#digits = 0;
  }

  /** Behind the last chunk, the body is complete. Trailers are not read: the connection serves nothing else then. */
  #passLast(byte: number): void {
    const isFirst = this.#place === LAST_CR;
    this.#hasTrailers = byte !== (isFirst ? CR : LF);
    this.done = this.#hasTrailers || !isFirst;
    this.#place = LAST_LF;
  }

  #expect(isFit: boolean, next: number): void {
    if (!isFit) throw new Malformed("broken chunk framing");
    this.#place = next;
  }
}
