// Server-sent events out of a byte stream that may be cut anywhere. Owns lines
// and fields; what an event means is the reader's business. Lines end in LF or
// CRLF (a lone CR, which no platform sends, does not end a line).

import { GatewayError } from "../errors.ts";

export interface SseEvent {
  /** The `event:` field; empty when there was none. */
  readonly name: string;
  readonly data: string;
}

export interface SseSplitter {
  /** The events that these bytes complete. Throws when one grows over the limit. */
  push(chunk: Uint8Array): SseEvent[];
  /** What was left without its closing blank line: an event whose data may be cut. */
  end(): SseEvent[];
}

/** A finished answer repeats all its text and the request's tools in one event: far above any real one. */
const LONGEST_EVENT = 64 * 1024 * 1024;

interface Draft {
  name: string;
  data: string | null;
  size: number;
}

export function openSseSplitter(longest = LONGEST_EVENT): SseSplitter {
  const decoder = new TextDecoder();
  const draft: Draft = { name: "", data: null, size: 0 };
  // A line that goes on over many chunks is joined once, not again with each chunk.
  let pieces: string[] = [];

  function take(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      const rest = text.slice(start, end);
      const line = pieces.length === 0 ? rest : pieces.join("") + rest;
      pieces = [];
      draft.size += end + 1 - start;
      start = end + 1;
      readLine(draft, line.endsWith("\r") ? line.slice(0, -1) : line, events);
    }
    draft.size += text.length - start;
    if (start < text.length) pieces.push(text.slice(start));
    if (draft.size > longest) {
      throw new GatewayError("upstream_failed", `The upstream sent an event of more than ${longest} bytes.`);
    }
    return events;
  }

  return {
    push: (chunk) => take(decoder.decode(chunk, { stream: true })),
    end: () => take(`${decoder.decode()}\n\n`),
  };
}

function readLine(draft: Draft, line: string, events: SseEvent[]): void {
  if (line === "") {
    if (draft.data !== null) events.push({ name: draft.name, data: draft.data });
    draft.name = "";
    draft.data = null;
    draft.size = 0;
    return;
  }
  if (line.startsWith("data:")) {
    const value = readValue(line, 5);
    draft.data = draft.data === null ? value : `${draft.data}\n${value}`;
  } else if (line.startsWith("event:")) {
    draft.name = readValue(line, 6);
  }
}

function readValue(line: string, from: number): string {
  return line.slice(line.charCodeAt(from) === 0x20 ? from + 1 : from);
}
