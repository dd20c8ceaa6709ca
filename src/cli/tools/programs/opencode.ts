// opencode: a config in a variable, with the gateway as its only providers.

import type { Platform } from "../../../config/schema.ts";
import { MISLEADING } from "../misleading.ts";
import { chooseMainModel, chooseSmallModel } from "./model-choice.ts";
import { type Connection, rootOf, type Tool } from "../tool.ts";

/** Its own names for providers, so that it knows their models. */
const PROVIDERS: Readonly<Record<Platform, ReadonlyArray<readonly [id: string, version: string]>>> = {
  messages: [["anthropic", "v1"]],
  responses: [["openai", "v1"]],
  content: [["google", "v1beta"]],
  relay: [
    ["anthropic", "v1"],
    ["google", "v1beta"],
  ],
};

export const opencode: Tool = {
  name: "opencode",
  title: "opencode",
  program: { name: "opencode", install: "npm install -g opencode-ai" },
  platforms: ["messages", "responses", "content", "relay"],
  misleading: MISLEADING.opencode,
  needsModels: true,
  connect: (connection) => ({
    // If the user has signed in to ChatGPT, one of its own plugins sends every request there, regardless of the
    // provider's address. The other default plugins do not affect these providers.
    env: { OPENCODE_CONFIG_CONTENT: writeConfig(connection), OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" },
    args: [],
  }),
};

function writeConfig(connection: Connection): string {
  const provider = Object.fromEntries(
    PROVIDERS[connection.platform].map(([id, version]) => [
      id,
      {
        options: { baseURL: `${rootOf(connection)}/${version}`, apiKey: connection.secret },
        models: Object.fromEntries(listModels(connection, id).map((model) => [model, {}])),
      },
    ]),
  );
  return JSON.stringify({
    ...nameDefaults(connection),
    // All other providers are off: it would use one of them for titles and summaries.
    enabled_providers: Object.keys(provider),
    disabled_providers: [],
    provider,
  });
}

/** The user's own default may be a model of another provider. Without a known model, opencode chooses by itself. */
function nameDefaults(connection: Connection): Record<string, string> {
  const main = chooseMainModel(connection.models);
  const small = chooseSmallModel(connection.models);
  if (main === null || small === null) return {};
  const nameFully = (model: string): string => {
    const id = PROVIDERS[connection.platform].find(([each]) =>
      listModels(connection, each).includes(model),
    )?.[0];
    return `${id}/${model}`;
  };
  return { model: nameFully(main), small_model: nameFully(small) };
}

/** Assigns a relay's models to the provider whose family their names suggest. */
function listModels({ platform, models }: Connection, provider: string): string[] {
  return models.filter(
    (model) => platform !== "relay" || /gemini|gemma/i.test(model) === (provider === "google"),
  );
}
