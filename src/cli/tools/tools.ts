// The tools that can be pointed at the gateway, and what each wants to be told. Measured on the clients'
// released versions. Which key and which address is connection.ts; how it gets to the tool is env and run.

import type { Platform } from "../../config/schema.ts";
import { claudeOverlay } from "./claude.ts";
import { geminiOverlay } from "./gemini.ts";
import { MISLEADING } from "./misleading.ts";
import type { Overlay, Setting } from "./overlay.ts";

export interface Connection {
  /** Without a trailing slash. */
  readonly base: string;
  readonly relayPrefix: string;
  readonly platform: Platform;
  readonly secret: string;
  /** Names of models that only this gateway knows, such as aliases. */
  readonly models: readonly string[];
}

export interface Tool {
  readonly name: string;
  readonly title: string;
  /** Null: a library, which whatever command the user names brings along. */
  readonly program: { readonly name: string; readonly install: string } | null;
  readonly platforms: readonly Platform[];
  /** Variables that lead the tool past the gateway, or give it another credential. */
  readonly misleading: readonly string[];
  /** Where variables are not enough. */
  readonly overlay?: Overlay;
  connect(connection: Connection): Setting;
}

/** Where the tool's own paths begin. */
function rootOf({ base, platform, relayPrefix }: Connection): string {
  return platform === "relay" ? `${base}/${relayPrefix}` : base;
}

const claude: Tool = {
  name: "claude",
  title: "Claude Code",
  program: { name: "claude", install: "npm install -g @anthropic-ai/claude-code" },
  platforms: ["messages", "relay"],
  misleading: MISLEADING.claude,
  overlay: claudeOverlay,
  connect: (connection) => ({
    env: {
      ANTHROPIC_BASE_URL: rootOf(connection),
      ANTHROPIC_AUTH_TOKEN: connection.secret,
      // Its model menu then shows what the gateway lists.
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
  platforms: ["responses"],
  misleading: MISLEADING.codex,
  // It ignores OPENAI_BASE_URL. A provider of its own needs no login and tries no WebSocket. Values that are not
  // TOML count as plain text, so nothing here needs quotes, which no two shells pass on alike.
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
  platforms: ["content", "relay"],
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
  platforms: ["messages", "responses", "content", "relay"],
  misleading: MISLEADING.opencode,
  // Its own names for providers, so that it knows their models. The others are off: it would pick one of them for
  // titles and summaries. The empty model lets it choose where the user's own choice is of another provider.
  connect: (connection) => {
    const provider = Object.fromEntries(
      OPENCODE_PROVIDERS[connection.platform].map(([id, version]) => [
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
      // One of its own plugins sends every request to ChatGPT where the user has signed in there, whatever the
      // provider's address is. None of them concerns the providers here otherwise.
      env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config), OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" },
      args: [],
    };
  },
};

const OPENCODE_PROVIDERS: Readonly<Record<Platform, ReadonlyArray<readonly [id: string, version: string]>>> =
  {
    messages: [["anthropic", "v1"]],
    responses: [["openai", "v1"]],
    content: [["google", "v1beta"]],
    relay: [
      ["anthropic", "v1"],
      ["google", "v1beta"],
    ],
  };

/** A relay's names go to the provider whose family they look like. */
function nameModels({ platform, models }: Connection, provider: string): Record<string, object> {
  const own = models.filter(
    (model) => platform !== "relay" || /gemini|gemma/i.test(model) === (provider === "google"),
  );
  return Object.fromEntries(own.map((model) => [model, {}]));
}

const openai: Tool = {
  name: "openai",
  title: "the OpenAI SDK",
  program: null,
  platforms: ["responses"],
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
  platforms: ["messages", "relay"],
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
  platforms: ["content", "relay"],
  misleading: MISLEADING.google,
  connect: (connection) => ({
    // It prefers this name to GEMINI_API_KEY.
    env: { GOOGLE_GEMINI_BASE_URL: rootOf(connection), GOOGLE_API_KEY: connection.secret },
    args: [],
  }),
};

export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  [claude, codex, gemini, opencode, openai, anthropic, google].map((tool) => [tool.name, tool]),
);
