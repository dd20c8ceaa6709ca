// The finish reason and the usage of an answer, as chat reports them.

import type { BridgeContext } from "../context.ts";
import type { Reply, ReplyUsage } from "./events.ts";

export type FinishReason = "stop" | "length" | "content_filter" | "tool_calls" | "function_call";

export function chooseFinishReason(
  reply: Pick<Reply, "status" | "incomplete_details">,
  called: boolean,
  context: BridgeContext,
): FinishReason {
  if (reply.status === "incomplete") {
    const reason = reply.incomplete_details?.reason;
    if (reason === "max_output_tokens") return "length";
    return reason === "content_filter" ? reason : "stop";
  }
  if (!called || context.forced) return "stop";
  return context.legacy ? "function_call" : "tool_calls";
}

export interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: {
    readonly cached_tokens: number;
    readonly audio_tokens: 0;
    readonly cache_write_tokens?: number;
  };
  readonly completion_tokens_details: {
    readonly reasoning_tokens: number;
    readonly audio_tokens: 0;
    readonly accepted_prediction_tokens: 0;
    readonly rejected_prediction_tokens: 0;
  };
}

/** Zeros pass unchanged. The ledger judges the upstream's own report. */
export function convertUsage(usage: ReplyUsage): ChatUsage {
  const { cached_tokens, cache_write_tokens } = usage.input_tokens_details;
  return {
    prompt_tokens: usage.input_tokens,
    completion_tokens: usage.output_tokens,
    total_tokens: usage.total_tokens ?? usage.input_tokens + usage.output_tokens,
    prompt_tokens_details: {
      cached_tokens,
      audio_tokens: 0,
      ...(cache_write_tokens === null ? {} : { cache_write_tokens }),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.output_tokens_details.reasoning_tokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
