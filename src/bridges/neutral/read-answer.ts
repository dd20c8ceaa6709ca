// What the readers of answers share.

import { getField } from "../../lib/json/json.ts";
import type { Source } from "./sequence.ts";

/** Reads an upstream's answer: the events of a stream one by one, or a whole answer as one event. */
export interface AnswerReader {
  /** `name`: of the event, if the stream has names. */
  read(event: unknown, name: string): void;
  /** Events with this name say nothing new, and are not parsed: many repeat all of a text. */
  readonly skips?: (name: string) => boolean;
  /** A `data:` line that is not JSON. False: it means nothing in this dialect. */
  readWord(word: string): boolean;
  /** The upstream has sent all that it sends. An answer that has not ended is a failure. */
  finish(): void;
  /** The upstream has said why its answer ended: nothing more of it comes, if not the stream's own end. */
  isFinished?(): boolean;
  /** The upstream's connection broke. True if the answer was complete before. */
  survives(): boolean;
}

export const CUT = "The upstream closed the stream before its answer was complete.";

/** Of a search. Its name is its address if it has no other. */
export function readSource(source: unknown): Source[] {
  const [url, title] = [getField(source, "url"), getField(source, "title")];
  return typeof url === "string" ? [{ url, title: typeof title === "string" ? title : url }] : [];
}
