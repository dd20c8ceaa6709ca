// Tools whose settings `gateway env` prints, and which the user starts. Continue and Cline read theirs from files.

import { join } from "node:path";
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
import type { Environment } from "../../config/yaml/expand.ts";
import type { ToolName } from "../../dialects/platforms.ts";

function isOpenAi({ platform }: Connection): boolean {
  return mainMakerOf(platform) === "openai";
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
    const kind = isOpenAi(connection) ? "openai" : "anthropic";
    const prefix = kind.toUpperCase();
    const model = chooseMainModel(connection.models, connection.ownModel);
    return {
      env: {
        [`${prefix}_BASE_URL`]: sdkBaseOf(connection),
        [`${prefix}_API_KEY`]: connection.secret,
        ...(model !== null && { [`${prefix}_MODEL`]: model }),
      },
      args: ["--auth-type", kind],
    };
  },
};

/** With a provider of one's own ("BYOK"), which needs no GitHub login: `copilot help providers`. */
export const copilot: ToolRow = {
  title: "GitHub Copilot CLI",
  program: { name: "copilot", install: "npm install -g @github/copilot" },
  needsModels: true,
  findOwnModel: (env) => env["COPILOT_MODEL"] || null,
  connect: (connection) => {
    const model = chooseMainModel(connection.models, connection.ownModel);
    return {
      env: {
        COPILOT_PROVIDER_BASE_URL: sdkBaseOf(connection),
        COPILOT_PROVIDER_TYPE: isOpenAi(connection) ? "openai" : "anthropic",
        COPILOT_PROVIDER_WIRE_API: connection.speaksChat === true ? "completions" : "responses",
        COPILOT_PROVIDER_TRANSPORT: "http",
        COPILOT_PROVIDER_API_KEY: connection.secret,
        ...(model !== null && { COPILOT_MODEL: model }),
      },
      args: [],
    };
  },
};

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

export const continueCli: ToolRow = {
  title: "Continue",
  program: { name: "cn", install: "npm install -g @continuedev/cli" },
  needsModels: true,
  overlay: (connection) =>
    inFile("continue", "as its models", ".continue/config.yaml", describeConfig(connection)),
  connect: () => ({ env: {}, args: [] }),
};

function describeConfig(connection: Connection): object {
  const { platform, models, secret } = connection;
  const provider = mainMakerOf(platform);
  const apiBase = isOpenAi(connection) ? sdkBaseOf(connection) : `${sdkBaseOf(connection)}/v1/`;
  // It starts with the first model.
  const main = chooseMainModel(models);
  const ordered = main === null ? [] : [main, ...models.filter((model) => model !== main)];
  const roles = ["chat", "edit", "apply"];
  return {
    version: "1.0.0",
    schema: "v1",
    models: ordered.map((model) => ({ name: model, provider, model, apiBase, apiKey: secret, roles })),
  };
}

export const cline: ToolRow = {
  title: "Cline",
  program: { name: "cline", install: "npm install -g cline" },
  needsModels: true,
  overlay: (connection) =>
    inFile("cline", "as a provider", ".cline/data/settings/providers.json", describeProviders(connection)),
  connect: () => ({ env: {}, args: [] }),
};

function describeProviders(connection: Connection): object {
  const maker = mainMakerOf(connection.platform);
  // Its provider "openai" is for Chat Completions.
  const openai = connection.speaksChat === true ? "openai" : "openai-native";
  const provider = isOpenAi(connection) ? openai : "anthropic";
  const model = chooseMainModel(listModelsOf(maker, connection));
  const settings = {
    provider,
    apiKey: connection.secret,
    baseUrl: sdkBaseOf(connection),
    ...(model !== null && { model }),
  };
  const entry = { settings, updatedAt: new Date(0).toISOString(), tokenSource: "manual" };
  return { version: 1, lastUsedProvider: provider, modes: {}, providers: { [provider]: entry } };
}

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
