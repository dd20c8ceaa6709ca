// An answer that is converted while it comes.

import type { EventTaker, Meter, ParsedEvent } from "../billing/usage.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { DIALECTS } from "../dialects/endpoints.ts";
import { parseData } from "../dialects/meters/meter.ts";
import { GatewayError } from "../lib/errors.ts";
import { getText, parseJson } from "../lib/json/json.ts";
import type { Slices } from "../lib/json/slices.ts";
import { LARGE_BYTES } from "../lib/memory/memory-budget.ts";
import { openSseParser } from "../lib/sse.ts";
import { blameAnswer, toClientError, type UpstreamError } from "./neutral/error.ts";
import { type AnswerReader, WHOLE_ANSWER } from "./neutral/read-answer.ts";
import type { Block, Sequence } from "./neutral/sequence.ts";
import type { AnswerContext, AnswerWriter, RequestStamp } from "./neutral/write-answer.ts";

/** held: the client has no head yet. done, broken: the client's stream has ended.
 *  refused: the client gets `refusal`. */
export type StreamPhase = "held" | "open" | "done" | "broken" | "refused";

export interface Reply {
  readonly status: number;
  readonly body: string;
}

export interface AnswerOutput {
  readonly texts: string | Slices;
  readonly phase: StreamPhase;
  readonly refusal: Reply | null;
}

export interface StreamFault {
  readonly status: number;
  readonly message: string;
}

export function formError(failure: UpstreamError, client: DialectName, { id }: RequestStamp): Reply {
  const body = DIALECTS[client].errorBody(toClientError(failure, client), id);
  return { status: failure.status, body };
}

export function listEvents(body: Uint8Array): readonly ParsedEvent[] {
  const data = new TextDecoder().decode(body);
  if (/^\s*[{[]/.test(data)) return [parseData({ name: WHOLE_ANSWER, data })];
  const parser = openSseParser();
  return [...parser.push(body), ...parser.end()].map(parseData);
}

interface StreamParts {
  readonly context: AnswerContext;
  readonly writer: AnswerWriter;
  readonly sequence: Sequence;
  readonly reader: AnswerReader;
  /** Counts the usage even after the answer's end. */
  readonly meter: Meter;
}

/** After this many events without a match, a form is learned only from every 32nd event. */
const MAX_MISSES = 4;
const RETRY_MISSES = 32;

export class AnswerStream implements EventTaker {
  readonly #parts: StreamParts;
  /** What surrounds the text in the last event, and the block that got this text. */
  #form: TextForm = [];
  #block: Block | null = null;
  #misses = 0;
  #waitingBytes = 0;

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  /** A character may take two bytes. */
  get heldBytes(): number {
    return this.#waitingBytes + 2 * this.#parts.sequence.held;
  }

  push(chunk: Uint8Array): AnswerOutput {
    this.#waitingBytes += chunk.length;
    if (this.#parts.sequence.isOver) this.#parts.meter.see(chunk);
    return this.#emit(() => this.#parts.meter.readEvents(chunk, this));
  }

  /** Some upstreams send a complete answer instead of a stream. */
  pushWhole(body: Uint8Array): AnswerOutput {
    return this.#emit(() => {
      for (const event of listEvents(body)) this.take(event);
      this.#parts.reader.finish();
    });
  }

  idle(): AnswerOutput {
    return this.#emit(() => {
      if (this.#parts.reader.isFinished()) return this.#parts.reader.finish();
      this.#parts.sequence.begin();
      this.#parts.writer.idle();
    });
  }

  end(fault?: StreamFault): AnswerOutput {
    return this.#emit(() => {
      const { meter, reader, sequence } = this.#parts;
      if (fault === undefined) meter.readEvents(null, this);
      else if (!reader.survives()) return sequence.fail(blameAnswer(fault.message, fault.status));
      reader.finish();
    });
  }

  take(parsed: ParsedEvent, event = "", size = 0): void {
    const { sequence, reader } = this.#parts;
    this.#waitingBytes = 0;
    if (!sequence.isOver) reader.readEvent(parsed);
    const [block, piece] = sequence.takeBrought() ?? [null, ""];
    // A piece of a call may depend on earlier pieces.
    const isPlain = block?.kind !== "call" && size === Buffer.byteLength(piece);
    this.#block = isPlain ? block : null;
    if (this.#block !== null && matchForm(this.#form, event, 0)?.[0] !== piece)
      this.#learn(event, parsed.data, piece);
  }

  #learn(event: string, data: string, piece: string): void {
    const isTried = this.#misses < MAX_MISSES || this.#misses % RETRY_MISSES === 0;
    this.#form = isTried ? formOf(event, data, piece) : [];
    this.#misses += 1;
  }

  takeText(text: string, from: number): readonly [string, number] | null {
    if (this.#block === null || this.#parts.sequence.isOver) return null;
    const match = matchForm(this.#form, text, from);
    if (match === null) return null;
    this.#misses = 0;
    this.#waitingBytes = 0;
    this.#parts.sequence.delta(this.#block, match[0]);
    this.#parts.sequence.takeBrought();
    return match;
  }

  #emit(work: () => void): AnswerOutput {
    try {
      if (!this.#parts.sequence.isOver) work();
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.#parts.sequence.fail(blameAnswer(error.message, error.status));
    }
    this.#parts.sequence.flush();
    const { hasBegun, ended, failure, held } = this.#parts.sequence;
    const texts = this.#parts.writer.take(held > LARGE_BYTES);
    if (failure !== null) {
      const { client, stamp } = this.#parts.context;
      return { texts, phase: hasBegun ? "broken" : "refused", refusal: formError(failure, client, stamp) };
    }
    return { texts, phase: ended !== null ? "done" : hasBegun ? "open" : "held", refusal: null };
  }
}

// Nearly all events of a stream differ only in a piece of text. They are not
// parsed, which would take longer than all other work.

/** Text in a JSON string. An escaped surrogate ends it: the next piece may have the other half. */
const TEXT = /[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[\da-fA-F]{4})[ !#-[\]-\uffff]*)*/y;
const NUMBER = /0|[1-9]\d{0,14}/y;
const NOTHING = /(?:)/y;
const TOKEN = /(?<="sequence_number"\s*:\s*)\d+|"(?:[^"\\]|\\.)*"/g;
/** The name of a filler, which nobody reads. */
const FILLER = /^"obfuscation"\s*:\s*$/;

type TextForm = readonly (readonly [before: string, value: RegExp, isPiece: boolean])[];

/** Searching a longer event would take milliseconds. */
const MAX_EVENT_LENGTH = 16_384;

/** Empty if the piece has no clear place. */
function formOf(event: string, data: string, piece: string): TextForm {
  const form: [string, RegExp, boolean][] = [];
  const head = event.lastIndexOf(data);
  const isOnce = event.indexOf(data) === head && event.startsWith(`${data}\n\n`, head);
  if (!isOnce || event.length > MAX_EVENT_LENGTH) return [];
  let from = 0;
  let last = 0;
  for (const { 0: token, index } of data.matchAll(TOKEN)) {
    const quote = token.startsWith('"') ? 1 : 0;
    const isPiece = quote === 1 && read(token.slice(1, -1)) === piece;
    if (quote === 0 || isPiece || FILLER.test(data.slice(last, index))) {
      const start = head + index + quote;
      form.push([event.slice(from, start), quote === 1 ? TEXT : NUMBER, isPiece]);
      from = start + token.length - 2 * quote;
    }
    last = index;
  }
  const isClear = form.filter(([, , isPiece]) => isPiece).length === 1;
  return isClear ? [...form, [event.slice(from), NOTHING, false]] : [];
}

/** The text of all events of this form from `from` on, and their end.
 *  Null: the first event has another form. */
function matchForm(form: TextForm, text: string, from: number): readonly [string, number] | null {
  let pieces = "";
  for (let [at, end] = [from, from]; ; end = at) {
    let piece = "";
    for (const [before, value, isPiece] of form) {
      value.lastIndex = at + before.length;
      if (!text.startsWith(before, at) || !value.test(text)) return end === from ? null : [pieces, end];
      if (isPiece) piece = text.slice(at + before.length, value.lastIndex);
      at = value.lastIndex;
    }
    if (at === end) return null;
    pieces += read(piece);
  }
}

function read(written: string): string {
  return written.includes("\\") ? getText(parseJson(`"${written}"`)) : written;
}
