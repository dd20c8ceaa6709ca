// Blocks → an answer for a content client.
// A part's signature is the envelope of earlier thoughts.

import type { Usage } from "../../billing/usage.ts";
import type { Json } from "../neutral/notes.ts";
import type { AnswerEnd, Block, EndReason } from "../neutral/sequence.ts";
import { parseInput } from "../neutral/tools.ts";
import {
  type AnswerContext,
  AnswerWriter,
  readCall,
  sumUsage,
  type WholeAnswer,
} from "../neutral/write-answer.ts";

/** Gemini CLI repeats a request if its answer has no end reason. */
export const CONTENT_REASONS: Readonly<Record<EndReason, string>> = {
  done: "STOP",
  calls: "STOP",
  cap: "MAX_TOKENS",
  stop: "STOP",
  declined: "SAFETY",
  refusal: "SAFETY",
  context: "MAX_TOKENS",
};

/** Google's SDK forgets an answer if an event has no part. */
const NOTHING = { text: "" };

class Thoughts {
  readonly #context: AnswerContext;
  #held: Json[] = [];

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  add({ kind, text, seal }: Block): void {
    // A seal with a `field` comes from a chat upstream, which needs the thought's text back.
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

  begin(): void {}

  /** An SSE comment would break Gemini CLI's parser. */
  idle(): void {
    this.#chunk(NOTHING);
  }

  protected start(): void {}

  protected grow({ kind }: Block, piece: string): void {
    if (kind === "call") return;
    if (kind === "reasoning") this.#chunk({ text: piece, thought: true });
    else this.#chunk(this.#thoughts.sign({ text: piece }));
  }

  close(block: Block): void {
    this.#thoughts.add(block);
    if (block.kind === "call") this.#chunk(this.#thoughts.sign(formCall(block, this.context)));
  }

  end({ reason }: AnswerEnd): void {
    const usageMetadata = writeUsage(this.context.count());
    this.#chunk(this.#thoughts.sign(NOTHING), { finishReason: CONTENT_REASONS[reason] }, { usageMetadata });
  }

  #chunk(part: Json, reason: Json = {}, usage: Json = {}): void {
    const candidate = { content: { role: "model", parts: [part] }, ...reason, index: 0 };
    this.put("data: ", { candidates: [candidate], ...nameAnswer(this.context), ...usage }, "\r\n\r\n");
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
  if (!thoughts.isEmpty || parts.length === 0) parts.push(thoughts.sign(NOTHING));
  const candidate = {
    content: { role: "model", parts },
    finishReason: CONTENT_REASONS[end.reason],
    index: 0,
  };
  const usageMetadata = writeUsage(context.count());
  return JSON.stringify({ candidates: [candidate], ...nameAnswer(context), usageMetadata });
}

function nameAnswer({ model, stamp }: AnswerContext): Json {
  return { modelVersion: model, responseId: stamp.id };
}

function formSpoken({ kind }: Block, text: string): Json | null {
  if (kind === "reasoning") return { text, thought: true };
  return kind === "text" || kind === "refusal" ? { text } : null;
}

function formCall(block: Block, context: AnswerContext): Json {
  const { name, input } = readCall(block, context);
  return { functionCall: { id: block.id, name, args: parseInput(input) } };
}

function writeUsage(usage: Usage): Json {
  const { prompt, read, output, reasoning } = sumUsage(usage);
  const { tool_prompt: tools = 0 } = usage;
  return {
    promptTokenCount: prompt - tools,
    cachedContentTokenCount: read,
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning,
    toolUsePromptTokenCount: tools || undefined,
    totalTokenCount: prompt + output,
  };
}
