// The finish reason and the usage of an answer, as chat reports them.

import type { Json } from "../../common/strict-json.ts";
import { formChatUsage } from "../../turn/usage.ts";
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

/** Zeros pass unchanged. The ledger judges the upstream's own report. */
export function convertUsage(usage: ReplyUsage): Json {
  const { input_tokens: prompt, output_tokens: output, total_tokens: total } = usage;
  const { cached_tokens: read, cache_write_tokens: written } = usage.input_tokens_details;
  const { reasoning_tokens: reasoning } = usage.output_tokens_details;
  return formChatUsage({ prompt, output, total: total ?? prompt + output, read, written, reasoning });
}
