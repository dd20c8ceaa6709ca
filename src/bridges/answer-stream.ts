// How the gateway drives a bridge through a stream, whichever bridge it is.

/** Replaces the id and the date of a response that has none. */
export interface RequestStamp {
  readonly id: string;
  /** Milliseconds. */
  readonly time: number;
}

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

export interface AnswerStream {
  push(chunk: Uint8Array): AnswerOutput;
  /** The upstream's response has ended. `fault` is the reason, if the gateway knows one. */
  end(fault?: StreamFault): AnswerOutput;
  /** What shows the client that the answer goes on, though nothing comes. */
  idle(): AnswerOutput;
}
