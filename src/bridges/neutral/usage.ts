// The usage that a client sees, as in the ledger.

import {
  CACHE_READ_KINDS,
  countTokens,
  OUTPUT_KINDS,
  PROMPT_KINDS,
  type Usage,
} from "../../billing/usage.ts";
import type { Json } from "./strict-json.ts";

const WRITE_KINDS = PROMPT_KINDS.filter((kind) => kind.startsWith("cache_write"));

function add(usage: Usage) {
  return {
    prompt: countTokens(usage, PROMPT_KINDS),
    read: countTokens(usage, CACHE_READ_KINDS),
    written: countTokens(usage, WRITE_KINDS),
    output: countTokens(usage, OUTPUT_KINDS),
    reasoning: usage.reasoning ?? 0,
  };
}

/** Clients need every key. */
export function writeMessagesUsage(usage: Usage): Json {
  const { prompt, read, written, output, reasoning } = add(usage);
  const { cache_write_1h: long = 0 } = usage;
  const searches = (usage.web_search ?? 0) + (usage.web_search_preview ?? 0) + (usage.google_search ?? 0);
  return {
    input_tokens: prompt - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: written - long, ephemeral_1h_input_tokens: long },
    output_tokens: output,
    output_tokens_details: { thinking_tokens: reasoning },
    ...(searches === 0 ? {} : { server_tool_use: { web_search_requests: searches, web_fetch_requests: 0 } }),
  };
}

export function writeResponsesUsage(usage: Usage): Json {
  const { prompt, read, written, output, reasoning } = add(usage);
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  };
}

export function writeChatUsage(usage: Usage): Json {
  const { prompt, read, written, output, reasoning } = add(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: read,
      audio_tokens: 0,
      ...(written > 0 && { cache_write_tokens: written }),
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

export function writeContentUsage(usage: Usage): Json {
  const { prompt, read, output, reasoning } = add(usage);
  const { tool_prompt: tools = 0 } = usage;
  return {
    promptTokenCount: prompt - tools,
    cachedContentTokenCount: read,
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning,
    ...(tools === 0 ? {} : { toolUsePromptTokenCount: tools }),
    totalTokenCount: prompt + output,
  };
}
