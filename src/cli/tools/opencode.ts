// opencode: a config in a variable, with the gateway as its only providers.

import { join } from "node:path";
import { MAKERS_OF } from "../../billing/prices/sellers.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { getField } from "../../lib/json/json.ts";
import {
  type Connection,
  findText,
  homeOf,
  listHeaders,
  listModelsOf,
  readSettings,
  rootOf,
  type ToolRow,
  versionOf,
} from "./tool.ts";
import { chooseMainModel, findSmallModel } from "./model-choice.ts";

export const opencode: ToolRow = {
  title: "opencode",
  program: { name: "opencode", install: "npm install -g opencode-ai" },
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
  connect: (connection) => ({ env: { OPENCODE_CONFIG_CONTENT: writeConfig(connection) }, args: [] }),
  // If the user has signed in to ChatGPT, one of its own plugins sends every request there, regardless of the provider's
  // address. Otherwise that plugin adds what belongs to OpenAI. Lines of `gateway env` may outlive the next sign-in.
  equalise: ({ isDirect, run }, env) =>
    isDirect === true && run !== undefined && !hasLogin(env) ? {} : { OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" },
};

/** opencode sends these to a maker whose key it has by itself. As part of a config, they would not be sent. */
const BETAS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  anthropic: { "anthropic-beta": "interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14" },
};

function hasLogin(env: Environment): boolean {
  const data = env["XDG_DATA_HOME"] || join(homeOf(env), ".local/share");
  const logins = readSettings(join(data, "opencode/auth.json"));
  const given = env["OPENCODE_AUTH_CONTENT"] ?? "";
  return given !== "" || getField(getField(logins, "openai"), "type") === "oauth";
}

/** By its name in opencode, which knows the models of the makers. */
interface Provider {
  readonly id: string;
  readonly models: readonly string[];
  readonly version: string;
  /** The package that speaks to it; absent: that of the maker. */
  readonly npm?: string;
}

/** Chat Completions need no conversion where a channel speaks nothing else. */
function listProviders(connection: Connection): Provider[] {
  if (connection.speaksChat === true)
    return [{ id: "gateway", models: connection.models, version: "v1", npm: "@ai-sdk/openai-compatible" }];
  return MAKERS_OF[connection.platform].map((id) => ({
    id,
    models: listModelsOf(id, connection),
    version: versionOf(id),
  }));
}

function writeConfig(connection: Connection): string {
  const own = listHeaders(connection);
  const providers = listProviders(connection);
  const provider = Object.fromEntries(
    providers.map(({ id, models, version, npm }) => [
      id,
      {
        ...(npm !== undefined && { npm, name: "gateway" }),
        options: {
          baseURL: `${rootOf(connection)}/${version}`,
          apiKey: connection.secret,
          ...(connection.patienceMs !== undefined && { timeout: connection.patienceMs }),
          ...writeFields({ ...(connection.isDirect === true && BETAS[id]), ...own }),
        },
        models: Object.fromEntries(models.map((model) => [model, describeModel(model, connection)])),
      },
    ]),
  );
  return JSON.stringify({
    ...nameDefaults(connection, providers),
    // All other providers are off: it would use one of them for titles and summaries.
    enabled_providers: Object.keys(provider),
    disabled_providers: [],
    provider,
  });
}

function writeFields(headers: Readonly<Record<string, string>>): object {
  return Object.keys(headers).length === 0 ? {} : { headers };
}

/** Without a window it never compacts a conversation. It knows that of the makers' models. */
function describeModel(model: string, { speaksChat, converts, limits }: Connection): object {
  const { context = null, output = null } = limits?.get(model) ?? {};
  if (context === null || (speaksChat !== true && converts !== true)) return {};
  return { limit: { context, output: output ?? Math.floor(context / 4) } };
}

/** The user's own default stays if the gateway lists it. Without a known model, opencode chooses by itself. */
function nameDefaults(connection: Connection, providers: readonly Provider[]): Record<string, string> {
  const main = chooseMainModel(connection.models, connection.ownModel);
  const small = findSmallModel(connection.models) ?? main;
  if (main === null || small === null) return {};
  const nameFully = (model: string): string =>
    `${providers.find(({ models }) => models.includes(model))?.id}/${model}`;
  return { model: nameFully(main), small_model: nameFully(small) };
}
