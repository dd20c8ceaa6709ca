// Cline's CLI: a data folder of its own, given by a flag. It has the gateway as the only provider; the user's own
// providers, in ~/.cline, stay as they are.

import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createFile } from "../../../lib/files/own-file.ts";
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

export const cline: Tool = {
  name: "cline",
  title: "Cline",
  program: { name: "cline", install: "npm install -g cline" },
  platforms: listPlatforms("cline"),
  misleading: [],
  needsModels: true,
  overlay: (connection) => ({
    find: (env) => {
      const path = join(env["HOME"] || homedir(), ".cline/data/settings/providers.json");
      const advice = `needs the gateway as a provider in ${path}: \`gateway env cline --json\` prints it as \`file\``;
      return { path, content: describeProviders(connection), advice };
    },
    write: (_, __, folder) => {
      mkdirSync(join(folder, "settings"));
      createFile(join(folder, "settings/providers.json"), JSON.stringify(describeProviders(connection)));
      return { env: {}, args: ["--data-dir", folder] };
    },
  }),
  connect: () => ({ env: {}, args: [] }),
};

function describeProviders(connection: Connection): object {
  const maker = mainMakerOf(connection.platform);
  // Its provider "openai" is for Chat Completions.
  const [provider, baseUrl] =
    maker === "openai" ? ["openai-native", `${rootOf(connection)}/v1`] : ["anthropic", rootOf(connection)];
  const model = chooseMainModel(listModelsOf(maker, connection));
  const headers = listHeaders(connection);
  const settings = {
    provider,
    apiKey: connection.secret,
    baseUrl,
    ...(model !== null && { model }),
    ...(headers && { headers }),
  };
  const entry = { settings, updatedAt: new Date(0).toISOString(), tokenSource: "manual" };
  return { version: 1, lastUsedProvider: provider, modes: {}, providers: { [provider]: entry } };
}
