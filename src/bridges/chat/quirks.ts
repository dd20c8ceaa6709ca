// How chat servers differ, by address. Nothing is probed.

import type { Channel } from "../../config/catalog.ts";
import type { ChatSettings } from "../../config/schema.ts";
import type { Quirks } from "../neutral/conversation.ts";

const PLAIN: Quirks = {
  cap: "max_tokens",
  reasoning: "none",
  replay: false,
  files: false,
  schemas: true,
  top_k: false,
  systems: "any",
  cache_key: false,
  cache_marks: false,
  ask_usage: true,
};

const PRESETS: readonly (readonly [RegExp, Partial<Quirks>])[] = [
  [
    /(^|\.)openai\.com(:|$)/,
    { cap: "max_completion_tokens", reasoning: "effort", files: true, cache_key: true },
  ],
  // The backend of ChatGPT logins.
  [/(^|\.)chatgpt\.com(:|$)/, { cap: "none" }],
  [/(^|\.)deepseek\.com(:|$)/, { reasoning: "deepseek", replay: true, schemas: false }],
  [/(^|\.)moonshot\.(ai|cn)(:|$)/, { replay: true }],
  [/(^|\.)openrouter\.ai(:|$)/, { reasoning: "openrouter", files: true, top_k: true, cache_marks: true }],
  [/(^|\.)groq\.com(:|$)/, { cap: "max_completion_tokens", reasoning: "effort" }],
  [/(^|\.)minimaxi?\.(io|com|chat)(:|$)/, { systems: "first" }],
  // It reports usage unasked, and refuses to be asked: openai/openai-agents-python#442
  [/(^|\.)mistral\.ai(:|$)/, { systems: "first", ask_usage: false }],
  // The server refuses to be asked for usage: anomalyco/opencode#4698
  [/(^|\.)(?:azure)?databricks\.(?:com|net)(:|$)/, { ask_usage: false }],
  [/:11434$/, { reasoning: "effort" }],
  [/:(?:8000|8080)$/, { top_k: true, systems: "first" }],
];

export function findQuirks(
  host: string,
  own: ChatSettings & { readonly ask_usage?: boolean | undefined } = {},
): Quirks {
  const preset = PRESETS.find(([pattern]) => pattern.test(host))?.[1];
  const set = Object.entries(own).filter(([, value]) => value !== undefined);
  return Object.assign({ ...PLAIN, ...preset }, Object.fromEntries(set));
}

const known = new WeakMap<Channel, Quirks>();

export function quirksOf(channel: Channel): Quirks {
  return known.getOrInsertComputed(channel, ({ baseUrl, chat, askUsage }) =>
    findQuirks(baseUrl.host, { ...chat, ask_usage: askUsage }),
  );
}
