// The providers that `gateway init` and `gateway channels add` know. Each entry names the provider's own native
// endpoint: no conversion is needed, but for the groups of servers on this machine. The comment names its documentation.
// "Quoted": it was read where others quote it, because the provider's own page could not be opened.

import { LOGIN_ADDRESSES } from "../../config/schema.ts";
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
  /** For a server on this machine: it costs nothing (`free: true`), and may read a long prompt for many minutes. It needs no credential, but the config does. Every tool
   *  may use it: its groups convert. */
  readonly local?: { readonly credential: string };
  /** The upstream reads the credential from `Authorization`, which its platform's own clients do not send. */
  readonly bearer?: true;
  /** The login of the tool itself: there is no credential. */
  readonly login?: true;
  /** A tool that suits the group. */
  readonly tool: string;
}

/** `name`: of the provider. The channel and the group have the preset's id, if it does not say otherwise. */
type Short = Pick<Preset, "id" | "baseUrl" | "variable"> & Partial<Preset> & { readonly name: string };

function complete(platform: ChannelPlatform, { name, ...short }: Short): Preset {
  const { id } = short;
  const tool = platform === "messages" ? "claude" : "opencode";
  return { title: name, platform, channel: id, group: id, description: `${name} at cost`, tool, ...short };
}

/** A server on this machine. */
function serveHere(
  port: number,
  id: string,
  title: string,
  more: Pick<Preset, "variable" | "local">,
): Preset {
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  return complete("chat", { id, name: title, baseUrl, description: "local models", ...more });
}

export const PRESETS: readonly Preset[] = [
  complete("messages", {
    id: "anthropic",
    name: "Anthropic",
    title: "Anthropic (Claude Code, Anthropic SDKs)",
    channel: "anthropic-main",
    baseUrl: "https://api.anthropic.com",
    group: "claude",
    variable: "ANTHROPIC_API_KEY",
  }),
  complete("responses", {
    id: "openai",
    name: "OpenAI",
    title: "OpenAI (Codex, OpenAI SDKs)",
    channel: "openai-main",
    baseUrl: "https://api.openai.com",
    group: "codex",
    variable: "OPENAI_API_KEY",
    tool: "codex",
  }),
  complete("content", {
    id: "google",
    name: "Gemini",
    title: "Google Gemini (Gemini CLI, Google SDKs)",
    channel: "google-main",
    baseUrl: "https://generativelanguage.googleapis.com",
    group: "gemini",
    variable: "GEMINI_API_KEY",
    tool: "gemini",
  }),
  complete("messages", {
    // Quoted: openrouter.ai/docs/guides/coding-agents/claude-code-integration; the credential goes in ANTHROPIC_AUTH_TOKEN.
    id: "openrouter",
    name: "OpenRouter",
    title: "OpenRouter (many providers' models)",
    baseUrl: "https://openrouter.ai/api",
    variable: "OPENROUTER_API_KEY",
    bearer: true,
  }),
  ...[
    // api-docs.deepseek.com/guides/anthropic_api
    {
      id: "deepseek",
      name: "DeepSeek",
      baseUrl: "https://api.deepseek.com/anthropic",
      variable: "DEEPSEEK_API_KEY",
    },
    // Quoted: platform.kimi.ai/docs/api/overview. Accounts of platform.moonshot.cn use api.moonshot.cn.
    {
      id: "moonshot",
      name: "Kimi",
      title: "Moonshot (Kimi)",
      baseUrl: "https://api.moonshot.ai/anthropic",
      group: "kimi",
      variable: "MOONSHOT_API_KEY",
    },
    // Quoted: docs.z.ai/devpack/tool/claude
    {
      id: "zai",
      name: "GLM",
      title: "Z.ai (GLM)",
      baseUrl: "https://api.z.ai/api/anthropic",
      group: "glm",
      variable: "ZAI_API_KEY",
    },
  ].map((short) => complete("messages", short)),
  complete("responses", {
    // docs.x.ai/docs/guides/chat: the Responses API is the preferred one.
    id: "xai",
    name: "Grok",
    title: "xAI (Grok)",
    baseUrl: "https://api.x.ai",
    group: "grok",
    variable: "XAI_API_KEY",
  }),
  ...[
    // openrouter.ai/docs/api-reference/overview
    {
      id: "openrouter-chat",
      name: "OpenRouter",
      title: "OpenRouter, as Chat Completions (for opencode, OpenAI SDKs)",
      baseUrl: "https://openrouter.ai/api/v1",
      variable: "OPENROUTER_API_KEY",
    },
    // api-docs.deepseek.com
    {
      id: "deepseek-chat",
      name: "DeepSeek",
      title: "DeepSeek, as Chat Completions (for opencode, OpenAI SDKs)",
      baseUrl: "https://api.deepseek.com/v1",
      variable: "DEEPSEEK_API_KEY",
    },
    // console.groq.com/docs/openai
    { id: "groq", name: "Groq", baseUrl: "https://api.groq.com/openai/v1", variable: "GROQ_API_KEY" },
    // docs.mistral.ai/api
    { id: "mistral", name: "Mistral", baseUrl: "https://api.mistral.ai/v1", variable: "MISTRAL_API_KEY" },
    // docs.together.ai/docs/openai-api-compatibility
    {
      id: "together",
      name: "Together",
      baseUrl: "https://api.together.xyz/v1",
      variable: "TOGETHER_API_KEY",
    },
  ].map((short) => complete("chat", short)),
  // docs.ollama.com/api/openai-compatibility: the credential is required but ignored.
  serveHere(11434, "ollama", "Ollama (models on this machine)", {
    variable: "OLLAMA_API_KEY",
    local: { credential: "ollama" },
  }),
  // lmstudio.ai/docs/developer/openai-compat
  serveHere(1234, "lmstudio", "LM Studio (models on this machine)", {
    variable: "LM_API_TOKEN",
    local: { credential: "lmstudio" },
  }),
  // github.com/ggml-org/llama.cpp/tree/master/tools/server
  serveHere(8080, "llamacpp", "llama.cpp (llama-server on this machine)", {
    variable: "LLAMA_API_KEY",
    local: { credential: "none" },
  }),
  // docs.vllm.ai/en/latest/serving/openai_compatible_server
  serveHere(8000, "vllm", "vLLM (on this machine)", {
    variable: "VLLM_API_KEY",
    local: { credential: "none" },
  }),
  complete("messages", {
    id: "claude-login",
    name: "Claude Code's own login (Pro, Max or another plan)",
    baseUrl: LOGIN_ADDRESSES["messages"] ?? "",
    group: "claude-plan",
    description: "Claude Code with a plan",
    variable: "",
    login: true,
  }),
  complete("responses", {
    id: "codex-login",
    name: "Codex's own login (ChatGPT; experimental)",
    baseUrl: LOGIN_ADDRESSES["responses"] ?? "",
    group: "codex-plan",
    description: "Codex with a ChatGPT plan",
    variable: "",
    login: true,
    tool: "codex",
  }),
  complete("relay", {
    id: "relay",
    name: "the relay",
    title: "A relay that serves both Claude and Gemini models",
    channel: "relay-main",
    baseUrl: "https://relay.example.com",
    variable: "RELAY_API_KEY",
    tool: "claude",
  }),
];

/** Of a server on this machine. */
export const LOCAL_TIMEOUTS = { first_byte: "30m", idle: "30m" };

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
