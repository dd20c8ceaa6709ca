// An answer that is converted while it comes.

import type { EventTaker, Meter, ParsedEvent } from "../billing/usage.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { DIALECTS } from "../dialects/endpoints.ts";
import { parseData } from "../dialects/meters/meter.ts";
import { GatewayError } from "../lib/errors.ts";
import { openSseParser } from "../lib/sse.ts";
import { blameAnswer, explainFailure, type Failure } from "./neutral/failure.ts";
import { type AnswerReader, WHOLE_ANSWER } from "./neutral/read-answer.ts";
import type { Block, Sequence } from "./neutral/sequence.ts";
import { formOf, matchForm, type TextForm } from "./text-form.ts";
import type { AnswerContext, AnswerWriter, RequestStamp } from "./neutral/write-answer.ts";

/** held: do not send the response head yet. open: the head may be sent. done: the client's stream has ended. broken: it has
 *  ended with an error event. refused: answer with `refusal` instead of a stream. */
export type StreamPhase = "held" | "open" | "done" | "broken" | "refused";

export interface AnswerOutput {
  /** To send now. Empty while `held`, if refused, and if nothing in the client's dialect corresponds to the event. */
  readonly text: string;
  readonly phase: StreamPhase;
  /** The error, if broken or refused. */
  readonly refusal: { readonly status: number; readonly body: string } | null;
}

/** Why the upstream's response ended early. */
export interface StreamFault {
  readonly status: number;
  readonly message: string;
}

export function formError(
  failure: Failure,
  client: DialectName,
  { id }: RequestStamp,
): { status: number; body: string } {
  const body = DIALECTS[client].errorBody(explainFailure(failure, client), id);
  return { status: failure.status, body };
}

/** The events of a stream; a whole answer is one: the readers know both. */
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
  /** Parses the upstream's events, and counts what it reports, also after the end of the answer. */
  readonly meter: Meter;
}

const MAX_MISSES = 4;

/** A failure before the answer's beginning goes to the gateway, which answers with a status. */
export class AnswerStream implements EventTaker {
  readonly #parts: StreamParts;
  /** What the last event was but for its text, and the block that got this. */
  #form: TextForm = [];
  #block: Block | null = null;
  /** Forms that no event had, one after the other: some upstreams count with each event. */
  #misses = 0;

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  push(chunk: Uint8Array): AnswerOutput {
    if (this.#parts.sequence.isOver) this.#parts.meter.see(chunk);
    return this.#emit(() => this.#parts.meter.readEvents(chunk, this));
  }

  /** Some upstreams send a whole answer where a stream was requested. */
  pushWhole(body: Uint8Array): AnswerOutput {
    return this.#emit(() => {
      for (const event of listEvents(body)) this.take(event);
      this.#parts.reader.finish();
    });
  }

  /** What shows the client that the answer goes on, though nothing comes. */
  idle(): AnswerOutput {
    return this.#emit(() => {
      if (this.#parts.reader.isFinished()) return this.#parts.reader.finish();
      this.#parts.sequence.begin();
      this.#parts.writer.idle();
    });
  }

  /** The upstream's response has ended. `fault` is the reason, if the gateway knows one. */
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
    if (!sequence.isOver) reader.readEvent(parsed);
    const [block, piece] = sequence.takeBrought() ?? [null, ""];
    // What a piece of a call means may depend on those before it.
    const isPlain = block?.kind !== "call" && size === Buffer.byteLength(piece);
    this.#block = isPlain ? block : null;
    if (this.#block === null || matchForm(this.#form, event, 0)?.[0] === piece) return;
    this.#form = this.#misses < MAX_MISSES ? formOf(event, parsed.data, piece) : [];
    this.#misses += 1;
  }

  takeText(text: string, from: number): readonly [string, number] | null {
    if (this.#block === null || this.#parts.sequence.isOver) return null;
    const match = matchForm(this.#form, text, from);
    if (match === null) return null;
    this.#misses = 0;
    this.#parts.sequence.delta(this.#block, match[0]);
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
    const { hasBegun, ended, failure } = this.#parts.sequence;
    const text = this.#parts.writer.take();
    if (failure !== null) {
      const { client, stamp } = this.#parts.context;
      return { text, phase: hasBegun ? "broken" : "refused", refusal: formError(failure, client, stamp) };
    }
    return { text, phase: ended !== null ? "done" : hasBegun ? "open" : "held", refusal: null };
  }
}
