// The responses wire format, as its upstream speaks it: the object and its
// items. The stream is responses-events.ts.

import type { Family } from "./family.ts";
import { pick, pickList, pickNumber, pickText, readText, type Json } from "../json.ts";
import { readOpenAiChoice, readOpenAiTool, writesToCache } from "./openai.ts";
import { writeItemEvents } from "./responses-events.ts";
import { writeNamedEvent } from "./family.ts";
import { countTokens, markPrefixes, type Ask, type Call, type Turn } from "./turn.ts";

export const responses: Family = { name: "responses", readAsk, writeReply, writeEvents };

function readAsk(body: unknown): Ask {
  const input = listInput(body);
  const last = input.at(-1);
  const asked = input.findLast((item) => pickText(item, "role") === "user");
  const fixed = JSON.stringify([pick(body, "tools") ?? null, pick(body, "instructions") ?? null]);
  const rest = JSON.stringify(input);
  const tokens = countTokens(fixed + rest);
  const format = pick(body, "text", "format");
  return {
    model: pickText(body, "model"),
    stream: pick(body, "stream") === true,
    prompt: readText(pick(asked, "content")),
    toolResult: pickText(last, "type").endsWith("_call_output") ? readText(pick(last, "output")) : null,
    tools: pickList(body, "tools")
      .filter((tool) => ["function", "custom"].includes(pickText(tool, "type")))
      .map((tool) => readOpenAiTool(tool, tool)),
    choice: readOpenAiChoice(pick(body, "tool_choice")),
    schema: pick(format, "schema") ?? (pickText(format, "type") === "json_object" ? {} : undefined),
    thinks: !["", "none"].includes(pickText(body, "reasoning", "effort")),
    maxTokens: pickNumber(body, "max_output_tokens") ?? Infinity,
    inputTokens: tokens,
    cachePoints: markPrefixes([
      { text: fixed, ttl: countTokens(fixed) < 1024 ? null : "5m" },
      { text: rest, ttl: tokens < 1024 ? null : "5m" },
    ]),
  };
}

/** The input as items; a bare string is one message of the user. */
export function listInput(body: unknown): readonly unknown[] {
  const text = pickText(body, "input");
  if (text === "") return pickList(body, "input");
  return [{ type: "message", role: "user", content: [{ type: "input_text", text }] }];
}

export function writeResponsesUsage({ counts, model }: Turn): Json {
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

function writeItems(turn: Turn, body: unknown): Json[] {
  const items: Json[] = [];
  if (pickText(listInput(body).at(-1), "type") === "compaction_trigger") return [writeCompaction(turn)];
  if (turn.thinking.length > 0) items.push(writeReasoning(turn, body));
  if (turn.text.length > 0) items.push(writeMessage(turn));
  return [...items, ...turn.calls.map(writeCall)];
}

export function writeCompaction(turn: Turn): Json {
  return {
    id: `cmp_demo${turn.serial}`,
    type: "compaction",
    encrypted_content: `demo-compaction-${turn.serial}`,
  };
}

function writeReasoning(turn: Turn, body: unknown): Json {
  const shown = pickText(body, "reasoning", "summary") !== "";
  const kept = pickList(body, "include").includes("reasoning.encrypted_content");
  return {
    id: `rs_demo${turn.serial}`,
    type: "reasoning",
    ...(kept ? { encrypted_content: `demo-reasoning-${turn.serial}` } : {}),
    summary: shown ? [{ type: "summary_text", text: turn.thinking.join("") }] : [],
  };
}

function writeMessage(turn: Turn): Json {
  return {
    id: `msg_demo${turn.serial}`,
    type: "message",
    status: turn.stop === "length" ? "incomplete" : "completed",
    content: [{ type: "output_text", annotations: [], logprobs: [], text: turn.text.join("") }],
    role: "assistant",
  };
}

function writeCall(call: Call): Json {
  const named = { status: "completed", call_id: `call_demo${call.id}`, name: call.name };
  if (call.custom) return { id: `ctc_demo${call.id}`, type: "custom_tool_call", ...named, input: call.input };
  return { id: `fc_demo${call.id}`, type: "function_call", ...named, arguments: call.input };
}

/** What a response repeats of its request, with the values that stand for what was not said. */
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

function writeShell(turn: Turn, body: unknown): Json {
  const repeated = Object.entries(REPEATED).map(([name, usual]) => [name, pick(body, name) ?? usual]);
  return {
    id: `resp_demo${turn.serial}`,
    object: "response",
    created_at: turn.created,
    status: "in_progress",
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    model: turn.model,
    output: [],
    service_tier: "auto",
    top_logprobs: 0,
    truncation: "disabled",
    usage: null,
    ...Object.fromEntries(repeated),
  };
}

function writeReply(turn: Turn, body: unknown): Json {
  const asked = pickText(body, "service_tier");
  const short = turn.stop === "length";
  return {
    ...writeShell(turn, body),
    status: short ? "incomplete" : "completed",
    completed_at: short ? null : turn.created,
    incomplete_details: short ? { reason: "max_output_tokens" } : null,
    output: writeItems(turn, body),
    service_tier: ["flex", "priority"].includes(asked) ? asked : "default",
    usage: writeResponsesUsage(turn),
  };
}

function writeEvents(turn: Turn, body: unknown): string[] {
  const shell = writeShell(turn, body);
  const reply = writeReply(turn, body);
  const items = pickList(reply, "output");
  const steps = [
    { type: "response.created", response: shell },
    { type: "response.in_progress", response: shell },
    ...items.flatMap((item, output_index) => writeItemEvents(item, output_index, turn)),
    { type: turn.stop === "length" ? "response.incomplete" : "response.completed", response: reply },
  ];
  return steps.map((step, sequence_number) => writeNamedEvent({ ...step, sequence_number }));
}
