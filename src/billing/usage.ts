// Token counts by kind, in disjoint buckets: each token is charged once.

import { CALL_KINDS } from "../config/call-kinds.ts";

/** Buckets with prices. `reasoning` is a part of `output`, and never added. */
export const USAGE_KINDS = [
  "input",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "cache_write",
  "cache_write_12h",
  "output",
  "reasoning",
  "input_audio",
  "input_image",
  "input_video",
  "cache_read_audio",
  "cache_read_image",
  "cache_read_video",
  "output_audio",
  "output_image",
  "output_video",
  "tool_prompt",
] as const;

export const ALL_KINDS = [...USAGE_KINDS, ...CALL_KINDS] as const;

const INPUT_KINDS = USAGE_KINDS.filter((kind) => kind.startsWith("input"));
export const PROMPT_KINDS = USAGE_KINDS.filter((kind) => /^(?:input|cache|tool_prompt)/.test(kind));
export const READ_KINDS = USAGE_KINDS.filter((kind) => kind.startsWith("cache_read"));
export const WRITE_KINDS = USAGE_KINDS.filter((kind) => kind.startsWith("cache_write"));
export const OUTPUT_KINDS = USAGE_KINDS.filter((kind) => kind.startsWith("output"));

export type Counts = Readonly<Record<string, number | undefined>>;

export function countTokens(usage: Counts, kinds: readonly string[]): number {
  let sum = 0;
  for (const kind of kinds) sum += usage[kind] ?? 0;
  return sum;
}

const PROMPT: ReadonlySet<string> = new Set(PROMPT_KINDS);
const TOKENS: ReadonlySet<string> = new Set(USAGE_KINDS);

export function sumTokens(parts: readonly { readonly usage: Counts }[]) {
  const sum = { prompt: 0, output: 0, all: 0, hasCall: false };
  for (const { usage } of parts)
    for (const kind in usage) {
      const count = usage[kind] ?? 0;
      if (PROMPT.has(kind)) sum.prompt += count;
      else if (kind === "reasoning") sum.all += count;
      else if (TOKENS.has(kind)) sum.output += count;
      else if (kind === "call") sum.hasCall = true;
    }
  sum.all += sum.prompt + sum.output;
  return sum;
}

export type Tokens = ReturnType<typeof sumTokens>;

/** No answer of any model used more, even over many calls. */
const MAX_TOKENS = 100_000_000;
const MAX_CALLS = 10_000;
const CALLS: ReadonlySet<string> = new Set(CALL_KINDS);

export function isPlausible(usage: Counts): boolean {
  for (const kind in usage) if ((usage[kind] ?? 0) > (CALLS.has(kind) ? MAX_CALLS : MAX_TOKENS)) return false;
  return true;
}

export function computeShare(cached: number, input: number): number | null {
  return input === 0 ? null : Math.floor((cached / input) * 10_000) / 10_000;
}

export function countPrompt(usage: Counts) {
  const read = countTokens(usage, READ_KINDS);
  const written = countTokens(usage, WRITE_KINDS);
  return { read, written, total: read + written + countTokens(usage, INPUT_KINDS) };
}

export type PromptTokens = ReturnType<typeof countPrompt>;

export type UsageKind = (typeof USAGE_KINDS)[number];
export type CallKind = (typeof CALL_KINDS)[number];
export type Usage = Partial<Record<UsageKind | CallKind, number>>;

/** What a model used in one pass. Compaction, advisor and fallback are passes, too. */
export interface Part {
  /** Null: the answer's own model. */
  readonly model: string | null;
  /** `message`, or the upstream's name for the pass (`compaction`, …). */
  readonly pass: string;
  readonly usage: Usage;
  /** Their sum is `usage`. */
  readonly calls?: readonly Usage[];
}

/** How the answer says it was served, which decides the tariff. */
export interface Tariff {
  readonly service_tier?: string;
  readonly inference_geo?: string;
  readonly speed?: string;
  readonly traffic_type?: string;
  /** No answer says it: the upstream's host decides it. */
  readonly region?: string;
}

export interface CountFault {
  readonly basis: "unknown" | "suspect";
  readonly text: string;
  readonly lacksOutput?: true;
}

export interface CacheReason {
  /** The upstream's word: `tools_changed`. */
  readonly because: string;
  /** The missed tokens that the upstream counted. Null: not given. */
  readonly missed: number | null;
}

export interface ReportedAmount {
  /** A decimal in USD. Null: unreadable. */
  readonly usd: string | null;
  /** False if the answer goes on, or if a provider bills the user in addition. */
  readonly isWhole: boolean;
}

export interface Reading {
  readonly model: string | null;
  /** Empty until usage is reported. */
  readonly parts: readonly Part[];
  readonly faults?: readonly CountFault[] | undefined;
  /** The upstream's usage, merged by the dialect's rules. Null: none. */
  readonly rawUsage: unknown;
  readonly reportedAmount?: ReportedAmount | undefined;
  readonly tariff: Tariff;
  /** `open` until the dialect's terminal event. A cut answer stays open. */
  readonly end: "open" | "complete" | "error";
  /** The part of the answer that reports usage has come. */
  readonly final: boolean;
  readonly estimatedOutput: number;
  /** The answer had visible output, streamed or not. */
  readonly hasText: boolean;
  /** A refusal before any output, with the upstream's word (null: none). */
  readonly refusal?: { readonly category: string | null } | undefined;
  /** The usage is that of several calls. */
  readonly loops?: boolean | undefined;
  /** Some upstreams report no usage for a complete answer: it is estimated. */
  readonly mayLackUsage?: boolean | undefined;
  /** The answer says that it has ended. Some upstreams send nothing after that. */
  readonly isFinished?: boolean | undefined;
  readonly cacheReason?: CacheReason | undefined;
  /** An answer that can be fetched later: it may go on after its request. */
  readonly stored?: { readonly id: string; readonly goesOn: boolean } | undefined;
  readonly called?: readonly string[] | undefined;
}

/** Gets an answer's tool calls. A call may come more than once. */
export interface CallListener {
  /** Comes before the calls. */
  begin(responseId: string): void;
  /** `hash`: of the tool and its input. */
  add(callId: string, hash: string): void;
}

export interface ParsedEvent {
  readonly name: string;
  readonly data: string;
  readonly value: unknown;
}

/** Gets the events of a stream. `size` is the number of bytes of text in the event.
 *  If an event differs from an earlier event only in its text, `takeText` returns the text
 *  and the event's end. Otherwise it returns null, and the event has to be parsed. */
export interface EventTaker {
  take(parsed: ParsedEvent, event?: string, size?: number): void;
  takeText(text: string, from: number): readonly [piece: string, end: number] | null;
}

/** Sees an answer's bytes as they pass, and never delays them. */
export interface Meter {
  see(chunk: Uint8Array): void;
  /** Like `see`, but hands each complete event to the bridge. Null comes after the last chunk. */
  readEvents(chunk: Uint8Array | null, bridge: EventTaker): void;
  /** The same as `read().final`, but cheap enough for each chunk. */
  readonly isFinal: boolean;
  read(): Reading;
}

/** Uses a Map, because a kind may be named `constructor`. */
export function addCounts(counts: Iterable<readonly [kind: string, count: number]>): Record<string, number> {
  const sum = new Map<string, number>();
  for (const [kind, count] of counts) sum.set(kind, (sum.get(kind) ?? 0) + count);
  return Object.fromEntries(sum);
}

export function sumUsage(parts: readonly Part[]): Usage {
  if (parts.length === 1) return parts[0]?.usage ?? {};
  const sum: Usage = {};
  for (const kind of ALL_KINDS) {
    const counts = parts.flatMap(({ usage }) => usage[kind] ?? []);
    if (counts.length > 0) sum[kind] = counts.reduce((total, count) => total + count, 0);
  }
  return sum;
}
