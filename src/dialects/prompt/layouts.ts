// A dialect's prompts: where their parts are, and how upstreams cache them.

/** A prompt's sections, in the order in which they are cached. */
export type Section = "tools" | "system" | "messages";

/** What a member is to the cache. */
export type Role =
  | Section
  /** Part of what is cached. */
  | "setting"
  /** Each service tier has its own cache. */
  | "tier"
  /** The response that this request continues. */
  | "continues"
  /** The message after which this request continues a kept conversation. */
  | "thread"
  /** A conversation that the upstream keeps. */
  | "held"
  /** A part of the prompt that the upstream keeps. */
  | "named"
  /** Rules by which the upstream changes the conversation. */
  | "edits"
  | "lifetime"
  /** A mark on the complete prompt. */
  | "mark";

/** Members outside of what upstreams cache. */
export const UNCACHED: ReadonlySet<string> = new Set(
  `background frequency_penalty max_completion_tokens max_output_tokens max_tokens max_tool_calls
  metadata model n presence_penalty previous_response_id safety_identifier seed stop
  stop_sequences store stream stream_options temperature top_k top_p user`.split(/\s+/),
);

export interface CacheRules {
  /** Only what the client marks is cached, and writes are reported. */
  readonly marked: boolean;
  /** Cached tokens are multiples of this. */
  readonly blockTokens: number;
  minimumTokens(model: string): number;
  /** How long a prompt is kept after its last use. */
  readonly lifetimeMs: number;
  /** The same, if the upstream reports cache writes. */
  readonly reportedLifetimeMs: number;
}

export interface Layout {
  readonly members: ReadonlyMap<string, Role>;
  /** Messages are cached block by block. */
  readonly byBlock: boolean;
  readonly rules: CacheRules;
}

export function listMembers(members: Readonly<Record<string, Role>>): ReadonlyMap<string, Role> {
  return new Map(Object.entries(members));
}

export const MINUTE_MS = 60_000;
export const FIVE_MINUTES = { lifetimeMs: 5 * MINUTE_MS, reportedLifetimeMs: 5 * MINUTE_MS };
