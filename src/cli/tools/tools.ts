// The tools that can use the gateway, and the settings that each needs, tested with the released tools. connection.ts
// finds the key and the address; env and run pass the settings to the tool.

import { type Platform, PLATFORMS } from "../../config/schema.ts";
import { PLATFORM_ROWS, readPathPrefix, type ToolName } from "../../dialects/platforms.ts";
import { claudeOverlay } from "./claude.ts";
import { geminiOverlay } from "./gemini.ts";
import { MISLEADING } from "./misleading.ts";
import type { Overlay, ToolSettings } from "./overlay.ts";

export interface Connection {
  /** Without a trailing slash. */
  readonly base: string;
  readonly relayPrefix: string;
  readonly platform: Platform;
  readonly secret: string;
  /** Models that only this gateway knows, such as aliases. */
  readonly models: readonly string[];
}

export interface Tool {
  readonly name: ToolName;
  readonly title: string;
  /** Null for a library: the user names the command that uses it. */
  readonly program: { readonly name: string; readonly install: string } | null;
  readonly platforms: readonly Platform[];
  /** Variables that make the tool bypass the gateway, or give it another credential. */
  readonly misleading: readonly string[];
  /** For tools that need files as well as variables. */
  readonly overlay?: Overlay;
  connect(connection: Connection): ToolSettings;
}

/** The base of the tool's own paths. */
function rootOf({ base, platform, relayPrefix }: Connection): string {
  return base + readPathPrefix(platform, relayPrefix);
}

function listPlatforms(tool: ToolName): readonly Platform[] {
  return PLATFORMS.filter((platform) => PLATFORM_ROWS[platform].tools.includes(tool));
}

const claude: Tool = {
  name: "claude",
  title: "Claude Code",
  program: { name: "claude", install: "npm install -g @anthropic-ai/claude-code" },
  platforms: listPlatforms("claude"),
  misleading: MISLEADING.claude,
  overlay: claudeOverlay,
  connect: (connection) => ({
    env: {
      ANTHROPIC_BASE_URL: rootOf(connection),
      ANTHROPIC_AUTH_TOKEN: connection.secret,
      // Its model menu then shows the gateway's models.
      CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
    },
    args: [],
  }),
};

const CODEX_KEY = "GATEWAY_CODEX_KEY";

const codex: Tool = {
  name: "codex",
  title: "Codex",
  program: { name: "codex", install: "npm install -g @openai/codex" },
  platforms: listPlatforms("codex"),
  misleading: MISLEADING.codex,
  // Codex ignores OPENAI_BASE_URL. A custom provider needs no login and tries no WebSocket. Values that are not TOML
  // count as plain text, so nothing here needs quotes, which shells handle differently.
  connect: (connection) => ({
    env: { [CODEX_KEY]: connection.secret },
    args: [
      "model_provider=gateway",
      "model_providers.gateway.name=gateway",
      `model_providers.gateway.base_url=${rootOf(connection)}/v1`,
      "model_providers.gateway.wire_api=responses",
      `model_providers.gateway.env_key=${CODEX_KEY}`,
    ].flatMap((override) => ["-c", override]),
  }),
};

const gemini: Tool = {
  name: "gemini",
  title: "Gemini CLI",
  program: { name: "gemini", install: "npm install -g @google/gemini-cli" },
  platforms: listPlatforms("gemini"),
  misleading: MISLEADING.gemini,
  overlay: geminiOverlay,
  connect: (connection) => ({
    env: {
      GOOGLE_GEMINI_BASE_URL: rootOf(connection),
      GEMINI_API_KEY: connection.secret,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    },
    args: [],
  }),
};

const opencode: Tool = {
  name: "opencode",
  title: "opencode",
  program: { name: "opencode", install: "npm install -g opencode-ai" },
  platforms: listPlatforms("opencode"),
  misleading: MISLEADING.opencode,
  // The providers have opencode's own names, so that it knows their models. All others are off: it would use one of
  // them for titles and summaries. The empty model lets it choose when the user's own choice is of another provider.
  connect: (connection) => {
    const provider = Object.fromEntries(
      PLATFORM_ROWS[connection.platform].makers.map(({ name: id, version }) => [
        id,
        {
          options: { baseURL: `${rootOf(connection)}/${version}`, apiKey: connection.secret },
          models: nameModels(connection, id),
        },
      ]),
    );
    const config = {
      model: "",
      small_model: "",
      enabled_providers: Object.keys(provider),
      disabled_providers: [],
      provider,
    };
    return {
      // If the user has signed in to ChatGPT, one of its own plugins sends every request there, regardless of the
      // provider's address. The other default plugins do not affect these providers.
      env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config), OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" },
      args: [],
    };
  },
};

/** Where a platform serves several makers, a name goes to the one whose family it looks like. */
function nameModels({ platform, models }: Connection, provider: string): Record<string, object> {
  const own = models.filter(
    (model) =>
      PLATFORM_ROWS[platform].makers.length === 1 || /gemini|gemma/i.test(model) === (provider === "google"),
  );
  return Object.fromEntries(own.map((model) => [model, {}]));
}

const openai: Tool = {
  name: "openai",
  title: "the OpenAI SDK",
  program: null,
  platforms: listPlatforms("openai"),
  misleading: MISLEADING.openai,
  connect: (connection) => ({
    env: { OPENAI_BASE_URL: `${rootOf(connection)}/v1`, OPENAI_API_KEY: connection.secret },
    args: [],
  }),
};

const anthropic: Tool = {
  name: "anthropic",
  title: "the Anthropic SDK",
  program: null,
  platforms: listPlatforms("anthropic"),
  misleading: MISLEADING.anthropic,
  connect: (connection) => ({
    env: { ANTHROPIC_BASE_URL: rootOf(connection), ANTHROPIC_API_KEY: connection.secret },
    args: [],
  }),
};

const google: Tool = {
  name: "google",
  title: "the Google GenAI SDK",
  program: null,
  platforms: listPlatforms("google"),
  misleading: MISLEADING.google,
  connect: (connection) => ({
    // The SDK prefers this variable to GEMINI_API_KEY.
    env: { GOOGLE_GEMINI_BASE_URL: rootOf(connection), GOOGLE_API_KEY: connection.secret },
    args: [],
  }),
};

export const TOOLS: ReadonlyMap<string, Tool> = new Map<string, Tool>(
  [claude, codex, gemini, opencode, openai, anthropic, google].map((tool) => [tool.name, tool]),
);
