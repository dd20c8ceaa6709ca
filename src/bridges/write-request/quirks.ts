// How the servers of the chat dialect differ, by their addresses. A channel's own settings come first. Nothing is probed.

import type { ChatSettings } from "../../config/schema.ts";
import type { Quirks } from "../turn/conversation.ts";

const PLAIN: Quirks = {
  cap: "max_tokens",
  reasoning: "none",
  replay: false,
  files: false,
  schemas: true,
  top_k: false,
  systems: "any",
  cache_key: false,
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
  [/(^|\.)openrouter\.ai(:|$)/, { reasoning: "openrouter", files: true, top_k: true }],
  [/(^|\.)groq\.com(:|$)/, { cap: "max_completion_tokens", reasoning: "effort" }],
  [/(^|\.)minimaxi?\.(io|com|chat)(:|$)/, { systems: "first" }],
  [/(^|\.)mistral\.ai(:|$)/, { systems: "first" }],
  [/:11434$/, { reasoning: "effort" }],
  [/:(?:8000|8080)$/, { top_k: true, systems: "first" }],
];

/** `host`: of the channel's address, with its port. */
export function findQuirks(host: string, own: ChatSettings = {}): Quirks {
  const preset = { ...PLAIN, ...PRESETS.find(([pattern]) => pattern.test(host))?.[1] };
  return {
    cap: own.cap ?? preset.cap,
    reasoning: own.reasoning ?? preset.reasoning,
    replay: own.replay ?? preset.replay,
    files: own.files ?? preset.files,
    schemas: own.schemas ?? preset.schemas,
    top_k: own.top_k ?? preset.top_k,
    systems: own.systems ?? preset.systems,
    cache_key: own.cache_key ?? preset.cache_key,
  };
}
