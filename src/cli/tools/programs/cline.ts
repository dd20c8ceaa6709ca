// Cline's CLI: a data folder of its own, given by a flag. It has the gateway as the only provider, a copy of the user's other
// settings (MCP servers), and the user's sessions. (CLINE_PROVIDER_SETTINGS_PATH would be simpler, but a daemon that a run
// without the gateway has started keeps its providers.)

import { cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../../../config/yaml/expand.ts";
import { createFile } from "../../../lib/files/own-file.ts";
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
  misleading: [],
  needsModels: true,
  overlay: (connection) => ({
    find: (env) => {
      const path = join(placeData(env), PROVIDERS);
      const advice = `needs the gateway as a provider in ${path}: \`gateway env cline --json\` prints it as \`file\``;
      return { path, content: describeProviders(connection), advice };
    },
    write: (env, _, folder) => {
      const own = placeData(env);
      const providers = join(own, PROVIDERS);
      if (existsSync(join(own, "settings")))
        cpSync(join(own, "settings"), join(folder, "settings"), {
          recursive: true,
          filter: (from) => from !== providers,
        });
      else mkdirSync(join(folder, "settings"));
      createFile(join(folder, PROVIDERS), JSON.stringify(describeProviders(connection)));
      for (const name of SESSIONS) {
        mkdirSync(join(own, name), { recursive: true });
        symlinkSync(join(own, name), join(folder, name), "junction");
      }
      return { env: {}, args: ["--data-dir", folder] };
    },
  }),
  connect: () => ({ env: {}, args: [] }),
  describeRun: () =>
    "This run has a copy of Cline's settings: what you change in it (MCP servers, the model) is lost with it.",
};

const PROVIDERS = "settings/providers.json";
/** The transcripts, and the database that lists them. */
const SESSIONS = ["sessions", "db"];

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
