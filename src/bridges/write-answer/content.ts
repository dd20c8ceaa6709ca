// Blocks → an answer for a content client. A call comes whole, and the envelope of the thoughts before a part is that part's
// signature.
// https://ai.google.dev/api/generate-content

import { parseJson } from "../../lib/json/json.ts";
import type { Json } from "../responses-to-chat/strict-json.ts";
import type { AnswerEnd, Block, EndReason } from "../turn/sequence.ts";
import { writeContentUsage } from "../turn/usage.ts";
import { type AnswerContext, AnswerWriter, readCall, type WholeAnswer } from "./writing.ts";

/** Gemini CLI sends a request again whose answer has no reason. */
export const CONTENT_REASONS: Readonly<Record<EndReason, string>> = {
  done: "STOP",
  calls: "STOP",
  cap: "MAX_TOKENS",
  stop: "STOP",
  refusal: "SAFETY",
  context: "MAX_TOKENS",
};

/** The thoughts that the next part takes along. */
class Thoughts {
  readonly #context: AnswerContext;
  #held: Json[] = [];

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  add({ kind, text, seal }: Block): void {
    // Only one kind of seal leaves the text to the client.
    if (kind === "reasoning" && seal !== null) this.#held.push({ text: "field" in seal ? text : "", seal });
  }

  sign(part: Json): Json {
    if (this.#held.length === 0) return part;
    const thoughtSignature = this.#context.closeSeal({ thoughts: this.#held });
    this.#held = [];
    return { ...part, thoughtSignature };
  }

  get isEmpty(): boolean {
    return this.#held.length === 0;
  }
}

export class ContentAnswerWriter extends AnswerWriter {
  readonly #thoughts = new Thoughts(this.context);
  #id = "";

  begin(id: string): void {
    this.#id = id || this.context.stamp.id;
  }

  /** Comments would break the parser of Gemini CLI. */
  idle(): void {
    this.put("data: {}\r\n\r\n");
  }

  open(): void {}

  delta(block: Block, piece: string): void {
    const part = formSpoken(block, piece);
    if (part !== null) this.#chunk([block.kind === "reasoning" ? part : this.#thoughts.sign(part)], {});
  }

  close(block: Block): void {
    this.#thoughts.add(block);
    if (block.kind === "call") this.#chunk([this.#thoughts.sign(formCall(block, this.context))], {});
  }

  end({ reason }: AnswerEnd): void {
    const last = this.#thoughts.isEmpty ? [] : [this.#thoughts.sign({ text: "" })];
    this.#chunk(last, { finishReason: CONTENT_REASONS[reason] }, writeContentUsage(this.context.count()));
  }

  #chunk(parts: readonly Json[], more: Json, usage?: Json): void {
    const answer = formAnswer(parts, more, { id: this.#id, model: this.context.model });
    this.put(
      `data: ${JSON.stringify(usage === undefined ? answer : { ...answer, usageMetadata: usage })}\r\n\r\n`,
    );
  }
}

export function writeWholeContent({ id, blocks, end }: WholeAnswer, context: AnswerContext): string {
  const thoughts = new Thoughts(context);
  const parts: Json[] = [];
  for (const block of blocks) {
    thoughts.add(block);
    const spoken = formSpoken(block, block.text);
    if (spoken !== null && block.text !== "")
      parts.push(block.kind === "reasoning" ? spoken : thoughts.sign(spoken));
    if (block.kind === "call") parts.push(thoughts.sign(formCall(block, context)));
  }
  if (!thoughts.isEmpty) parts.push(thoughts.sign({ text: "" }));
  const more = { finishReason: CONTENT_REASONS[end.reason] };
  const answer = formAnswer(parts, more, { id: id || context.stamp.id, model: context.model });
  return JSON.stringify({ ...answer, usageMetadata: writeContentUsage(context.count()) });
}

function formAnswer(
  parts: readonly Json[],
  more: Json,
  { id, model }: { readonly id: string; readonly model: string },
): Json {
  const content = { role: "model", parts };
  return { candidates: [{ content, ...more, index: 0 }], modelVersion: model, responseId: id };
}

/** Null for what is no text. */
function formSpoken({ kind }: Block, text: string): Json | null {
  if (kind === "reasoning") return { text, thought: true };
  return kind === "text" || kind === "refusal" ? { text } : null;
}

function formCall(block: Block, context: AnswerContext): Json {
  const { name, input } = readCall(block, context);
  return { functionCall: { id: block.id, name, args: parseJson(input) ?? {} } };
}
