// Codex gets the gateway as its provider by arguments.

import { join } from "node:path";
import { getField, isObject } from "../../lib/json/json.ts";
import { mainModelOf } from "./models.ts";
import { type Connection, folderOf, listHeaders, readSettings, rootOf, type ToolRow } from "./tool.ts";

const COMPACTED_SHARE = 0.9;
const KEY = "GATEWAY_CODEX_KEY";
export const CODEX_FOLDER = ["CODEX_HOME", ".codex"] as const;

function isSearchRefused({ isDirect, searchRefusal = null }: Connection): boolean {
  return isDirect === true && searchRefusal !== null;
}

export const codex: ToolRow = {
  title: "Codex",
  program: { name: "codex", install: "npm install -g @openai/codex" },
  needsResponses: true,
  login: { misleading: [] },
  findLogin: (env) => {
    const login = readSettings(join(folderOf(env, ...CODEX_FOLDER), "auth.json"));
    return isObject(getField(login, "tokens")) ? "ChatGPT" : null;
  },
  // Not gpt-oss, whose models other providers serve, too.
  ownModels: {
    pattern: /gpt(?!-oss)|codex/i,
    variable: null,
    flags: ["--model", "-m"],
    asked: { main: ["gpt-5.5", "gpt-5.5-codex"], small: "gpt-5.5" },
  },
  describe: (connection, _, words) => [
    isSearchRefused(connection) && `No web search in this run: ${connection.searchRefusal}`,
    words?.some((word) => word === "resume" || word === "fork") === true &&
      "Codex finds only sessions that began with `gateway run codex`.",
  ],
  // Codex ignores OPENAI_BASE_URL.
  // A `-c` value that is not TOML is plain text.
  connect: (connection) => {
    const { isDirect, patienceMs, secret, usesLogin, websocket } = connection;
    // Variables hold the headers: in an argument, a label could become a number.
    const fields = Object.entries(listHeaders(connection)).map(([header, value]) => {
      return {
        header,
        value,
        variable: header.replace("x-gateway-", "GATEWAY_CODEX_").toUpperCase(),
      };
    });
    const provider = {
      // If the name is OpenAI, Codex sends searches that only OpenAI understands.
      name: isDirect === true ? "OpenAI" : "gateway",
      // After a 426, Codex uses HTTP at once.
      ...(isDirect === true && websocket === true && { supports_websockets: true }),
      base_url: `${rootOf(connection)}/v1`,
      wire_api: "responses",
      // Codex's built-in provider would send no x-gateway-key.
      ...(usesLogin === true ? { requires_openai_auth: true } : { env_key: KEY }),
      ...(patienceMs !== undefined && { stream_idle_timeout_ms: patienceMs }),
      ...Object.fromEntries(fields.map(({ header, variable }) => [`env_http_headers.${header}`, variable])),
    };
    return {
      env: { [KEY]: secret, ...Object.fromEntries(fields.map(({ variable, value }) => [variable, value])) },
      args: [
        "model_provider=gateway",
        ...Object.entries(provider).map(([name, value]) => `model_providers.gateway.${name}=${value}`),
        ...(isSearchRefused(connection) ? ["web_search=disabled"] : []),
        ...nameForeignModel(connection),
      ].flatMap((override) => ["-c", override]),
    };
  },
};

function nameForeignModel(connection: Connection): string[] {
  const { foreign, limits } = connection;
  const model = mainModelOf(connection);
  if (foreign === undefined || model === null) return [];
  const context = limits?.get(model)?.context ?? null;
  const compacted = Math.floor((context ?? 0) * COMPACTED_SHARE);
  const window = [`model_context_window=${context}`, `model_auto_compact_token_limit=${compacted}`];
  return [
    `model=${model}`,
    ...(context === null ? [] : window),
    ...(foreign.canSearch ? [] : ["web_search=disabled"]),
    "features.image_generation=false",
  ];
}
