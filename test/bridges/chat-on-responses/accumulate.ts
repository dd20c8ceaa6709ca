// Builds a completion from chat chunks, as a client does.

import { isObject } from "../../../src/lib/json/json.ts";
import { readEvents } from "../calls.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- the tests assert its shape
export type Json = Record<string, any>;

export interface Accumulated {
  chunks: Json[];
  completion: Json;
  error: Json | null;
  done: boolean;
}

export function accumulate(text: string): Accumulated {
  const events: Json[] = readEvents(text).filter(isObject);
  const chunks = events.filter((event) => !("error" in event));
  const error = events.find((event) => "error" in event)?.["error"] ?? null;
  const message: Json = { role: "", content: null, refusal: null, annotations: [] };
  const completion: Json = { choices: [{ index: 0, message, logprobs: null, finish_reason: null }] };
  for (const chunk of chunks) {
    const { choices, object: _, usage, ...rest } = chunk;
    Object.assign(completion, rest);
    if (usage) completion["usage"] = usage;
    for (const choice of choices) addChoice(completion["choices"][0], choice);
  }
  return { chunks, completion, error, done: text.endsWith("data: [DONE]\n\n") };
}

function addChoice(whole: Json, choice: Json): void {
  const message: Json = whole["message"];
  const {
    tool_calls: calls,
    function_call: legacy,
    annotations,
    reasoning_details: details,
    role,
    ...texts
  } = choice["delta"];
  if (role) message["role"] = role;
  if (annotations) message["annotations"] = annotations;
  if (details) message["reasoning_details"] = [...(message["reasoning_details"] ?? []), ...details];
  addTexts(message, texts);
  for (const call of calls ?? []) addCall((message["tool_calls"] ??= []), call);
  if (legacy) addTexts((message["function_call"] ??= {}), legacy);
  if (choice["logprobs"]) addLogprobs(whole, choice["logprobs"].content);
  whole["finish_reason"] ??= choice["finish_reason"];
}

function addLogprobs(whole: Json, content: unknown[]): void {
  whole["logprobs"] ??= { content: [], refusal: null };
  whole["logprobs"].content.push(...content);
}

function addCall(calls: Json[], { index, function: func, custom, ...rest }: Json): void {
  const call = (calls[index] ??= {});
  Object.assign(call, rest);
  if (func) addTexts((call["function"] ??= {}), func);
  if (custom) addTexts((call["custom"] ??= {}), custom);
}

function addTexts(whole: Json, texts: Json): void {
  for (const [name, text] of Object.entries(texts)) {
    if (text !== null) whole[name] = (whole[name] ?? "") + text;
  }
}
