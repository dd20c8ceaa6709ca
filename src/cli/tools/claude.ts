// Claude Code. A run's settings override the user's,
// which override the environment.

import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import { createFile } from "../../lib/files/own-file.ts";
import { getField, isObject, textOf } from "../../lib/json/json.ts";
import { mainModelOf, smallModelOf } from "./models.ts";
import {
  ANTHROPIC_HEADERS,
  type Connection,
  findText,
  folderOf,
  type ModelLimits,
  readSettings,
  rootOf,
  type ToolEnvironment,
  type ToolRow,
} from "./tool.ts";

const OWN_FOLDER = "CLAUDE_CONFIG_DIR";

/** If several files have a value, the first file wins. */
function listFiles(env: Environment): string[] {
  const project = join(process.cwd(), ".claude");
  const own = folderOf(env, OWN_FOLDER, ".claude");
  return [join(project, "settings.local.json"), join(project, "settings.json"), join(own, "settings.json")];
}

function readVariables(path: string): Environment {
  const env = getField(readSettings(path), "env");
  const all = Object.entries(isObject(env) ? env : {});
  return Object.fromEntries(all.map(([name, value]) => [name, value === null ? "" : textOf(value)]));
}

function readAllVariables(env: Environment): Environment {
  return Object.assign({}, ...listFiles(env).toReversed().map(readVariables));
}

/** In a settings file, an empty variable counts as unset. */
function writeVariables({ env, unset }: ToolEnvironment): Record<string, string> {
  return { ...Object.fromEntries(unset.map((name) => [name, ""])), ...env };
}

const ASSUMED_OUTPUT = 32_000;
/** Claude Code accepts no smaller number. */
const LEAST_COMPACTED = 100_000;

/** For titles, summaries and subagents, Claude Code would ask for Anthropic's models.
 *  https://code.claude.com/docs/en/llm-gateway, https://code.claude.com/docs/en/model-config */
function nameForeignModels(connection: Connection): Record<string, string> {
  const { foreign, limits } = connection;
  const [main, small] = [mainModelOf(connection), smallModelOf(connection)];
  if (foreign === undefined) return {};
  return {
    ...(main !== null &&
      small !== null && {
        ANTHROPIC_MODEL: main,
        ANTHROPIC_DEFAULT_OPUS_MODEL: main,
        ANTHROPIC_DEFAULT_SONNET_MODEL: main,
        ANTHROPIC_DEFAULT_FABLE_MODEL: main,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: small,
        CLAUDE_CODE_SUBAGENT_MODEL: main,
        // Only this variable puts another maker's model into the model menu.
        ANTHROPIC_CUSTOM_MODEL_OPTION: main,
      }),
    ...(main !== null && listWindow(limits?.get(main))),
    // Removes a line of the prompt that always changes:
    // other makers' caches would miss.
    CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
    // Only Anthropic's models know tools that are loaded on demand.
    ENABLE_TOOL_SEARCH: "false",
    CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: "1",
    ...(foreign.hasEffort && { CLAUDE_CODE_ALWAYS_ENABLE_EFFORT: "1" }),
  };
}

/** The window has to hold the prompt and the longest answer. */
function listWindow(
  { context, output }: ModelLimits = { context: null, output: null },
): Record<string, string> {
  const longest = Math.min(output ?? ASSUMED_OUTPUT, ASSUMED_OUTPUT);
  if (context === null) return output === null ? {} : { CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(longest) };
  const window = context - Math.max(0, (output ?? 0) - ASSUMED_OUTPUT);
  return {
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(window),
    ...(window >= LEAST_COMPACTED && { CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(window) }),
    CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(Math.min(longest, Math.floor(window / 4))),
  };
}

/** The default in 2.1.330 is five minutes with an API key, an hour with a login. */
const CACHE_VARIABLES = {
  "1h": { ENABLE_PROMPT_CACHING_1H: "1", FORCE_PROMPT_CACHING_5M: "" },
  "5m": { ENABLE_PROMPT_CACHING_1H: "", FORCE_PROMPT_CACHING_5M: "1" },
};

const MISLEADING = [
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_CUSTOM_HEADERS",
  "ANTHROPIC_UNIX_SOCKET",
  "CLAUDE_CODE_OAUTH_TOKEN",
  "CLAUDE_CODE_USE_ANTHROPIC_AWS",
  "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
  "CLAUDE_CODE_USE_BEDROCK",
  "CLAUDE_CODE_USE_FOUNDRY",
  "CLAUDE_CODE_USE_MANTLE",
  "CLAUDE_CODE_USE_VERTEX",
];

const FAMILIES: Readonly<Record<string, string>> = {
  BEST: "OPUS",
  DEFAULT: "OPUS",
  OPUSPLAN: "SONNET",
};

export const claude: ToolRow = {
  title: "Claude Code",
  program: { name: "claude", install: "npm install -g @anthropic-ai/claude-code" },
  misleading: MISLEADING,
  // CLAUDE_CODE_OAUTH_TOKEN is a login, too.
  login: {
    misleading: [...MISLEADING.filter((name) => name !== "CLAUDE_CODE_OAUTH_TOKEN"), "ANTHROPIC_AUTH_TOKEN"],
  },
  headers: ANTHROPIC_HEADERS,
  hasCaches: true,
  hasStatusline: true,
  smallModels: /haiku/i,
  ownModels: {
    pattern: /claude/i,
    variable: "ANTHROPIC_MODEL",
    flags: ["--model"],
    variableOf: (word) => {
      const [, family] =
        /^(BEST|DEFAULT|FABLE|HAIKU|OPUS|OPUSPLAN|SONNET)(?:\[1M\])?$/.exec(word.toUpperCase()) ?? [];
      if (family === undefined) return null;
      return `ANTHROPIC_DEFAULT_${FAMILIES[family] ?? family}_MODEL`;
    },
    asked: { main: ["claude-sonnet-5-5", "claude-opus-5-5"], small: "claude-haiku-5-5" },
  },
  findOwnModel: (env) =>
    [env["ANTHROPIC_MODEL"], readAllVariables(env)["ANTHROPIC_MODEL"]].find(Boolean) ??
    findText(["model"], listFiles(env)),
  findLogin: (env) => {
    const account = readSettings(join(folderOf(env, OWN_FOLDER, ""), ".claude.json"));
    const login = readSettings(join(folderOf(env, OWN_FOLDER, ".claude"), ".credentials.json"));
    return isObject(getField(account, "oauthAccount")) || isObject(getField(login, "claudeAiOauth"))
      ? "Claude (Pro, Max or another plan)"
      : null;
  },
  readVariables: readAllVariables,
  connect: (connection, env) => {
    const { cache, hasTraces, isDirect, patienceMs, secret, smallModel, usesLogin } = connection;
    return {
      env: {
        ANTHROPIC_BASE_URL: rootOf(connection),
        ...(usesLogin !== true && {
          ANTHROPIC_AUTH_TOKEN: secret,
          CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
        }),
        ...(cache && CACHE_VARIABLES[cache]),
      },
      defaults: {
        ...nameForeignModels(connection),
        // The user may have set the variable's old name.
        ...(smallModel &&
          env["ANTHROPIC_SMALL_FAST_MODEL"] === undefined && { ANTHROPIC_DEFAULT_HAIKU_MODEL: smallModel }),
        // Otherwise, Claude Code sends again after five minutes.
        ...(patienceMs !== undefined && {
          API_TIMEOUT_MS: String(patienceMs),
          CLAUDE_STREAM_IDLE_TIMEOUT_MS: String(patienceMs),
          API_FORCE_IDLE_TIMEOUT: "0",
        }),
        // Behind a base URL, versions up to 2.1.278 send all MCP tools.
        ...(isDirect === true && { ENABLE_TOOL_SEARCH: "true" }),
        ...(hasTraces === true && { CLAUDE_CODE_PROPAGATE_TRACEPARENT: "1" }),
      },
      args: [],
    };
  },
  file: (_, setting, env) => {
    const wanted = writeVariables(setting);
    for (const path of listFiles(env)) {
      const found = Object.entries(readVariables(path)).flatMap(([name, value]) =>
        name in wanted && wanted[name] !== value ? [name] : [],
      );
      if (found.length === 0) continue;
      const advice = `reads ${found.join(" and ")} from ${path}, which overrides the environment: remove it there`;
      return { path, content: { env: setting.env }, advice };
    }
    return null;
  },
  overlay: (_, setting, _env, folder) => {
    const path = join(folder, "settings.json");
    const { statusline: command } = setting;
    const more = command === undefined ? {} : { statusLine: { type: "command", command } };
    createFile(path, JSON.stringify({ env: writeVariables(setting), ...more }));
    return { env: {}, args: ["--settings", path] };
  },
};
