// Blocks → an answer for a messages client.

import type { Usage } from "../../billing/usage.ts";
import { sha256Hex } from "../../lib/secret.ts";
import type { Json } from "../neutral/notes.ts";
import type { AnswerEnd, Block, EndReason } from "../neutral/sequence.ts";
import { parseInput } from "../neutral/tools.ts";
import {
  type AnswerContext,
  AnswerWriter,
  nameAnswer,
  readCall,
  sumUsage,
  type WholeAnswer,
} from "../neutral/write-answer.ts";

export const STOP_REASONS: Readonly<Record<EndReason, string>> = {
  done: "end_turn",
  calls: "tool_use",
  cap: "max_tokens",
  stop: "stop_sequence",
  declined: "refusal",
  refusal: "refusal",
  context: "model_context_window_exceeded",
};

const DELTAS: Readonly<Record<Exclude<Block["kind"], "search">, [type: string, name: string]>> = {
  text: ["text_delta", "text"],
  refusal: ["text_delta", "text"],
  reasoning: ["thinking_delta", "thinking"],
  call: ["input_json_delta", "partial_json"],
};

export class MessagesAnswerWriter extends AnswerWriter {
  #index = 0;

  begin(): void {
    const { context } = this;
    const message = writeMessage(context, [], {});
    this.#event("message_start", { message });
    this.idle();
  }

  idle(): void {
    this.#event("ping", {});
  }

  protected start(block: Block): void {
    if (block.kind === "search") return;
    const content_block = formBlock(block, this.context, false);
    this.#event("content_block_start", { index: this.#index, content_block });
  }

  protected grow({ kind }: Block, piece: string): void {
    if (kind === "search") return;
    const [type, name] = DELTAS[kind];
    this.#event("content_block_delta", { index: this.#index, delta: { type, [name]: piece } });
  }

  close(block: Block): void {
    if (block.kind === "search") return this.#writeSearch(block);
    // Clients read the input only from deltas.
    const rest = block.kind === "call" ? this.readRest(block) : null;
    if (rest !== null) this.grow(block, JSON.stringify(parseInput(rest)));
    if (block.kind === "reasoning") {
      const delta = { type: "signature_delta", signature: writeSignature(block, this.context) };
      this.#event("content_block_delta", { index: this.#index, delta });
    }
    this.#stop();
  }

  end({ reason, stop }: AnswerEnd): void {
    const delta = { stop_reason: STOP_REASONS[reason], stop_sequence: stop };
    this.#event("message_delta", { delta, usage: writeUsage(this.context.count()) });
    this.#event("message_stop", {});
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

  #event(type: string, data: Json): void {
    this.put(`event: ${type}\ndata: `, { type, ...data }, "\n\n");
  }
}

export function writeWholeMessages({ blocks, end }: WholeAnswer, context: AnswerContext): string {
  const content = blocks.flatMap((block) =>
    block.kind === "search" ? writeSearch(block) : [formBlock(block, context, true)],
  );
  return JSON.stringify(writeMessage(context, content, context.count(), end));
}

function writeMessage(
  { model, ...context }: AnswerContext,
  content: unknown[],
  usage: Usage,
  stop?: AnswerEnd,
): Json {
  return {
    id: `msg_${nameAnswer(context)}`,
    type: "message",
    role: "assistant",
    model,
    content,
    stop_reason: stop === undefined ? null : STOP_REASONS[stop.reason],
    stop_sequence: stop?.stop ?? null,
    usage: writeUsage(usage),
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

/** Clients also send an empty signature back, and the reader drops it. */
function writeSignature({ seal }: Block, context: AnswerContext): string {
  return seal === null ? "" : context.closeSeal(seal);
}

/** A search has two blocks. Claude Code counts such blocks. */
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

/** Clients need every count of tokens, even if it is 0. */
function writeUsage(usage: Usage): Json {
  const { prompt, read, written, output, reasoning } = sumUsage(usage);
  const { cache_write_1h: long = 0 } = usage;
  const searches = (usage.web_search ?? 0) + (usage.web_search_preview ?? 0) + (usage.google_search ?? 0);
  return {
    input_tokens: prompt - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: written - long, ephemeral_1h_input_tokens: long },
    output_tokens: output,
    output_tokens_details: { thinking_tokens: reasoning },
    server_tool_use: searches === 0 ? undefined : { web_search_requests: searches, web_fetch_requests: 0 },
  };
}
