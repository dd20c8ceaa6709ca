// Continue's CLI: the gateway's models in its config file.

import { join } from "node:path";
import type { Environment } from "../../../config/yaml/expand.ts";
import { chooseMainModel } from "./model-choice.ts";
import { homeOf } from "./overlay.ts";
import { type Connection, listHeaders, listPlatforms, mainMakerOf, rootOf, type Tool } from "./tool.ts";

export const continueCli: Tool = {
  name: "continue",
  title: "Continue",
  program: { name: "cn", install: "npm install -g @continuedev/cli" },
  platforms: listPlatforms("continue"),
  isForEnv: true,
  misleading: [],
  needsModels: true,
  overlay: (connection) => ({
    find: (env) => {
      const path = placeConfig(env);
      const advice = `needs the gateway's models in ${path}: \`gateway env continue --json\` prints them as \`file\``;
      return { path, content: describeConfig(connection), advice };
    },
  }),
  connect: () => ({ env: {}, args: [] }),
};

function placeConfig(env: Environment): string {
  return join(homeOf(env), ".continue/config.yaml");
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
