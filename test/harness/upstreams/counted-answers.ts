// Writes short answers with a given usage, as each platform does.

import type { Answer } from "../model/answers/answer.ts";
import { answerJson, answerStream } from "../model/answers/answer.ts";
import type { CachingDialect, Counted } from "./caching-upstream.ts";

type Value = Record<string, unknown>;

export interface CountedOptions {
  readonly model: string;
  readonly stream: boolean;
  /** The upstream's own report of its cache miss. */
  readonly diagnostics?: Value;
  readonly id?: string;
}

export function answerCounted(dialect: CachingDialect, counted: Counted, options: CountedOptions): Answer {
  switch (dialect) {
    case "messages":
      return answerMessages(counted, options);
    case "responses":
    case "chat":
      return answerResponses(counted, options);
    case "content":
      return answerContent(counted, options);
  }
}

function answerMessages({ total, read, written }: Counted, options: CountedOptions): Answer {
  const { model, stream, diagnostics } = options;
  const usage = {
    input_tokens: total - read - written,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
    output_tokens: 9,
  };
  const message = {
    id: options.id ?? "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [{ type: "text", text: "Done." }],
    stop_reason: "end_turn",
    usage,
    ...(diagnostics && { diagnostics }),
  };
  if (!stream) return answerJson("messages", message);
  const events = [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Done." } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } },
    { type: "message_stop" },
  ];
  return answerStream(
    "messages",
    events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
  );
}

function answerResponses({ total, read, written }: Counted, options: CountedOptions): Answer {
  const { model, stream, diagnostics } = options;
  const text = { type: "output_text", text: "Done.", annotations: [] };
  const item = { type: "message", id: "msg_1", role: "assistant", status: "completed", content: [text] };
  const response = {
    id: options.id ?? "resp_1",
    object: "response",
    status: "completed",
    model,
    service_tier: "default",
    output: [item],
    usage: {
      input_tokens: total,
      input_tokens_details: { cached_tokens: read, ...(written > 0 && { cache_write_tokens: written }) },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: total + 9,
    },
    ...(diagnostics && { prompt_cache_diagnostics: diagnostics }),
  };
  if (!stream) return answerJson("responses", response);
  const events = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [], usage: null } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
    {
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta: "Done.",
    },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response },
  ];
  return answerStream(
    "responses",
    events.map((event, index) => {
      const data = JSON.stringify({ sequence_number: index, ...event });
      return `event: ${event.type}\ndata: ${data}\n\n`;
    }),
  );
}

function answerContent({ total, read }: Counted, { model, stream }: CountedOptions): Answer {
  const chunk = {
    candidates: [{ content: { role: "model", parts: [{ text: "Done." }] }, finishReason: "STOP", index: 0 }],
    usageMetadata: {
      promptTokenCount: total,
      ...(read > 0 && { cachedContentTokenCount: read }),
      candidatesTokenCount: 9,
      totalTokenCount: total + 9,
    },
    modelVersion: model,
  };
  if (!stream) return answerJson("content", chunk);
  return answerStream("content", [`data: ${JSON.stringify(chunk)}\r\n\r\n`]);
}
