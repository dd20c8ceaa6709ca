// Picks a few members out of JSON that passes as bytes, keeping nothing else:
// a document of any size, cut anywhere, in memory bounded by what is picked.
// It reads valid JSON; of anything else it makes something or nothing, never a
// fault, and it does not tell the two apart.

import { parseJson } from "./json.ts";

/** What to pick: `true` a whole value, an object its named members, a one-element list every element of a list. */
export type Shape = true | { readonly [name: string]: Shape } | readonly [Shape];

/** A picked value that is longer than this is left out. */
const VALUE_BYTES = 64 * 1024;
/** Of a list, elements after these are left out. */
const LIST_LENGTH = 10_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** A container that is picked from. */
type Frame =
  | {
      readonly shape: Readonly<Record<string, Shape>>;
      readonly value: Record<string, unknown>;
      name: string | null;
    }
  | { readonly shape: readonly [Shape]; readonly value: unknown[] };

/**
 * Hands on what was picked of each document. A document is the value at the top or, when a list stands
 * there, each of its elements; only objects are documents.
 */
export class Sieve {
  readonly #shape: Readonly<Record<string, Shape>>;
  readonly #emit: (picked: unknown) => void;
  readonly #frames: Frame[] = [];
  /** A list stands at the top. */
  #listed = false;
  #ended = false;
  /** Depth inside a container that nothing is picked from. */
  #depth = 0;
  #inText = false;
  /** The first byte of the next chunk is escaped. */
  #escaped = false;
  #inBare = false;
  /** Where the bytes that are being kept begin in this chunk; -1: none are. */
  #keepFrom = -1;
  #kept: Buffer[] = [];
  #keptBytes = 0;

  constructor(shape: Readonly<Record<string, Shape>>, emit: (picked: unknown) => void) {
    this.#shape = shape;
    this.#emit = emit;
  }

  /** The documents are a list's elements. */
  get listed(): boolean {
    return this.#listed;
  }

  /** The value at the top has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /** What has been picked so far of a document that has not ended. */
  peek(): unknown {
    return this.#frames[0]?.value;
  }

  see(chunk: Buffer): void {
    if (this.#keepFrom >= 0) this.#keepFrom = 0;
    let at = 0;
    while (at < chunk.length) {
      if (this.#inText) at = this.#passText(chunk, at);
      else at = this.#depth > 0 ? this.#passContainer(chunk, at) : this.#step(chunk, at);
    }
    if (this.#keepFrom >= 0) this.#keep(chunk, chunk.length);
  }

  #step(chunk: Buffer, at: number): number {
    const byte = chunk[at] ?? 0;
    if (this.#inBare && endsBare(byte)) this.#endBare(chunk, at);
    switch (byte) {
      case QUOTE:
        this.#beginText(at);
        break;
      case OPEN_OBJECT:
      case OPEN_LIST:
        this.#open(byte, at);
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        this.#close();
        break;
      case COMMA:
        this.#nextMember();
        break;
      default:
        if (!endsBare(byte)) this.#beginBare(at);
    }
    return at + 1;
  }

  #beginText(at: number): void {
    this.#inText = true;
    this.#escaped = false;
    if (this.#depth === 0 && (this.#isNaming() || this.#shapeHere() === true)) this.#startKeeping(at);
  }

  /** To the end of the text that is being read, or of the chunk. */
  #passText(chunk: Buffer, from: number): number {
    let quote = chunk.indexOf(QUOTE, from);
    while (quote >= 0 && this.#isEscaped(chunk, from, quote)) quote = chunk.indexOf(QUOTE, quote + 1);
    if (quote < 0) {
      this.#escaped = this.#isEscaped(chunk, from, chunk.length);
      return chunk.length;
    }
    this.#inText = false;
    this.#escaped = false;
    if (this.#depth === 0 && this.#keepFrom >= 0) this.#endText(chunk, quote + 1);
    return quote + 1;
  }

  /** Whether the byte at `at` of a text that goes on at `from` follows an odd run of backslashes. */
  #isEscaped(chunk: Buffer, from: number, at: number): boolean {
    let run = at;
    while (run > from && chunk[run - 1] === BACKSLASH) run -= 1;
    const carried = run === 0 && this.#escaped ? 1 : 0;
    return (at - run + carried) % 2 === 1;
  }

  #endText(chunk: Buffer, to: number): void {
    const text = this.#takeKept(chunk, to);
    const frame = this.#frames.at(-1);
    if (frame !== undefined && this.#isNaming() && "name" in frame)
      frame.name = typeof text === "string" ? text : "";
    else this.#put(text);
  }

  #beginBare(at: number): void {
    if (this.#inBare) return;
    this.#inBare = true;
    if (this.#shapeHere() === true) this.#startKeeping(at);
  }

  #endBare(chunk: Buffer, at: number): void {
    this.#inBare = false;
    if (this.#keepFrom >= 0) this.#put(this.#takeKept(chunk, at));
  }

  /** To the next text in a container that nothing is picked from, to its end, or to that of the chunk. */
  #passContainer(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (byte === QUOTE) {
        this.#beginText(at);
        return at + 1;
      }
      if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.#depth += 1;
      else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) this.#depth -= 1;
      if (this.#depth === 0) {
        if (this.#keepFrom >= 0) this.#put(this.#takeKept(chunk, at + 1));
        return at + 1;
      }
    }
    return chunk.length;
  }

  #open(byte: number, at: number): void {
    if (this.#frames.length === 0 && byte === OPEN_LIST) {
      this.#listed = true;
      return;
    }
    const shape = this.#shapeHere();
    const frame = shape === undefined || shape === true ? null : frameOf(shape, byte);
    if (frame !== null) {
      if (this.#frames.length > 0) this.#put(frame.value);
      this.#frames.push(frame);
      return;
    }
    this.#depth = 1;
    if (shape === true) this.#startKeeping(at);
  }

  #close(): void {
    const frame = this.#frames.pop();
    if (this.#frames.length > 0) return;
    if (frame === undefined || !this.#listed) this.#ended = true;
    if (frame !== undefined) this.#emit(frame.value);
  }

  #nextMember(): void {
    const frame = this.#frames.at(-1);
    if (frame !== undefined && "name" in frame) frame.name = null;
  }

  /** The next text is a member's name. */
  #isNaming(): boolean {
    const frame = this.#frames.at(-1);
    return frame !== undefined && "name" in frame && frame.name === null;
  }

  /** The shape of the value that begins here; undefined: nothing is picked from it. */
  #shapeHere(): Shape | undefined {
    const frame = this.#frames.at(-1);
    if (frame === undefined) return this.#shape;
    if (!("name" in frame)) return frame.shape[0];
    return frame.name !== null && Object.hasOwn(frame.shape, frame.name)
      ? frame.shape[frame.name]
      : undefined;
  }

  #put(value: unknown): void {
    const frame = this.#frames.at(-1);
    if (frame === undefined || value === undefined) return;
    if (!("name" in frame)) {
      if (frame.value.length < LIST_LENGTH) frame.value.push(value);
    } else if (frame.name !== null) frame.value[frame.name] = value;
  }

  #startKeeping(at: number): void {
    this.#keepFrom = at;
    this.#kept = [];
    this.#keptBytes = 0;
  }

  #keep(chunk: Buffer, to: number): void {
    this.#keptBytes += to - this.#keepFrom;
    if (this.#keptBytes <= VALUE_BYTES) this.#kept.push(Buffer.from(chunk.subarray(this.#keepFrom, to)));
    else this.#kept = [];
  }

  #takeKept(chunk: Buffer, to: number): unknown {
    this.#keep(chunk, to);
    this.#keepFrom = -1;
    const text = this.#keptBytes > VALUE_BYTES ? "" : Buffer.concat(this.#kept).toString();
    this.#kept = [];
    return parseJson(text);
  }
}

function isListShape(shape: Exclude<Shape, true>): shape is readonly [Shape] {
  return Array.isArray(shape);
}

/** Null where the container is not of the kind that the shape expects. */
function frameOf(shape: Exclude<Shape, true>, byte: number): Frame | null {
  if (isListShape(shape)) return byte === OPEN_LIST ? { shape, value: [] } : null;
  return byte === OPEN_OBJECT ? { shape, value: {}, name: null } : null;
}

/** What cannot stand in a number or a word. */
function endsBare(byte: number): boolean {
  return byte <= 0x20 || byte === COMMA || byte === COLON || byte === CLOSE_LIST || byte === CLOSE_OBJECT;
}
