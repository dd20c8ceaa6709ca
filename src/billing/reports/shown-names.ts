// Names in a file for other people. Clients and upstreams choose them: they may be secrets, paths
// or people. Only public words are shown. Any other name becomes its hash.

import { looksSecret, sha256Hex } from "../../lib/secret.ts";
import { loadBook } from "../prices.ts";

/** The first words of user agents, in lower case. */
const TOOLS = new Set(
  `ai ai-sdk aider amp anthropic asyncanthropic asyncopenai axios bun claude claude-code cline codex continue copilot crush curl
  cursor deno gemini gemini-cli go-http-client goose google google-genai-sdk jetbrains kilo-code kilocode langchain litellm node
  node-fetch okhttp openai opencode openhands pi postman python python-httpx python-requests qwen-code roo-code roocode undici
  windsurf zed`.split(/\s+/),
);

/** Members and headers that the dialects and their servers know. */
export const SETTINGS = new Set(
  `access_programs anthropic-beta anthropic-version audio betas cache_control cachedContent cached_content chat_template_kwargs
  client_metadata container context_management conversation diagnostics enable_thinking extra_body fallbacks format function_call
  generationConfig generation_config include include_reasoning inference_geo keep_alive labels logit_bias logprobs mcp_servers
  min_p modalities modelArmorConfig models moderation openai-beta options output_config output_format parallel_tool_calls plugins
  prediction preset prompt prompt_cache_key prompt_cache_options prompt_cache_retention provider reasoning reasoning.effort
  reasoning_effort repetition_penalty response_format route safeguards safetySettings safety_settings serviceTier service_tier
  speed text text.format text.verbosity think thinking thinking_budget thread toolConfig tool_choice tool_config top_logprobs
  transforms truncation usage verbosity web_search_options x-grok-conv-id`.split(/\s+/),
);

const VERSION =
  /^\d{1,6}(?:\.\d{1,8}){0,2}(?:[-+.](?:alpha|beta|canary|dev|insiders|next|nightly|preview|rc)[\d.]{0,9})?$/;

/** A day of a release, such as 20250929 or 2025-09-29. */
const DAY = /(?<!\d)20[2-4]\d([-.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?!\d)/g;
/** More digits may be somebody's number. */
const MAX_DIGITS = { model: 3, version: 6 };

function hasFewDigits(kind: keyof typeof MAX_DIGITS, name: string): boolean {
  return name.replaceAll(DAY, "").replaceAll(/\D/g, "").length <= MAX_DIGITS[kind];
}

/** Whether the price book has this name, or at least each of its words. */
function isModel(name: string): boolean {
  const ids = (known ??= loadBook().ids);
  const isPlain = /^\w[\w./:@+[\]-]{0,99}$/.test(name) && hasFewDigits("model", name);
  const isKnown = (word: string): boolean => new RegExp(`(?<![a-z])${word}(?![a-z])`, "i").test(ids);
  return (
    name === "" ||
    ids.includes(JSON.stringify(name)) ||
    (isPlain && name.match(/[a-z]+/gi)?.every(isKnown) !== false)
  );
}

let known: string | null = null;

export function showName(kind: "tool" | "version" | "model", name: string): string {
  const isPublic =
    (kind === "model" && isModel(name)) ||
    (kind === "tool" && TOOLS.has(name)) ||
    (kind === "version" && VERSION.test(name) && hasFewDigits("version", name));
  return isPublic ? name : `${kind}-${sha256Hex(name).slice(0, 8)}`;
}

/** Upstreams' ids are a usual word and random text, or hexadecimal digits. */
const ID =
  /^(?:(?:chatcmpl|cmpl|gen|msg|req|resp)[-_](?=[\w-]*\d)(?=[\w-]*[a-z\d]{12})(?=[\d_-]*[a-z])[\w-]{16,64}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?=\d*[a-f])[\da-f]{16,64}(?:-[a-z]{3})?)$/i;

/** Null: an id of another form may hold something private. */
export function showId(id: string | undefined): string | null {
  return id !== undefined && ID.test(id) && !looksSecret(id) ? id : null;
}
