// The short way for the bulk of a stream: the next delta of the item that spoke last. Such an
// event is the one before it to the letter, but for its delta and what says nothing; so its JSON
// string is passed on as it came, without parsing the event. All other events go the long way.

import { isUtf8 } from "node:buffer";
import { scanTopLevel } from "../../lib/json-scan.ts";
import type { SseEvent } from "../../lib/sse-events.ts";
import type { Json } from "./json.ts";
import { findEventEntry, type Stream } from "./state.ts";

export interface Lane {
  /** What such an event is made of: pieces that are always the same, and a gap between each two of them. */
  readonly pieces: readonly Uint8Array[];
  readonly gaps: readonly Gap[];
  /** What stands before and behind the delta in a chunk. */
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

/** The JSON string of the delta; another one; digits. */
type Gap = "delta" | "text" | "count";

const GAPS: Readonly<Record<string, Gap>> = {
  delta: "delta",
  obfuscation: "text",
  sequence_number: "count",
};

const OPENINGS: Readonly<Record<string, string>> = {
  "response.output_text.delta": '{"content":"',
  "response.refusal.delta": '{"refusal":"',
  "response.reasoning_summary_text.delta": '{"reasoning_content":"',
  "response.reasoning_text.delta": '{"reasoning_content":"',
};

/** The lane of deltas like this one, which has been told the long way. */
export function openLane(stream: Stream, type: string, event: Json, sse: SseEvent): Lane | null {
  const entry = findEventEntry(stream, event);
  const { frame } = stream;
  if (entry === undefined || !entry.told || entry.muted || frame.logprobs) return null;
  const form = readForm(sse);
  if (form === null) return null;
  const opening = OPENINGS[type];
  return {
    ...form,
    before: Buffer.from(frame.start + (opening ?? `${entry.before}"`)),
    after: Buffer.from((opening === undefined ? `"${entry.after}` : '"}') + frame.end),
  };
}

const NOTHING = new Uint8Array(0);
const QUOTE = 34;
const BACKSLASH = 92;
const ZERO = 48;
const NINE = 57;
const SPACE = 32;
const LAST_ASCII = 127;
const ESCAPED = Buffer.from('"\\bfnrt');

/** Null where the event has no delta, or where two readers may see another one. */
function readForm({ name, data }: SseEvent): Pick<Lane, "pieces" | "gaps"> | null {
  const json = Buffer.from(data);
  const scan = scanTopLevel(json, Object.keys(GAPS));
  if (scan.kind !== "object" || !scan.spans.has("delta")) return null;
  const pieces: Uint8Array[] = [];
  const gaps: Gap[] = [];
  let piece = name === "" ? "data: " : `event: ${name}\ndata: `;
  let from = 0;
  for (const [member, { start, end }] of scan.spans) {
    const gap = GAPS[member] ?? "text";
    const quotes = json[start] === QUOTE ? 1 : 0;
    if ((gap === "count") === (quotes === 1)) return null;
    pieces.push(Buffer.from(piece + json.toString("utf8", from, start + quotes)));
    gaps.push(gap);
    piece = "";
    from = end - quotes;
  }
  pieces.push(Buffer.from(`${json.toString("utf8", from)}\n\n`));
  return { pieces, gaps };
}

/** Tells the events from a place on as far as they go the short way. Returns where they do no more. */
export function tellInLane(lane: Lane, chunk: Buffer, from: number, told: Buffer[]): number {
  let at = from;
  while (at < chunk.length) {
    const place = findDelta(lane, chunk, at);
    if (place === null) break;
    told.push(writeChunk(lane, chunk, place));
    at = place.end;
  }
  return at;
}

function writeChunk({ before, after }: Lane, chunk: Buffer, { from, to }: Place): Buffer {
  const length = to - from;
  const told = Buffer.allocUnsafe(before.length + length + after.length);
  told.set(before, 0);
  // Most deltas are a word: shorter than a native copy takes to begin.
  for (let index = 0; index < length; index += 1) told[before.length + index] = chunk[from + index] ?? 0;
  told.set(after, before.length + length);
  return told;
}

/** Where a delta stands, and where its event ends. */
interface Place {
  readonly from: number;
  readonly to: number;
  readonly end: number;
}

/** Null: no whole event of this form begins here, or its delta says nothing. */
function findDelta({ pieces, gaps }: Lane, chunk: Buffer, start: number): Place | null {
  let from = 0;
  let to = 0;
  let at = start;
  for (let index = 0; index < pieces.length; index += 1) {
    at = passPiece(pieces[index] ?? NOTHING, chunk, at);
    if (at < 0) return null;
    const gap = gaps[index];
    if (gap === undefined) break;
    const end = gap === "count" ? passDigits(chunk, at) : passText(chunk, at);
    if (gap === "delta") {
      from = at;
      to = end;
    }
    at = end;
  }
  return from === to ? null : { from, to, end: at };
}

function passPiece(piece: Uint8Array, chunk: Buffer, at: number): number {
  const end = at + piece.length;
  return end <= chunk.length && chunk.compare(piece, 0, piece.length, at, end) === 0 ? end : -1;
}

function passDigits(chunk: Buffer, from: number): number {
  let at = from;
  while ((chunk[at] ?? 0) >= ZERO && (chunk[at] ?? 0) <= NINE) at += 1;
  return at;
}

/** To the quote that ends a string, or to what goes the long way: what cannot stand in one, or can be spelled otherwise. */
function passText(chunk: Buffer, from: number): number {
  let at = from;
  let ascii = true;
  for (let byte = chunk[at]; byte !== undefined && byte !== QUOTE && byte >= SPACE; byte = chunk[at]) {
    if (byte > LAST_ASCII) ascii = false;
    if (byte === BACKSLASH && !ESCAPED.includes(chunk[at + 1] ?? 0)) return at;
    at += byte === BACKSLASH ? 2 : 1;
  }
  return ascii || isUtf8(chunk.subarray(from, at)) ? at : from;
}
