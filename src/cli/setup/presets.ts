// The providers that `gateway init` and `gateway channels add` know, each with its own native endpoint. The comment names
// its documentation. "Quoted": it was read where others quote it, because the provider's own page could not be opened.

import {
  type ChannelPlatform,
  CONVERTIBLE,
  groupPlatform,
  LOGIN_ADDRESSES,
  type Platform,
} from "../../config/schema.ts";

export interface Preset {
  /** The name on the command line. */
  readonly id: string;
  readonly title: string;
  /** Of the channel. */
  readonly platform: ChannelPlatform;
  readonly channel: string;
  readonly baseUrl: string;
  readonly group: string;
  readonly description: string;
  /** The environment variable with the credential. */
  readonly variable: string;
  /** `local`: a server on this machine, which costs nothing, needs no credential, and may read a long prompt for many minutes.
   *  `bearer`: it reads the credential from `Authorization`, which its platform's own clients do not send.
   *  `login`: the login of the tool itself; there is no credential. */
  readonly kind?: "local" | "bearer" | "login";
  /** A tool that suits the group. */
  readonly tool: string;
}

type Row = readonly [
  id: string,
  platform: ChannelPlatform,
  title: string,
  baseUrl: string,
  variable: string,
  more?: Partial<Preset>,
];

const here = (port: number): string => `http://127.0.0.1:${port}/v1`;
const LOCAL = { kind: "local", description: "local models" } as const;
const AS_CHAT = "as Chat Completions (for opencode, OpenAI SDKs)";

const ROWS: readonly Row[] = [
  [
    "anthropic",
    "messages",
    "Anthropic (Claude Code, Anthropic SDKs)",
    "https://api.anthropic.com",
    "ANTHROPIC_API_KEY",
    { channel: "anthropic-main", group: "claude" },
  ],
  [
    "openai",
    "responses",
    "OpenAI (Codex, OpenAI SDKs)",
    "https://api.openai.com",
    "OPENAI_API_KEY",
    { channel: "openai-main", group: "codex", tool: "codex" },
  ],
  [
    "google",
    "content",
    "Gemini (Gemini CLI, Google SDKs)",
    "https://generativelanguage.googleapis.com",
    "GEMINI_API_KEY",
    { channel: "google-main", group: "gemini", tool: "gemini" },
  ],
  // Quoted: openrouter.ai/docs/guides/coding-agents/claude-code-integration; the credential goes in ANTHROPIC_AUTH_TOKEN.
  [
    "openrouter",
    "messages",
    "OpenRouter (many providers' models)",
    "https://openrouter.ai/api",
    "OPENROUTER_API_KEY",
    { kind: "bearer" },
  ],
  // api-docs.deepseek.com/guides/anthropic_api
  ["deepseek", "messages", "DeepSeek", "https://api.deepseek.com/anthropic", "DEEPSEEK_API_KEY"],
  // Quoted: platform.kimi.ai/docs/api/overview. Accounts of platform.moonshot.cn use api.moonshot.cn.
  [
    "moonshot",
    "messages",
    "Kimi (Moonshot)",
    "https://api.moonshot.ai/anthropic",
    "MOONSHOT_API_KEY",
    { group: "kimi" },
  ],
  // Quoted: docs.z.ai/devpack/tool/claude
  ["zai", "messages", "GLM (Z.ai)", "https://api.z.ai/api/anthropic", "ZAI_API_KEY", { group: "glm" }],
  // docs.x.ai/docs/guides/chat: the Responses API is the preferred one.
  ["xai", "responses", "Grok (xAI)", "https://api.x.ai", "XAI_API_KEY", { group: "grok" }],
  // openrouter.ai/docs/api-reference/overview
  [
    "openrouter-chat",
    "chat",
    `OpenRouter ${AS_CHAT}`,
    "https://openrouter.ai/api/v1",
    "OPENROUTER_API_KEY",
    { description: "OpenRouter at cost" },
  ],
  // api-docs.deepseek.com
  [
    "deepseek-chat",
    "chat",
    `DeepSeek ${AS_CHAT}`,
    "https://api.deepseek.com/v1",
    "DEEPSEEK_API_KEY",
    { description: "DeepSeek at cost" },
  ],
  // console.groq.com/docs/openai
  ["groq", "chat", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"],
  // docs.mistral.ai/api
  ["mistral", "chat", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"],
  // docs.together.ai/docs/openai-api-compatibility
  ["together", "chat", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"],
  // docs.ollama.com/api/openai-compatibility
  ["ollama", "chat", "Ollama (models on this machine)", here(11434), "OLLAMA_API_KEY", LOCAL],
  // lmstudio.ai/docs/developer/openai-compat
  ["lmstudio", "chat", "LM Studio (models on this machine)", here(1234), "LM_API_TOKEN", LOCAL],
  // github.com/ggml-org/llama.cpp/tree/master/tools/server
  ["llamacpp", "chat", "llama.cpp (llama-server on this machine)", here(8080), "LLAMA_API_KEY", LOCAL],
  // docs.vllm.ai/en/latest/serving/openai_compatible_server
  ["vllm", "chat", "vLLM (on this machine)", here(8000), "VLLM_API_KEY", LOCAL],
  [
    "claude-login",
    "messages",
    "Claude Code's own login (Pro, Max or another plan)",
    LOGIN_ADDRESSES["messages"] ?? "",
    "",
    { kind: "login", group: "claude-plan", description: "Claude Code with a plan" },
  ],
  [
    "codex-login",
    "responses",
    "Codex's own login (ChatGPT; experimental)",
    LOGIN_ADDRESSES["responses"] ?? "",
    "",
    { kind: "login", group: "codex-plan", description: "Codex with a ChatGPT plan", tool: "codex" },
  ],
  [
    "relay",
    "relay",
    "A relay that serves both Claude and Gemini models",
    "https://relay.example.com",
    "RELAY_API_KEY",
    { channel: "relay-main", description: "the relay at cost", tool: "claude" },
  ],
];

export const PRESETS: readonly Preset[] = ROWS.map(([id, platform, title, baseUrl, variable, more]) => ({
  id,
  platform,
  title,
  baseUrl,
  variable,
  channel: id,
  group: id,
  description: `${nameSeller({ title })} at cost`,
  tool: platform === "messages" ? "claude" : "opencode",
  ...more,
}));

/** One for each account: a second preset of an account is added by hand. */
export const ACCOUNTS: readonly Preset[] = PRESETS.filter(
  ({ variable }, index) =>
    variable === "" || PRESETS.findIndex((preset) => preset.variable === variable) === index,
);

/** Of a server on this machine. */
export const LOCAL_TIMEOUTS = { first_byte: "30m", idle: "30m" };

/** The relay's address differs for every user. */
export function needsAddress({ id }: Preset): boolean {
  return id === "relay";
}

/** The title without the tools that it is usually for. */
export function nameSeller({ title }: Pick<Preset, "title">): string {
  return title.replace(/ \(.*/, "");
}

/** A group that `init` and `channels add` write. */
export interface PresetGroup {
  readonly name: string;
  readonly platform: Platform;
  readonly convert?: true;
  readonly description: string;
  /** A tool that suits it. */
  readonly tool: string;
}

/** The preset's own group. A server on this machine has one for Claude Code, too, and both convert. */
export function listGroups(preset: Preset): PresetGroup[] {
  const { group, platform, description, tool, kind } = preset;
  const own = { name: group, platform: groupPlatform(platform), description, tool };
  return kind === "local" ? [{ ...own, convert: true }, groupForClaude(preset)] : [own];
}

/** Claude Code on the provider's models: requests are converted. */
export function groupForClaude({ id, description }: Preset): PresetGroup {
  const about = `Claude Code on ${description}`;
  return { name: `claude-${id}`, platform: "messages", convert: true, description: about, tool: "claude" };
}

/** Claude Code can use its models only if requests are converted. */
export function mayConvertForClaude({ platform, kind }: Preset): boolean {
  return platform !== "messages" && CONVERTIBLE.has(platform) && kind !== "login";
}
