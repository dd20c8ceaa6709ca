// How the servers of the chat dialect differ, by their addresses. A channel's own settings come first. Nothing is probed.

import type { Quirks } from "../turn/conversation.ts";

const PLAIN: Quirks = {
  cap: "max_tokens",
  reasoning: "none",
  replay: false,
  files: false,
  schemas: true,
  top_k: false,
  systems: "any",
  cacheKey: false,
};

const PRESETS: readonly (readonly [RegExp, Partial<Quirks>])[] = [
  [
    /(^|\.)openai\.com(:|$)/,
    { cap: "max_completion_tokens", reasoning: "effort", files: true, cacheKey: true },
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
export function findQuirks(host: string, own: Partial<Quirks> = {}): Quirks {
  const preset = PRESETS.find(([pattern]) => pattern.test(host))?.[1];
  return { ...PLAIN, ...preset, ...own };
}
