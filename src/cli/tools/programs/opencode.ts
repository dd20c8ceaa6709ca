// opencode: a config in a variable, with the gateway as its only providers.

import { join } from "node:path";
import { MAKERS_OF } from "../../../billing/prices/sellers.ts";
import { findText, homeOf } from "./overlay.ts";
import { MISLEADING } from "../environment/misleading.ts";
import { chooseMainModel, chooseSmallModel } from "./model-choice.ts";
import {
  type Connection,
  listHeaders,
  listModelsOf,
  listPlatforms,
  rootOf,
  type Tool,
  versionOf,
} from "./tool.ts";

export const opencode: Tool = {
  name: "opencode",
  title: "opencode",
  program: { name: "opencode", install: "npm install -g opencode-ai" },
  platforms: listPlatforms("opencode"),
  misleading: MISLEADING.opencode,
  needsModels: true,
  findOwnModel: (env) => {
    const folder = join(env["XDG_CONFIG_HOME"] || join(homeOf(env), ".config"), "opencode");
    const files = [".", folder].flatMap((each) => [
      join(each, "opencode.json"),
      join(each, "opencode.jsonc"),
    ]);
    // `anthropic/claude-opus-5-5`: the provider comes first.
    return findText(["model"], files)?.replace(/^[^/]*\//, "") ?? null;
  },
  connect: (connection) => ({
    // If the user has signed in to ChatGPT, one of its own plugins sends every request there, regardless of the
    // provider's address. The other default plugins do not affect these providers.
    env: { OPENCODE_CONFIG_CONTENT: writeConfig(connection), OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" },
    args: [],
  }),
};

function writeConfig(connection: Connection): string {
  const headers = listHeaders(connection);
  const provider = Object.fromEntries(
    // The makers have opencode's own names, so that it knows their models.
    MAKERS_OF[connection.platform].map((id) => [
      id,
      {
        options: {
          baseURL: `${rootOf(connection)}/${versionOf(id)}`,
          apiKey: connection.secret,
          ...(headers && { headers }),
        },
        models: Object.fromEntries(listModelsOf(id, connection).map((model) => [model, {}])),
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

/** The user's own default stays if the gateway lists it. Without a known model, opencode chooses by itself. */
function nameDefaults(connection: Connection): Record<string, string> {
  const main = chooseMainModel(connection.models, connection.ownModel);
  const small = chooseSmallModel(connection.models);
  if (main === null || small === null) return {};
  const nameFully = (model: string): string => {
    const makers = MAKERS_OF[connection.platform];
    return `${makers.find((maker) => listModelsOf(maker, connection).includes(model))}/${model}`;
  };
  return { model: nameFully(main), small_model: nameFully(small) };
}
