// The head of a message: the request line written, the status line and the fields parsed. It is strict. What another reader
// could read differently is refused, so that no two readers disagree about where a message ends.

import { Fields, Malformed } from "./fields.ts";
import type { Wire } from "./wire.ts";

const MAX_HEAD_BYTES = 64 * 1024;

export interface ResponseHead {
  readonly status: number;
  readonly minor: 0 | 1;
  readonly fields: Fields;
}

const METHOD = /^[A-Z][A-Z-]{0,31}$/;
const TARGET = /^\/[\x21\x22\x24-\x7e]*$/;
const AFTER_VERSION = /^ [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const ABSOLUTE = /^https?:\/\/[^/?#\s]+/i;

export interface ReadHead {
  readonly head: ResponseHead;
  /** The head ends at `end`. What follows has come with it. */
  readonly bytes: Buffer;
  readonly end: number;
}

const VERSION = "HTTP/1.";

/** Null: the connection has ended before. `start`: what has already come of the head. */
export async function readHead(
  wire: Wire,
  firstByteMs: number,
  idleMs: number,
  start: Buffer = Buffer.alloc(0),
): Promise<ReadHead | null> {
  let bytes = start;
  let searched = 0;
  for (;;) {
    const end = bytes.indexOf("\r\n\r\n", searched, "latin1") + 4;
    if ((end < 4 ? bytes.length : end) > MAX_HEAD_BYTES) throw new Malformed("the head is too large");
    if (end >= 4) return { head: parseResponse(bytes, end - 2), bytes, end };
    // A peer of another protocol may wait forever for us to speak.
    if (!VERSION.startsWith(bytes.toString("latin1", 0, VERSION.length))) throw new Malformed("not HTTP/1");
    const chunk = await wire.read(bytes.length === 0 ? firstByteMs : idleMs);
    if (chunk === null) return null;
    searched = Math.max(0, bytes.length - 3);
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
  }
}

/** The lines of the head, up to `end`, each with its CRLF. */
function parseResponse(bytes: Buffer, end: number): ResponseHead {
  const lineEnd = bytes.indexOf("\r\n", 0, "latin1");
  const line = bytes.toString("latin1", 0, lineEnd);
  const version = line.slice(0, 8);
  if ((version !== "HTTP/1.1" && version !== "HTTP/1.0") || !AFTER_VERSION.test(line.slice(8)))
    throw new Malformed("not a status line");
  return {
    status: Number(line.slice(9, 12)),
    minor: version === "HTTP/1.1" ? 1 : 0,
    fields: Fields.read(bytes.toString("latin1", lineEnd + 2, end - 2)),
  };
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
