// Cline's CLI: the gateway as a provider in its data folder.

import { join } from "node:path";
import type { Environment } from "../../../config/yaml/expand.ts";
import { chooseMainModel } from "./model-choice.ts";
import { homeOf } from "./overlay.ts";
import {
  type Connection,
  listHeaders,
  listModelsOf,
  listPlatforms,
  mainMakerOf,
  sdkBaseOf,
  type Tool,
} from "./tool.ts";

export const cline: Tool = {
  name: "cline",
  title: "Cline",
  program: { name: "cline", install: "npm install -g cline" },
  platforms: listPlatforms("cline"),
  isForEnv: true,
  misleading: [],
  needsModels: true,
  overlay: (connection) => ({
    find: (env) => {
      const path = join(placeData(env), PROVIDERS);
      const advice = `needs the gateway as a provider in ${path}: \`gateway env cline --json\` prints it as \`file\``;
      return { path, content: describeProviders(connection), advice };
    },
  }),
  connect: () => ({ env: {}, args: [] }),
};

const PROVIDERS = "settings/providers.json";
function placeData(env: Environment): string {
  return join(homeOf(env), ".cline/data");
}

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
