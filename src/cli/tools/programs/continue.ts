// Continue's CLI: a config file of its own, given by a flag. It is the user's, with the gateway's models.

import { join } from "node:path";
import type { Environment } from "../../../config/yaml/expand.ts";
import { createFile, readPlain } from "../../../lib/files/own-file.ts";
import { isObject } from "../../../lib/json/json.ts";
import { chooseMainModel } from "./model-choice.ts";
import { homeOf } from "./overlay.ts";
import { type Connection, listHeaders, listPlatforms, mainMakerOf, rootOf, type Tool } from "./tool.ts";

export const continueCli: Tool = {
  name: "continue",
  title: "Continue",
  program: { name: "cn", install: "npm install -g @continuedev/cli" },
  platforms: listPlatforms("continue"),
  misleading: [],
  needsModels: true,
  overlay: (connection) => ({
    find: (env) => {
      const path = placeConfig(env);
      const advice = `needs the gateway's models in ${path}: \`gateway env continue --json\` prints them as \`file\``;
      return { path, content: describeConfig(connection), advice };
    },
    write: (env, _, folder) => {
      const path = join(folder, "config.yaml");
      // JSON is YAML.
      createFile(path, JSON.stringify({ ...readConfig(placeConfig(env)), ...describeConfig(connection) }));
      return { env: {}, args: ["--config", path] };
    },
  }),
  connect: () => ({ env: {}, args: [] }),
};

function placeConfig(env: Environment): string {
  return join(homeOf(env), ".continue/config.yaml");
}

/** Rules, MCP servers and all else. Empty if there is none, or none that can be read: Continue itself reports that. */
function readConfig(path: string): object {
  try {
    const config: unknown = Bun.YAML.parse(readPlain(path));
    return isObject(config) ? config : {};
  } catch {
    return {};
  }
}

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
