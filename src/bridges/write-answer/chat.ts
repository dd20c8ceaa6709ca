// Blocks → an answer for a chat client. Its signed thoughts are in `reasoning_details`, as clients of OpenRouter know it.
// https://platform.openai.com/docs/api-reference/chat/streaming

import type { Json } from "../common/strict-json.ts";
import type { AnswerEnd, Block, EndReason } from "../turn/sequence.ts";
import { writeChatUsage } from "../turn/usage.ts";
import { type AnswerContext, AnswerWriter, nameAnswer, readCall, type WholeAnswer } from "./writing.ts";

export const FINISH_REASONS: Readonly<Record<EndReason, string>> = {
  done: "stop",
  calls: "tool_calls",
  cap: "length",
  stop: "stop",
  refusal: "content_filter",
  context: "length",
};

/** Between two texts of an answer. */
const SEPARATOR = "\n\n";

export class ChatAnswerWriter extends AnswerWriter {
  #start = "";
  #end = "";
  #head: Json = {};
  #calls = 0;
  /** The input of the open call. */
  #field = "";
  readonly #spoken = new Set<Block["kind"]>();

  begin(): void {
    const { context } = this;
    this.#head = formHead("chat.completion.chunk", context);
    this.#start = `data: ${JSON.stringify(this.#head).slice(0, -1)},"choices":[{"index":0,"delta":`;
    this.#end = `,"finish_reason":null}]${context.wantsUsage ? ',"usage":null' : ""}}\n\n`;
    this.#chunk('{"role":"assistant","content":"","refusal":null}');
  }

  idle(): void {
    this.put(": keepalive\n\n");
  }

  protected start(block: Block): void {
    const { kind, id, name } = block;
    if (kind === "call") {
      this.#field = this.tool?.kind === "custom" ? '"custom":{"input":' : '"function":{"arguments":';
      const call = formCall(this.tool?.kind === "custom", this.tool?.name ?? name, "");
      this.#chunk(JSON.stringify({ tool_calls: [{ index: this.#calls, id, ...call }] }));
      this.#calls += 1;
    } else if (kind !== "search" && this.#spoken.has(kind)) this.#chunk(writeDelta(kind, SEPARATOR));
    this.#spoken.add(kind);
  }

  protected grow({ kind }: Block, piece: string): void {
    if (kind === "call") {
      const index = this.#calls - 1;
      this.#chunk(`{"tool_calls":[{"index":${index},${this.#field}${JSON.stringify(piece)}}}]}`);
    } else if (kind !== "search") this.#chunk(writeDelta(kind, piece));
  }

  close(block: Block): void {
    const { kind, seal } = block;
    const rest = kind === "call" ? this.readRest(block) : null;
    if (rest !== null) this.grow(block, rest);
    if (kind === "reasoning" && seal !== null)
      this.#chunk(JSON.stringify({ reasoning_details: [formDetail(block, this.context)] }));
  }

  end({ reason }: AnswerEnd): void {
    const { wantsUsage, count } = this.context;
    const usage = wantsUsage ? { usage: null } : {};
    const choices = [{ index: 0, delta: {}, finish_reason: FINISH_REASONS[reason] }];
    this.put(`data: ${JSON.stringify({ ...this.#head, choices, ...usage })}\n\n`);
    if (wantsUsage)
      this.put(`data: ${JSON.stringify({ ...this.#head, choices: [], usage: writeChatUsage(count()) })}\n\n`);
    this.put("data: [DONE]\n\n");
  }

  #chunk(delta: string): void {
    this.put(this.#start + delta + this.#end);
  }
}

const FIELDS = { text: "content", refusal: "refusal", reasoning: "reasoning_content" } as const;

function writeDelta(kind: keyof typeof FIELDS, text: string): string {
  return `{"${FIELDS[kind]}":${JSON.stringify(text)}}`;
}

export function writeWholeChat({ blocks, end }: WholeAnswer, context: AnswerContext): string {
  const calls = blocks.filter(({ kind }) => kind === "call");
  const sealed = blocks.filter(({ kind, seal }) => kind === "reasoning" && seal !== null);
  const thoughts = joinBlocks(blocks, "reasoning");
  const text = joinBlocks(blocks, "text");
  const refusal = joinBlocks(blocks, "refusal");
  const message = {
    role: "assistant",
    content: text === "" && (calls.length > 0 || refusal !== "") ? null : text,
    refusal: refusal === "" ? null : refusal,
    ...(thoughts === "" ? {} : { reasoning_content: thoughts }),
    ...(sealed.length === 0 ? {} : { reasoning_details: sealed.map((block) => formDetail(block, context)) }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((block) => formWholeCall(block, context)) }),
  };
  return JSON.stringify({
    ...formHead("chat.completion", context),
    choices: [{ index: 0, message, logprobs: null, finish_reason: FINISH_REASONS[end.reason] }],
    usage: writeChatUsage(context.count()),
  });
}

function joinBlocks(blocks: readonly Block[], kind: Block["kind"]): string {
  return blocks
    .filter((block) => block.kind === kind)
    .map(({ text }) => text)
    .join(SEPARATOR);
}

function formHead(object: string, context: AnswerContext): Json {
  return {
    id: `chatcmpl-${nameAnswer(context)}`,
    object,
    created: Math.floor(context.stamp.time / 1000),
    model: context.model,
    system_fingerprint: null,
  };
}

function formCall(custom: boolean, name: string, input: string): Json {
  return custom
    ? { type: "custom", custom: { name, input } }
    : { type: "function", function: { name, arguments: input } };
}

function formWholeCall(block: Block, context: AnswerContext): Json {
  const { tool, name, input } = readCall(block, context);
  return { id: block.id, ...formCall(tool?.kind === "custom", name, input) };
}

function formDetail({ seal, index }: Block, context: AnswerContext): Json {
  return { type: "reasoning.encrypted", id: null, index, data: context.closeSeal(seal ?? {}) };
}
