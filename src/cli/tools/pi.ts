// pi: an extension registers the gateway as a provider. For `gateway env`, the same provider in its models file.

import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import { createFile } from "../../lib/files/own-file.ts";
import { getField } from "../../lib/json/json.ts";
import {
  type Connection,
  findText,
  homeOf,
  listHeaders,
  listModelsOf,
  mainMakerOf,
  readSettings,
  rootOf,
  type ToolRow,
} from "./tool.ts";
import { chooseMainModel } from "./model-choice.ts";

const PROVIDER = "gateway";

/** By maker: pi's name of its API, and the version that pi expects in the base URL. */
const APIS: ReadonlyMap<string, readonly [api: string, version: string]> = new Map([
  ["anthropic", ["anthropic-messages", ""]],
  ["openai", ["openai-responses", "/v1"]],
  ["google", ["google-generative-ai", "/v1beta"]],
]);

const CHAT_API = ["openai-completions", "/v1"] as const;

/** pi requires limits. Where they are not known, these are small enough for every current coding model; it only compacts earlier. */
const LIMITS = { contextWindow: 200_000, maxTokens: 16_384 };

export const pi: ToolRow = {
  title: "pi",
  program: { name: "pi", install: "npm install -g @earendil-works/pi-coding-agent" },
  needsModels: true,
  findOwnModel: (env) => findText(["defaultModel"], [join(folderOf(env), "settings.json")]),
  overlay: (connection) => ({
    find: (env) => {
      const path = join(folderOf(env), "models.json");
      const advice = `needs the gateway as a provider in ${path}: \`gateway env pi --json\` prints it as \`file\``;
      return { path, content: { providers: { [PROVIDER]: describeProvider(connection) } }, advice };
    },
    write: (env, _, folder) => {
      const path = join(folder, "gateway.mjs");
      const own = findOwnProvider(connection, env);
      const provider = JSON.stringify(own === null ? describeProvider(connection) : redirect(connection));
      createFile(
        path,
        `export default (pi) => pi.registerProvider(${JSON.stringify(own ?? PROVIDER)}, ${provider});\n`,
      );
      return { env: {}, args: ["--extension", path, ...nameModel(connection, own)] };
    },
  }),
  // For a run, its extension is what decides about the provider.
  connect: (connection) => ({
    env: {},
    args: connection.run === undefined ? nameModel(connection, null) : [],
  }),
};

/** Since 1.0, pi takes no provider without a model. One of the user's comes later, and counts. */
function nameModel(connection: Connection, own: string | null): string[] {
  const { ownModel = null, platform } = connection;
  const model = chooseMainModel(listModelsOf(mainMakerOf(platform), connection), ownModel);
  return ["--provider", own ?? PROVIDER, ...(model === null ? [] : ["--model", model])];
}

/** At a maker's own address, pi's own provider for that maker, which knows its models. The user's own settings of it would come
 *  before ours. Null: one of ours. */
function findOwnProvider({ isDirect, platform }: Connection, env: Environment): string | null {
  const maker = mainMakerOf(platform);
  const read = (file: string): unknown => readSettings(join(folderOf(env), file));
  const settings = [
    getField(read("auth.json"), maker),
    getField(getField(read("models.json"), "providers"), maker),
  ];
  return isDirect === true && settings.every((each) => each === undefined) ? maker : null;
}

function apiOf({ speaksChat, platform }: Connection): readonly [api: string, version: string] {
  return speaksChat === true ? CHAT_API : (APIS.get(mainMakerOf(platform)) ?? ["", ""]);
}

/** With the key itself: as a name of a variable, pi read it until version 0.76, and reads `$NAME` since. pi's own provider keeps
 *  its models. */
function redirect(connection: Connection): object {
  const headers = listHeaders(connection);
  return {
    baseUrl: `${rootOf(connection)}${apiOf(connection)[1]}`,
    apiKey: connection.secret,
    ...(headers && { headers }),
  };
}

function folderOf(env: Environment): string {
  return env["PI_CODING_AGENT_DIR"] || join(homeOf(env), ".pi/agent");
}

function describeProvider(connection: Connection): object {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  return {
    ...redirect(connection),
    api: apiOf(connection)[0],
    models: listModelsOf(mainMakerOf(connection.platform), connection).map((id) => ({
      id,
      name: id,
      reasoning: false,
      input: ["text", "image"],
      cost,
      ...describeLimits(id, connection),
    })),
  };
}

function describeLimits(id: string, { limits, speaksChat, converts }: Connection): typeof LIMITS {
  if (speaksChat !== true && converts !== true) return LIMITS;
  const { context, output } = limits?.get(id) ?? { context: null, output: null };
  const contextWindow = context ?? LIMITS.contextWindow;
  return { contextWindow, maxTokens: Math.min(output ?? LIMITS.maxTokens, Math.floor(contextWindow / 4)) };
}
