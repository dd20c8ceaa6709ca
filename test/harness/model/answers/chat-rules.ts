// Refuses requests as a server of Chat Completions does: https://platform.openai.com/docs/api-reference/chat/create

import { isObject } from "../../../../src/lib/json/json.ts";
import { pick, pickList, pickText } from "../json.ts";

const MEMBERS = new Set(
  `model messages stream stream_options tools tool_choice parallel_tool_calls max_tokens max_completion_tokens
  temperature top_p stop n seed user frequency_penalty presence_penalty logit_bias logprobs top_logprobs
  response_format reasoning_effort verbosity service_tier store metadata prediction modalities audio
  web_search_options prompt_cache_key safety_identifier functions function_call`.split(/\s+/),
);
const ROLES = new Set(["developer", "system", "user", "assistant", "tool", "function"]);

/** Finds the reason for which the server refuses a request. Null: the request is valid. */
export function findChatProblem(body: unknown): string | null {
  const unknown = Object.keys(isObject(body) ? body : {}).find((name) => !MEMBERS.has(name));
  if (unknown !== undefined) return `Unknown parameter: \`${unknown}\`.`;
  return findOptionProblem(body) ?? findMessageProblem(pickList(body, "messages"));
}

function findOptionProblem(body: unknown): string | null {
  const options = pick(body, "stream_options") ?? undefined;
  if (options !== undefined && pick(body, "stream") !== true)
    return "`stream_options` is only allowed when `stream` is true.";
  if (options !== undefined && (!isObject(options) || typeof pick(options, "include_usage") !== "boolean"))
    return "`stream_options` is invalid.";
  const hasTools = pickList(body, "tools").length > 0;
  const lonely = ["tool_choice", "parallel_tool_calls"].find((name) => pick(body, name) !== undefined);
  if (lonely !== undefined && !hasTools) return `\`${lonely}\` is only allowed when \`tools\` are given.`;
  const names = pickList(body, "tools").map((tool) => pickText(pick(tool, pickText(tool, "type")), "name"));
  const wrong = names.find((name) => !/^[\w-]{1,64}$/.test(name));
  return wrong === undefined ? null : `Invalid name of a tool: \`${wrong}\`.`;
}

function findMessageProblem(messages: readonly unknown[]): string | null {
  if (messages.length === 0) return "`messages` must have at least one message.";
  let open: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    const role = pickText(message, "role");
    if (!ROLES.has(role)) return `\`messages[${index}].role\` is invalid.`;
    const id = pickText(message, "tool_call_id");
    if (role === "tool" && !open.includes(id)) return `\`messages[${index}]\` answers no call.`;
    if (role !== "tool" && open.length > 0) return `No message answers the call \`${open[0]}\`.`;
    const calls = pickList(message, "tool_calls");
    if (calls.some((call) => typeof pick(call, "function", "arguments") === "object"))
      return `The arguments of a call in \`messages[${index}]\` must be a string.`;
    open = role === "tool" ? open.filter((other) => other !== id) : calls.map((call) => pickText(call, "id"));
  }
  return open.length === 0 ? null : `No message answers the call \`${open[0]}\`.`;
}
