// The tools that can use the gateway, and the settings that each needs, tested with the released tools. connection.ts
// finds the key and the address; env and run pass the settings to the tool.

import { claude } from "./claude.ts";
import { cline, continueCli, copilot, qwen } from "./env-tools.ts";
import { gemini } from "./gemini.ts";
import { mainModelOf } from "./model-choice.ts";
import { PLATFORMS } from "../../config/schema.ts";
import { PLATFORM_ROWS, type ToolName } from "../../dialects/platforms.ts";
import { MISLEADING } from "./environment.ts";
import { opencode } from "./opencode.ts";
import { pi } from "./pi.ts";
import {
  ANTHROPIC_HEADERS,
  type Connection,
  listHeaders,
  OPENAI_HEADERS,
  rootOf,
  type Tool,
  type ToolRow,
} from "./tool.ts";

/** The share of its context window at which it compacts a conversation. */
const COMPACTED_SHARE = 0.9;
const CODEX_KEY = "GATEWAY_CODEX_KEY";

/** Variables with the values of header fields. An argument would need quotes: a label may look like a number. */
function listCodexFields(connection: Connection): { header: string; variable: string; value: string }[] {
  return Object.entries(listHeaders(connection) ?? {}).map(([header, value]) => ({
    header,
    variable: header.replace("x-gateway-", "GATEWAY_CODEX_").toUpperCase(),
    value,
  }));
}

const codex: ToolRow = {
  title: "Codex",
  program: { name: "codex", install: "npm install -g @openai/codex" },
  needsResponses: true,
  login: { misleading: MISLEADING.codex },
  // Not the open models of the same name.
  ownModels: {
    pattern: /gpt(?!-oss)|codex/i,
    shown: "gpt-…",
    variable: null,
    flags: ["--model", "-m"],
    asked: { main: ["gpt-5.5", "gpt-5.5-codex"], small: "gpt-5.5" },
  },
  // Codex ignores OPENAI_BASE_URL. A custom provider needs no login. Values that are not TOML
  // count as plain text, so nothing here needs quotes, which shells handle differently.
  connect: (connection) => ({
    env: {
      [CODEX_KEY]: connection.secret,
      ...Object.fromEntries(listCodexFields(connection).map(({ variable, value }) => [variable, value])),
    },
    args: [
      "model_provider=gateway",
      // Codex decides by this name whether it offers its web search and lets the upstream compact a conversation. Another
      // upstream than OpenAI's own would not understand these requests.
      `model_providers.gateway.name=${connection.isDirect === true ? "OpenAI" : "gateway"}`,
      ...(isSearchRefused(connection) ? ["web_search=disabled"] : []),
      // It does so by itself at OpenAI. On a 426 it sends the request over HTTP at once.
      ...(connection.isDirect === true && connection.websocket === true
        ? ["model_providers.gateway.supports_websockets=true"]
        : []),
      `model_providers.gateway.base_url=${rootOf(connection)}/v1`,
      "model_providers.gateway.wire_api=responses",
      // The built-in provider would use the login, too, but sends no header for the key.
      ...(connection.usesLogin === true
        ? ["model_providers.gateway.requires_openai_auth=true"]
        : [`model_providers.gateway.env_key=${CODEX_KEY}`]),
      ...(connection.patienceMs === undefined
        ? []
        : [`model_providers.gateway.stream_idle_timeout_ms=${connection.patienceMs}`]),
      ...listCodexFields(connection).map(
        ({ header, variable }) => `model_providers.gateway.env_http_headers.${header}=${variable}`,
      ),
      ...nameForeignModel(connection),
    ].flatMap((override) => ["-c", override]),
  }),
  describeLoss: (connection) =>
    isSearchRefused(connection) ? `No web search in this run: ${connection.searchRefusal}` : null,
  describeRun: (_, words) =>
    words.some((word) => word === "resume" || word === "fork")
      ? "Codex finds only sessions that began with `gateway run codex`: a session stays with the provider that it began with."
      : null,
};

/** It knows neither the window of such a model, nor that it has no tools of OpenAI's. */
function nameForeignModel(connection: Connection): string[] {
  const { foreign, limits } = connection;
  const model = mainModelOf(connection);
  if (foreign === undefined || model === null) return [];
  const context = limits?.get(model)?.context ?? null;
  return [
    `model=${model}`,
    ...(context === null
      ? []
      : [
          `model_context_window=${context}`,
          `model_auto_compact_token_limit=${Math.floor(context * COMPACTED_SHARE)}`,
        ]),
    ...(foreign.canSearch ? [] : ["web_search=disabled"]),
    "features.image_generation=false",
  ];
}

function isSearchRefused({ isDirect, searchRefusal = null }: Connection): boolean {
  return isDirect === true && searchRefusal !== null;
}

const openai: ToolRow = {
  title: "the OpenAI SDK",
  program: null,
  headers: OPENAI_HEADERS,
  connect: (connection) => ({
    env: {
      OPENAI_BASE_URL: `${rootOf(connection)}/v1`,
      // aider and others read this one.
      OPENAI_API_BASE: `${rootOf(connection)}/v1`,
      OPENAI_API_KEY: connection.secret,
    },
    args: [],
  }),
};

const anthropic: ToolRow = {
  title: "the Anthropic SDK",
  program: null,
  headers: ANTHROPIC_HEADERS,
  connect: (connection) => ({
    env: { ANTHROPIC_BASE_URL: rootOf(connection), ANTHROPIC_API_KEY: connection.secret },
    args: [],
  }),
};

const google: ToolRow = {
  title: "the Google GenAI SDK",
  program: null,
  connect: (connection) => ({
    // The SDK prefers this variable to GEMINI_API_KEY.
    env: { GOOGLE_GEMINI_BASE_URL: rootOf(connection), GOOGLE_API_KEY: connection.secret },
    args: [],
  }),
};

const ROWS: readonly (readonly [ToolName, ToolRow])[] = [
  ["claude", claude],
  ["codex", codex],
  ["gemini", gemini],
  ["opencode", opencode],
  ["qwen", qwen],
  ["copilot", copilot],
  ["pi", pi],
  ["continue", continueCli],
  ["cline", cline],
  ["openai", openai],
  ["anthropic", anthropic],
  ["google", google],
];
const ALL_MISLEADING: Readonly<Record<string, readonly string[]>> = MISLEADING;

export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  ROWS.map(([name, row]): [string, Tool] => {
    const platforms = PLATFORMS.filter((platform) => PLATFORM_ROWS[platform].tools.includes(name));
    return [name, { name, platforms, misleading: ALL_MISLEADING[name] ?? [], ...row }];
  }),
);
