// Reads the parts of a request that the responses and chat dialects share.

import { isObject } from "../../../../src/lib/json/json.ts";
import { pick, pickText } from "../json.ts";
import { countTokens, markPrefixes, type ModelRequest, type Tool } from "./completion.ts";

/** `holder` has the name and parameters: the tool itself in responses, its inner object in chat. */
export function readOpenAiTool(holder: unknown, tool: unknown): Tool {
  return {
    name: pickText(holder, "name"),
    schema: pick(holder, "parameters") ?? { type: "object", properties: {} },
    custom: pickText(tool, "type") === "custom",
  };
}

export function readOpenAiChoice(choice: unknown): ModelRequest["choice"] {
  if (isObject(choice)) {
    const name = pickText(choice, "name") || pickText(choice[pickText(choice, "type")], "name");
    return name === "" ? "auto" : { name };
  }
  if (choice === "none") return "none";
  return choice === "required" ? "any" : "auto";
}

/** Whether the model reports and bills cache writes: only newer models do. */
export function writesToCache(model: string): boolean {
  return /^gpt-(5\.[6-9]|[6-9])/.test(model);
}

/** A prompt with fewer tokens is not cached. */
const LEAST_CACHED_TOKENS = 1024;

/** Counts the prompt's tokens, and returns what is cached: the whole prompt, if it is long enough. */
export function readOpenAiPrompt(
  fixed: unknown,
  items: readonly unknown[],
): Pick<ModelRequest, "inputTokens" | "cachePoints"> {
  const parts = [fixed, ...items].map((part) => JSON.stringify(part));
  const inputTokens = countTokens(parts.join(""));
  const isCached = inputTokens >= LEAST_CACHED_TOKENS;
  const cachePoints = markPrefixes(
    parts.map((text, index) => ({ text, ttl: isCached && index === items.length ? "5m" : null })),
  );
  return { inputTokens, cachePoints };
}
