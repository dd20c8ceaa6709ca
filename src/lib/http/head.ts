// The head of a message: the request line written, the status line and the fields parsed. It is strict. What another reader
// could read differently is refused, so that no two readers disagree about where a message ends.

import { Fields, Malformed } from "./fields.ts";

export const MAX_HEAD_BYTES = 64 * 1024;

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
  return {
    status: Number(line.slice(9, 12)),
    minor,
    fields: Fields.read(bytes.toString("latin1", lineEnd + 2, end - 2)),
  };
}

function readMinor(version: string): 0 | 1 | null {
  if (version === "HTTP/1.1") return 1;
  return version === "HTTP/1.0" ? 0 : null;
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
