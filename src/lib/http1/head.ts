// The head of a message, from bytes to words and back: request line, status
// line, fields. Strict: what a lenient neighbour could read differently is
// refused, so that no two readers disagree about where a message ends.
// What this file does not own: what the fields mean for the body (framing.ts).

import { parseFields } from "./fields.ts";
import { Malformed } from "./malformed.ts";
import type { Field } from "./types.ts";

export const MAX_HEAD_BYTES = 64 * 1024;

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** HTTP/1.0 or HTTP/1.1. */
  readonly minor: 0 | 1;
  readonly fields: readonly Field[];
}

export interface AnswerHead {
  readonly status: number;
  readonly minor: 0 | 1;
  readonly fields: Field[];
}

const CR = 13;
const LF = 10;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FORBIDDEN_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const METHOD = /^[A-Z][A-Z-]{0,31}$/;
const TARGET = /^\/[\x21\x22\x24-\x7e]*$/;
const AFTER_VERSION = /^ [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const ABSOLUTE = /^https?:\/\/[^/?#\s]+/i;
/** The fields that say where a message ends: only framing.ts writes them. */
const FRAMING = new Set(["connection", "keep-alive", "content-length", "transfer-encoding"]);

/** Where the head that starts at `from` ends (behind its empty line), or -1. */
export function findHeadEnd(bytes: Buffer, from: number): number {
  const end = bytes.indexOf("\r\n\r\n", from, "latin1");
  return end < 0 ? -1 : end + 4;
}

/** Empty lines before a request are forgiven, as RFC 9112 2.2 asks. */
export function skipEmptyLines(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === CR && bytes[at + 1] === LF) at += 2;
  return at;
}

const TLS_HANDSHAKE = 22;

/** A method's first letter, half a line end, or nothing yet. What begins otherwise becomes no request however long it
 *  is waited for. */
export function requireBeginning(byte: number | undefined): void {
  if (byte === TLS_HANDSHAKE) throw new Malformed("it is TLS, and plain HTTP is spoken here (http://)");
  if (byte === undefined || byte === CR || (byte >= 65 && byte <= 90)) return;
  throw new Malformed("not a request line");
}

/** `head` is everything up to and without the empty line and the CRLF before it. */
export function parseRequest(head: string): RequestHead {
  const lineEnd = endOfLine(head, 0);
  const first = head.indexOf(" ");
  const last = head.lastIndexOf(" ", lineEnd - 1);
  if (first <= 0 || last <= first) throw new Malformed("not a request line");
  const version = head.slice(last + 1, lineEnd);
  const minor = minorOf(version);
  if (minor === null) {
    const known = /^HTTP\/\d\.\d$/.test(version);
    throw new Malformed("only HTTP/1.1 and HTTP/1.0 are spoken here", known ? 505 : 400);
  }
  const method = head.slice(0, first);
  if (!METHOD.test(method) || method === "CONNECT") throw new Malformed("not a method that is served here");
  return {
    method,
    target: readTarget(head.slice(first + 1, last)),
    minor,
    fields: parseFields(head, lineEnd + 2),
  };
}

const VERSION = "HTTP/1.";

/** False where no answer can come of it, however much follows: who speaks another protocol may wait for ever. */
export function mayBeginAnswer(bytes: Buffer, from: number): boolean {
  return VERSION.startsWith(bytes.toString("latin1", from, from + VERSION.length));
}

export function parseAnswer(head: string): AnswerHead {
  const lineEnd = endOfLine(head, 0);
  const line = head.slice(0, lineEnd);
  const minor = minorOf(line.slice(0, 8));
  if (minor === null || !AFTER_VERSION.test(line.slice(8))) throw new Malformed("not a status line");
  return { status: Number(line.slice(9, 12)), minor, fields: parseFields(head, lineEnd + 2) };
}

function minorOf(version: string): 0 | 1 | null {
  if (version === "HTTP/1.1") return 1;
  return version === "HTTP/1.0" ? 0 : null;
}

/** Path and query. Absolute-form loses its authority: the Host field says what it says. */
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

function endOfLine(head: string, from: number): number {
  const at = head.indexOf("\r\n", from);
  return at < 0 ? head.length : at;
}

/** The first value of a field. */
export function findField(fields: readonly Field[], name: string): string | undefined {
  for (const field of fields) if (field[0] === name) return field[1];
  return undefined;
}

/** Whether a comma-separated field names `token`; `token` is lower case. */
export function hasToken(value: string | undefined, token: string): boolean {
  if (value === undefined) return false;
  if (value.length === token.length) return value.toLowerCase() === token;
  if (!value.includes(",")) return false;
  return value.split(",").some((part) => part.trim().toLowerCase() === token);
}

/** Field lines for the wire, one latin-1 character a byte. Framing fields among `fields` are left out. */
export function writeFields(fields: readonly Field[]): string {
  let lines = "";
  for (const [name, value] of fields) {
    if (FRAMING.has(name)) continue;
    if (!TOKEN.test(name) || FORBIDDEN_IN_VALUE.test(value)) {
      throw new Malformed(`a forbidden character in the field ${JSON.stringify(name)}`);
    }
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
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
