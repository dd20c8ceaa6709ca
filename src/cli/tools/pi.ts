// pi: an extension, or its models file, makes the gateway a provider.

import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import { createFile } from "../../lib/files/own-file.ts";
import { getField } from "../../lib/json/json.ts";
import { chooseMainModel } from "./models.ts";
import {
  type Connection,
  findText,
  folderOf,
  listHeaders,
  listModelsOf,
  mainMakerOf,
  needFile,
  readSettings,
  rootOf,
  type ToolRow,
} from "./tool.ts";

const PROVIDER = "gateway";

const APIS: Readonly<Record<string, readonly [api: string, version: string]>> = {
  anthropic: ["anthropic-messages", ""],
  openai: ["openai-responses", "/v1"],
  google: ["google-generative-ai", "/v1beta"],
  chat: ["openai-completions", "/v1"],
};

/** pi requires limits. These fit every current coding model. */
const LIMITS = { contextWindow: 200_000, maxTokens: 16_384 };

function placeOf(env: Environment, file: string): string {
  return join(folderOf(env, "PI_CODING_AGENT_DIR", ".pi/agent"), file);
}

export const pi: ToolRow = {
  title: "pi",
  program: { name: "pi", install: "npm install -g @earendil-works/pi-coding-agent" },
  misleading: [
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "GOOGLE_GENAI_USE_ENTERPRISE",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "OPENAI_CUSTOM_HEADERS",
  ],
  needsModels: true,
  findOwnModel: (env) => findText(["defaultModel"], [placeOf(env, "settings.json")]),
  connect: (connection) => ({
    env: {},
    args: connection.run === undefined ? nameModel(connection, PROVIDER) : [],
  }),
  file: (connection, _, env) => {
    const path = placeOf(env, "models.json");
    const content = { providers: { [PROVIDER]: describeProvider(connection) } };
    return needFile("pi", "as a provider", path, content);
  },
  overlay: (connection, _, env, folder) => {
    const path = join(folder, "gateway.mjs");
    const maker = mainMakerOf(connection.platform);
    const settings = [
      getField(readSettings(placeOf(env, "auth.json")), maker),
      getField(getField(readSettings(placeOf(env, "models.json")), "providers"), maker),
    ];
    // pi's provider knows the maker's models, but the user's settings come first.
    const isOwn = connection.isDirect === true && settings.every((each) => each === undefined);
    const [name, provider] = isOwn ? [maker, redirect(connection)] : [PROVIDER, describeProvider(connection)];
    const words = [name, provider].map((word) => JSON.stringify(word)).join(", ");
    createFile(path, `export default (pi) => pi.registerProvider(${words});\n`);
    return { env: {}, args: ["--extension", path, ...nameModel(connection, name)] };
  },
};

/** Since 1.0, pi takes no provider without a model. */
function nameModel(connection: Connection, provider: string): string[] {
  const { ownModel, platform } = connection;
  const model = chooseMainModel(listModelsOf(mainMakerOf(platform), connection), ownModel);
  return ["--provider", provider, ...(model === null ? [] : ["--model", model])];
}

function apiOf({ speaksChat, platform }: Connection): readonly [api: string, version: string] {
  return APIS[speaksChat === true ? "chat" : mainMakerOf(platform)] ?? ["", ""];
}

function redirect(connection: Connection): object {
  const headers = listHeaders(connection);
  return {
    baseUrl: `${rootOf(connection)}${apiOf(connection)[1]}`,
    apiKey: connection.secret,
    ...(Object.keys(headers).length > 0 && { headers }),
  };
}

function describeProvider(connection: Connection): object {
  const { limits, platform, speaksChat, converts } = connection;
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const models = listModelsOf(mainMakerOf(platform), connection).map((id) => {
    const { context = null, output = null } =
      speaksChat === true || converts === true ? (limits?.get(id) ?? {}) : {};
    const contextWindow = context ?? LIMITS.contextWindow;
    const maxTokens = Math.min(output ?? LIMITS.maxTokens, Math.floor(contextWindow / 4));
    return {
      id,
      name: id,
      reasoning: false,
      input: ["text", "image"],
      cost,
      contextWindow,
      maxTokens,
    };
  });
  return {
    ...redirect(connection),
    api: apiOf(connection)[0],
    models,
  };
}
