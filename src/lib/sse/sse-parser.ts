// Parses server-sent events from bytes that may be cut anywhere, as the standard defines them:
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
// A line ends in LF, CR or CRLF. The fields `id` and `retry` are ignored, because nobody reconnects to a model's answer.
// Not a library: a chunk is cut into events only when asked, and an event has a bound.

import { GatewayError } from "../errors.ts";

export interface SseEvent {
  /** The `event:` field, or an empty string. */
  readonly name: string;
  readonly data: string;
}

export interface SseParser {
  /** Returns the events that these bytes complete. Throws if an event grows over the limit. */
  push(chunk: Uint8Array): SseEvent[];
  /** Returns an event whose closing blank line is missing. Its data may be cut. */
  end(): SseEvent[];
}

/** A final event repeats the whole answer and the request's tools. No real one comes near this size. */
const MAX_EVENT_SIZE = 64 * 1024 * 1024;
const COLON = 0x3a;
const SPACE = 0x20;

/** The event whose blank line has not arrived yet. */
interface Draft {
  name: string;
  /** Null without a `data` line. Such an event is not dispatched. */
  data: string | null;
  /** Characters of all its lines. */
  size: number;
  /** The events before it that have not been passed on. */
  whole: SseEvent[];
}

export function openSseParser(maxSize = MAX_EVENT_SIZE): SseParser {
  const decoder = new TextDecoder(); // removes a byte order mark at the start
  const draft: Draft = { name: "", data: null, size: 0, whole: [] };
  // The start of a line that has not ended. Joined once, at its end, so that a line in many chunks takes linear time.
  let pieces: string[] = [];
  // The last chunk ended in CR. A LF that follows belongs to the same line end.
  let endedInCr = false;

  function push(text: string): SseEvent[] {
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      draft.size += end - start + 1;
      if (pieces.length === 0) readLine(draft, text, start, end);
      else {
        const line = pieces.join("") + text.slice(start, end);
        readLine(draft, line, 0, line.length);
        pieces = [];
      }
      start = end + 1;
    }
    draft.size += text.length - start;
    if (start < text.length) pieces.push(text.slice(start));
    if (draft.size > maxSize) {
      throw new GatewayError("upstream_failed", `The upstream sent an event of more than ${maxSize} bytes.`);
    }
    const { whole } = draft;
    draft.whole = [];
    return whole;
  }

  /** Makes every line end LF. Most streams have no CR. */
  function unifyLineEnds(text: string): string {
    const rest = endedInCr && text.startsWith("\n") ? text.slice(1) : text;
    if (text !== "") endedInCr = text.endsWith("\r");
    return rest.includes("\r") ? rest.replaceAll(/\r\n?/g, "\n") : rest;
  }

  return {
    push: (chunk) => push(unifyLineEnds(decoder.decode(chunk, { stream: true }))),
    end: () => push(`${decoder.decode()}\n\n`),
  };
}

/** The line is a part of the text: a copy of each line would cost more than the rest of the parser. */
function readLine(draft: Draft, text: string, start: number, end: number): void {
  if (start === end) {
    if (draft.data !== null) draft.whole.push({ name: draft.name, data: draft.data });
    draft.name = "";
    draft.data = null;
    draft.size = 0;
    return;
  }
  const data = readField(text, start, end, "data");
  if (data === null) draft.name = readField(text, start, end, "event") ?? draft.name;
  else draft.data = draft.data === null ? data : `${draft.data}\n${data}`;
}

/** The value of a field. Null if the line is another field or a comment. A line without a colon is a field without a value. */
function readField(text: string, start: number, end: number, field: string): string | null {
  const colon = start + field.length;
  if (colon > end || !text.startsWith(field, start)) return null;
  if (colon === end) return "";
  if (text.charCodeAt(colon) !== COLON) return null;
  return text.slice(colon + (text.charCodeAt(colon + 1) === SPACE ? 2 : 1), end);
}

/** True if the text is empty or ends with a blank line, so that another event can follow. */
export function endsWithWholeEvent(text: string): boolean {
  return text === "" || /(?:\n\n|[\n\r]\r\n?)$/.test(text.slice(-4));
}

/** What must follow the text so that its last event is whole for every client. Some know CR alone as a line end, as the
 *  standard has it, and some do not: half of the last CRLF is not enough for these. `closer`: ends a line, and an event. */
export function findMissingEnd(text: string, closer: string): string {
  if (text.endsWith("\r\n\r")) return "\n";
  return endsWithWholeEvent(text) ? "" : closer;
}
