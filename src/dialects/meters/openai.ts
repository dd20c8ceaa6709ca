// The usage object of the responses and chat dialects, and of embeddings. Only its names differ.

import type { CallKind, Usage } from "../../billing/usage.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { type CountReader, dropZeros } from "./counts.ts";

interface Names {
  readonly input: string;
  readonly output: string;
  /** Its absence is no fault. */
  readonly hasNoOutput?: true;
  /** Not with chat's names: Google's compatible endpoint counts thinking in the total only. */
  readonly hasTotal?: true;
}

const NAMES = {
  responses: { input: "input_tokens", output: "output_tokens", hasTotal: true },
  chat: { input: "prompt_tokens", output: "completion_tokens" },
  embeddings: { input: "prompt_tokens", output: "completion_tokens", hasNoOutput: true },
} as const satisfies Record<string, Names>;

/** Null if nothing was counted. Some relays report the usage of one dialect under the names of the other one: those names
 *  count if none of the dialect's own is there. */
export function readOpenaiUsage(
  usage: unknown,
  dialect: keyof typeof NAMES,
  counts: CountReader,
): Usage | null {
  const other = dialect === "responses" ? NAMES.chat : NAMES.responses;
  const known: readonly Names[] = [NAMES[dialect], other];
  const names = known.find(({ input, output }) => isCounted(usage, input, output));
  return names === undefined ? null : readCounts(usage, names, counts);
}

function isCounted(usage: unknown, ...names: string[]): boolean {
  return names.some((name) => (getField(usage, name) ?? null) !== null);
}

/** The totals include cached, written and special tokens: they are subtracted here. */
function readCounts(usage: unknown, names: Names, counts: CountReader): Usage {
  const { input, output } = names;
  const total = counts.readTotal(usage, input);
  const produced = counts.readTotal(usage, output);
  noteMissing(usage, names, counts);
  const inside = getField(usage, `${input}_details`);
  const outside = getField(usage, `${output}_details`);
  const read = counts.readDetail(inside, "cached_tokens");
  const written = counts.readDetail(inside, "cache_write_tokens");
  // A part of those that were written; the others are kept for half an hour.
  const lifetimes = getField(inside, "cache_write_tokens_details");
  const kept = Math.min(written, counts.readDetail(lifetimes, "ttl_12h_tokens"));
  const audioIn = counts.readDetail(inside, "audio_tokens");
  const imageIn = counts.readDetail(inside, "image_tokens");
  const special = read + written + audioIn + imageIn;
  if (total !== undefined && special > total) counts.note("detail_too_large", `${input}_details`);
  const reasoning = counts.readDetail(outside, "reasoning_tokens");
  const audioOut = counts.readDetail(outside, "audio_tokens");
  // Some compatible platforms do not include reasoning in the output. Their total shows that.
  const all = counts.readDetail(usage, "total_tokens");
  const beside = all === (total ?? 0) + (produced ?? 0) + reasoning ? reasoning : 0;
  const made = (produced ?? 0) + beside;
  if (names.hasTotal === true) counts.compareTotal(usage, "total_tokens", [total, made]);
  if (Math.max(reasoning, audioOut) > made) counts.note("detail_too_large", `${output}_details`);
  return dropZeros({
    input: Math.max(0, (total ?? 0) - special),
    cache_read: read,
    cache_write: written - kept,
    cache_write_12h: kept,
    input_audio: audioIn,
    input_image: imageIn,
    output: Math.max(0, made - audioOut),
    output_audio: audioOut,
    reasoning,
    ...readServerTools(usage, counts),
  });
}

const SERVER_TOOLS = "server_side_tool_usage_details";
/** Null: calls of it cost only their tokens. */
const SERVER_TOOL_KINDS: ReadonlyMap<string, CallKind | null> = new Map([
  ["web_search_calls", "web_search"],
  ["x_search_calls", "x_search"],
  ["x_posts_fetched", "x_posts"],
  ["x_users_fetched", "x_users"],
  ["code_interpreter_calls", "code_interpreter"],
  ["file_search_calls", "file_search"],
  ["document_search_calls", "document_search"],
  ["image_generation_calls", "image_generation"],
  ["mcp_calls", null],
]);

/** xAI counts the calls of its tools itself, and bills those: the answer also shows calls that failed.
 *  https://docs.x.ai/developers/tools/tool-usage-details */
export function countsServerTools(usage: unknown): boolean {
  return isObject(getField(usage, SERVER_TOOLS));
}

function readServerTools(usage: unknown, counts: CountReader): Usage {
  if (!countsServerTools(usage)) return {};
  const details = getField(usage, SERVER_TOOLS);
  counts.noteUnknownCalls(usage, SERVER_TOOLS, SERVER_TOOL_KINDS);
  const calls: Usage = {};
  for (const [name, kind] of SERVER_TOOL_KINDS)
    if (kind !== null) calls[kind] = counts.readDetail(details, name);
  // Since 2026-09-21, a search on X costs what it fetched: https://docs.x.ai/developers/pricing
  const isByItem = getField(details, "x_posts_fetched") !== undefined;
  return isByItem ? { ...calls, x_search: 0 } : calls;
}

function noteMissing(usage: unknown, { input, output, hasNoOutput }: Names, counts: CountReader): void {
  if (!isCounted(usage, input)) counts.note("total_missing", input);
  else if (!isCounted(usage, output) && hasNoOutput !== true) counts.note("output_missing", output);
}
