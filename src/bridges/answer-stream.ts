// An answer that is converted while it comes.

import type { Meter, ParsedEvent } from "../billing/usage.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { DIALECTS } from "../dialects/endpoints.ts";
import { parseData } from "../dialects/meters/meter.ts";
import { GatewayError } from "../lib/errors.ts";
import { openSseParser } from "../lib/sse.ts";
import { blameAnswer, explainFailure, type Failure } from "./neutral/failure.ts";
import { type AnswerReader, WHOLE_ANSWER } from "./neutral/read-answer.ts";
import type { Sequence } from "./neutral/sequence.ts";
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

export function readEvent(
  reader: AnswerReader,
  sequence: Sequence,
  { name, data, value }: ParsedEvent,
): void {
  if (value !== undefined) reader.read(value, name);
  else if (!reader.readWord(data)) sequence.fail(blameAnswer("The upstream sent an event that is not JSON."));
}

/** The events of a stream; a whole answer is one: the readers know both. */
export function listEvents(body: Uint8Array): readonly ParsedEvent[] {
  const data = new TextDecoder().decode(body);
  if (/^\s*[{[]/.test(data)) return [parseData({ name: WHOLE_ANSWER, data })];
  const parser = openSseParser();
  return [...parser.push(body), ...parser.end()].map(parseData);
}

interface StreamParts {
  readonly writer: AnswerWriter;
  readonly sequence: Sequence;
  readonly reader: AnswerReader;
  /** Parses the upstream's events, and counts what it reports, also after the end of the answer. */
  readonly meter: Meter;
}

/** A failure before the answer's beginning goes to the gateway, which answers with a status. */
export class AnswerStream {
  readonly #parts: StreamParts;
  readonly #context: AnswerContext;

  constructor(parts: StreamParts, context: AnswerContext) {
    this.#parts = parts;
    this.#context = context;
  }

  push(chunk: Uint8Array): AnswerOutput {
    if (this.#parts.sequence.isOver) this.#parts.meter.see(chunk);
    return this.#emit(() => this.#read(this.#parts.meter.readEvents(chunk)));
  }

  /** Some upstreams send a whole answer where a stream was requested. */
  pushWhole(body: Uint8Array): AnswerOutput {
    return this.#emit(() => {
      this.#read(listEvents(body));
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
      if (fault === undefined) {
        this.#read(this.#parts.meter.readEvents(null).filter(({ value }) => value !== undefined));
        this.#parts.reader.finish();
      } else if (this.#parts.reader.survives()) this.#parts.reader.finish();
      else this.#parts.sequence.fail(blameAnswer(fault.message, fault.status));
    });
  }

  #read(events: readonly ParsedEvent[]): void {
    for (const event of events) {
      if (this.#parts.sequence.isOver) return;
      readEvent(this.#parts.reader, this.#parts.sequence, event);
    }
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
      const { client, stamp } = this.#context;
      return { text, phase: hasBegun ? "broken" : "refused", refusal: formError(failure, client, stamp) };
    }
    return { text, phase: ended !== null ? "done" : hasBegun ? "open" : "held", refusal: null };
  }
}
