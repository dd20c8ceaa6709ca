// Writes answers of Chat Completions, as an upstream sends them.

import { cutText, type Family } from "./family.ts";
import { pick, pickList, pickNumber, pickText, readText, type Json } from "../json.ts";
import { readOpenAiTool, readOpenAiChoice, readOpenAiPrompt, writesToCache } from "./openai.ts";
import type { ModelRequest, Call, Completion } from "./completion.ts";

export const chat: Family = { name: "chat", readRequest: readAsk, writeReply, writeEvents };

function readAsk(body: unknown): ModelRequest {
  const conversation = pickList(body, "messages");
  const last = conversation.at(-1);
  const userMessage = conversation.findLast((message) => pickText(message, "role") === "user");
  const format = pick(body, "response_format");
  return {
    model: pickText(body, "model"),
    stream: pick(body, "stream") === true,
    prompt: readText(pick(userMessage, "content")),
    toolResult: pickText(last, "role") === "tool" ? readText(pick(last, "content")) : null,
    tools: pickList(body, "tools").map((tool) => readOpenAiTool(pick(tool, pickText(tool, "type")), tool)),
    choice: readOpenAiChoice(pick(body, "tool_choice")),
    schema:
      pick(format, "json_schema", "schema") ?? (pickText(format, "type") === "json_object" ? {} : undefined),
    thinks: !["", "none"].includes(pickText(body, "reasoning_effort")),
    maxTokens: pickNumber(body, "max_completion_tokens") ?? pickNumber(body, "max_tokens") ?? Infinity,
    ...readOpenAiPrompt(pick(body, "tools") ?? null, conversation),
  };
}

function writeHead(completion: Completion, object: string): Json {
  return {
    id: `chatcmpl-demo${completion.serial}`,
    object,
    created: completion.created,
    model: completion.model,
  };
}

function writeCall(call: Call, input: string): Json {
  const type = call.custom ? "custom" : "function";
  const named = call.custom ? { name: call.name, input } : { name: call.name, arguments: input };
  return { id: `call_demo${call.id}`, type, [type]: named };
}

/** A call that was forced by name finishes with `stop`, every other call with `tool_calls`. */
function nameFinish(completion: Completion, body: unknown): string {
  if (completion.stop === "length") return "length";
  return completion.stop === "tool" && typeof pick(body, "tool_choice") !== "object" ? "tool_calls" : "stop";
}

function writeUsage({ counts, model }: Completion): Json {
  const prompt = counts.input + counts.cacheRead + counts.cacheWrite5m;
  const writes = writesToCache(model) ? { cache_write_tokens: counts.cacheWrite5m } : {};
  return {
    prompt_tokens: prompt,
    completion_tokens: counts.output,
    total_tokens: prompt + counts.output,
    prompt_tokens_details: { cached_tokens: counts.cacheRead, audio_tokens: 0, ...writes },
    completion_tokens_details: {
      reasoning_tokens: counts.reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

function writeReply(completion: Completion, body: unknown): Json {
  const message = {
    role: "assistant",
    content: completion.calls.length > 0 ? null : completion.text.join(""),
    ...(completion.calls.length > 0
      ? { tool_calls: completion.calls.map((call) => writeCall(call, call.input)) }
      : {}),
    refusal: null,
    annotations: [],
  };
  return {
    ...writeHead(completion, "chat.completion"),
    choices: [{ index: 0, message, finish_reason: nameFinish(completion, body) }],
    usage: writeUsage(completion),
    service_tier: "default",
    system_fingerprint: null,
  };
}

function writeEvents(completion: Completion, body: unknown): string[] {
  const counted = pick(body, "stream_options", "include_usage") === true;
  const head = {
    ...writeHead(completion, "chat.completion.chunk"),
    service_tier: "default",
    system_fingerprint: null,
  };
  const write = (choices: readonly Json[], usage: Json | null): string =>
    `data: ${JSON.stringify({ ...head, choices, ...(counted ? { usage } : {}) })}\n\n`;
  const step = (delta: Json, finish_reason: string | null = null): string =>
    write([{ index: 0, delta, finish_reason }], null);
  const calls = completion.calls.flatMap((call, index) => [
    step({ tool_calls: [{ index, ...writeCall(call, "") }] }),
    ...cutText(call.input).map((part) =>
      step({
        tool_calls: [
          { index, ...(call.custom ? { custom: { input: part } } : { function: { arguments: part } }) },
        ],
      }),
    ),
  ]);
  return [
    step({ role: "assistant", content: completion.calls.length > 0 ? null : "", refusal: null }),
    ...completion.text.map((content) => step({ content })),
    ...calls,
    step({}, nameFinish(completion, body)),
    ...(counted ? [write([], writeUsage(completion))] : []),
    "data: [DONE]\n\n",
  ];
}
