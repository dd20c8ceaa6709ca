// Writes answers of the responses dialect, as an upstream sends them: the object, its items, and their events.

import { pick, pickList, pickNumber, pickText, readText, type Json } from "../json.ts";
import { readOpenAiChoice, readOpenAiPrompt, readOpenAiTool, writesToCache } from "./openai.ts";
import { cutText, type Family, writeNamedEvent } from "./family.ts";
import { isObject } from "../../../../src/lib/json/json.ts";
import type { ModelRequest, Call, Completion } from "./completion.ts";

export const responses: Family = { name: "responses", readRequest: readAsk, writeReply, writeEvents };

function readAsk(body: unknown): ModelRequest {
  const input = listInput(body);
  const last = input.at(-1);
  const userMessage = input.findLast((item) => pickText(item, "role") === "user");
  const fixed = [pick(body, "tools") ?? null, pick(body, "instructions") ?? null];
  const format = pick(body, "text", "format");
  return {
    model: pickText(body, "model"),
    stream: pick(body, "stream") === true,
    prompt: readText(pick(userMessage, "content")),
    toolResult: pickText(last, "type").endsWith("_call_output") ? readText(pick(last, "output")) : null,
    tools: pickList(body, "tools")
      .filter((tool) => ["function", "custom"].includes(pickText(tool, "type")))
      .map((tool) => readOpenAiTool(tool, tool)),
    choice: readOpenAiChoice(pick(body, "tool_choice")),
    schema: pick(format, "schema") ?? (pickText(format, "type") === "json_object" ? {} : undefined),
    thinks: !["", "none"].includes(pickText(body, "reasoning", "effort")),
    maxTokens: pickNumber(body, "max_output_tokens") ?? Infinity,
    ...readOpenAiPrompt(fixed, input),
  };
}

/** The input as items. A plain string is one message of the user. */
export function listInput(body: unknown): readonly unknown[] {
  const text = pickText(body, "input");
  if (text === "") return pickList(body, "input");
  return [{ type: "message", role: "user", content: [{ type: "input_text", text }] }];
}

export function writeResponsesUsage({ counts, model }: Completion): Json {
  const input = counts.input + counts.cacheRead + counts.cacheWrite5m;
  const writes = writesToCache(model) ? { cache_write_tokens: counts.cacheWrite5m } : {};
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: counts.cacheRead, ...writes },
    output_tokens: counts.output,
    output_tokens_details: { reasoning_tokens: counts.reasoning },
    total_tokens: input + counts.output,
  };
}

function writeItems(completion: Completion, body: unknown): Json[] {
  const items: Json[] = [];
  if (pickText(listInput(body).at(-1), "type") === "compaction_trigger") return [writeCompaction(completion)];
  if (completion.thinking.length > 0) items.push(writeReasoning(completion, body));
  if (completion.text.length > 0) items.push(writeMessage(completion));
  return [...items, ...completion.calls.map(writeCall)];
}

export function writeCompaction(completion: Completion): Json {
  return {
    id: `cmp_demo${completion.serial}`,
    type: "compaction",
    encrypted_content: `demo-compaction-${completion.serial}`,
  };
}

function writeReasoning(completion: Completion, body: unknown): Json {
  const shown = pickText(body, "reasoning", "summary") !== "";
  const kept = pickList(body, "include").includes("reasoning.encrypted_content");
  return {
    id: `rs_demo${completion.serial}`,
    type: "reasoning",
    ...(kept ? { encrypted_content: `demo-reasoning-${completion.serial}` } : {}),
    summary: shown ? [{ type: "summary_text", text: completion.thinking.join("") }] : [],
  };
}

function writeMessage(completion: Completion): Json {
  return {
    id: `msg_demo${completion.serial}`,
    type: "message",
    status: completion.stop === "length" ? "incomplete" : "completed",
    content: [{ type: "output_text", annotations: [], logprobs: [], text: completion.text.join("") }],
    role: "assistant",
  };
}

function writeCall(call: Call): Json {
  const named = { status: "completed", call_id: `call_demo${call.id}`, name: call.name };
  if (call.custom) return { id: `ctc_demo${call.id}`, type: "custom_tool_call", ...named, input: call.input };
  return { id: `fc_demo${call.id}`, type: "function_call", ...named, arguments: call.input };
}

/** The settings that a response repeats from its request, with defaults for those that were not given. */
const REPEATED: Json = {
  instructions: null,
  max_output_tokens: null,
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  store: true,
  temperature: 1,
  text: { format: { type: "text" }, verbosity: "medium" },
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  user: null,
  metadata: {},
};

function writeShell(completion: Completion, body: unknown): Json {
  const repeated = Object.entries(REPEATED).map(([name, usual]) => [name, pick(body, name) ?? usual]);
  return {
    id: `resp_demo${completion.serial}`,
    object: "response",
    created_at: completion.created,
    status: "in_progress",
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    model: completion.model,
    output: [],
    service_tier: "auto",
    top_logprobs: 0,
    truncation: "disabled",
    usage: null,
    ...Object.fromEntries(repeated),
  };
}

function writeReply(completion: Completion, body: unknown): Json {
  const requestedTier = pickText(body, "service_tier");
  const short = completion.stop === "length";
  return {
    ...writeShell(completion, body),
    status: short ? "incomplete" : "completed",
    completed_at: short ? null : completion.created,
    incomplete_details: short ? { reason: "max_output_tokens" } : null,
    output: writeItems(completion, body),
    service_tier: ["flex", "priority"].includes(requestedTier) ? requestedTier : "default",
    usage: writeResponsesUsage(completion),
  };
}

function writeEvents(completion: Completion, body: unknown): string[] {
  const shell = writeShell(completion, body);
  const reply = writeReply(completion, body);
  const items = pickList(reply, "output");
  const steps = [
    { type: "response.created", response: shell },
    { type: "response.in_progress", response: shell },
    ...items.flatMap((item, output_index) => writeItemEvents(item, output_index, completion)),
    { type: completion.stop === "length" ? "response.incomplete" : "response.completed", response: reply },
  ];
  return steps.map((step, sequence_number) => writeNamedEvent({ ...step, sequence_number }));
}

type Step = Json & { readonly type: string };

/** Writes the events of one output item. */
function writeItemEvents(item: unknown, output_index: number, completion: Completion): Step[] {
  if (!isObject(item)) return [];
  const steps = writeInner(item, completion).map((step) => ({ ...step, item_id: item["id"], output_index }));
  return [
    { type: "response.output_item.added", item: { ...item, ...EMPTY[pickText(item, "type")] }, output_index },
    ...steps,
    { type: "response.output_item.done", item, output_index },
  ];
}

/** By an item's type: the members that are still empty or in progress when the item is added to the stream. */
const EMPTY: Readonly<Record<string, Json>> = {
  reasoning: { summary: [] },
  message: { status: "in_progress", content: [] },
  function_call: { status: "in_progress", arguments: "" },
  custom_tool_call: { status: "in_progress", input: "" },
};

function writeInner(item: Json, completion: Completion): Step[] {
  switch (item["type"]) {
    case "reasoning":
      return pickList(item, "summary").flatMap((part, index) => writeSummary(part, index, completion));
    case "message":
      return writeText(pickList(item, "content")[0], completion);
    case "function_call":
      return writeInput("response.function_call_arguments", "arguments", pickText(item, "arguments"));
    case "custom_tool_call":
      return writeInput("response.custom_tool_call_input", "input", pickText(item, "input"));
    default:
      return [];
  }
}

function writeSummary(part: unknown, summary_index: number, completion: Completion): Step[] {
  const text = pickText(part, "text");
  return [
    {
      type: "response.reasoning_summary_part.added",
      summary_index,
      part: { type: "summary_text", text: "" },
    },
    ...completion.thinking.map((delta) => ({
      type: "response.reasoning_summary_text.delta",
      summary_index,
      delta,
    })),
    { type: "response.reasoning_summary_text.done", summary_index, text },
    { type: "response.reasoning_summary_part.done", summary_index, part },
  ];
}

function writeText(part: unknown, completion: Completion): Step[] {
  const at = { content_index: 0 };
  const empty = { type: "output_text", annotations: [], logprobs: [], text: "" };
  return [
    { type: "response.content_part.added", ...at, part: empty },
    ...completion.text.map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
    { type: "response.output_text.done", ...at, text: pickText(part, "text"), logprobs: [] },
    { type: "response.content_part.done", ...at, part },
  ];
}

function writeInput(name: string, key: string, input: string): Step[] {
  return [
    ...cutText(input).map((delta) => ({ type: `${name}.delta`, delta })),
    { type: `${name}.done`, [key]: input },
  ];
}
