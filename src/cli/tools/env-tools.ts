// Tools and apps whose settings `gateway env` prints, and which the user starts. Continue and Cline read theirs from files. The
// makers' desktop apps get them by hand.

import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import type { ToolName } from "../../dialects/platforms.ts";
import { chooseMainModel } from "./model-choice.ts";
import {
  type Connection,
  findText,
  homeOf,
  listModelsOf,
  mainMakerOf,
  type Overlay,
  rootOf,
  sdkBaseOf,
  type ToolRow,
  type ToolSettings,
} from "./tool.ts";

/** The client of an SDK that such a tool has, and the model that it starts with. */
function describeClient(connection: Connection) {
  const isOpenAi = mainMakerOf(connection.platform) === "openai";
  const { models, ownModel, speaksChat = false, secret } = connection;
  const model = chooseMainModel(models, ownModel);
  return {
    isOpenAi,
    kind: isOpenAi ? "openai" : "anthropic",
    base: sdkBaseOf(connection),
    secret,
    model,
    speaksChat,
  };
}

/** What its file needs, below the user's home. */
function inFile(name: string, what: string, place: string, content: object): Overlay {
  return {
    find: (env) => {
      const path = join(homeOf(env), place);
      const advice = `needs the gateway ${what} in ${path}: \`gateway env ${name} --json\` prints it as \`file\``;
      return { path, content, advice };
    },
  };
}

/** An OpenAI or Anthropic client by variables. A flag selects which, whatever its settings file says. */
export const qwen: ToolRow = {
  title: "Qwen Code",
  program: { name: "qwen", install: "npm install -g @qwen-code/qwen-code" },
  ignoresNoProxy: true,
  needsModels: true,
  findOwnModel: (env) =>
    findText(["model", "name"], [".qwen/settings.json", join(homeOf(env), ".qwen/settings.json")]),
  connect: (connection) => {
    const { kind, base, secret, model } = describeClient(connection);
    const values = { BASE_URL: base, API_KEY: secret, ...(model !== null && { MODEL: model }) };
    const named = Object.entries(values).map(([name, value]) => [`${kind.toUpperCase()}_${name}`, value]);
    return { env: Object.fromEntries(named), args: ["--auth-type", kind] };
  },
};

/** With a provider of one's own ("BYOK"), which needs no GitHub login: `copilot help providers`. */
export const copilot: ToolRow = {
  title: "GitHub Copilot CLI",
  program: { name: "copilot", install: "npm install -g @github/copilot" },
  needsModels: true,
  findOwnModel: (env) => env["COPILOT_MODEL"] || null,
  connect: (connection) => {
    const { kind, base, secret, model, speaksChat } = describeClient(connection);
    return {
      env: {
        COPILOT_PROVIDER_BASE_URL: base,
        COPILOT_PROVIDER_TYPE: kind,
        COPILOT_PROVIDER_WIRE_API: speaksChat ? "completions" : "responses",
        COPILOT_PROVIDER_TRANSPORT: "http",
        COPILOT_PROVIDER_API_KEY: secret,
        ...(model !== null && { COPILOT_MODEL: model }),
      },
      args: [],
    };
  },
};

export const continueCli: ToolRow = {
  title: "Continue",
  program: { name: "cn", install: "npm install -g @continuedev/cli" },
  needsModels: true,
  overlay: (connection) => {
    const { isOpenAi, kind: provider, base, secret: apiKey, model: main } = describeClient(connection);
    const apiBase = isOpenAi ? base : `${base}/v1/`;
    const roles = ["chat", "edit", "apply"];
    // It starts with the first model.
    const models = connection.models
      .toSorted((a, b) => Number(b === main) - Number(a === main))
      .map((model) => ({ name: model, provider, model, apiBase, apiKey, roles }));
    const content = { name: "gateway", version: "1.0.0", schema: "v1", models };
    return inFile("continue", "as its models", ".continue/config.yaml", content);
  },
  connect: () => ({ env: {}, args: [] }),
};

export const cline: ToolRow = {
  title: "Cline",
  program: { name: "cline", install: "npm install -g cline" },
  needsModels: true,
  overlay: (connection) => {
    const { isOpenAi, base: baseUrl, secret: apiKey, speaksChat } = describeClient(connection);
    // Its provider "openai" is for Chat Completions.
    const provider = isOpenAi ? (speaksChat ? "openai" : "openai-native") : "anthropic";
    const model = chooseMainModel(listModelsOf(mainMakerOf(connection.platform), connection));
    const settings = { provider, apiKey, baseUrl, ...(model !== null && { model }) };
    const entry = { settings, updatedAt: new Date(0).toISOString(), tokenSource: "manual" };
    const content = { version: 1, lastUsedProvider: provider, modes: {}, providers: { [provider]: entry } };
    return inFile("cline", "as a provider", ".cline/data/settings/providers.json", content);
  },
  connect: () => ({ env: {}, args: [] }),
};

type Settings = Readonly<Record<string, string | number | boolean>>;

export interface App {
  readonly title: string;
  /** It speaks as this tool does. */
  readonly tool: ToolName;
  readonly list: (connection: Connection, setting: ToolSettings) => Settings;
  readonly write: (settings: Settings, env: Environment) => readonly string[];
}

/** https://claude.com/docs/third-party/claude-desktop/gateway */
const claudeDesktop: App = {
  title: "Claude Desktop",
  tool: "claude",
  list: (connection) => ({
    inferenceProvider: "gateway",
    inferenceGatewayBaseUrl: rootOf(connection),
    inferenceGatewayApiKey: connection.secret,
    inferenceGatewayAuthScheme: "bearer",
  }),
  write: (settings) => [
    "# In Claude Desktop: Help > Troubleshooting > Enable Developer Mode,",
    "# then Developer > Configure Third-Party Inference. It takes an address without https on this machine only.",
    "Inference provider: Gateway",
    `Gateway base URL: ${settings["inferenceGatewayBaseUrl"]}`,
    `Gateway API key: ${settings["inferenceGatewayApiKey"]}`,
    "Gateway auth scheme: Bearer",
  ],
};

/** It reads the file of the command line's Codex, and no variables of a shell.
 *  https://developers.openai.com/codex/config-reference */
const codexApp: App = {
  title: "the Codex app",
  tool: "codex",
  list: ({ secret }, { args }) => ({
    ...Object.fromEntries(args.filter((word) => word !== "-c").flatMap(readOverride)),
    "model_providers.gateway.experimental_bearer_token": secret,
  }),
  write: (settings, env) => [
    `# At the top of ${join(env["CODEX_HOME"] || join(homeOf(env), ".codex"), "config.toml")}, which the command line's Codex reads, too:`,
    ...Object.entries(settings).map(([name, value]) => `${name} = ${JSON.stringify(value)}`),
  ],
};

/** Without the names of variables that only a shell has. */
function readOverride(override: string): [name: string, value: string | number | boolean][] {
  const [, name = "", value = ""] = /^([^=]+)=(.*)$/.exec(override) ?? [];
  if (/\.env_(?:key|http_headers)\b/.test(name)) return [];
  return [[name, value === "true" || (/^\d+$/.test(value) ? Number(value) : value)]];
}

export const APPS: ReadonlyMap<string, App> = new Map([
  ["claude-desktop", claudeDesktop],
  ["codex-app", codexApp],
]);
