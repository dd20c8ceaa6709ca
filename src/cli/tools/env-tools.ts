// Tools and apps for `gateway env` only.

import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import type { ToolName } from "../../dialects/platforms.ts";
import { CODEX_FOLDER } from "./codex.ts";
import { chooseMainModel } from "./models.ts";
import {
  type Connection,
  findText,
  folderOf,
  listModelsOf,
  mainMakerOf,
  needFile,
  rootOf,
  type ToolRow,
  type ToolSettings,
} from "./tool.ts";

function describeClient(connection: Connection) {
  const { models, ownModel, platform, secret, speaksChat = false } = connection;
  const isOpenAi = mainMakerOf(platform) === "openai";
  const base = rootOf(connection) + (isOpenAi ? "/v1" : "");
  const kind = isOpenAi ? "openai" : "anthropic";
  return {
    isOpenAi,
    kind,
    base,
    secret,
    model: chooseMainModel(models, ownModel),
    speaksChat,
  };
}

/** A flag selects the provider, despite the settings file. */
export const qwen: ToolRow = {
  title: "Qwen Code",
  program: { name: "qwen", install: "npm install -g @qwen-code/qwen-code" },
  ignoresNoProxy: true,
  needsModels: true,
  findOwnModel: (env) => {
    const place = ".qwen/settings.json";
    return findText(["model", "name"], [place, folderOf(env, "", place)]);
  },
  connect: (connection) => {
    const { kind, base, secret, model } = describeClient(connection);
    const values = {
      BASE_URL: base,
      API_KEY: secret,
      ...(model !== null && { MODEL: model }),
    };
    const named = Object.entries(values).map(([name, value]) => [`${kind.toUpperCase()}_${name}`, value]);
    return { env: Object.fromEntries(named), args: ["--auth-type", kind] };
  },
};

export const copilot: ToolRow = {
  title: "GitHub Copilot CLI",
  program: { name: "copilot", install: "npm install -g @github/copilot" },
  misleading: [
    "COPILOT_PROVIDER_API_KEY_COMMAND",
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "COPILOT_PROVIDER_HEADERS",
    "COPILOT_PROVIDER_MODEL_ID",
    "COPILOT_PROVIDER_WIRE_MODEL",
  ],
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
  connect: () => ({ env: {}, args: [] }),
  file: (connection, _, env) => {
    const { isOpenAi, kind: provider, base, secret: apiKey, model: main } = describeClient(connection);
    const apiBase = isOpenAi ? base : `${base}/v1/`;
    const roles = ["chat", "edit", "apply"];
    const models = connection.models
      .toSorted((a, b) => Number(b === main) - Number(a === main))
      .map((model) => ({
        name: model,
        provider,
        model,
        apiBase,
        apiKey,
        roles,
      }));
    const content = {
      name: "gateway",
      version: "1.0.0",
      schema: "v1",
      models,
    };
    return needFile("continue", "as its models", folderOf(env, "", ".continue/config.yaml"), content);
  },
};

export const cline: ToolRow = {
  title: "Cline",
  program: { name: "cline", install: "npm install -g cline" },
  needsModels: true,
  connect: () => ({ env: {}, args: [] }),
  file: (connection, _, env) => {
    const { isOpenAi, base: baseUrl, secret: apiKey, speaksChat } = describeClient(connection);
    // Cline's provider "openai" is for Chat Completions.
    const provider = isOpenAi ? (speaksChat ? "openai" : "openai-native") : "anthropic";
    const model = chooseMainModel(listModelsOf(mainMakerOf(connection.platform), connection));
    const settings = {
      provider,
      apiKey,
      baseUrl,
      ...(model !== null && { model }),
    };
    const entry = {
      settings,
      updatedAt: new Date(0).toISOString(),
      tokenSource: "manual",
    };
    const content = {
      version: 1,
      lastUsedProvider: provider,
      modes: {},
      providers: { [provider]: entry },
    };
    const path = folderOf(env, "", ".cline/data/settings/providers.json");
    return needFile("cline", "as a provider", path, content);
  },
};

type Settings = Readonly<Record<string, string | number | boolean>>;

export interface App {
  readonly title: string;
  readonly tool: ToolName;
  readonly list: (connection: Connection, setting: ToolSettings) => Settings;
  readonly place: (env: Environment) => readonly string[];
}

export const APPS: ReadonlyMap<string, App> = new Map<string, App>([
  [
    // https://claude.com/docs/third-party/claude-desktop/gateway
    "claude-desktop",
    {
      title: "Claude Desktop",
      tool: "claude",
      list: (connection) => ({
        inferenceProvider: "gateway",
        inferenceGatewayBaseUrl: rootOf(connection),
        inferenceGatewayApiKey: connection.secret,
        inferenceGatewayAuthScheme: "bearer",
      }),
      place: () => [
        "In Claude Desktop: Help > Troubleshooting > Enable Developer Mode,",
        "then Developer > Configure Third-Party Inference. Without https, the gateway must be on this machine.",
      ],
    },
  ],
  [
    // https://developers.openai.com/codex/config-reference
    "codex-app",
    {
      title: "the Codex app",
      tool: "codex",
      list: ({ secret }, { args }) => ({
        ...Object.fromEntries(args.filter((word) => word !== "-c").flatMap(readOverride)),
        "model_providers.gateway.experimental_bearer_token": secret,
      }),
      place: (env) => [
        `At the top of ${join(folderOf(env, ...CODEX_FOLDER), "config.toml")}, which \`codex\` reads, too:`,
      ],
    },
  ],
]);

function readOverride(override: string): [name: string, value: string | number | boolean][] {
  const [, name = "", value = ""] = /^([^=]+)=(.*)$/.exec(override) ?? [];
  if (/\.env_(?:key|http_headers)\b/.test(name)) return [];
  return [[name, value === "true" || (/^\d+$/.test(value) ? Number(value) : value)]];
}
