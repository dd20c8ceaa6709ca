// Blocks → an answer for a messages client.
// https://platform.claude.com/docs/en/build-with-claude/streaming

import { sha256Hex } from "../../lib/secret.ts";
import type { Json } from "../responses-to-chat/strict-json.ts";
import type { AnswerEnd, Block, EndReason } from "../turn/sequence.ts";
import { isHeld } from "../turn/tool-input.ts";
import { findTool } from "../turn/names.ts";
import { writeMessagesUsage } from "../turn/usage.ts";
import { type AnswerContext, AnswerWriter, nameAnswer, readCall, type WholeAnswer } from "./writing.ts";

export const STOP_REASONS: Readonly<Record<EndReason, string>> = {
  done: "end_turn",
  calls: "tool_use",
  cap: "max_tokens",
  stop: "stop_sequence",
  refusal: "refusal",
  context: "model_context_window_exceeded",
};

export class MessagesAnswerWriter extends AnswerWriter {
  /** A search is two blocks for the client. */
  #index = 0;

  begin(id: string): void {
    const { context } = this;
    const message = writeMessage(id, context, { content: [], stop: null, usage: writeMessagesUsage({}) });
    this.#event("message_start", { message });
    this.idle();
  }

  idle(): void {
    this.#event("ping", {});
  }

  open(block: Block): void {
    if (block.kind === "search") return;
    const start = this.#formBlock(block, false);
    this.#event("content_block_start", { index: this.#index, content_block: start });
  }

  delta(block: Block, piece: string): void {
    if (block.kind === "call" && isHeld(findTool(this.context.tools, block.name))) return;
    if (block.kind === "search") return;
    this.put(
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":${START[block.kind]}${JSON.stringify(piece)}}}\n\n`,
    );
  }

  close(block: Block): void {
    if (block.kind === "search") return this.#writeSearch(block);
    if (block.kind === "call") this.#finishCall(block);
    if (block.kind === "reasoning") {
      const signature = writeSignature(block, this.context);
      this.#event("content_block_delta", {
        index: this.#index,
        delta: { type: "signature_delta", signature },
      });
    }
    this.#stop();
  }

  end({ reason, stop }: AnswerEnd): void {
    const delta = { stop_reason: STOP_REASONS[reason], stop_sequence: stop };
    this.#event("message_delta", { delta, usage: writeMessagesUsage(this.context.count()) });
    this.#event("message_stop", {});
  }

  /** Clients read the input from deltas only, so there is always one. */
  #finishCall(block: Block): void {
    const tool = findTool(this.context.tools, block.name);
    if (block.text !== "" && !isHeld(tool)) return;
    const { input } = readCall(block, this.context);
    this.put(
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":${START.call}${JSON.stringify(input)}}}\n\n`,
    );
  }

  #writeSearch(block: Block): void {
    for (const content_block of writeSearch(block)) {
      this.#event("content_block_start", { index: this.#index, content_block });
      this.#stop();
    }
  }

  #stop(): void {
    this.#event("content_block_stop", { index: this.#index });
    this.#index += 1;
  }

  #formBlock(block: Block, whole: boolean): Json {
    return formBlock(block, this.context, whole);
  }

  #event(type: string, data: Json): void {
    this.put(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  }
}

/** The beginning of a delta. */
const START: Readonly<Record<Exclude<Block["kind"], "search">, string>> = {
  text: '{"type":"text_delta","text":',
  refusal: '{"type":"text_delta","text":',
  reasoning: '{"type":"thinking_delta","thinking":',
  call: '{"type":"input_json_delta","partial_json":',
};

export function writeWholeMessages({ id, blocks, end }: WholeAnswer, context: AnswerContext): string {
  const content = blocks.flatMap((block) =>
    block.kind === "search" ? writeSearch(block) : [formBlock(block, context, true)],
  );
  const usage = writeMessagesUsage(context.count());
  return JSON.stringify(writeMessage(id, context, { content, stop: end, usage }));
}

interface MessageParts {
  readonly content: readonly unknown[];
  readonly stop: AnswerEnd | null;
  readonly usage: Json;
}

function writeMessage(id: string, context: AnswerContext, { content, stop, usage }: MessageParts): Json {
  return {
    id: nameAnswer("msg_", id, context),
    type: "message",
    role: "assistant",
    model: context.model,
    content,
    stop_reason: stop && STOP_REASONS[stop.reason],
    stop_sequence: stop && stop.stop,
    usage,
  };
}

function formBlock(block: Block, context: AnswerContext, whole: boolean): Json {
  const text = whole ? block.text : "";
  if (block.kind === "reasoning")
    return { type: "thinking", thinking: text, signature: whole ? writeSignature(block, context) : "" };
  if (block.kind !== "call") return { type: "text", text };
  const { name, input } = readCall(block, context);
  return { type: "tool_use", id: block.id, name, input: whole ? parseInput(input) : {} };
}

function parseInput(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return {};
  }
}

/** Without anything to give back, an empty text: the block is dropped when it returns. */
function writeSignature({ seal }: Block, context: AnswerContext): string {
  return seal === null ? "" : context.closeSeal(seal);
}

/** Claude Code counts these blocks. */
function writeSearch({ id, text, sources }: Block): Json[] {
  const made = `srvtoolu_${sha256Hex(id).slice(0, 24)}`;
  const content = sources.map(({ title, url }) => ({
    type: "web_search_result",
    url,
    title,
    encrypted_content: "",
    page_age: null,
  }));
  return [
    { type: "server_tool_use", id: made, name: "web_search", input: { query: text } },
    { type: "web_search_tool_result", tool_use_id: made, content },
  ];
}
