// Where each dialect has the parts of a prompt, and how upstreams cache them.

/** The sections of a prompt, in the order in which they are cached. */
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
  /** As `held`, and the message that this request continues. */
  | "thread"
  /** A conversation that the upstream keeps. */
  | "held"
  /** A part of the prompt that the upstream keeps. */
  | "named"
  /** The upstream changes the conversation by rule. */
  | "edits"
  | "lifetime"
  /** A mark on the complete prompt. */
  | "mark";

/** Upstreams do not cache these. */
export const UNCACHED: ReadonlySet<string> = new Set(
  `background frequency_penalty max_completion_tokens max_output_tokens max_tokens max_tool_calls metadata model n
  presence_penalty previous_response_id safety_identifier seed stop stop_sequences store stream stream_options temperature
  top_k top_p user`.split(/\s+/),
);

export interface CacheRules {
  /** Only what the client marks is cached, and what is written is reported. */
  readonly marked: boolean;
  /** Cached tokens are multiples of this. */
  readonly blockTokens: number;
  /** Shorter prompts are not cached. */
  minimumTokens(model: string): number;
  /** How long a prompt is kept after its last use. */
  readonly lifetimeMs: number;
  /** The same for upstreams that report cache writes. */
  readonly reportedLifetimeMs: number;
}

export interface Layout {
  readonly members: ReadonlyMap<string, Role>;
  /** Messages are cached block by block. */
  readonly byBlock: boolean;
  readonly rules: CacheRules;
}

function listMembers(members: Readonly<Record<string, Role>>): ReadonlyMap<string, Role> {
  return new Map(Object.entries(members));
}

const MINUTE_MS = 60_000;
const LIFETIME = { lifetimeMs: 5 * MINUTE_MS, reportedLifetimeMs: 5 * MINUTE_MS };

/** https://platform.claude.com/docs/en/build-with-claude/prompt-caching. The minimum is the largest
 * of any model. */
export const MESSAGES_LAYOUT: Layout = {
  members: listMembers({
    tools: "tools",
    system: "system",
    messages: "messages",
    tool_choice: "setting",
    thinking: "setting",
    output_config: "setting",
    output_format: "setting",
    mcp_servers: "setting",
    container: "setting",
    service_tier: "tier",
    speed: "tier",
    context_management: "edits",
    thread: "thread",
    cache_control: "mark",
  }),
  byBlock: true,
  rules: { ...LIFETIME, marked: true, blockTokens: 1, minimumTokens: () => 4096 },
};

/** https://platform.openai.com/docs/guides/prompt-caching. Prompts are kept for five to ten
 * minutes; with reported writes, for half an hour. */
const OPENAI = {
  byBlock: false,
  rules: {
    marked: false,
    blockTokens: 128,
    minimumTokens: () => 1024,
    lifetimeMs: 5 * MINUTE_MS,
    reportedLifetimeMs: 30 * MINUTE_MS,
  },
} as const;

const OPENAI_MEMBERS = {
  tools: "tools",
  tool_choice: "setting",
  parallel_tool_calls: "setting",
  prompt_cache_key: "setting",
  service_tier: "tier",
  prompt_cache_retention: "lifetime",
  prompt_cache_options: "lifetime",
} as const;

export const RESPONSES_LAYOUT: Layout = {
  ...OPENAI,
  members: listMembers({
    ...OPENAI_MEMBERS,
    instructions: "system",
    input: "messages",
    text: "setting",
    reasoning: "setting",
    previous_response_id: "continues",
    conversation: "held",
    context_management: "edits",
  }),
};

export const CHAT_LAYOUT: Layout = {
  ...OPENAI,
  members: listMembers({
    ...OPENAI_MEMBERS,
    functions: "tools",
    messages: "messages",
    response_format: "setting",
    reasoning_effort: "setting",
    verbosity: "setting",
  }),
};

/** https://ai.google.dev/gemini-api/docs/caching. No lifetime is published. */
export const CONTENT_LAYOUT: Layout = {
  members: listMembers({
    tools: "tools",
    systemInstruction: "system",
    system_instruction: "system",
    contents: "messages",
    toolConfig: "setting",
    tool_config: "setting",
    cachedContent: "named",
    cached_content: "named",
    serviceTier: "tier",
    service_tier: "tier",
  }),
  byBlock: false,
  rules: {
    ...LIFETIME,
    marked: false,
    blockTokens: 1,
    minimumTokens: (model) => (model.includes("2.5") ? 2048 : 4096),
  },
};
