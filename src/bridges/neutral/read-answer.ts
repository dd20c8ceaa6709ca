// What the readers of answers share.

import type { ParsedEvent } from "../../billing/usage.ts";
import { getField } from "../../lib/json/json.ts";
import type { Seal } from "./conversation.ts";
import { blameAnswer } from "./error.ts";
import type { Block, Sequence, WebSource } from "./sequence.ts";

export const WHOLE_ANSWER = "whole answer";

export abstract class AnswerReader {
  protected readonly to: Sequence;
  /** The block that grows now: some upstreams do not name it. */
  protected spoken: Block | null = null;

  constructor(to: Sequence) {
    this.to = to;
  }

  abstract read(event: unknown, name: string): void;

  /** An event with empty data says nothing. */
  readEvent({ name, data, value }: ParsedEvent): void {
    if (value !== undefined) this.read(value, name);
    else if (data.trim() !== "" && !this.readWord(data))
      this.to.fail(blameAnswer("The upstream sent an event that is not JSON."));
  }

  /** False: the word has no meaning in the dialect. */
  readWord(word: string): boolean {
    return word === "[DONE]";
  }

  /** The stream has ended. An answer without its own end is a failure. */
  finish(): void {
    this.cut();
  }

  /** Whether the answer is complete. Its usage may still follow. */
  isFinished(): boolean {
    return false;
  }

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

export function readSource(source: unknown): WebSource[] {
  const [url, title] = [getField(source, "url"), getField(source, "title")];
  return typeof url === "string" ? [{ url, title: typeof title === "string" ? title : url }] : [];
}
