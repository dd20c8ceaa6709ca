// Finds the events that matter in a stream of server-sent events while its bytes pass, at the speed of the native search.
// An event matters if it contains one of a few texts, the needles. Nothing else is decoded. Like the parser, it follows
// the standard: a line ends in LF, CR or CRLF, and the `data` lines of an event belong together.

import { asBuffer } from "../memory/bytes.ts";

const LF = 0x0a;
const CR = 0x0d;
const BLANK_LINE = Buffer.from("\n\n");
const BYTE_ORDER_MARK = Buffer.from("\ufeff");
const DATA_LINE = Buffer.from("\ndata");
/** Until this many bytes of other events have passed, all of them are samples. No sample is longer than this. */
const SAMPLE_BYTES = 32 * 1024;
/** From then on, one byte in 64 is a sample. */
const SAMPLE_SHARE = 64;
/** The samples that look for the first text are this long. */
const SEARCH_BYTES = 2048;

/** Receives the bytes of one long event. A piece is valid only during the call. */
export interface LongEventSink {
  see(piece: Buffer): void;
  end(): void;
}

export interface SseListener {
  /** An event matters if it contains one of these texts. */
  readonly needles: readonly string[];
  /** A longer event is never held. The sink of `openLong` gets it piece by piece, whether it matters or not. It may also
   *  get a shorter event that is too long for a sample. */
  readonly limit: number;
  /** An event that matters, as one line without its line end: `data:` and the value. Several `data` lines are joined
   *  with LF, as the standard says. Valid only during the call. */
  onEvent(line: Buffer): void;
  openLong(): LongEventSink;
  /** Samples of the events that do not matter, with LF as line ends: the first ones, then one byte in 64. Until one has
   *  text, more of them. Returns whether it has. */
  onSample(lines: Buffer): boolean;
}

export class SseScanner {
  readonly #listener: SseListener;
  readonly #needles: readonly Buffer[];
  /** The start of an event that has not ended, while it is within the limit. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #lastByte = 0;
  #endedInCr = false;
  #long: LongEventSink | null = null;
  /** A sample has shown text. */
  #hasText = false;
  #plainBytes = 0;
  #sampledBytes = 0;

  constructor(listener: SseListener) {
    this.#listener = listener;
    this.#needles = listener.needles.map((text) => Buffer.from(text));
  }

  /** The number of bytes so far in events that did not matter, without those before the first text. */
  get plainBytes(): number {
    return this.#plainBytes;
  }

  /** The line of an event that has not ended, while it is within the limit. */
  peek(): Buffer {
    return joinLines(Buffer.concat(this.#held));
  }

  see(bytes: Uint8Array): void {
    const chunk = this.#unifyLineEnds(asBuffer(bytes));
    let from = 0;
    if (this.#heldBytes > 0 || this.#long !== null) {
      from = this.#lastByte === LF && chunk[0] === LF ? 1 : findEventEnd(chunk, 0);
      if (from > 0) this.#finishEvent(chunk.subarray(0, from));
    }
    const last = chunk.lastIndexOf(BLANK_LINE);
    const whole = last < 0 ? from : Math.max(from, last + BLANK_LINE.length);
    if (whole > from) this.#scan(from === 0 && whole === chunk.length ? chunk : chunk.subarray(from, whole));
    if (whole < chunk.length) this.#hold(chunk.subarray(whole));
    this.#lastByte = chunk.at(-1) ?? this.#lastByte;
  }

  /** Makes every line end LF. Most streams have no CR and are not copied. */
  #unifyLineEnds(chunk: Buffer): Buffer {
    const skipsLf = this.#endedInCr && chunk[0] === LF;
    if (chunk.length > 0) this.#endedInCr = chunk.at(-1) === CR;
    let cr = chunk.indexOf(CR);
    if (cr < 0) return skipsLf ? chunk.subarray(1) : chunk;
    const unified = Buffer.allocUnsafe(chunk.length);
    let size = 0;
    let from = skipsLf ? 1 : 0;
    while (cr >= 0) {
      size += chunk.copy(unified, size, from, cr);
      unified[size] = LF;
      size += 1;
      from = chunk[cr + 1] === LF ? cr + 2 : cr + 1;
      cr = chunk.indexOf(CR, from);
    }
    size += chunk.copy(unified, size, from);
    return unified.subarray(0, size);
  }

  /** Searches whole events. */
  #scan(events: Buffer): void {
    let hits: number[] | null = null;
    for (let i = 0; i < this.#needles.length; i += 1) {
      const hit = events.indexOf(this.#needles[i] ?? "");
      if (hit >= 0) (hits ??= []).push(hit);
    }
    if (hits === null) this.#seePlain(events);
    else this.#split(events, Math.min(...hits));
  }

  /** Walks from hit to hit. */
  #split(events: Buffer, firstHit: number): void {
    let from = 0;
    for (let hit = firstHit; hit >= 0; hit = this.#findNeedle(events, from)) {
      const before = events.subarray(from, hit).lastIndexOf(BLANK_LINE);
      const start = before < 0 ? from : from + before + BLANK_LINE.length;
      const end = findEventEnd(events, hit) || events.length;
      if (start > from) this.#seePlain(events.subarray(from, start));
      this.#seeEvent(events.subarray(start, end));
      from = end;
    }
    if (from < events.length) this.#seePlain(events.subarray(from));
  }

  /** The nearest needle. The steps grow, so that a hit nearby takes no search to the end of the chunk. */
  #findNeedle(events: Buffer, from: number): number {
    for (let at = from, step = 1024; at < events.length; step *= 8) {
      const to = findEventEnd(events, at + step) || events.length;
      const window = events.subarray(at, to);
      let least = -1;
      for (const needle of this.#needles) {
        const hit = window.indexOf(needle);
        if (hit >= 0 && (least < 0 || hit < least)) least = hit;
      }
      if (least >= 0) return at + least;
      at = to;
    }
    return -1;
  }

  #seeEvent(event: Buffer): void {
    if (event.length <= this.#listener.limit) {
      this.#listener.onEvent(joinLines(event));
      return;
    }
    this.#seeLong(event);
  }

  #seeLong(event: Buffer): void {
    const sink = this.#listener.openLong();
    sink.see(event);
    sink.end();
  }

  #seePlain(events: Buffer): void {
    let from = this.#hasText ? 0 : this.#seekText(events);
    while (events.length - from > SAMPLE_BYTES) {
      const end = findEventEnd(events, from) || events.length;
      if (end - from <= SAMPLE_BYTES) break;
      // A sample of a part of it would not be JSON.
      this.#seeLong(events.subarray(from, end));
      from = end;
    }
    if (from < events.length) this.#seeText(from === 0 ? events : events.subarray(from));
  }

  #seeText(events: Buffer): void {
    this.#plainBytes += events.length;
    const hasFirst = this.#plainBytes > SAMPLE_BYTES && this.#sampledBytes > SAMPLE_BYTES / 2;
    if (hasFirst && this.#sampledBytes * SAMPLE_SHARE > this.#plainBytes) return;
    const last = events.lastIndexOf(BLANK_LINE, SAMPLE_BYTES - BLANK_LINE.length);
    const end = last < 0 ? Math.min(events.length, SAMPLE_BYTES) : last + BLANK_LINE.length;
    this.#sampledBytes += end;
    if (end > 0) this.#listener.onSample(events.subarray(0, end));
  }

  /** Streams may begin without text, with pings for example. Returns the index after the first sample with text. */
  #seekText(events: Buffer): number {
    let at = 0;
    while (at < events.length && !this.#hasText) at = this.#searchSample(events, at);
    return at;
  }

  #searchSample(events: Buffer, from: number): number {
    const last = events.lastIndexOf(BLANK_LINE, from + SEARCH_BYTES - BLANK_LINE.length);
    const end = last < from ? findEventEnd(events, from) || events.length : last + BLANK_LINE.length;
    const size = end - from;
    if (size > SAMPLE_BYTES) {
      this.#seeLong(events.subarray(from, end));
      return end;
    }
    this.#hasText = this.#listener.onSample(events.subarray(from, end));
    if (this.#hasText) this.#plainBytes = this.#sampledBytes = size;
    return end;
  }

  /** Keeps a copy of an event's start, or passes it on when the event has grown too long. */
  #hold(tail: Buffer): void {
    if (this.#long !== null) {
      this.#long.see(tail);
      return;
    }
    this.#heldBytes += tail.length;
    if (this.#heldBytes <= this.#listener.limit) {
      this.#held.push(Buffer.from(tail));
      return;
    }
    this.#long = this.#listener.openLong();
    for (const piece of this.#release()) this.#long.see(piece);
    this.#long.see(tail);
  }

  #finishEvent(rest: Buffer): void {
    if (this.#long === null) {
      const pieces = this.#release();
      pieces.push(rest);
      this.#scan(Buffer.concat(pieces));
      return;
    }
    this.#long.see(rest);
    this.#long.end();
    this.#long = null;
  }

  #release(): Buffer[] {
    const pieces = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    return pieces;
  }
}

/** The index after the first blank line, or 0. */
function findEventEnd(bytes: Buffer, from: number): number {
  const at = bytes.indexOf(BLANK_LINE, from);
  return at < 0 ? 0 : at + BLANK_LINE.length;
}

/** The `data` lines of an event as one line. Without any, all its lines as one: upstreams may break off with an error in
 *  plain JSON, outside of any event. */
function joinLines(bytes: Buffer): Buffer {
  const event = bytes.indexOf(BYTE_ORDER_MARK) === 0 ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes;
  const first = event.toString("latin1", 0, 4) === "data" ? 0 : event.indexOf(DATA_LINE) + 1;
  const next = event.indexOf(DATA_LINE, first);
  if (next < 0 && startsWithData(event, first)) {
    const end = event.indexOf(LF, first);
    return end < 0 ? event.subarray(first) : event.subarray(first, end);
  }
  const lines = event.toString("latin1").split("\n");
  const values = lines.flatMap((line) => {
    const field = /^data(?:: ?(.*))?$/.exec(line);
    return field === null ? [] : [field[1] ?? ""];
  });
  const text = lines.map((line) => line.trim()).join("");
  return Buffer.from(values.length > 0 ? `data: ${values.join("\n")}` : text, "latin1");
}

const DATA_NAME = "data:";

function startsWithData(bytes: Buffer, at: number): boolean {
  return bytes.toString("latin1", at, at + DATA_NAME.length) === DATA_NAME;
}

/** The value of a `data:` line, without white space at its end. Null for another line. */
export function readDataLine(line: string): string | null {
  if (!line.startsWith(DATA_NAME)) return null;
  return line.slice(DATA_NAME.length + (line[DATA_NAME.length] === " " ? 1 : 0)).trimEnd();
}
