// The usage of responses, chat and embeddings.

import type { CallKind, Usage } from "../../billing/usage.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { CountReader, dropZeros } from "../../billing/counts.ts";

interface Names {
  readonly input: string;
  readonly output: string;
  /** A missing output is not a fault. */
  readonly hasNoOutput?: true;
  /** Total > input + output is a fault, except in chat:
   *  Google counts thinking only in the total. */
  readonly hasTotal?: true;
}

const NAMES = {
  responses: { input: "input_tokens", output: "output_tokens", hasTotal: true },
  chat: { input: "prompt_tokens", output: "completion_tokens" },
  embeddings: {
    input: "prompt_tokens",
    output: "completion_tokens",
    hasNoOutput: true,
    hasTotal: true,
  },
} as const satisfies Record<string, Names>;

/** Some relays use the other dialect's names. */
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

/** Cached tokens at DeepSeek, Moonshot, LiteLLM and Mistral. */
const CACHED = ["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens", "num_cached_tokens"];
const SERVER_TOOLS = "server_side_tool_usage_details";
/** The fee of each tool. Null: it costs only tokens. */
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
const LIFETIMES = "cache_write_tokens_details";
const KNOWN_LIFETIMES = new Set(["ttl_12h_tokens", "ttl_30m_tokens"]);
const MEDIA = ["audio_tokens", "image_tokens", "text_tokens"];
const INPUT_DETAILS = ["cached_tokens", "cache_write_tokens", LIFETIMES, "video_tokens"];
const OUTPUT_DETAILS = ["reasoning_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens"];

type Member = readonly [name: string, inside: { has(name: string): boolean } | null];

/** Known members, each with the members inside it, or null for a count.
 *  Text, predictions and video count as ordinary tokens. */
const KNOWN: ReadonlyMap<string, Member[1]> = new Map(
  Object.values(NAMES).flatMap(({ input, output }): Member[] => [
    ...[input, output, ...CACHED, "total_tokens", "prompt_cache_miss_tokens"].map((name): Member => [
      name,
      null,
    ]),
    [`${input}_details`, new Set([...INPUT_DETAILS, ...MEDIA])],
    [`${output}_details`, new Set([...OUTPUT_DETAILS, ...MEDIA])],
    [SERVER_TOOLS, SERVER_TOOL_KINDS],
  ]),
);
/** Cached, written and special tokens are part of the totals. */
function readCounts(usage: unknown, names: Names, counts: CountReader): Usage {
  const prompt = counts.readTotal(usage, names.input) ?? 0;
  const produced = counts.readTotal(usage, names.output) ?? 0;
  noteMissing(usage, names, counts);
  if (isObject(usage)) counts.noteMembers(usage, KNOWN, "_tokens");
  // Mistral does not count sound in the prompt. Others do not count thoughts in the output.
  const beside = counts.readDetail(usage, "total_tokens") - prompt - produced;
  const [input, output] = [`${names.input}_details`, `${names.output}_details`];
  const isBeside = (details: string, name: string): boolean =>
    counts.readDetail(getField(usage, details), name) === beside;
  const all = prompt + (isBeside(input, "audio_tokens") ? beside : 0);
  const made = produced + (isBeside(output, "reasoning_tokens") ? beside : 0);
  counts.compareTotal(usage, "total_tokens", [all, made], { mayHaveMore: !("hasTotal" in names) });
  return dropZeros({
    ...readPrompt(usage, input, all, counts),
    ...readAnswer(usage, output, made, counts),
    ...readServerTools(usage, counts),
  });
}

function readPrompt(usage: unknown, name: string, total: number, counts: CountReader): Usage {
  const details = getField(usage, name);
  counts.noteUnknown(details, LIFETIMES, KNOWN_LIFETIMES);
  const readPart = (part: string, most: number): number =>
    counts.limitPart(counts.readDetail(details, part), most, name);
  const written = readPart("cache_write_tokens", total);
  const cached = counts.limitPart(counts.readDetail(...findCached(usage, details)), total, name);
  // OpenRouter may count a token twice.
  if (cached + written > total) counts.note("detail_too_large", name);
  const read = Math.min(cached, total - written);
  const audio = readPart("audio_tokens", total - read - written);
  const rest = total - read - written - audio;
  // At most `rest`: xAI and OpenRouter count a cached picture twice.
  const fresh = Math.min(readPart("image_tokens", total - audio), rest);
  const kept = counts.readDetail(getField(details, LIFETIMES), "ttl_12h_tokens");
  const long = counts.limitPart(kept, written, LIFETIMES);
  return {
    input: rest - fresh,
    cache_read: read,
    // These tokens are kept for half an hour.
    cache_write: written - long,
    cache_write_12h: long,
    input_audio: audio,
    input_image: fresh,
  };
}

function readAnswer(usage: unknown, name: string, total: number, counts: CountReader): Usage {
  const details = getField(usage, name);
  const readPart = (part: string, most: number): number =>
    counts.limitPart(counts.readDetail(details, part), most, name);
  const audio = readPart("audio_tokens", total);
  const images = readPart("image_tokens", total - audio);
  return {
    output: total - audio - images,
    output_audio: audio,
    output_image: images,
    reasoning: readPart("reasoning_tokens", total),
  };
}

function findCached(usage: unknown, details: unknown): [from: unknown, name: string] {
  const own = CACHED.find((name) => isCounted(usage, name));
  return own === undefined || isCounted(details, "cached_tokens") ? [details, "cached_tokens"] : [usage, own];
}

/** Whether the usage counts the calls that xAI bills. The answer also shows failed calls.
 * https://docs.x.ai/developers/tools/tool-usage-details */
export function countsServerTools(usage: unknown): boolean {
  return isObject(getField(usage, SERVER_TOOLS));
}

function readServerTools(usage: unknown, counts: CountReader): Usage {
  if (!countsServerTools(usage)) return {};
  const details = getField(usage, SERVER_TOOLS);
  const calls: Usage = {};
  for (const [name, kind] of SERVER_TOOL_KINDS)
    if (kind !== null) calls[kind] = counts.readDetail(details, name);
  // Fetched items are paid, not the calls: https://docs.x.ai/developers/pricing
  const isByItem = getField(details, "x_posts_fetched") !== undefined;
  return isByItem ? { ...calls, x_search: 0 } : calls;
}

export const PAINTING = "image_generation";
const KNOWN_TOOLS = new Map([
  ["web_search", new Set(["num_requests"])],
  ["image_gen", null],
]);

/** `calls`: those that the answer shows. */
export function readToolUsage(
  tools: unknown,
  { calls, search }: { readonly calls: Usage; readonly search: CallKind },
  counts: CountReader,
): { readonly calls: Usage; readonly pictures: Usage | null } {
  if (!isObject(tools)) return { calls, pictures: null };
  counts.noteMembers(tools, KNOWN_TOOLS, "", "tool_usage");
  const searches = counts.readDetail(tools["web_search"], "num_requests");
  const shown = calls[search] ?? 0;
  // The larger number is charged.
  if (searches < shown) counts.note("total_differs", "tool_usage.web_search");
  const counted = searches > shown ? { ...calls, [search]: searches } : calls;
  const pictures = readPictures(tools["image_gen"], counts);
  if (pictures === null) return { calls: counted, pictures };
  const { image_generation: _priced, ...others } = counted;
  return { calls: others, pictures };
}

function readPictures(painted: unknown, counts: CountReader): Usage | null {
  const own = new CountReader();
  const usage = readOpenaiUsage(painted, "responses", own);
  if (own.faults !== undefined) counts.note("detail_unreadable", "tool_usage.image_gen");
  return usage !== null && Object.values(usage).some((count) => count > 0) ? usage : null;
}

function noteMissing(usage: unknown, { input, output, hasNoOutput }: Names, counts: CountReader): void {
  if (!isCounted(usage, input)) counts.note("total_missing", input);
  else if (!isCounted(usage, output) && hasNoOutput !== true) counts.note("output_missing", output);
}
