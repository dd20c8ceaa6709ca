// One meter for all dialects. It finds events, and a reader understands them.

import {
  type CallListener,
  type CountFault,
  type EventTaker,
  isPlausible,
  type Meter,
  type ParsedEvent,
  type Reading,
  sumUsage,
} from "../../billing/usage.ts";
import { readAmount } from "../../billing/counts.ts";
import { type CutJson, parseCut } from "../../lib/json/cut-json.ts";
import { parseEvent, parseWithAmounts } from "../../lib/exact.ts";
import { isNestedDeeply } from "../../lib/json/json.ts";
import { asBuffer, findFrom, joinChunks, NOTHING } from "../../lib/memory/bytes.ts";
import { BLANK_LINE, BYTE_ORDER_MARK, CR, EventReader, LF, readEvent, type SseEvent } from "../../lib/sse.ts";

export interface UsageReader {
  /** Every event that must be read has one of these texts. */
  readonly needles: readonly Buffer[];
  /** Somebody listens to tool calls, so each event is read at once. */
  readonly isFollowed?: boolean;
  /** Matches events that need no parser. The first group is the text. */
  readonly onlyText?: RegExp;
  /** Events may follow the event that ends an answer. */
  readonly mayGoOn?: boolean;
  /** A repeated event changes nothing. */
  learn(event: unknown): void;
  /** Reads data that is not JSON (chat's `[DONE]`). */
  learnWord?(word: string): void;
  /** Bytes of text and tool arguments. */
  measureText(event: unknown): number;
  report(): UsageReport;
}

export type UsageReport = Omit<Reading, "estimatedOutput" | "hasText" | "reportedAmount">;

export function parseData({ name, data }: SseEvent): ParsedEvent {
  return { name, data, value: parseEvent(data) };
}

export const listNeedles = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text));

export function sizeOf(value: unknown): number {
  if (typeof value === "string") return value === "" ? 0 : Buffer.byteLength(value);
  const isContainer = typeof value === "object" && value !== null && !isNestedDeeply(value);
  return isContainer ? Buffer.byteLength(JSON.stringify(value)) : 0;
}

/** Used as the content type of a WebSocket, where each piece is a message. */
export const MESSAGES = "messages";

export function meterOf(open: (calls?: CallListener) => UsageReader) {
  return (contentType: string, calls?: CallListener): Meter => openMeter(contentType, () => open(calls));
}

/** Unless the type is JSON, the first byte decides:
 *  an event stream never begins like JSON. */
function openMeter(contentType: string, openReader: () => UsageReader): Meter {
  if (contentType === MESSAGES) return new StreamMeter(openReader(), true);
  const isStream = contentType.includes("event-stream");
  if (!isStream && contentType.includes("json")) return new BodyMeter(openReader);
  let meter: Meter | null = null;
  const build = (isBody: boolean): Meter =>
    isBody ? new BodyMeter(openReader) : new StreamMeter(openReader());
  const open = (chunk: Uint8Array): Meter | null => {
    if (meter !== null || chunk.length === 0) return meter;
    const first = chunk.find((byte) => byte > 0x20);
    return (meter = build(first === 0x7b || first === 0x5b));
  };
  return {
    see: (chunk) => open(chunk)?.see(chunk),
    readEvents: (chunk, bridge) => (chunk === null ? meter : open(chunk))?.readEvents(chunk, bridge),
    get isFinal() {
      return meter?.isFinal === true;
    },
    read: () => (meter ?? build(!isStream)).read(),
  };
}

/** Events are searched together:
 *  searching one costs nearly as much as thirty. */
const BATCH_BYTES = 4096;
/** A smaller sample does not show a stream's share of text. */
const SAMPLE_BYTES = 1024;
/** One sample stands for this many bytes. */
const SAMPLED_BYTES = 64 * 1024;
/** Only pictures and sound make events longer. */
const LONG_EVENT_BYTES = 1024 * 1024;
/** Some upstreams end a broken stream with an error in plain JSON,
 *  without an event. */
const BARE_ERROR = /^\s*(?:\{\s*)?"error"/;

/** If the upstream reports no count, the output is estimated from its text.
 *  For events that are not read, a sample shows the share of text. */
class StreamMeter implements Meter {
  readonly #reader: UsageReader;
  readonly #isWhole: boolean;
  /** Where each needle comes next in the searched events. */
  readonly #hits: number[];
  readonly #batchBytes: number;
  readonly #events = new EventReader();
  #waitingBytes = 0;
  #bytes = 0;
  #textBytes = 0;
  /** Bytes of events without a needle, from the first text on. */
  #plainBytes = 0;
  #sampledBytes = 0;
  #sampledText = 0;

  /** `isWhole`: each chunk is an event. */
  constructor(reader: UsageReader, isWhole = false) {
    this.#reader = reader;
    this.#isWhole = isWhole;
    this.#hits = reader.needles.map(() => -1);
    this.#batchBytes = reader.isFollowed === true ? 0 : BATCH_BYTES;
  }

  see(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#isWhole) {
      const data = dropMark(asBuffer(chunk).toString());
      this.#textBytes += this.#learn(parseData({ name: "", data }));
      return;
    }
    this.#waitingBytes += chunk.length;
    const isLong = this.#events.begunBytes > LONG_EVENT_BYTES;
    const isInside = isLong && !chunk.includes(LF) && !chunk.includes(CR);
    this.#events.add(isInside ? shorten(asBuffer(chunk)) : chunk);
    if (this.#waitingBytes >= this.#batchBytes) this.#catchUp();
  }

  readEvents(chunk: Uint8Array | null, bridge: EventTaker): void {
    if (chunk === null) {
      const open = this.#parse(this.#events.peek().toString());
      if (open?.value !== undefined) bridge.take(open);
      return;
    }
    this.#bytes += chunk.length;
    this.#events.add(chunk);
    const text = this.#events.takeText();
    for (let at = 0, end = 0; at < text.length; at = end) {
      const taken = bridge.takeText(text, at);
      end = taken?.[1] ?? findEnd(text, at);
      if (taken !== null) this.#textBytes += Buffer.byteLength(taken[0]);
      else this.#hand(text.slice(at, end), bridge);
    }
  }

  #hand(event: string, bridge: EventTaker): void {
    const parsed = this.#parse(event);
    if (parsed === undefined) return;
    const size = this.#learn(parsed);
    this.#textBytes += size;
    bridge.take(parsed, event, size);
  }

  #catchUp(): void {
    this.#waitingBytes = 0;
    for (const events of this.#events.take()) if (events.length > 0) this.#search(events);
  }

  #search(events: Buffer): void {
    this.#hits.fill(-1);
    let from = 0;
    for (let hit = 0; (hit = this.#findNeedle(events, from)) < events.length;) {
      const before = events.lastIndexOf(BLANK_LINE, hit);
      const start = before < from ? from : before + BLANK_LINE.length;
      if (start > from) this.#seePlain(events.subarray(from, start));
      from = findEnd(events, hit);
      this.#textBytes += this.#learnText(events.toString("utf8", start, from));
    }
    if (from < events.length) this.#seePlain(from === 0 ? events : events.subarray(from));
  }

  #findNeedle(events: Buffer, from: number): number {
    const { needles } = this.#reader;
    let first = events.length;
    for (let at = 0; at < needles.length; at += 1) {
      let hit = this.#hits[at] ?? -1;
      if (hit < from) this.#hits[at] = hit = findFrom(events, needles[at] ?? NOTHING, from);
      if (hit < first) first = hit;
    }
    return first;
  }

  /** Samples events, from the first text on, until the sample is large enough. */
  #seePlain(events: Buffer): void {
    this.#plainBytes += events.length;
    for (let at = 0; at < events.length;) {
      if (this.#sampledBytes >= SAMPLE_BYTES * Math.ceil(this.#plainBytes / SAMPLED_BYTES)) return;
      const end = findEnd(events, at);
      this.#sampledText += this.#learnText(events.toString("utf8", at, end));
      if (this.#sampledText > 0) this.#sampledBytes += end - at;
      else this.#plainBytes -= end - at;
      at = end;
    }
  }

  #parse(text: string): ParsedEvent | undefined {
    const event = readEvent(text);
    if (event !== null) return parseData(event);
    if (BARE_ERROR.test(text)) this.#reader.learn({ error: {} });
    return undefined;
  }

  #learn({ data, value = parseWithAmounts(data) }: ParsedEvent): number {
    if (value === undefined) this.#reader.learnWord?.(data.trimEnd());
    else this.#reader.learn(value);
    return value === undefined ? 0 : this.#reader.measureText(value);
  }

  #learnText(text: string): number {
    const [, only] = this.#reader.onlyText?.exec(text) ?? [];
    if (only !== undefined) return Buffer.byteLength(only);
    const event = this.#parse(text);
    return event === undefined ? 0 : this.#learn(event);
  }

  get isFinal(): boolean {
    this.#catchUp();
    return this.#report(this.#events.peek()).final;
  }

  read(): Reading {
    this.#catchUp();
    const begun = this.#events.peek();
    const open = begun.length === 0 ? 0 : this.#readOpen(begun.toString());
    const share = this.#sampledBytes === 0 ? 0 : this.#sampledText / this.#sampledBytes;
    const textBytes = this.#textBytes + this.#plainBytes * share + open;
    return makeReading(this.#report(begun), { textBytes, arrivedBytes: this.#bytes });
  }

  #report(begun: Buffer): UsageReport {
    const report = this.#reader.report();
    const mayGoOn = this.#reader.mayGoOn === true && report.end === "complete";
    const goesOn = mayGoOn && hasBegun(begun.toString());
    return goesOn ? { ...report, end: "open", final: false } : report;
  }

  /** The client may already have an unfinished event's text. */
  #readOpen(text: string): number {
    const size = this.#learnText(text);
    const data = readEvent(text)?.data;
    return size > 0 || data === undefined ? size : this.#reader.measureText(parseCut(data).value);
  }
}

function hasBegun(text: string): boolean {
  const data = readEvent(text)?.data;
  return data === undefined ? text !== "" && "data:".startsWith(text) : parseWithAmounts(data) === undefined;
}

function findEnd(events: Buffer | string, from: number): number {
  const at = typeof events === "string" ? events.indexOf("\n\n", from) : events.indexOf(BLANK_LINE, from);
  return at < 0 ? events.length : at + BLANK_LINE.length;
}

/** Beside its text, a body has about this much. */
const BODY_FRAME_BYTES = 1000;
/** Longer bodies have pictures or sound. */
const MAX_TEXT_BODY_BYTES = 512 * 1024;
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const SHORT_BYTES = 64 * 1024;
/** Longer texts may be pictures or vectors. */
const GAP_BYTES = 1024;
const BEGINNING_BYTES = 256;
const CODED = /^[\w+/=:;,-]+$/;
const NUMBERS = /^[\d\s,.eE+-]+$/;
/** No model writes this much without a quotation mark. */
const MAX_TEXT_GAP_BYTES = 32 * 1024;
/** A character that JSON has only inside a text. */
const IN_TEXT = /[^\s\d[\]{}:,.+\-Etruefalsn]/;
/** No line of JSON begins like this. */
const EVENT_LINE = /[\r\n](?:data|event):/;

class BodyMeter implements Meter {
  readonly isFinal = false;
  readonly #open: () => UsageReader;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #bytes = 0;
  #reading: Reading | null = null;

  constructor(openReader: () => UsageReader) {
    this.#open = openReader;
  }

  see(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    this.#reading = null;
    if (this.#keptBytes > MAX_BODY_BYTES) return;
    const kept = this.#bytes > SHORT_BYTES ? shorten(asBuffer(chunk)) : asBuffer(chunk);
    this.#kept.push(kept);
    this.#keptBytes += kept.length;
  }

  /** Hands over no event: bridges convert only complete bodies. */
  readEvents(chunk: Uint8Array | null): void {
    if (chunk !== null) this.see(chunk);
  }

  read(): Reading {
    return (this.#reading ??= this.#readWhole());
  }

  #readWhole(): Reading {
    const bytes = joinChunks(this.#kept);
    const text = dropMark(bytes.toString());
    const body = readBody(text);
    const reader = this.#open();
    if (!isWholeBody(body) && EVENT_LINE.test(text)) {
      const meter = new StreamMeter(reader);
      meter.see(bytes);
      return meter.read();
    }
    return this.#judge(body, reader, text);
  }

  #judge(body: CutJson, reader: UsageReader, text: string): Reading {
    let textBytes = 0;
    for (const value of listValues(body)) {
      reader.learn(value);
      textBytes += reader.measureText(value);
    }
    const report = reader.report();
    const isList = Array.isArray(body.value);
    const isWhole = isWholeBody(body);
    const mayEndHere = isList && !(isCutInside(body) && reader.mayGoOn === true);
    const isOver = isWhole || (mayEndHere && report.end === "complete");
    const end = report.end === "error" ? "error" : isOver ? "complete" : "open";
    // The text of a cut body cannot be measured.
    const isMeasured = isList || (isWhole && textBytes > 0);
    return makeReading(
      { ...report, end, final: isOver, isFinished: isOver },
      {
        textBytes: isMeasured ? textBytes : Math.max(textBytes, this.#guessText(text)),
        arrivedBytes: this.#bytes,
        hasText: isMeasured && textBytes > 0,
      },
    );
  }

  /** Blanks between values are not text. */
  #guessText(text: string): number {
    if (this.#bytes > MAX_TEXT_BODY_BYTES) return 0;
    return Math.max(0, Buffer.byteLength(text.replace(/\s+/g, " ")) - BODY_FRAME_BYTES);
  }
}

/** Drops what no meter reads. The body stays valid JSON. */
function shorten(chunk: Buffer): Buffer {
  const text = chunk.toString("latin1");
  const find = (wanted: string, from: number): number => {
    const found = text.indexOf(wanted, from);
    return found < 0 ? text.length : found;
  };
  let short = "";
  let kept = 0;
  const drop = (from: number, to: number): void => {
    short += text.slice(kept, from);
    kept = to;
  };
  for (let at = 0, quote = -1, end = 0; at + GAP_BYTES < text.length; at = end + 1) {
    // One search serves all lists before the next quote.
    if (quote < at) quote = find('"', at);
    end = quote;
    if (quote - at < GAP_BYTES) continue;
    const beginning = text.slice(at, at + BEGINNING_BYTES);
    // The quote may be escaped.
    const isLong = quote - at > MAX_TEXT_GAP_BYTES || CODED.test(beginning);
    const isUnread = isLong && text[quote - 1] !== "\\";
    if (!IN_TEXT.test(beginning)) {
      const first = find(",", at) + 1;
      end = Math.min(quote, find("]", first));
      if (NUMBERS.test(text.slice(first, first + BEGINNING_BYTES)) && first < end)
        drop(first, text.lastIndexOf(",", end) + 1);
    } else if (isUnread) drop(at + beginning.search(/\\|$/), quote);
  }
  return kept === 0 ? chunk : Buffer.from(short + text.slice(kept), "latin1");
}

const dropMark = (text: string): string => (text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);

function isWholeBody({ value, depth }: CutJson): boolean {
  return depth === 0 && value !== undefined;
}

function isCutInside({ depth, isInside }: CutJson): boolean {
  return depth > 1 || isInside;
}

function listValues(body: CutJson): readonly unknown[] {
  const { value } = body;
  if (!Array.isArray(value)) return [value];
  return isCutInside(body) ? value.slice(0, -1) : value;
}

function readBody(text: string): CutJson {
  const value = parseWithAmounts(text);
  return value === undefined ? parseCut(text) : { value, depth: 0, isInside: false };
}

/** English and code have about four bytes per token. */
const BYTES_PER_TOKEN = 4;

interface Seen {
  readonly textBytes: number;
  readonly hasText?: boolean;
  /** The text has at most this many bytes. */
  readonly arrivedBytes: number;
}

const MAX_USAGE_DEPTH = 16;

const IMPLAUSIBLE: CountFault = {
  basis: "unknown",
  text: "the upstream's usage is more than an answer can have",
};

function makeReading(report: UsageReport, { textBytes, arrivedBytes, hasText }: Seen): Reading {
  const { rawUsage, parts, faults } = report;
  const isOdd = !isPlausible(sumUsage(parts));
  return {
    ...report,
    parts: isOdd ? [] : parts,
    faults: isOdd ? [...(faults ?? []), IMPLAUSIBLE] : faults,
    rawUsage: isNestedDeeply(rawUsage, MAX_USAGE_DEPTH) ? null : rawUsage,
    reportedAmount: readAmount(rawUsage, report.final),
    hasText: hasText ?? textBytes > 0,
    estimatedOutput: Math.round(Math.min(textBytes, arrivedBytes) / BYTES_PER_TOKEN),
  };
}
