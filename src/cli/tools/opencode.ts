// opencode gets a config in a variable. All providers in it lead to the gateway.

import { join } from "node:path";
import { PLATFORM_FACTS } from "../../config/schema.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { chooseMainModel, findSmallModel } from "./models.ts";
import {
  type Connection,
  findText,
  folderOf,
  listHeaders,
  listModelsOf,
  readSettings,
  rootOf,
  type ToolRow,
} from "./tool.ts";

function listLogins(env: Environment): string[] {
  const data = folderOf(env, "XDG_DATA_HOME", ".local/share");
  const logins = readSettings(join(data, "opencode/auth.json"));
  const all = Object.entries(isObject(logins) ? logins : {});
  const own = all.filter(([, login]) => getField(login, "type") === "oauth");
  return own.map(([provider]) => provider);
}

export const opencode: ToolRow = {
  title: "opencode",
  program: { name: "opencode", install: "npm install -g opencode-ai" },
  // The first is a login, the second a folder of settings that override ours.
  misleading: ["OPENCODE_AUTH_CONTENT", "OPENCODE_TEST_MANAGED_CONFIG_DIR"],
  needsModels: true,
  findOwnModel: (env) => {
    const folders = [".", join(folderOf(env, "XDG_CONFIG_HOME", ".config"), "opencode")];
    const files = folders.flatMap((each) => [join(each, "opencode.json"), join(each, "opencode.jsonc")]);
    // Cuts off the provider, as in `anthropic/claude-opus-5-5`.
    return findText(["model"], files)?.replace(/^[^/]*\//, "") ?? null;
  },
  findLogin: (env) => listLogins(env).join(" and ") || null,
  connect: (connection, env) => {
    const { isDirect, run } = connection;
    const hasLogin = (env["OPENCODE_AUTH_CONTENT"] ?? "") !== "" || listLogins(env).includes("openai");
    // After a sign-in with ChatGPT, a plugin sends all requests to it.
    const mayLoad = isDirect === true && run !== undefined && !hasLogin;
    return {
      env: {
        OPENCODE_CONFIG_CONTENT: writeConfig(connection),
        ...(!mayLoad && { OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" }),
      },
      args: [],
    };
  },
};

/** opencode sends these header fields to its own providers,
 *  but not to those of a config. */
const BETAS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  anthropic: { "anthropic-beta": "interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14" },
};

function writeConfig(connection: Connection): string {
  const { isDirect, models, ownModel, patienceMs, platform, secret, speaksChat } = connection;
  const providers: { id: string; own: readonly string[]; npm?: string }[] =
    speaksChat === true
      ? [
          {
            id: "gateway",
            own: models,
            npm: "@ai-sdk/openai-compatible",
          },
        ]
      : PLATFORM_FACTS[platform].makers.map((id) => ({ id, own: listModelsOf(id, connection) }));
  const provider = providers.map(({ id, own, npm }) => {
    const headers = { ...(isDirect === true && BETAS[id]), ...listHeaders(connection) };
    const options = {
      baseURL: `${rootOf(connection)}/${id === "google" ? "v1beta" : "v1"}`,
      apiKey: secret,
      ...(patienceMs !== undefined && { timeout: patienceMs }),
      ...(Object.keys(headers).length > 0 && { headers }),
    };
    const described = own.map((model) => [model, describeModel(model, connection)]);
    const named = npm === undefined ? {} : { npm, name: "gateway" };
    return [
      id,
      {
        ...named,
        options,
        models: Object.fromEntries(described),
      },
    ];
  });
  const nameFully = (model: string): string =>
    `${providers.find(({ own }) => own.includes(model))?.id}/${model}`;
  const main = chooseMainModel(models, ownModel);
  return JSON.stringify({
    ...(main !== null && {
      model: nameFully(main),
      small_model: nameFully(findSmallModel(models) ?? main),
    }),
    // Otherwise, titles and summaries would use another provider.
    enabled_providers: providers.map(({ id }) => id),
    disabled_providers: [],
    provider: Object.fromEntries(provider),
  });
}

/** opencode never compacts if it knows no window. */
function describeModel(model: string, { speaksChat, converts, limits }: Connection): object {
  const { context = null, output = null } = limits?.get(model) ?? {};
  if (context === null || (speaksChat !== true && converts !== true)) return {};
  return { limit: { context, output: output ?? Math.floor(context / 4) } };
}
