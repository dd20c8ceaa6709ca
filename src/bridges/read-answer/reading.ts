// What the readers of answers share.

import type { Sequence } from "../turn/sequence.ts";

/** Reads an upstream's answer: the events of a stream one by one, or a whole answer as one event. */
export interface AnswerReader {
  /** `name`: of the event, if the stream has names. */
  read(event: unknown, name: string): void;
  /** A `data:` line that is not JSON. False: it means nothing in this dialect. */
  readWord(word: string): boolean;
  /** The upstream has sent all that it sends. An answer that has not ended is a failure. */
  finish(): void;
  /** The upstream's connection broke. True if the answer was complete before. */
  survives(): boolean;
}

export type OpenReader = (sequence: Sequence) => AnswerReader;

export const CUT = "The upstream closed the stream before its answer was complete.";
