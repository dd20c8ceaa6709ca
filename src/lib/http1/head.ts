// The head of a message: request line, status line and fields, parsed and written. It is strict. What another reader
// could read differently is refused, so that no two readers disagree about where a message ends.

import { Malformed, type Field } from "./types.ts";

export const MAX_HEAD_BYTES = 64 * 1024;

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  readonly minor: 0 | 1;
  readonly fields: readonly Field[];
}

export interface ResponseHead {
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
/** The fields that show where a message ends. Only framing code writes them. */
const FRAMING_FIELDS = new Set(["connection", "keep-alive", "content-length", "transfer-encoding"]);

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

/** `head` ends before the CRLF of its last line. */
export function parseRequest(head: string): RequestHead {
  const lineEnd = findLineEnd(head, 0);
  const first = head.indexOf(" ");
  const last = head.lastIndexOf(" ", lineEnd - 1);
  if (first <= 0 || last <= first) throw new Malformed("not a request line");
  const version = head.slice(last + 1, lineEnd);
  const minor = readMinor(version);
  if (minor === null) {
    const known = /^HTTP\/\d\.\d$/.test(version);
    throw new Malformed("only HTTP/1.1 and HTTP/1.0 are supported", known ? 505 : 400);
  }
  const method = head.slice(0, first);
  if (!METHOD.test(method) || method === "CONNECT") throw new Malformed("the method is not supported");
  return {
    method,
    target: readTarget(head.slice(first + 1, last)),
    minor,
    fields: parseFields(head, lineEnd + 2),
  };
}

const VERSION = "HTTP/1.";

/** False if these bytes cannot start a response. A peer of another protocol may wait forever for us to speak. */
export function canStartResponse(bytes: Buffer, from: number): boolean {
  return VERSION.startsWith(bytes.toString("latin1", from, from + VERSION.length));
}

export function parseResponse(head: string): ResponseHead {
  const lineEnd = findLineEnd(head, 0);
  const line = head.slice(0, lineEnd);
  const minor = readMinor(line.slice(0, 8));
  if (minor === null || !AFTER_VERSION.test(line.slice(8))) throw new Malformed("not a status line");
  return { status: Number(line.slice(9, 12)), minor, fields: parseFields(head, lineEnd + 2) };
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

function findLineEnd(head: string, from: number): number {
  const at = head.indexOf("\r\n", from);
  return at < 0 ? head.length : at;
}

/** The first value of a field. */
export function findField(fields: readonly Field[], name: string): string | undefined {
  for (const field of fields) if (field[0] === name) return field[1];
  return undefined;
}

/** Whether a comma-separated field names `token`, which must be lower case. */
export function hasToken(value: string | undefined, token: string): boolean {
  if (value === undefined) return false;
  if (value.length === token.length) return value.toLowerCase() === token;
  if (!value.includes(",")) return false;
  return value.split(",").some((part) => part.trim().toLowerCase() === token);
}

/** Field lines for the wire, in latin-1. Framing fields among `fields` are left out. */
export function writeFields(fields: readonly Field[]): string {
  let lines = "";
  for (const [name, value] of fields) {
    if (FRAMING_FIELDS.has(name)) continue;
    if (!TOKEN.test(name) || FORBIDDEN_IN_VALUE.test(value)) {
      throw new Malformed(`a forbidden character in the field ${JSON.stringify(name)}`);
    }
    lines = `${lines}${name}: ${value}\r\n`;
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

// Fields: one pass over the text. No strings are made except the values.

const TAB = 9;
const SPACE = 32;
const COLON = 58;

/** Two bits for each character: allowed in a name, allowed in a value. */
const IN_NAME = 1;
const IN_VALUE = 2;
const CHARACTER_KINDS = Uint8Array.from({ length: 256 }, (_, code) => {
  const char = String.fromCharCode(code);
  const named = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(char) ? IN_NAME : 0;
  return named | (/[\t\x20-\x7e\x80-\xff]/.test(char) ? IN_VALUE : 0);
});

/** Traffic repeats a few dozen names, so most are found in this table instead of being made again. */
const SLOTS = 1024;
const MAX_CACHED_NAME_BYTES = 64;
const knownNames: string[] = Array.from({ length: SLOTS }, () => "");

/** `head` is latin-1. Its fields start at `from` and end with it, without a last CRLF. */
function parseFields(head: string, from: number): Field[] {
  const fields: Field[] = [];
  let at = from;
  while (at < head.length) {
    const start = at;
    let hash = 0;
    for (; at < head.length; at += 1) {
      const code = head.charCodeAt(at);
      if (((CHARACTER_KINDS[code] ?? 0) & IN_NAME) === 0) break;
      hash = (Math.imul(hash, 31) + (code | 0x20)) & (SLOTS - 1);
    }
    if (at === start || head.charCodeAt(at) !== COLON) throw new Malformed("a field without a name");
    const name = readName(head, start, at, hash);
    const valueEnd = findValueEnd(head, at + 1);
    fields.push([name, trimBlanks(head, at + 1, valueEnd)]);
    at = skipLineEnd(head, valueEnd);
  }
  return fields;
}

/** Returns the name in lower case. */
function readName(head: string, start: number, end: number, slot: number): string {
  const expected = knownNames[slot] ?? "";
  if (matchesName(expected, head, start, end)) return expected;
  const name = head.slice(start, end).toLowerCase();
  if (name.length <= MAX_CACHED_NAME_BYTES) knownNames[slot] = name;
  return name;
}

function matchesName(name: string, head: string, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let at = start; at < end; at += 1) {
    const code = head.charCodeAt(at);
    const lower = code >= 65 && code <= 90 ? code | 0x20 : code;
    if (lower !== name.charCodeAt(at - start)) return false;
  }
  return true;
}

function findValueEnd(head: string, from: number): number {
  let at = from;
  while (at < head.length && ((CHARACTER_KINDS[head.charCodeAt(at)] ?? 0) & IN_VALUE) !== 0) at += 1;
  return at;
}

/** Refuses a folded line, a lone CR or LF, and every other character that a value must not contain. */
function skipLineEnd(head: string, at: number): number {
  if (at === head.length) return at;
  if (head.charCodeAt(at) !== CR || head.charCodeAt(at + 1) !== LF)
    throw new Malformed("a forbidden character in a field");
  return at + 2;
}

function trimBlanks(head: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(head.charCodeAt(start))) start += 1;
  while (end > start && isBlank(head.charCodeAt(end - 1))) end -= 1;
  return head.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}
