// The head of a message: request line, status line and fields, parsed and written. It is strict. What another reader
// could read differently is refused, so that no two readers disagree about where a message ends.

import { Fields, Malformed } from "../http/fields.ts";

export const MAX_HEAD_BYTES = 64 * 1024;

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  readonly minor: 0 | 1;
  readonly fields: Fields;
}

export interface ResponseHead {
  readonly status: number;
  readonly minor: 0 | 1;
  readonly fields: Fields;
}

const CR = 13;
const LF = 10;
const METHOD = /^[A-Z][A-Z-]{0,31}$/;
const TARGET = /^\/[\x21\x22\x24-\x7e]*$/;
const AFTER_VERSION = /^ [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const ABSOLUTE = /^https?:\/\/[^/?#\s]+/i;

/** The index after the empty line of the head that starts at `from`, or -1. */
export function findHeadEnd(bytes: Buffer, from: number): number {
  const end = bytes.indexOf("\r\n\r\n", from, "latin1");
  return end < 0 ? -1 : end + 4;
}

/** Finds the end of a head that arrives in many pieces, without searching the earlier ones again. */
export class HeadSearch {
  #searched = 0;

  /** `bytes` has all pieces so far. Returns what findHeadEnd returns. After a head was found, the next search is new. */
  findEnd(bytes: Buffer, from: number): number {
    const end = findHeadEnd(bytes, Math.max(from, this.#searched - 3));
    this.#searched = end < 0 ? bytes.length : 0;
    return end;
  }

  /** Call this when pieces without a whole head were removed from the front. */
  reset(): void {
    this.#searched = 0;
  }
}

/** Empty lines before a request are accepted, as RFC 9112 section 2.2 asks. */
export function skipEmptyLines(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === CR && bytes[at + 1] === LF) at += 2;
  return at;
}

const TLS_HANDSHAKE = 22;

/** Accepts a method's first letter, half a line end, or nothing yet. Anything else can never become a request, so it is
 *  refused without waiting for the rest. */
export function requireRequestStart(byte: number | undefined): void {
  if (byte === TLS_HANDSHAKE) throw new Malformed("this is TLS, but plain HTTP is served here (http://)");
  if (byte === undefined || byte === CR || (byte >= 65 && byte <= 90)) return;
  throw new Malformed("not a request line");
}

/** The lines of the head, from `from` to `end`, each with its CRLF. */
export function parseRequest(bytes: Buffer, from: number, end: number): RequestHead {
  const lineEnd = findLineEnd(bytes, from, end);
  const line = bytes.toString("latin1", from, lineEnd);
  const first = line.indexOf(" ");
  const last = line.lastIndexOf(" ");
  if (first <= 0 || last <= first) throw new Malformed("not a request line");
  const version = line.slice(last + 1);
  const minor = readMinor(version);
  if (minor === null) {
    const known = /^HTTP\/\d\.\d$/.test(version);
    throw new Malformed("only HTTP/1.1 and HTTP/1.0 are supported", known ? 505 : 400);
  }
  const method = line.slice(0, first);
  if (!METHOD.test(method) || method === "CONNECT") throw new Malformed("the method is not supported");
  return {
    method,
    target: readTarget(line.slice(first + 1, last)),
    minor,
    fields: Fields.read(bytes, lineEnd + 2, end),
  };
}

const VERSION = "HTTP/1.";

/** False if these bytes cannot start a response. A peer of another protocol may wait forever for us to speak. */
export function canStartResponse(bytes: Buffer, from: number): boolean {
  return VERSION.startsWith(bytes.toString("latin1", from, from + VERSION.length));
}

/** The lines of the head, from `from` to `end`, each with its CRLF. */
export function parseResponse(bytes: Buffer, from: number, end: number): ResponseHead {
  const lineEnd = findLineEnd(bytes, from, end);
  const line = bytes.toString("latin1", from, lineEnd);
  const minor = readMinor(line.slice(0, 8));
  if (minor === null || !AFTER_VERSION.test(line.slice(8))) throw new Malformed("not a status line");
  return { status: Number(line.slice(9, 12)), minor, fields: Fields.read(bytes, lineEnd + 2, end) };
}

function readMinor(version: string): 0 | 1 | null {
  if (version === "HTTP/1.1") return 1;
  return version === "HTTP/1.0" ? 0 : null;
}

/** Returns path and query. The authority of an absolute-form target is dropped, because the Host field is used. */
function readTarget(raw: string): string {
  if (raw.charCodeAt(0) !== 47) {
    if (raw === "*") return raw;
    const authority = ABSOLUTE.exec(raw);
    if (authority === null) throw new Malformed("not a request target");
    const path = raw.slice(authority[0].length);
    return readTarget(path.startsWith("/") ? path : `/${path}`);
  }
  if (!TARGET.test(raw)) throw new Malformed("not a request target");
  return raw;
}

/** The index of the line's CRLF. */
function findLineEnd(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && (bytes[at] !== CR || bytes[at + 1] !== LF)) at += 1;
  return at;
}

/** Whether a comma-separated field names `token`, which must be lower case. */
export function hasToken(value: string | undefined, token: string): boolean {
  if (value === undefined) return false;
  if (value.length === token.length) return value.toLowerCase() === token;
  if (!value.includes(",")) return false;
  return value.split(",").some((part) => part.trim().toLowerCase() === token);
}

export function writeRequestLine(method: string, target: string): string {
  if (
    !METHOD.test(method) ||
    !(TARGET.test(target) || ABSOLUTE.test(target)) ||
    /[^\x21-\x7e]/.test(target)
  ) {
    throw new Malformed("a forbidden character in the request line");
  }
  return `${method} ${target} HTTP/1.1\r\n`;
}

const REASONS = new Map([
  [200, "OK"],
  [201, "Created"],
  [202, "Accepted"],
  [204, "No Content"],
  [206, "Partial Content"],
  [301, "Moved Permanently"],
  [302, "Found"],
  [304, "Not Modified"],
  [400, "Bad Request"],
  [401, "Unauthorized"],
  [403, "Forbidden"],
  [404, "Not Found"],
  [405, "Method Not Allowed"],
  [408, "Request Timeout"],
  [409, "Conflict"],
  [413, "Content Too Large"],
  [422, "Unprocessable Content"],
  [426, "Upgrade Required"],
  [429, "Too Many Requests"],
  [431, "Request Header Fields Too Large"],
  [500, "Internal Server Error"],
  [501, "Not Implemented"],
  [502, "Bad Gateway"],
  [503, "Service Unavailable"],
  [504, "Gateway Timeout"],
  [505, "HTTP Version Not Supported"],
  [529, "Overloaded"],
]);

export function writeStatusLine(status: number): string {
  return `HTTP/1.1 ${status} ${REASONS.get(status) ?? ""}\r\n`;
}
