// What the readers of answers share.

import type { ParsedEvent } from "../../billing/usage.ts";
import { getField } from "../../lib/json/json.ts";
import type { Seal } from "./conversation.ts";
import { blameAnswer } from "./failure.ts";
import type { Block, Sequence, WebSource } from "./sequence.ts";

/** The event name of a complete answer. */
export const WHOLE_ANSWER = "whole answer";

/** Reads an upstream's answer into a sequence. A complete answer is one event. */
export abstract class AnswerReader {
  protected readonly to: Sequence;
  /** The only open block of words or thoughts, where the upstream does not say which it means. */
  protected spoken: Block | null = null;

  constructor(to: Sequence) {
    this.to = to;
  }

  /** `name`: the event's, if the stream has names. */
  abstract read(event: unknown, name: string): void;

  readEvent({ name, data, value }: ParsedEvent): void {
    if (value !== undefined) this.read(value, name);
    else if (!this.readWord(data)) this.to.fail(blameAnswer("The upstream sent an event that is not JSON."));
  }

  /** A `data:` line that is not JSON. False: it has no meaning in the dialect. */
  readWord(word: string): boolean {
    return word === "[DONE]";
  }

  /** The upstream has sent everything. An answer without its end is a failure. */
  finish(): void {
    this.cut();
  }

  /** The upstream has said why the answer ended: only the stream's own end may follow. */
  isFinished(): boolean {
    return false;
  }

  /** The upstream's connection broke. True if the answer was already complete. */
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

/** A source of a search. Without a title, the address is the title. */
export function readSource(source: unknown): WebSource[] {
  const [url, title] = [getField(source, "url"), getField(source, "title")];
  return typeof url === "string" ? [{ url, title: typeof title === "string" ? title : url }] : [];
}
