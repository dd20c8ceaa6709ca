// The responses dialect, and its variants for embeddings, searches and pictures.

import type { StreamBreak, Dialect } from "../dialect.ts";
import { openEmbeddingsMeter, openImagesMeter, openSearchMeter } from "../meters/calls.ts";
import { openResponsesMeter } from "../meters/responses.ts";
import { CACHED_MEMBERS, OPENAI_CACHE, OPENAI_PARTS, type WireError, formWireError } from "./openai.ts";
import { type Layout, listMembers } from "../prompt/layouts.ts";

const LAYOUT: Layout = {
  ...OPENAI_CACHE,
  members: listMembers({
    ...CACHED_MEMBERS,
    instructions: "system",
    input: "messages",
    text: "setting",
    reasoning: "setting",
    previous_response_id: "continues",
    conversation: "held",
    context_management: "edits",
  }),
};

export const responses: Dialect = {
  ...OPENAI_PARTS,
  name: "responses",
  errorEvent(error, requestId, at = {}) {
    const failed = formFailed(formWireError(error), requestId, at);
    return `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`;
  },
  numbersEvents: true,
  storesAnswers: true,
  openMeter: openResponsesMeter,
  capNames: ["max_output_tokens"],
  promptLayout: LAYOUT,
};

export const embeddings: Dialect = { ...responses, openMeter: openEmbeddingsMeter };
export const search: Dialect = { ...responses, openMeter: openSearchMeter };
export const images: Dialect = { ...responses, openMeter: openImagesMeter };

/** Codes for errors that have a type, but no code of their own. */
const NAMELESS: Readonly<Record<string, string>> = { invalid_request_error: "invalid_prompt" };

/** Codex reads `response.error`, the SDK `error`: both are there. */
function formFailed(error: WireError, requestId: string, at: StreamBreak): unknown {
  const failed = {
    id: at.id ?? `resp_${requestId}`,
    created_at: Math.floor(Date.now() / 1000),
    status: "failed",
    error: { code: error.code ?? NAMELESS[error.type] ?? "server_error", message: error.message },
    model: at.model ?? "",
    usage: null,
    user: null,
  };
  return {
    type: "response.failed",
    sequence_number: at.sequence ?? 0,
    response: formResponse(failed),
    error,
  };
}

/** Strict clients need every key of a response. */
export function formResponse(own: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return {
    object: "response",
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    metadata: {},
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: null,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: null,
    truncation: "disabled",
    ...own,
  };
}
