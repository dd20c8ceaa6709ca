// Writes answers of the messages dialect, as an upstream sends them.

import { writeNamedEvent, cutText, type Family } from "./family.ts";
import { isObject, parseJson } from "../../../../src/lib/json/json.ts";
import { pick, pickList, pickNumber, pickText, readText, type Json } from "../json.ts";
import {
  countTokens,
  markPrefixes,
  type ModelRequest,
  type CachePoint,
  type Completion,
} from "./completion.ts";

export const messages: Family = { name: "messages", readRequest: readAsk, writeReply, writeEvents };

interface Block {
  readonly empty: Json;
  readonly deltas: readonly Json[];
  readonly whole: Json;
}

function readAsk(body: unknown): ModelRequest {
  const { points, tokens } = readCachePoints(body);
  const last = pickList(body, "messages").findLast((message) => pickText(message, "role") === "user");
  const parts = listParts(pick(last, "content"));
  const result = parts.findLast((part) => pickText(part, "type") === "tool_result");
  const text = parts.findLast((part) => pickText(part, "type") === "text");
  const format = pick(body, "output_config", "format") ?? pick(body, "output_format");
  return {
    model: pickText(body, "model"),
    stream: pick(body, "stream") === true,
    prompt: pickText(text, "text"),
    toolResult: result === undefined ? null : readText(pick(result, "content")),
    tools: pickList(body, "tools")
      .filter((tool) => pick(tool, "input_schema") !== undefined)
      .map((tool) => ({ name: pickText(tool, "name"), schema: pick(tool, "input_schema"), custom: false })),
    choice: readChoice(pick(body, "tool_choice")),
    schema: pick(format, "schema"),
    thinks: ["enabled", "adaptive"].includes(pickText(body, "thinking", "type")),
    maxTokens: pickNumber(body, "max_tokens") ?? Infinity,
    inputTokens: tokens,
    cachePoints: points,
  };
}

function readChoice(choice: unknown): ModelRequest["choice"] {
  const type = pickText(choice, "type");
  if (type === "tool") return { name: pickText(choice, "name") };
  return type === "none" || type === "any" ? type : "auto";
}

function listParts(content: unknown): readonly unknown[] {
  return typeof content === "string"
    ? [{ type: "text", text: content }]
    : Array.isArray(content)
      ? content
      : [];
}

/** An upstream caches tools first, then system, then messages. */
function readCachePoints(body: unknown): { points: CachePoint[]; tokens: number } {
  const blocks = [
    ...pickList(body, "tools"),
    ...listParts(pick(body, "system")),
    ...pickList(body, "messages").flatMap((message) => listParts(pick(message, "content"))),
  ];
  const whole = pick(body, "cache_control");
  const parts = blocks.filter(isObject).map(({ cache_control: control, ...block }, index) => {
    const cacheControl = control ?? (index === blocks.length - 1 ? whole : undefined);
    return { text: JSON.stringify(block), ttl: isObject(cacheControl) ? readTtl(cacheControl) : null };
  });
  const tokens = countTokens(parts.map(({ text }) => text).join(""));
  return { points: markPrefixes([{ text: pickText(body, "model"), ttl: null }, ...parts]), tokens };
}

function readTtl(control: Json): "5m" | "1h" {
  return control["ttl"] === "1h" ? "1h" : "5m";
}

function writeBlocks(completion: Completion): Block[] {
  const blocks: Block[] = [];
  if (completion.thinking.length > 0) {
    const signature = `demo-signature-${completion.serial}`;
    const deltas = completion.thinking.map((thinking) => ({ type: "thinking_delta", thinking }));
    blocks.push({
      empty: { type: "thinking", thinking: "", signature: "" },
      deltas: [...deltas, { type: "signature_delta", signature }],
      whole: { type: "thinking", thinking: completion.thinking.join(""), signature },
    });
  }
  if (completion.text.length > 0) {
    blocks.push({
      empty: { type: "text", text: "" },
      deltas: completion.text.map((text) => ({ type: "text_delta", text })),
      whole: { type: "text", text: completion.text.join("") },
    });
  }
  for (const call of completion.calls) {
    const head = { type: "tool_use", id: `toolu_demo${call.id}`, name: call.name };
    blocks.push({
      empty: { ...head, input: {} },
      deltas: ["", ...cutText(call.input)].map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      })),
      whole: { ...head, input: parseJson(call.input) },
    });
  }
  return blocks;
}

function writeMessage(
  completion: Completion,
  content: readonly Json[],
  end: { stop_reason: string | null },
  usage: Json,
): Json {
  return {
    model: completion.model,
    id: `msg_demo${completion.serial}`,
    type: "message",
    role: "assistant",
    content,
    stop_reason: end.stop_reason,
    stop_sequence: null,
    usage,
  };
}

function writeUsage({ counts }: Completion): Json {
  return {
    input_tokens: counts.input,
    cache_creation_input_tokens: counts.cacheWrite5m + counts.cacheWrite1h,
    cache_read_input_tokens: counts.cacheRead,
    output_tokens: counts.output,
    ...(counts.reasoning > 0 ? { output_tokens_details: { thinking_tokens: counts.reasoning } } : {}),
  };
}

/** Writes the part of usage that only `message_start` and whole messages have. */
function writeFullUsage(completion: Completion): Json {
  const { cacheWrite5m, cacheWrite1h } = completion.counts;
  return {
    ...writeUsage(completion),
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite5m, ephemeral_1h_input_tokens: cacheWrite1h },
    service_tier: "standard",
    inference_geo: "global",
  };
}

function nameStop(completion: Completion): string {
  return { end: "end_turn", tool: "tool_use", length: "max_tokens" }[completion.stop];
}

function writeReply(completion: Completion): Json {
  const content = writeBlocks(completion).map(({ whole }) => whole);
  return writeMessage(completion, content, { stop_reason: nameStop(completion) }, writeFullUsage(completion));
}

function writeEvents(completion: Completion): string[] {
  const { output_tokens_details: _, ...usage } = writeFullUsage(completion);
  const opening = writeMessage(completion, [], { stop_reason: null }, { ...usage, output_tokens: 1 });
  const blocks = writeBlocks(completion).flatMap(({ empty, deltas }, index) => [
    writeNamedEvent({ type: "content_block_start", index, content_block: empty }),
    ...(index === 0 ? [writeNamedEvent({ type: "ping" })] : []),
    ...deltas.map((delta) => writeNamedEvent({ type: "content_block_delta", index, delta })),
    writeNamedEvent({ type: "content_block_stop", index }),
  ]);
  const delta = { stop_reason: nameStop(completion), stop_sequence: null };
  return [
    writeNamedEvent({ type: "message_start", message: opening }),
    ...blocks,
    writeNamedEvent({ type: "message_delta", delta, usage: writeUsage(completion) }),
    writeNamedEvent({ type: "message_stop" }),
  ];
}
