// One meter for every dialect: shows a reader those events of an answer that
// matter, out of a stream of events, a list of JSON values or one JSON body,
// whatever pieces the bytes come in. What an event means is the reader's.

import type { Meter, Reading } from "../../billing/usage.ts";
import { asBuffer } from "../../lib/bytes.ts";
import { parseJson } from "../../lib/json/json.ts";
import { Sieve, type Shape } from "../../lib/json/json-pick-stream.ts";
import { LineScanner, readDataLine, type LineSink } from "../../lib/sse/sse-needles.ts";

/** What a dialect knows of its answers. */
export interface Reader {
  /** A line of a stream is looked into when it holds one of these; every line that counts tokens does. */
  readonly needles: readonly string[];
  /** What is picked of an event that is too long to hold, and of a body. */
  readonly shape: Readonly<Record<string, Shape>>;
  /** Takes an event, or a whole body. Taking the same one twice changes nothing. */
  learn(event: unknown): void;
  /** Takes a `data:` line that is no JSON (chat's `[DONE]`). */
  learnWord?(word: string): void;
  /** Bytes of text for people, or of a tool's arguments, in one event of a stream. */
  measureText(event: unknown): number;
  report(): Omit<Reading, "estimatedOutput">;
}

/** Longer lines are picked from as they pass instead of being held. */
const LINE_BYTES = 64 * 1024;
/** English and code come to about four bytes a token, whichever the tokenizer. */
const BYTES_PER_TOKEN = 4;
/** What a JSON body spends on its frame: ids, usage, names. */
const BODY_FRAME_BYTES = 1000;
/** No model says more than this: a longer body bears pictures or sound, whose bytes tell nothing of tokens. */
const LONGEST_TEXT_BYTES = 512 * 1024;

/** A body up to this size is parsed when it comes in one piece: far cheaper than to pick from it byte by byte. */
const SHORT_BODY_BYTES = 64 * 1024;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The content type decides; where it says neither, the first byte does. */
export function openMeter(contentType: string, reader: Reader): Meter {
  if (contentType.includes("event-stream")) return new StreamMeter(reader);
  if (contentType.includes("json")) return new BodyMeter(reader);
  let meter: Meter | null = null;
  return {
    see(chunk) {
      meter ??= startsJson(chunk) ? new BodyMeter(reader) : new StreamMeter(reader);
      meter.see(chunk);
    },
    read: () => (meter ?? new BodyMeter(reader)).read(),
  };
}

function startsJson(chunk: Uint8Array): boolean {
  const first = chunk.find((byte) => byte > 0x20);
  return first === 0x7b || first === 0x5b;
}

/**
 * A stream of events. The output is estimated from samples: of the events that only carry text, what share
 * of the bytes is text? That share of all bytes seen, at four bytes a token, is right within a factor of two
 * for running text in any of the dialects; it knows nothing of hidden reasoning.
 */
class StreamMeter implements Meter {
  readonly #reader: Reader;
  readonly #lines: LineScanner;
  /** Text bytes of the events that were looked into. */
  #textBytes = 0;
  #sampledBytes = 0;
  #sampledText = 0;

  constructor(reader: Reader) {
    this.#reader = reader;
    this.#lines = new LineScanner({
      needles: reader.needles,
      limit: LINE_BYTES,
      onLine: (line) => {
        this.#textBytes += this.#take(line);
      },
      openLong: () => this.#openLong(),
      onSample: (lines) => this.#sample(lines),
    });
  }

  see(chunk: Uint8Array): void {
    this.#lines.see(chunk);
  }

  read(): Reading {
    // An answer's last line may lack its newline; one that was cut is no JSON and teaches nothing.
    this.#take(this.#lines.peek());
    const share = this.#sampledBytes === 0 ? 0 : this.#sampledText / this.#sampledBytes;
    const plain = this.#lines.plainBytes * share;
    const estimatedOutput = Math.round((this.#textBytes + plain) / BYTES_PER_TOKEN);
    return { ...this.#reader.report(), estimatedOutput };
  }

  /** Shows the reader a line; returns the bytes of text in it. */
  #take(line: Buffer): number {
    const text = readDataLine(line);
    if (text === null) {
      this.#takeBare(line);
      return 0;
    }
    const event = parseJson(text);
    if (event === undefined) {
      this.#reader.learnWord?.(text);
      return 0;
    }
    this.#reader.learn(event);
    return this.#reader.measureText(event);
  }

  /** A stream may break off with an error that is plain JSON over several lines, outside of any event. */
  #takeBare(line: Buffer): void {
    const text = line.length < 256 ? line.toString().trim() : "";
    if (text.startsWith('"error"') || text.startsWith('{"error"')) this.#reader.learn({ error: {} });
  }

  #sample(lines: Buffer): void {
    this.#sampledBytes += lines.length;
    for (let at = 0; at < lines.length;) {
      const newline = lines.indexOf(0x0a, at);
      const end = newline < 0 ? lines.length : newline + 1;
      if (end - at > 6) this.#sampledText += this.#take(lines.subarray(at, end));
      at = end;
    }
  }

  #openLong(): LineSink {
    const sieve = new Sieve(this.#reader.shape, (event) => this.#reader.learn(event));
    return { see: (piece) => sieve.see(piece), end: () => {} };
  }
}

/** A JSON body, or a list of JSON values that comes bit by bit. */
class BodyMeter implements Meter {
  readonly #reader: Reader;
  /** Null while nothing has come, and where the body came in one piece. */
  #sieve: Sieve | null = null;
  #bytes = 0;
  /** Bytes of text in a list's values. */
  #textBytes = 0;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  see(chunk: Uint8Array): void {
    const bytes = asBuffer(chunk);
    if (this.#bytes === 0 && !this.#learnWhole(bytes)) {
      this.#sieve = new Sieve(this.#reader.shape, (value) => {
        this.#reader.learn(value);
        this.#textBytes += this.#reader.measureText(value);
      });
    }
    this.#sieve?.see(bytes);
    this.#bytes += bytes.length;
  }

  #learnWhole(bytes: Buffer): boolean {
    if (bytes.length > SHORT_BODY_BYTES) return false;
    if (bytes[0] !== OPEN_OBJECT || bytes[bytes.length - 1] !== CLOSE_OBJECT) return false;
    const value = parseJson(bytes.toString());
    if (value !== undefined) this.#reader.learn(value);
    return value !== undefined;
  }

  read(): Reading {
    const listed = this.#sieve?.listed === true;
    const ended = this.#sieve === null ? this.#bytes > 0 : this.#sieve.ended;
    // What stands in a body that was cut counts, but an answer that was cut is never a whole one.
    if (!ended && !listed) this.#reader.learn(this.#sieve?.peek());
    const reading = this.#reader.report();
    const whole = ended || (listed && reading.end === "complete");
    return {
      ...reading,
      end: reading.end === "error" ? "error" : whole ? "complete" : "open",
      final: whole,
      estimatedOutput: Math.round((listed ? this.#textBytes : this.#guessText()) / BYTES_PER_TOKEN),
    };
  }

  #guessText(): number {
    return this.#bytes > LONGEST_TEXT_BYTES ? 0 : Math.max(0, this.#bytes - BODY_FRAME_BYTES);
  }
}
