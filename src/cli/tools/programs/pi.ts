// pi: an extension registers the gateway as a provider. For `gateway env`, the same provider in its models file.

import { join } from "node:path";
import type { Environment } from "../../../config/yaml/expand.ts";
import { createFile } from "../../../lib/files/own-file.ts";
import { MISLEADING } from "../environment/misleading.ts";
import { findText, homeOf } from "./overlay.ts";
import { chooseMainModel } from "./model-choice.ts";
import {
  type Connection,
  listHeaders,
  listModelsOf,
  listPlatforms,
  mainMakerOf,
  rootOf,
  type Tool,
} from "./tool.ts";

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

export const pi: Tool = {
  name: "pi",
  title: "pi",
  program: { name: "pi", install: "npm install -g @earendil-works/pi-coding-agent" },
  platforms: listPlatforms("pi"),
  misleading: MISLEADING.pi,
  needsModels: true,
  findOwnModel: (env) => findText(["defaultModel"], [join(folderOf(env), "settings.json")]),
  overlay: (connection) => ({
    find: (env) => {
      const path = join(folderOf(env), "models.json");
      const advice = `needs the gateway as a provider in ${path}: \`gateway env pi --json\` prints it as \`file\``;
      return { path, content: { providers: { [PROVIDER]: describeProvider(connection) } }, advice };
    },
    write: (_, __, folder) => {
      const path = join(folder, "gateway.mjs");
      const provider = JSON.stringify(describeProvider(connection));
      createFile(
        path,
        `export default (pi) => pi.registerProvider(${JSON.stringify(PROVIDER)}, ${provider});\n`,
      );
      return { env: {}, args: ["--extension", path] };
    },
  }),
  connect: (connection) => {
    const models = listModelsOf(mainMakerOf(connection.platform), connection);
    const model = chooseMainModel(models, connection.ownModel);
    return {
      env: {},
      args: ["--provider", PROVIDER, ...(model === null ? [] : ["--model", model])],
    };
  },
};

function folderOf(env: Environment): string {
  return env["PI_CODING_AGENT_DIR"] || join(homeOf(env), ".pi/agent");
}

/** With the key itself: as a name of a variable, pi read it until version 0.76, and reads `$NAME` since. */
function describeProvider(connection: Connection): object {
  const own = APIS.get(mainMakerOf(connection.platform)) ?? [];
  const [api = "", version = ""] = connection.speaksChat === true ? CHAT_API : own;
  const headers = listHeaders(connection);
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  return {
    baseUrl: `${rootOf(connection)}${version}`,
    apiKey: connection.secret,
    api,
    ...(headers && { headers }),
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
