// Token counts by kind, in disjoint buckets: each token is charged once. And what a reading of an answer holds.

import { CALL_KINDS } from "../config/call-kinds.ts";

/** Buckets that are priced. `reasoning` is the part of `output` spent thinking: reported, never added. */
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

/** What was sent and not written to a cache. */
export const INPUT_KINDS = USAGE_KINDS.filter((kind) => kind.startsWith("input"));
/** What the prompt consists of. */
export const PROMPT_KINDS = USAGE_KINDS.filter((kind) => /^(?:input|cache|tool_prompt)/.test(kind));
export const CACHE_READ_KINDS = USAGE_KINDS.filter((kind) => kind.startsWith("cache_read"));
export const CACHE_WRITE_KINDS = USAGE_KINDS.filter((kind) => kind.startsWith("cache_write"));
export const OUTPUT_KINDS = USAGE_KINDS.filter((kind) => kind.startsWith("output"));

export type Counts = Readonly<Record<string, number | undefined>>;

/** The tokens of these kinds together. */
export function countTokens(usage: Counts, kinds: readonly UsageKind[]): number {
  let sum = 0;
  for (const kind of kinds) sum += usage[kind] ?? 0;
  return sum;
}

/** No answer of any model has used more, also of one that called it many times. */
const MAX_TOKENS = 100_000_000;
const MAX_CALLS = 10_000;

/** False: somebody has counted wrong, and what was used is not known. */
export function isPlausible(usage: Usage): boolean {
  const isCounted = (kinds: readonly (keyof Usage)[], most: number): boolean =>
    kinds.every((kind) => (usage[kind] ?? 0) <= most);
  return isCounted(USAGE_KINDS, MAX_TOKENS) && isCounted(CALL_KINDS, MAX_CALLS);
}

/** The share of all input that was read from the cache, to four places. Null without input. */
export function computeShare(cached: number, input: number): number | null {
  return input === 0 ? null : Math.floor((cached / input) * 10_000) / 10_000;
}

export type UsageKind = (typeof USAGE_KINDS)[number];
export type CallKind = (typeof CALL_KINDS)[number];
export type Usage = Partial<Record<UsageKind | CallKind, number>>;

/** One pass of one model. Most answers have one part; compaction, advisor and fallback make several. */
export interface Part {
  /** Null: the answer's own model. */
  readonly model: string | null;
  /** `message`, or what the upstream calls the pass (`compaction`, `advisor_message`, …). */
  readonly pass: string;
  readonly usage: Usage;
  /** What each of several calls to the model used: together `usage`. */
  readonly calls?: readonly Usage[];
}

/** What the answer says it was served as: it decides the tariff. */
export interface Tariff {
  readonly service_tier?: string;
  readonly inference_geo?: string;
  readonly speed?: string;
  readonly traffic_type?: string;
  /** Not from the answer: from the upstream's address, if that decides the place of processing. */
  readonly region?: string;
}

/** A count that cannot be trusted, and what that makes of the ledger line. */
export interface CountFault {
  readonly basis: "unknown" | "suspect";
  /** For people: `the upstream's input_tokens cannot be read`. */
  readonly text: string;
  /** The count of the output is missing. */
  readonly lacksOutput?: true;
}

/** Why the upstream says that a prompt was not read from its cache. */
export interface CacheReason {
  /** The upstream's word: `tools_changed`. */
  readonly because: string;
  /** How many tokens it says were missed; null: it does not say. */
  readonly missed: number | null;
}

/** What the seller says that an answer costs. */
export interface ReportedAmount {
  /** A decimal in USD; null: it cannot be read. */
  readonly usd: string | null;
  /** False if the bill has more: the answer has not ended, or a provider bills the user, too. */
  readonly isWhole: boolean;
}

/** What a meter knows of an answer, at any moment of its passing. */
export interface Reading {
  readonly model: string | null;
  /** Empty while no usage has been reported. */
  readonly parts: readonly Part[];
  /** Counts that could not be read, were missing, or contradict each other. */
  readonly faults?: readonly CountFault[] | undefined;
  /** The upstream's usage as JSON, merged as the dialect says; null: it reported none. */
  readonly rawUsage: string | null;
  /** Present if the answer itself names its price. */
  readonly reportedAmount?: ReportedAmount | undefined;
  readonly tariff: Tariff;
  /** `open` until the dialect's terminal event: an answer that stays open was cut. */
  readonly end: "open" | "complete" | "error";
  /** Usage is final: the part of the answer that reports it has passed. */
  readonly final: boolean;
  /** Tokens of visible output so far, estimated from its bytes. */
  readonly estimatedOutput: number;
  /** There was visible output, also in a body that is not streamed. */
  readonly hasText: boolean;
  /** A refusal before any output; the upstream's word for its kind, null where it has none. */
  readonly refusal?: { readonly category: string | null } | undefined;
  /** The upstream called the model several times, and adds up what they used. */
  readonly loops?: boolean | undefined;
  /** Some upstreams of the dialect report no usage for a whole answer. It is estimated. */
  readonly mayLackUsage?: boolean | undefined;
  /** The answer has said that it is finished, and some upstreams send nothing after that. */
  readonly isFinished?: boolean | undefined;
  readonly cacheReason?: CacheReason | undefined;
  /** The answer itself, if it can be fetched later: it may go on when its request has ended. */
  readonly stored?: { readonly id: string; readonly goesOn: boolean } | undefined;
  /** The names of the tools that the answer calls. */
  readonly called?: readonly string[] | undefined;
}

/** Gets the tool calls of an answer while they pass. The same one may come more than once. */
export interface CallListener {
  /** The answer's id. It comes before its calls. */
  begin(responseId: string): void;
  /** `hash`: of the tool and of its input. */
  add(callId: string, hash: string): void;
}

/** An event of a stream. `value`: its data as JSON; undefined: it is not JSON. */
export interface ParsedEvent {
  readonly name: string;
  readonly data: string;
  readonly value: unknown;
}

/** Takes the events of a stream; `size`: the bytes of text in one. An event like those before it need not be parsed. */
export interface EventTaker {
  take(parsed: ParsedEvent, event?: string, size?: number): void;
  takeText(text: string, from: number): readonly [piece: string, end: number] | null;
}

/** Sees an answer's bytes while they pass. Never holds them back, never keeps more than it needs. */
export interface Meter {
  see(chunk: Uint8Array): void;
  /** As `see`, for a bridge, which takes the events that have ended. Null: nothing follows. */
  readEvents(chunk: Uint8Array | null, bridge: EventTaker): void;
  /** As in what is read. Cheap enough to be asked for each chunk. */
  readonly isFinal: boolean;
  read(): Reading;
}

/** Somebody may call a kind `constructor`. */
export function addCounts(counts: Iterable<readonly [kind: string, count: number]>): Record<string, number> {
  const sum = new Map<string, number>();
  for (const [kind, count] of counts) sum.set(kind, (sum.get(kind) ?? 0) + count);
  return Object.fromEntries(sum);
}

/** The buckets of all parts together. */
export function sumUsage(parts: readonly Part[]): Usage {
  if (parts.length === 1) return parts[0]?.usage ?? {};
  const sum: Usage = {};
  for (const kind of [...USAGE_KINDS, ...CALL_KINDS]) {
    const counts = parts.flatMap(({ usage }) => usage[kind] ?? []);
    if (counts.length > 0) sum[kind] = counts.reduce((total, count) => total + count, 0);
  }
  return sum;
}
