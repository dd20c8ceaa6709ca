// Tools whose settings `gateway env` prints, and which the user starts. Continue and Cline read theirs from files.

import { join } from "node:path";
import { MISLEADING } from "../environment/misleading.ts";
import { chooseMainModel } from "./model-choice.ts";
import { findText, homeOf, type Overlay } from "./overlay.ts";
import {
  ANTHROPIC_HEADERS,
  type Connection,
  type HeaderVariable,
  listHeaders,
  listModelsOf,
  listPlatforms,
  mainMakerOf,
  OPENAI_HEADERS,
  rootOf,
  sdkBaseOf,
  type Tool,
} from "./tool.ts";

/** An OpenAI or Anthropic client by variables. A flag selects which, whatever its settings file says. Its OpenAI client reads no
 *  variable with header fields, so a file of defaults has the label. */
export const qwen: Tool = {
  name: "qwen",
  title: "Qwen Code",
  program: { name: "qwen", install: "npm install -g @qwen-code/qwen-code" },
  platforms: listPlatforms("qwen"),
  misleading: MISLEADING.qwen,
  ignoresNoProxy: true,
  needsModels: true,
  findOwnModel: (env) =>
    findText(["model", "name"], [".qwen/settings.json", join(homeOf(env), ".qwen/settings.json")]),
  headers: (connection) => (isOpenAi(connection) ? OPENAI_HEADERS : ANTHROPIC_HEADERS),
  overlay: labelOverlay,
  connect: (connection) => {
    const [kind, prefix] = isOpenAi(connection) ? ["openai", "OPENAI"] : ["anthropic", "ANTHROPIC"];
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

function isOpenAi({ platform }: Connection): boolean {
  return mainMakerOf(platform) === "openai";
}

const QWEN_DEFAULTS = "/etc/qwen-code/system-defaults.json";

function labelOverlay(connection: Connection): Overlay {
  const headers = isOpenAi(connection) ? listHeaders(connection) : null;
  return {
    find: (env) => {
      if (headers === null) return null;
      const path = env["QWEN_CODE_SYSTEM_DEFAULTS_PATH"] || QWEN_DEFAULTS;
      const content = { model: { generationConfig: { customHeaders: headers } } };
      return { path, content, advice: `reads the label's header field from ${path}` };
    },
  };
}

/** Copilot's words for them. */
const WIRE_APIS = { responses: "responses", chat: "completions" } as const;

const COPILOT_HEADERS: HeaderVariable = { name: "COPILOT_PROVIDER_HEADERS", separator: "\n" };

/** With a provider of one's own ("BYOK"), which needs no GitHub login: `copilot help providers`. */
export const copilot: Tool = {
  name: "copilot",
  title: "GitHub Copilot CLI",
  program: { name: "copilot", install: "npm install -g @github/copilot" },
  platforms: listPlatforms("copilot"),
  misleading: MISLEADING.copilot,
  needsModels: true,
  findOwnModel: (env) => env["COPILOT_MODEL"] || null,
  headers: () => COPILOT_HEADERS,
  connect: (connection) => {
    const model = chooseMainModel(connection.models, connection.ownModel);
    return {
      env: {
        COPILOT_PROVIDER_BASE_URL: sdkBaseOf(connection),
        COPILOT_PROVIDER_TYPE: isOpenAi(connection) ? "openai" : "anthropic",
        COPILOT_PROVIDER_WIRE_API: WIRE_APIS[connection.speaksChat === true ? "chat" : "responses"],
        COPILOT_PROVIDER_TRANSPORT: "http",
        COPILOT_PROVIDER_API_KEY: connection.secret,
        ...(model !== null && { COPILOT_MODEL: model }),
      },
      args: [],
    };
  },
};

export const continueCli: Tool = {
  name: "continue",
  title: "Continue",
  program: { name: "cn", install: "npm install -g @continuedev/cli" },
  platforms: listPlatforms("continue"),
  misleading: [],
  needsModels: true,
  overlay: (connection) => ({
    find: (env) => {
      const path = join(homeOf(env), ".continue/config.yaml");
      const advice = `needs the gateway's models in ${path}: \`gateway env continue --json\` prints them as \`file\``;
      return { path, content: describeConfig(connection), advice };
    },
  }),
  connect: () => ({ env: {}, args: [] }),
};

function describeConfig(connection: Connection): object {
  const { platform, models, secret } = connection;
  const headers = listHeaders(connection);
  const provider = mainMakerOf(platform);
  // It starts with the first model.
  const main = chooseMainModel(models);
  const ordered = main === null ? [] : [main, ...models.filter((model) => model !== main)];
  return {
    name: "gateway",
    version: "1.0.0",
    schema: "v1",
    models: ordered.map((model) => ({
      name: model,
      provider,
      model,
      apiBase: provider === "openai" ? `${rootOf(connection)}/v1` : `${rootOf(connection)}/v1/`,
      apiKey: secret,
      ...(headers && { requestOptions: { headers } }),
      roles: ["chat", "edit", "apply"],
    })),
  };
}

export const cline: Tool = {
  name: "cline",
  title: "Cline",
  program: { name: "cline", install: "npm install -g cline" },
  platforms: listPlatforms("cline"),
  misleading: [],
  needsModels: true,
  overlay: (connection) => ({
    find: (env) => {
      const path = join(homeOf(env), ".cline/data/settings/providers.json");
      const advice = `needs the gateway as a provider in ${path}: \`gateway env cline --json\` prints it as \`file\``;
      return { path, content: describeProviders(connection), advice };
    },
  }),
  connect: () => ({ env: {}, args: [] }),
};

function describeProviders(connection: Connection): object {
  const maker = mainMakerOf(connection.platform);
  // Its provider "openai" is for Chat Completions.
  const openai = connection.speaksChat === true ? "openai" : "openai-native";
  const provider = maker === "openai" ? openai : "anthropic";
  const model = chooseMainModel(listModelsOf(maker, connection));
  const headers = listHeaders(connection);
  const settings = {
    provider,
    apiKey: connection.secret,
    baseUrl: sdkBaseOf(connection),
    ...(model !== null && { model }),
    ...(headers && { headers }),
  };
  const entry = { settings, updatedAt: new Date(0).toISOString(), tokenSource: "manual" };
  return { version: 1, lastUsedProvider: provider, modes: {}, providers: { [provider]: entry } };
}
