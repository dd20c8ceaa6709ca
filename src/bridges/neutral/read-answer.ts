// What the readers of answers share.

import type { ParsedEvent } from "../../billing/usage.ts";
import { getField } from "../../lib/json/json.ts";
import type { Seal } from "./conversation.ts";
import { blameAnswer } from "./failure.ts";
import type { Block, Sequence, WebSource } from "./sequence.ts";

/** The name of the event that is a whole answer. */
export const WHOLE_ANSWER = "whole answer";

/** Reads an upstream's answer into a sequence: the events of a stream one by one, or a whole answer as one event. */
export abstract class AnswerReader {
  protected readonly to: Sequence;
  /** Of what is spoken or thought, only one is open, where the upstream does not say which it means. */
  protected spoken: Block | null = null;

  constructor(to: Sequence) {
    this.to = to;
  }

  /** `name`: of the event, if the stream has names. */
  abstract read(event: unknown, name: string): void;

  readEvent({ name, data, value }: ParsedEvent): void {
    if (value !== undefined) this.read(value, name);
    else if (!this.readWord(data)) this.to.fail(blameAnswer("The upstream sent an event that is not JSON."));
  }

  /** A `data:` line that is not JSON. False: it means nothing in this dialect. */
  readWord(word: string): boolean {
    return word === "[DONE]";
  }

  /** The upstream has sent all that it sends. An answer that has not ended is a failure. */
  finish(): void {
    this.cut();
  }

  /** The upstream has said why its answer ended: nothing more of it comes, if not the stream's own end. */
  isFinished(): boolean {
    return false;
  }

  /** The upstream's connection broke. True if the answer was complete before. */
  survives(): boolean {
    return false;
  }

  protected cut(): void {
    this.to.fail(blameAnswer("The upstream closed the stream before its answer was complete."));
  }

  protected say(kind: "text" | "reasoning" | "refusal", text: string): void {
    if (text === "") return;
    if (this.spoken?.kind !== kind) this.closeSpoken();
    this.spoken ??= this.to.open(kind);
    this.to.delta(this.spoken, text);
  }

  protected closeSpoken(seal: Seal | null = null): void {
    if (this.spoken !== null) this.to.close(this.spoken, seal);
    this.spoken = null;
  }
}

/** Of a search. Its name is its address if it has no other. */
export function readSource(source: unknown): WebSource[] {
  const [url, title] = [getField(source, "url"), getField(source, "title")];
  return typeof url === "string" ? [{ url, title: typeof title === "string" ? title : url }] : [];
}
