// The events of one output item in the responses format.

import { cutText } from "./family.ts";
import { isObject } from "../../lib/json/json.ts";
import { pickList, pickText, type Json } from "../json.ts";
import type { Completion } from "./completion.ts";

type Step = Json & { readonly type: string };

export function writeItemEvents(item: unknown, output_index: number, completion: Completion): Step[] {
  if (!isObject(item)) return [];
  const steps = writeInner(item, completion).map((step) => ({ ...step, item_id: item["id"], output_index }));
  return [
    { type: "response.output_item.added", item: { ...item, ...EMPTY[pickText(item, "type")] }, output_index },
    ...steps,
    { type: "response.output_item.done", item, output_index },
  ];
}

/** An item before any of its content was sent. */
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
