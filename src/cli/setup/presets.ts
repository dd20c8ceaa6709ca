// The providers that `gateway init` and `gateway channels add` know. Each entry names the provider's own native
// endpoint: no conversion is needed, but for the groups of servers on this machine. The comment names its documentation.
// "Quoted": it was read where others quote it, because the provider's own page could not be opened.

import { LOGIN_ADDRESSES } from "../../config/logins.ts";
import { type ChannelPlatform, CONVERTIBLE, groupPlatform, type Platform } from "../../config/schema.ts";

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
  /** For a server on this machine: it costs nothing (`free: true`). It needs no credential, but the config does. Every tool
   *  may use it: its groups convert. */
  readonly local?: { readonly credential: string };
  /** The upstream reads the credential from `Authorization`, which its platform's own clients do not send. */
  readonly bearer?: true;
  /** The login of the tool itself: there is no credential. */
  readonly login?: true;
  /** A tool that suits the group. */
  readonly tool: string;
}

export const PRESETS: readonly Preset[] = [
  {
    id: "anthropic",
    title: "Anthropic (Claude Code, Anthropic SDKs)",
    platform: "messages",
    channel: "anthropic-main",
    baseUrl: "https://api.anthropic.com",
    group: "claude",
    description: "Anthropic at cost",
    variable: "ANTHROPIC_API_KEY",
    tool: "claude",
  },
  {
    id: "openai",
    title: "OpenAI (Codex, OpenAI SDKs)",
    platform: "responses",
    channel: "openai-main",
    baseUrl: "https://api.openai.com",
    group: "codex",
    description: "OpenAI at cost",
    variable: "OPENAI_API_KEY",
    tool: "codex",
  },
  {
    id: "google",
    title: "Google Gemini (Gemini CLI, Google SDKs)",
    platform: "content",
    channel: "google-main",
    baseUrl: "https://generativelanguage.googleapis.com",
    group: "gemini",
    description: "Gemini at cost",
    variable: "GEMINI_API_KEY",
    tool: "gemini",
  },
  {
    // Quoted: openrouter.ai/docs/guides/coding-agents/claude-code-integration; the credential goes in ANTHROPIC_AUTH_TOKEN.
    id: "openrouter",
    title: "OpenRouter (many providers' models)",
    platform: "messages",
    channel: "openrouter",
    baseUrl: "https://openrouter.ai/api",
    group: "openrouter",
    description: "OpenRouter at cost",
    variable: "OPENROUTER_API_KEY",
    bearer: true,
    tool: "claude",
  },
  {
    // api-docs.deepseek.com/guides/anthropic_api
    id: "deepseek",
    title: "DeepSeek",
    platform: "messages",
    channel: "deepseek",
    baseUrl: "https://api.deepseek.com/anthropic",
    group: "deepseek",
    description: "DeepSeek at cost",
    variable: "DEEPSEEK_API_KEY",
    tool: "claude",
  },
  {
    // Quoted: platform.kimi.ai/docs/api/overview. Accounts of platform.moonshot.cn use api.moonshot.cn.
    id: "moonshot",
    title: "Moonshot (Kimi)",
    platform: "messages",
    channel: "moonshot",
    baseUrl: "https://api.moonshot.ai/anthropic",
    group: "kimi",
    description: "Kimi at cost",
    variable: "MOONSHOT_API_KEY",
    tool: "claude",
  },
  {
    // Quoted: docs.z.ai/devpack/tool/claude
    id: "zai",
    title: "Z.ai (GLM)",
    platform: "messages",
    channel: "zai",
    baseUrl: "https://api.z.ai/api/anthropic",
    group: "glm",
    description: "GLM at cost",
    variable: "ZAI_API_KEY",
    tool: "claude",
  },
  {
    // docs.x.ai/docs/guides/chat: the Responses API is the preferred one.
    id: "xai",
    title: "xAI (Grok)",
    platform: "responses",
    channel: "xai",
    baseUrl: "https://api.x.ai",
    group: "grok",
    description: "Grok at cost",
    variable: "XAI_API_KEY",
    tool: "opencode",
  },
  {
    // openrouter.ai/docs/api-reference/overview
    id: "openrouter-chat",
    title: "OpenRouter, as Chat Completions (for opencode, OpenAI SDKs)",
    platform: "chat",
    channel: "openrouter-chat",
    baseUrl: "https://openrouter.ai/api/v1",
    group: "openrouter-chat",
    description: "OpenRouter at cost",
    variable: "OPENROUTER_API_KEY",
    tool: "opencode",
  },
  {
    // api-docs.deepseek.com
    id: "deepseek-chat",
    title: "DeepSeek, as Chat Completions (for opencode, OpenAI SDKs)",
    platform: "chat",
    channel: "deepseek-chat",
    baseUrl: "https://api.deepseek.com/v1",
    group: "deepseek-chat",
    description: "DeepSeek at cost",
    variable: "DEEPSEEK_API_KEY",
    tool: "opencode",
  },
  {
    // console.groq.com/docs/openai
    id: "groq",
    title: "Groq",
    platform: "chat",
    channel: "groq",
    baseUrl: "https://api.groq.com/openai/v1",
    group: "groq",
    description: "Groq at cost",
    variable: "GROQ_API_KEY",
    tool: "opencode",
  },
  {
    // docs.mistral.ai/api
    id: "mistral",
    title: "Mistral",
    platform: "chat",
    channel: "mistral",
    baseUrl: "https://api.mistral.ai/v1",
    group: "mistral",
    description: "Mistral at cost",
    variable: "MISTRAL_API_KEY",
    tool: "opencode",
  },
  {
    // docs.together.ai/docs/openai-api-compatibility
    id: "together",
    title: "Together",
    platform: "chat",
    channel: "together",
    baseUrl: "https://api.together.xyz/v1",
    group: "together",
    description: "Together at cost",
    variable: "TOGETHER_API_KEY",
    tool: "opencode",
  },
  {
    // docs.ollama.com/api/openai-compatibility: the credential is required but ignored.
    id: "ollama",
    title: "Ollama (models on this machine)",
    platform: "chat",
    channel: "ollama",
    baseUrl: "http://127.0.0.1:11434/v1",
    group: "ollama",
    description: "local models",
    variable: "OLLAMA_API_KEY",
    local: { credential: "ollama" },
    tool: "opencode",
  },
  {
    // lmstudio.ai/docs/developer/openai-compat
    id: "lmstudio",
    title: "LM Studio (models on this machine)",
    platform: "chat",
    channel: "lmstudio",
    baseUrl: "http://127.0.0.1:1234/v1",
    group: "lmstudio",
    description: "local models",
    variable: "LM_API_TOKEN",
    local: { credential: "lmstudio" },
    tool: "opencode",
  },
  {
    // github.com/ggml-org/llama.cpp/tree/master/tools/server
    id: "llamacpp",
    title: "llama.cpp (llama-server on this machine)",
    platform: "chat",
    channel: "llamacpp",
    baseUrl: "http://127.0.0.1:8080/v1",
    group: "llamacpp",
    description: "local models",
    variable: "LLAMA_API_KEY",
    local: { credential: "none" },
    tool: "opencode",
  },
  {
    // docs.vllm.ai/en/latest/serving/openai_compatible_server
    id: "vllm",
    title: "vLLM (on this machine)",
    platform: "chat",
    channel: "vllm",
    baseUrl: "http://127.0.0.1:8000/v1",
    group: "vllm",
    description: "local models",
    variable: "VLLM_API_KEY",
    local: { credential: "none" },
    tool: "opencode",
  },
  {
    id: "claude-login",
    title: "Claude Code's own login (Pro, Max or another plan)",
    platform: "messages",
    channel: "claude-login",
    baseUrl: LOGIN_ADDRESSES["messages"] ?? "",
    group: "claude-plan",
    description: "Claude Code with a plan",
    variable: "",
    login: true,
    tool: "claude",
  },
  {
    id: "codex-login",
    title: "Codex's own login (ChatGPT; experimental)",
    platform: "responses",
    channel: "codex-login",
    baseUrl: LOGIN_ADDRESSES["responses"] ?? "",
    group: "codex-plan",
    description: "Codex with a ChatGPT plan",
    variable: "",
    login: true,
    tool: "codex",
  },
  {
    id: "relay",
    title: "A relay that serves both Claude and Gemini models",
    platform: "relay",
    channel: "relay-main",
    baseUrl: "https://relay.example.com",
    group: "relay",
    description: "the relay at cost",
    variable: "RELAY_API_KEY",
    tool: "claude",
  },
];

/** The relay's address differs for every user. */
export function needsAddress({ id }: Preset): boolean {
  return id === "relay";
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

/** The preset's own group. A server on this machine has one for Claude Code, too; `claude`: so has any other. */
export function listGroups(preset: Preset, claude: boolean): PresetGroup[] {
  const { group, platform, description, tool, local } = preset;
  const converts = local === undefined ? {} : { convert: true as const };
  const own = { name: group, platform: groupPlatform(platform), ...converts, description, tool };
  return claude || local !== undefined ? [own, groupForClaude(preset)] : [own];
}

/** Claude Code on the provider's models: requests are converted. */
export function groupForClaude({ id, description }: Preset): PresetGroup {
  const about = `Claude Code on ${description}`;
  return { name: `claude-${id}`, platform: "messages", convert: true, description: about, tool: "claude" };
}

/** Claude Code can use its models only if requests are converted. */
export function mayConvertForClaude({ platform, login }: Preset): boolean {
  return platform !== "messages" && CONVERTIBLE.has(platform) && login !== true;
}
