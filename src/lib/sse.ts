// Server-sent events in bytes that may be cut anywhere.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

import { GatewayError } from "./errors.ts";
import { asBuffer, joinChunks } from "./memory/bytes.ts";

export interface SseEvent {
  readonly name: string;
  readonly data: string;
}

export const LF = 0x0a;
export const CR = 0x0d;
const [BLANK, COLON, LETTER_D] = [0x20, 0x3a, 0x64] as const;
export const BLANK_LINE = Buffer.from("\n\n");
export const BYTE_ORDER_MARK = "\ufeff";
/** A stream's last event may repeat the answer and the request's tools. */
export const MAX_EVENT_BYTES = 32 * 1024 * 1024;

export class EventReader {
  #fresh: Buffer[] = [];
  #begun: Buffer[] = [];
  begunBytes = 0;
  /** After a CR: a LF that follows belongs to the same line end. */
  #endedInCr = false;
  /** An event was too long to be kept: its bytes are lost. */
  #hasLost = false;
  #isLosing = false;

  add(chunk: Uint8Array): void {
    this.#fresh.push(asBuffer(chunk));
  }

  /** Events with LF as line ends. The first may have begun earlier. */
  take(): readonly Buffer[] {
    const bytes = this.#takeFresh();
    const first = this.#findFirstEnd(bytes);
    if (first < 0) {
      this.#begin(bytes);
      return [];
    }
    const end = Math.max(first, bytes.lastIndexOf(BLANK_LINE) + BLANK_LINE.length);
    const whole: Buffer[] = [];
    if (this.begunBytes > 0) whole.push(Buffer.concat([...this.#begun, bytes.subarray(0, first)]));
    const from = this.begunBytes > 0 || this.#isLosing ? first : 0;
    whole.push(from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end));
    this.#begun = [];
    this.begunBytes = 0;
    this.#isLosing = false;
    if (end < bytes.length) this.#begin(bytes.subarray(end));
    return whole;
  }

  takeText(): string {
    const events = this.take();
    if (!this.#hasLost) return events.join("");
    throw new GatewayError(
      "upstream_failed",
      `The upstream sent an event of more than ${MAX_EVENT_BYTES} bytes.`,
    );
  }

  peek(): Buffer {
    return joinChunks(this.#begun);
  }

  #takeFresh(): Buffer {
    const joined = joinChunks(this.#fresh);
    this.#fresh = [];
    const skipsLf = this.#endedInCr && joined[0] === LF;
    if (joined.length > 0) this.#endedInCr = joined.at(-1) === CR;
    return unifyLineEnds(skipsLf ? joined.subarray(1) : joined);
  }

  #findFirstEnd(bytes: Buffer): number {
    if (bytes[0] === LF && this.#begun.at(-1)?.at(-1) === LF) return 1;
    const at = bytes.indexOf(BLANK_LINE);
    return at < 0 ? -1 : at + BLANK_LINE.length;
  }

  #begin(bytes: Buffer): void {
    if (bytes.length === 0 || this.#isLosing) return;
    this.#begun.push(bytes);
    this.begunBytes += bytes.length;
    if (this.begunBytes <= MAX_EVENT_BYTES) return;
    this.#begun = [];
    this.begunBytes = 0;
    this.#isLosing = true;
    this.#hasLost = true;
  }
}

function unifyLineEnds(bytes: Buffer): Buffer {
  if (!bytes.includes(CR)) return bytes;
  return Buffer.from(bytes.toString("latin1").replaceAll(/\r\n?/g, "\n"), "latin1");
}

/** Null for an event without a `data` line. */
export function readEvent(text: string): SseEvent | null {
  let name = "";
  let data: string | null = null;
  for (let at = text.startsWith(BYTE_ORDER_MARK) ? 1 : 0, end = 0; end < text.length; at = end + 1) {
    const next = text.indexOf("\n", at);
    end = next < 0 ? text.length : next;
    const value = text.charCodeAt(at) === LETTER_D ? readField(text, "data", at, end) : null;
    if (value === null) name = readField(text, "event", at, end) ?? name;
    else data = data === null ? value : `${data}\n${value}`;
  }
  return data === null ? null : { name, data };
}

/** Null: another field. Without a colon, the value is empty. */
function readField(text: string, field: string, at: number, end: number): string | null {
  if (!text.startsWith(field, at)) return null;
  const colon = at + field.length;
  if (colon === end) return "";
  if (text.charCodeAt(colon) !== COLON) return null;
  return text.slice(colon + (text.charCodeAt(colon + 1) === BLANK ? 2 : 1), end);
}

/** `end` returns the last event if its blank line is missing. */
export function openSseParser() {
  const reader = new EventReader();
  return {
    push(chunk: Uint8Array): SseEvent[] {
      reader.add(chunk);
      return reader
        .takeText()
        .split("\n\n")
        .flatMap((text) => readEvent(text) ?? []);
    },
    end: (): SseEvent[] => [readEvent(reader.peek().toString()) ?? []].flat(),
  };
}

/** What has to follow, so that every client takes the last event as complete. Some clients
 *  do not end a line at a CR alone, so its LF has to follow. `closer` ends a line and an event. */
export function findMissingEnd(text: string, closer: string): string {
  if (text.endsWith("\r\n\r")) return "\n";
  return text === "" || /(?:\n\n|[\n\r]\r\n?)$/.test(text.slice(-4)) ? "" : closer;
}
