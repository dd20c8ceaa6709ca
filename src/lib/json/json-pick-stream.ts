// Picks a few members out of JSON that arrives in pieces, for documents of any size. Memory is bounded by what is picked.
// It expects valid JSON. For anything else it picks something or nothing, but never throws.

import { parseWithAmounts } from "../exact.ts";

/** What to pick. `true`: the whole value. `size`: the bytes of a text or a container, which is not kept. An object: its
 *  named members. A list of one: that shape of every element. */
export type Shape = true | "size" | { readonly [name: string]: Shape } | readonly [Shape];

/** A picked size. It is not a number, because the document may have a number in the same place. */
export class PickedSize {
  readonly bytes: number;

  constructor(bytes: number) {
    this.bytes = bytes;
  }
}

/** Longer values are not picked. */
const MAX_VALUE_BYTES = 64 * 1024;
/** Elements of a list after these are not picked. */
const MAX_LIST_LENGTH = 10_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** An open container whose members are picked. */
type Frame =
  | {
      readonly shape: Readonly<Record<string, Shape>>;
      readonly value: Record<string, unknown>;
      name: string | null;
    }
  | { readonly shape: readonly [Shape]; readonly value: unknown[] };

/** Emits the picked members of each document. A document is the top-level object or, if the top level is a list, each
 *  object in it. */
export class JsonPicker {
  readonly #shape: Readonly<Record<string, Shape>>;
  readonly #emit: (picked: unknown) => void;
  readonly #frames: Frame[] = [];
  /** The top level is a list. */
  #listed = false;
  #ended = false;
  /** Nesting depth inside a container that is skipped. */
  #depth = 0;
  #inText = false;
  /** The first byte of the next chunk is escaped. */
  #escaped = false;
  #inBare = false;
  /** The index in this chunk where the kept bytes start, or -1. */
  #keepFrom = -1;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** Only the size of the current value is wanted. */
  #counts = false;

  constructor(shape: Readonly<Record<string, Shape>>, emit: (picked: unknown) => void) {
    this.#shape = shape;
    this.#emit = emit;
  }

  /** The documents are the elements of a list. */
  get listed(): boolean {
    return this.#listed;
  }

  /** The top-level value has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /** What was picked so far of a document that has not ended. A size is that of the part so far. */
  peek(): unknown {
    const frame = this.#frames.at(-1);
    // The next value of a member replaces this one. The opening quote does not count.
    if (this.#counts && this.#keepFrom >= 0 && frame !== undefined && "name" in frame)
      this.#put(new PickedSize(this.#depth > 0 ? this.#keptBytes : this.#keptBytes - 1));
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
    if (this.#depth > 0) return;
    const shape = this.#isNaming() || this.#shapeHere();
    if (shape === true || shape === "size") this.#startKeeping(at, shape === "size");
  }

  /** Skips to the end of the current string, or of the chunk. */
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

  /** Whether the byte at `at` follows an odd run of backslashes. The string continues at `from`. */
  #isEscaped(chunk: Buffer, from: number, at: number): boolean {
    let run = at;
    while (run > from && chunk[run - 1] === BACKSLASH) run -= 1;
    const carried = run === 0 && this.#escaped ? 1 : 0;
    return (at - run + carried) % 2 === 1;
  }

  #endText(chunk: Buffer, to: number): void {
    const kept = this.#takeKept(chunk, to);
    // A size is without the quotes.
    const text = kept instanceof PickedSize ? new PickedSize(kept.bytes - 2) : kept;
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

  /** Skips a container up to the next string, its end, or the end of the chunk. */
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
    const frame = typeof shape === "object" ? frameOf(shape, byte) : null;
    if (frame !== null) {
      if (this.#frames.length > 0) this.#put(frame.value);
      this.#frames.push(frame);
      return;
    }
    this.#depth = 1;
    if (shape === true || shape === "size") this.#startKeeping(at, shape === "size");
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

  /** The next string is a member's name. */
  #isNaming(): boolean {
    const frame = this.#frames.at(-1);
    return frame !== undefined && "name" in frame && frame.name === null;
  }

  /** The shape for the value that starts here. Undefined: the value is skipped. */
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
      if (frame.value.length < MAX_LIST_LENGTH) frame.value.push(value);
    } else if (frame.name !== null) frame.value[frame.name] = value;
  }

  #startKeeping(at: number, counts = false): void {
    this.#keepFrom = at;
    this.#counts = counts;
    this.#kept = [];
    this.#keptBytes = 0;
  }

  #keep(chunk: Buffer, to: number): void {
    this.#keptBytes += to - this.#keepFrom;
    if (this.#counts) return;
    if (this.#keptBytes <= MAX_VALUE_BYTES) this.#kept.push(Buffer.from(chunk.subarray(this.#keepFrom, to)));
    else this.#kept = [];
  }

  #takeKept(chunk: Buffer, to: number): unknown {
    this.#keep(chunk, to);
    this.#keepFrom = -1;
    if (this.#counts) return new PickedSize(this.#keptBytes);
    const text = this.#keptBytes > MAX_VALUE_BYTES ? "" : Buffer.concat(this.#kept).toString();
    this.#kept = [];
    // In a stream of events, JSON may go on in further `data` lines. A string has no line break.
    return parseWithAmounts(text.replaceAll("\ndata:", "\n"));
  }
}

type ContainerShape = Exclude<Shape, true | "size">;

function isListShape(shape: ContainerShape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

/** Null if the container is not of the kind that the shape expects. */
function frameOf(shape: ContainerShape, byte: number): Frame | null {
  if (isListShape(shape)) return byte === OPEN_LIST ? { shape, value: [] } : null;
  return byte === OPEN_OBJECT ? { shape, value: {}, name: null } : null;
}

/** Bytes that end a number or a word. */
function endsBare(byte: number): boolean {
  return byte <= 0x20 || byte === COMMA || byte === COLON || byte === CLOSE_LIST || byte === CLOSE_OBJECT;
}
