// Blocks → an answer for a content client. A call comes whole, and the envelope of the thoughts before a part is that part's
// signature.
// https://ai.google.dev/api/generate-content

import type { Json } from "../neutral/strict-json.ts";
import type { AnswerEnd, Block, EndReason } from "../neutral/sequence.ts";
import { parseInput } from "../neutral/tool-input.ts";
import { writeContentUsage } from "../neutral/usage.ts";
import { type AnswerContext, AnswerWriter, readCall, type WholeAnswer } from "../neutral/write-answer.ts";

/** Gemini CLI sends a request again whose answer has no reason. */
export const CONTENT_REASONS: Readonly<Record<EndReason, string>> = {
  done: "STOP",
  calls: "STOP",
  cap: "MAX_TOKENS",
  stop: "STOP",
  declined: "SAFETY",
  refusal: "SAFETY",
  context: "MAX_TOKENS",
};

/** Google's SDK forgets an answer that has an event without a part. */
const NOTHING = '{"text":""}';

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
  /** What every chunk ends with. */
  readonly #name = JSON.stringify(nameAnswer(this.context)).slice(1, -1);

  begin(): void {}

  /** Comments would break the parser of Gemini CLI. */
  idle(): void {
    this.#chunk(NOTHING);
  }

  protected start(): void {}

  protected grow({ kind }: Block, piece: string): void {
    if (kind === "call") return;
    if (kind === "reasoning") this.#chunk(`{"text":${JSON.stringify(piece)},"thought":true}`);
    else if (this.#thoughts.isEmpty) this.#chunk(`{"text":${JSON.stringify(piece)}}`);
    else this.#chunk(JSON.stringify(this.#thoughts.sign({ text: piece })));
  }

  close(block: Block): void {
    this.#thoughts.add(block);
    if (block.kind === "call")
      this.#chunk(JSON.stringify(this.#thoughts.sign(formCall(block, this.context))));
  }

  end({ reason }: AnswerEnd): void {
    const last = this.#thoughts.isEmpty ? NOTHING : JSON.stringify(this.#thoughts.sign({ text: "" }));
    const usage = JSON.stringify(writeContentUsage(this.context.count()));
    this.#chunk(last, `,"finishReason":"${CONTENT_REASONS[reason]}"`, `,"usageMetadata":${usage}`);
  }

  #chunk(part: string, reason = "", usage = ""): void {
    const content = `{"role":"model","parts":[${part}]}`;
    this.put(
      `data: {"candidates":[{"content":${content}${reason},"index":0}],${this.#name}${usage}}\r\n\r\n`,
    );
  }
}

export function writeWholeContent({ blocks, end }: WholeAnswer, context: AnswerContext): string {
  const thoughts = new Thoughts(context);
  const parts: Json[] = [];
  for (const block of blocks) {
    thoughts.add(block);
    const spoken = formSpoken(block, block.text);
    if (spoken !== null && block.text !== "")
      parts.push(block.kind === "reasoning" ? spoken : thoughts.sign(spoken));
    if (block.kind === "call") parts.push(thoughts.sign(formCall(block, context)));
  }
  if (!thoughts.isEmpty || parts.length === 0) parts.push(thoughts.sign({ text: "" }));
  const candidate = {
    content: { role: "model", parts },
    finishReason: CONTENT_REASONS[end.reason],
    index: 0,
  };
  const usageMetadata = writeContentUsage(context.count());
  return JSON.stringify({ candidates: [candidate], ...nameAnswer(context), usageMetadata });
}

function nameAnswer({ model, stamp }: AnswerContext): Json {
  return { modelVersion: model, responseId: stamp.id };
}

/** The part of a text or of reasoning; null for a call. */
function formSpoken({ kind }: Block, text: string): Json | null {
  if (kind === "reasoning") return { text, thought: true };
  return kind === "text" || kind === "refusal" ? { text } : null;
}

function formCall(block: Block, context: AnswerContext): Json {
  const { name, input } = readCall(block, context);
  return { functionCall: { id: block.id, name, args: parseInput(input) } };
}
