// Server-sent events as bytes: finds the lines that matter while a stream
// passes, at the speed of the native search. Lines are looked at one by one:
// an event whose JSON is spread over several `data:` lines is not put together
// (no platform sends one). What a line means is the caller's business.

import { asBuffer } from "../bytes.ts";

const NEWLINE = 0x0a;
/** All plain lines are shown as samples until there have been this many bytes of them; no sample is longer. */
const SAMPLE_BYTES = 32 * 1024;
/** From then on, one byte in so many. */
const SAMPLE_SHARE = 64;

/** Takes the bytes of one line. A piece is only valid during the call. */
export interface LineSink {
  see(piece: Buffer): void;
  end(): void;
}

export interface LineListener {
  /** A line matters when it holds one of these texts. */
  readonly needles: readonly string[];
  /** A longer line is never held: it goes to `openLong`'s sink piece by piece, whether it matters or not. */
  readonly limit: number;
  /** A whole line that matters, its newline included. Only valid during the call. */
  onLine(line: Buffer): void;
  openLong(): LineSink;
  /** Samples of the lines that do not matter: the first of them, then one byte in sixty-four. */
  onSample(lines: Buffer): void;
}

export class LineScanner {
  readonly #listener: LineListener;
  readonly #needles: readonly Buffer[];
  /** The line that has not ended, while it is within the limit. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #long: LineSink | null = null;
  #plainBytes = 0;
  #sampledBytes = 0;

  constructor(listener: LineListener) {
    this.#listener = listener;
    this.#needles = listener.needles.map((text) => Buffer.from(text));
  }

  /** Bytes so far of lines that did not matter. */
  get plainBytes(): number {
    return this.#plainBytes;
  }

  /** The beginning of a line that has not ended (yet), while it is within the limit. */
  peek(): Buffer {
    return Buffer.concat(this.#held);
  }

  see(bytes: Uint8Array): void {
    const chunk = asBuffer(bytes);
    const whole = chunk.lastIndexOf(NEWLINE) + 1;
    let from = 0;
    if (whole > 0 && (this.#heldBytes > 0 || this.#long !== null)) {
      from = chunk.indexOf(NEWLINE) + 1;
      this.#finishLine(chunk.subarray(0, from));
    }
    if (whole > from) this.#scan(from === 0 && whole === chunk.length ? chunk : chunk.subarray(from, whole));
    if (whole < chunk.length) this.#hold(chunk.subarray(whole));
  }

  /** Looks through whole lines. */
  #scan(lines: Buffer): void {
    let hits: number[] | null = null;
    for (let i = 0; i < this.#needles.length; i += 1) {
      const hit = lines.indexOf(this.#needles[i] ?? "");
      if (hit >= 0) (hits ??= []).push(hit);
    }
    if (hits === null) this.#seePlain(lines);
    else this.#split(lines, Math.min(...hits));
  }

  /** Walks from hit to hit. */
  #split(lines: Buffer, firstHit: number): void {
    let from = 0;
    for (let hit = firstHit; hit >= 0; hit = this.#findNeedle(lines, from)) {
      const start = lines.lastIndexOf(NEWLINE, hit) + 1;
      const newline = lines.indexOf(NEWLINE, hit);
      const end = newline < 0 ? lines.length : newline + 1;
      if (start > from) this.#seePlain(lines.subarray(from, start));
      this.#seeLine(lines.subarray(start, end));
      from = end;
    }
    if (from < lines.length) this.#seePlain(lines.subarray(from));
  }

  /** The nearest needle: in growing steps, so that lines that matter cost no search to the chunk's end each. */
  #findNeedle(lines: Buffer, from: number): number {
    for (let at = from, step = 1024; at < lines.length; step *= 8) {
      const newline = lines.indexOf(NEWLINE, at + step);
      const to = newline < 0 ? lines.length : newline + 1;
      const window = lines.subarray(at, to);
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

  #seeLine(line: Buffer): void {
    if (line.length <= this.#listener.limit) {
      this.#listener.onLine(line);
      return;
    }
    const sink = this.#listener.openLong();
    sink.see(line);
    sink.end();
  }

  #seePlain(lines: Buffer): void {
    this.#plainBytes += lines.length;
    if (this.#plainBytes > SAMPLE_BYTES && this.#sampledBytes * SAMPLE_SHARE > this.#plainBytes) return;
    const end = lines.length <= SAMPLE_BYTES ? lines.length : lines.lastIndexOf(NEWLINE, SAMPLE_BYTES) + 1;
    this.#sampledBytes += end;
    if (end > 0) this.#listener.onSample(lines.subarray(0, end));
  }

  /** Keeps a copy of a line's beginning, or hands it on when the line has grown too long. */
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

  #finishLine(rest: Buffer): void {
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

/** Where the value of a `data:` line begins; -1 for another line. */
function startOfData(line: Uint8Array): number {
  if (line[0] !== 0x64 || line[1] !== 0x61 || line[2] !== 0x74 || line[3] !== 0x61 || line[4] !== 0x3a)
    return -1;
  return line[5] === 0x20 ? 6 : 5;
}

/** The value of a `data:` line, its line end removed; null for another line. */
export function readDataLine(line: Buffer): string | null {
  const start = startOfData(line);
  return start < 0 ? null : line.toString("utf8", start).trimEnd();
}
