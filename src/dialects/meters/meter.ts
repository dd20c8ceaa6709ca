// One meter for every dialect. It finds the events of an answer that matter, in a stream of events, a list of JSON values
// or one JSON body, cut anywhere, and passes them to the dialect's reader, which knows what they mean.

import type { Meter, Reading, ReportedAmount } from "../../billing/usage.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { parseWithAmounts, readNumberText } from "../../lib/exact.ts";
import { getField, isNestedDeeply, isObject, parseJson } from "../../lib/json/json.ts";
import { JsonPicker, PickedSize, type Shape } from "../../lib/json/json-pick-stream.ts";
import { formatDecimal, parseNumber } from "../../lib/money.ts";
import { SseScanner, readDataLine, type LongEventSink } from "../../lib/sse/sse-needles.ts";

/** Reads the events of one dialect. */
export interface UsageReader {
  /** A line of a stream is read if it contains one of these. Every line with token counts does. */
  readonly needles: readonly string[];
  /** The fields to pick from a body, and from an event that is too long to keep. */
  readonly shape: Readonly<Record<string, Shape>>;
  /** Others listen to it: no event waits for a batch. A client may continue an answer before its stream has ended. */
  readonly isFollowed?: boolean;
  /** Events may follow the one that ends an answer. If another one has begun, the answer has not ended. */
  readonly mayGoOn?: boolean;
  /** Reads an event or a whole body. Reading the same one twice changes nothing. */
  learn(event: unknown): void;
  /** Reads a `data:` line that is not JSON (chat's `[DONE]`). */
  learnWord?(word: string): void;
  /** The bytes of text and tool arguments in an event of a stream, or in a body. A text that was too long to keep is a
   *  PickedSize here. */
  measureText(event: unknown): number;
  report(): UsageReport;
}

/** What a reader knows. How much text there was, the meter knows. `raw`: the usage as the upstream reports it. */
export interface UsageReport extends Omit<
  Reading,
  "estimatedOutput" | "hasText" | "rawUsage" | "reportedAmount"
> {
  readonly raw: unknown;
}

/** The bytes of a text or a container, or of one of which only the size was picked. Nothing else has a size. */
export function sizeOf(value: unknown): number {
  if (value instanceof PickedSize) return value.bytes;
  const isContainer = typeof value === "object" && value !== null && !isNestedDeeply(value);
  const text = isContainer ? JSON.stringify(value) : value;
  return typeof text === "string" ? Buffer.byteLength(text) : 0;
}

/** The bytes of several texts and containers together. */
export function sumSizes(values: readonly unknown[]): number {
  return values.reduce<number>((sum, value) => sum + sizeOf(value), 0);
}

/** Longer lines are not kept: their fields are picked while the bytes pass. */
const MAX_LINE_BYTES = 64 * 1024;
/** Pieces of a stream are searched together, from this size on: the search of one event costs nearly as much as that of
 *  thirty. */
const BATCH_BYTES = 4096;
/** English and code have about four bytes per token, with any tokenizer. */
const BYTES_PER_TOKEN = 4;
/** The part of a JSON body that is not text: ids, usage, names. */
const BODY_FRAME_BYTES = 1000;
/** No model writes more text. A longer body carries pictures or sound, whose size says nothing about tokens. */
const MAX_TEXT_BODY_BYTES = 512 * 1024;

/** A body up to this size that comes in one piece is parsed: much cheaper than picking fields byte by byte. */
const MAX_PARSED_BODY_BYTES = 64 * 1024;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** In place of a content type: each piece is a message of a WebSocket, and one event. */
export const MESSAGES = "messages";

/** A JSON type decides. With another type the first byte does: a stream of events never begins like JSON. */
export function openMeter(contentType: string, reader: UsageReader): Meter {
  if (contentType === MESSAGES) return new MessageMeter(reader);
  const isStream = contentType.includes("event-stream");
  if (!isStream && contentType.includes("json")) return new BodyMeter(reader);
  let meter: Meter | null = null;
  return {
    see(chunk) {
      if (chunk.length === 0) return;
      meter ??= startsJson(chunk) ? new BodyMeter(reader) : new StreamMeter(reader);
      meter.see(chunk);
    },
    read: () => (meter ?? (isStream ? new StreamMeter(reader) : new BodyMeter(reader))).read(),
  };
}

function startsJson(chunk: Uint8Array): boolean {
  const first = chunk.find((byte) => byte > 0x20);
  return first === 0x7b || first === 0x5b;
}

/**
 * A stream of events. The output is estimated from samples of the events that carry only text: the share of text in the
 * samples, times all bytes, at four bytes per token. For running text this is right within a factor of two in every
 * dialect. Hidden reasoning is not included.
 */
class StreamMeter implements Meter {
  readonly #reader: UsageReader;
  readonly #lines: SseScanner;
  readonly #batchBytes: number;
  /** Text bytes in the events that were read. */
  #textBytes = 0;
  #sampledBytes = 0;
  #sampledText = 0;
  /** The fields of the long event that has not ended. */
  #openEvent: JsonPicker | null = null;
  /** The pieces that are not searched yet. */
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #bytes = 0;

  constructor(reader: UsageReader) {
    this.#reader = reader;
    this.#batchBytes = reader.isFollowed === true ? 0 : BATCH_BYTES;
    this.#lines = new SseScanner({
      needles: reader.needles,
      limit: MAX_LINE_BYTES,
      onEvent: (line) => {
        this.#textBytes += this.#take(line.toString());
      },
      openLong: () => this.#openLong(),
      onSample: (lines) => this.#sample(lines),
    });
  }

  see(chunk: Uint8Array): void {
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    this.#bytes += chunk.length;
    if (this.#waitingBytes >= this.#batchBytes) this.#catchUp();
  }

  #catchUp(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    this.#lines.see(this.#waiting.length === 1 ? first : Buffer.concat(this.#waiting));
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  read(): Reading {
    this.#catchUp();
    const open = this.#readOpen();
    const share = this.#sampledBytes === 0 ? 0 : this.#sampledText / this.#sampledBytes;
    const plain = this.#lines.plainBytes * share;
    const text = this.#textBytes + plain + open;
    const report = this.#reader.report();
    const goesOn = report.end === "complete" && this.#reader.mayGoOn === true && this.#hasBegun();
    const ended: UsageReport = goesOn ? { ...report, end: "open", final: false } : report;
    return makeReading(ended, { hasText: text > 0, textBytes: text, arrivedBytes: this.#bytes });
  }

  /** Reads the event that has not ended. Returns the bytes of text in it so far: they may have reached the client. */
  #readOpen(): number {
    if (this.#openEvent !== null) return this.#reader.measureText(this.#openEvent.peek());
    const held = this.#lines.peek();
    if (held.length === 0) return 0;
    // The last line may lack its newline. If it was cut, it is not JSON, and only its text counts.
    const text = this.#take(held.toString());
    if (text > 0) return text;
    const sieve = new JsonPicker(this.#reader.shape, () => {});
    sieve.see(held);
    return this.#reader.measureText(sieve.peek());
  }

  /** The bytes end inside an event. It may lack its line end. */
  #hasBegun(): boolean {
    if (this.#openEvent !== null) return !this.#openEvent.ended;
    const held = this.#lines.peek().toString();
    const data = readDataLine(held);
    return data === null ? held !== "" && "data:".startsWith(held) : parseJson(data) === undefined;
  }

  /** Passes a line to the reader. Returns the bytes of text in it. */
  #take(line: string): number {
    const data = readDataLine(line);
    if (data !== null) return this.#takeData(data);
    this.#takeBare(line);
    return 0;
  }

  #takeData(data: string): number {
    const event = parseWithAmounts(data);
    if (event === undefined) {
      this.#reader.learnWord?.(data);
      return 0;
    }
    this.#reader.learn(event);
    return this.#reader.measureText(event);
  }

  /** Some streams break with an error as plain JSON over several lines, outside any event. */
  #takeBare(line: string): void {
    const text = line.trimStart();
    if (text.startsWith('"error"') || text.startsWith('{"error"')) this.#reader.learn({ error: {} });
  }

  #sample(lines: Buffer): boolean {
    let text = 0;
    /** The data of the current event. It may have several lines. */
    let data: string | null = null;
    for (const line of lines.toString().split("\n")) {
      const value = readDataLine(line);
      if (value !== null) data = data === null ? value : `${data}\n${value}`;
      else if (line !== "") this.#takeBare(line);
      else if (data !== null) {
        text += this.#takeData(data);
        data = null;
      }
    }
    if (data !== null) text += this.#takeData(data);
    // The share of text is that from the first text on.
    if (text === 0 && this.#sampledText === 0) return false;
    this.#sampledBytes += lines.length;
    this.#sampledText += text;
    return text > 0;
  }

  #openLong(): LongEventSink {
    const sieve = new JsonPicker(this.#reader.shape, (event) => {
      this.#reader.learn(event);
      this.#textBytes += this.#reader.measureText(event);
    });
    this.#openEvent = sieve;
    return {
      see: (piece) => sieve.see(piece),
      end: () => {
        this.#openEvent = null;
      },
    };
  }
}

/** Events that come one by one, each of them whole. All of them are read. */
class MessageMeter implements Meter {
  readonly #reader: UsageReader;
  #bytes = 0;
  #textBytes = 0;

  constructor(reader: UsageReader) {
    this.#reader = reader;
  }

  see(message: Uint8Array): void {
    const bytes = asBuffer(message);
    this.#bytes += bytes.length;
    if (bytes.length <= MAX_LINE_BYTES) this.#learn(parseWithAmounts(bytes.toString()));
    else new JsonPicker(this.#reader.shape, (event) => this.#learn(event)).see(bytes);
  }

  #learn(event: unknown): void {
    if (event === undefined) return;
    this.#reader.learn(event);
    this.#textBytes += this.#reader.measureText(event);
  }

  read(): Reading {
    const textBytes = this.#textBytes;
    return makeReading(this.#reader.report(), {
      hasText: textBytes > 0,
      textBytes,
      arrivedBytes: this.#bytes,
    });
  }
}

/** A JSON body, or a list of JSON values that comes piece by piece. */
class BodyMeter implements Meter {
  readonly #reader: UsageReader;
  /** Null before the first bytes, and if the body came in one piece. */
  #sieve: JsonPicker | null = null;
  #bytes = 0;
  /** The values that were read whole. */
  #values = 0;
  /** Bytes of text in the body, or in the values of a list. */
  #textBytes = 0;

  constructor(reader: UsageReader) {
    this.#reader = reader;
  }

  see(chunk: Uint8Array): void {
    const bytes = asBuffer(chunk);
    if (bytes.length === 0) return;
    if (this.#bytes === 0 && !this.#learnWhole(bytes)) {
      this.#sieve = new JsonPicker(this.#reader.shape, (value) => this.#learn(value));
    }
    this.#sieve?.see(bytes);
    this.#bytes += bytes.length;
  }

  #learnWhole(bytes: Buffer): boolean {
    if (bytes.length > MAX_PARSED_BODY_BYTES) return false;
    if (bytes[0] !== OPEN_OBJECT || bytes[bytes.length - 1] !== CLOSE_OBJECT) return false;
    const value = parseWithAmounts(bytes.toString());
    if (value !== undefined) this.#learn(value);
    return value !== undefined;
  }

  #learn(value: unknown): void {
    this.#values += 1;
    this.#reader.learn(value);
    this.#textBytes += this.#reader.measureText(value);
  }

  read(): Reading {
    const listed = this.#sieve?.listed === true;
    // Events may follow a first value in plain JSON. Then its end is not that of the answer.
    const isList = listed || this.#values > 1;
    const ended = this.#hasEnded(listed);
    // The fields of a cut body count, but a cut body is never complete.
    if (!ended && !listed) this.#reader.learn(this.#sieve?.peek());
    const reading = this.#reader.report();
    const whole = ended || (isList && reading.end === "complete" && !this.#goesOn());
    const end = reading.end === "error" ? "error" : whole ? "complete" : "open";
    return makeReading(
      { ...reading, end, final: whole },
      { hasText: this.#textBytes > 0, textBytes: this.#measure(ended), arrivedBytes: this.#bytes },
    );
  }

  /** The bytes end inside a value after the one that may end the answer. */
  #goesOn(): boolean {
    return this.#reader.mayGoOn === true && this.#sieve?.peek() !== undefined;
  }

  #hasEnded(listed: boolean): boolean {
    if (this.#sieve === null) return this.#bytes > 0;
    return this.#sieve.ended && (listed || this.#values <= 1);
  }

  /** Only a whole body, or a list, was measured. */
  #measure(ended: boolean): number {
    const isMeasured = this.#sieve?.listed === true || (ended && this.#textBytes > 0);
    return isMeasured ? this.#textBytes : this.#guessText();
  }

  #guessText(): number {
    return this.#bytes > MAX_TEXT_BODY_BYTES ? 0 : Math.max(0, this.#bytes - BODY_FRAME_BYTES);
  }
}

interface Seen {
  readonly hasText: boolean;
  readonly textBytes: number;
  /** The bytes that were shown to the meter. No text is longer, whatever an event says. */
  readonly arrivedBytes: number;
}

/** No usage is nested this deeply. */
const MAX_USAGE_DEPTH = 16;

/** Nothing that keeps numbers as text goes further: the usage is text from here on. */
function makeReading({ raw, ...report }: UsageReport, { hasText, textBytes, arrivedBytes }: Seen): Reading {
  return {
    ...report,
    rawUsage: raw === null || isNestedDeeply(raw, MAX_USAGE_DEPTH) ? null : JSON.stringify(raw),
    reportedAmount: readAmount(raw, report.final),
    hasText,
    estimatedOutput: Math.round(Math.min(textBytes, arrivedBytes) / BYTES_PER_TOKEN),
  };
}

/** https://docs.x.ai/developers/cost-tracking: a dollar has 10^10 ticks. */
const TICK_PLACES = 10;

/** What the answer itself says that it costs: xAI's ticks, the `cost` of OpenRouter, Vercel and Perplexity. */
function readAmount(raw: unknown, isFinal: boolean): ReportedAmount | undefined {
  if (!isObject(raw)) return undefined;
  const ticks = raw["cost_in_usd_ticks"] ?? null;
  const cost = raw["cost"] ?? null;
  if (ticks === null && cost === null) return undefined;
  const text = readNumberText(ticks ?? readTotalCost(cost)) ?? "";
  const amount = parseNumber(text, ticks === null ? 0 : TICK_PLACES);
  // https://openrouter.ai/docs/use-cases/usage-accounting
  return { usd: amount && formatDecimal(amount), isWhole: isFinal && raw["is_byok"] !== true };
}

/** Perplexity divides the cost by kind. */
function readTotalCost(cost: unknown): unknown {
  const total = getField(cost, "total_cost");
  const currency = getField(cost, "currency") ?? "USD";
  return total === undefined || currency !== "USD" ? cost : total;
}
