// Claude Code's settings files set variables that override those of its environment, for example of a gateway that
// the user had before. In that case a run passes a settings file of its own, which overrides those files.

import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import { getField, isObject, textOf } from "../../lib/json/json.ts";
import { createFile } from "../../lib/files/own-file.ts";
import { addEntries, isMisleading, listUnset, MISLEADING, NO_PROXY_NAMES, splitList } from "./environment.ts";
import { mainModelOf, smallModelOf } from "./model-choice.ts";
import {
  ANTHROPIC_HEADERS,
  type Connection,
  findText,
  homeOf,
  type ModelLimits,
  type Overlay,
  readSettings,
  rootOf,
  type ToolEnvironment,
  type ToolRow,
} from "./tool.ts";

function listFiles(env: Environment): string[] {
  const own = env["CLAUDE_CONFIG_DIR"] || join(homeOf(env), ".claude");
  const project = join(process.cwd(), ".claude");
  return [join(project, "settings.local.json"), join(project, "settings.json"), join(own, "settings.json")];
}

function readVariables(path: string): Environment {
  const env = getField(readSettings(path), "env");
  if (!isObject(env)) return {};
  const texts = Object.entries(env).map(([name, value]) => [name, value === null ? "" : textOf(value)]);
  return Object.fromEntries(texts);
}

/** Of the user's settings files. They override the environment. */
export function readAllVariables(env: Environment): Environment {
  return Object.assign({}, ...listFiles(env).toReversed().map(readVariables));
}

function listMisleading({ env, unset }: ToolEnvironment): string[] {
  return [...new Set([...MISLEADING.claude, ...unset])].filter((name) => !(name in env));
}

function listContradictions(variables: Environment, setting: ToolEnvironment): string[] {
  const names = Object.keys(setting.env).filter((name) => {
    const value = variables[name] ?? "";
    return value !== "" && combine(name, value, setting) !== value;
  });
  const misleading = listMisleading(setting).filter((name) => isMisleading(name, variables[name]));
  return [...new Set([...names, ...misleading])];
}

const { name: HEADERS, separator: BREAK } = ANTHROPIC_HEADERS;

/** The gateway's value of a variable, with the file's if both can hold. */
function combine(name: string, value: string, { env }: ToolEnvironment): string | null {
  const own = env[name] ?? "";
  if (name === HEADERS) return isMisleading(name, value) ? own : addOwnFields(value, own);
  const isList = NO_PROXY_NAMES.some((each) => each === name);
  if (!isList) return null;
  return addEntries(name, value, splitList(own));
}

function addOwnFields(value: string, fields: string): string {
  const others = value === "" ? [] : value.split(BREAK).filter((field) => !OWN_FIELD.test(field));
  return [...others, ...fields.split(BREAK).filter((field) => OWN_FIELD.test(field))].join(BREAK);
}

/** A field for the gateway itself. */
const OWN_FIELD = /^x-gateway-/i;

const overlay: Overlay = {
  find(env, setting) {
    for (const path of listFiles(env)) {
      const found = listContradictions(readVariables(path), setting);
      if (found.length === 0) continue;
      const advice = `reads ${found.join(" and ")} from ${path}, which overrides the environment: remove it there`;
      return { path, content: { env: setting.env }, advice };
    }
    return null;
  },
  write(env, setting, folder) {
    const path = join(folder, "settings.json");
    const theirs = readAllVariables(env);
    const cleared = Object.fromEntries(listUnset(listMisleading(setting), theirs).map((name) => [name, ""]));
    const lists = [...NO_PROXY_NAMES, ...(HEADERS in setting.env ? [HEADERS] : [])];
    const combined = lists.map((name) => [name, combine(name, theirs[name] ?? "", setting)]);
    const all = { ...cleared, ...setting.env, ...Object.fromEntries(combined) };
    const { statusline: command } = setting;
    const more = command === undefined ? {} : { statusLine: { type: "command", command } };
    createFile(path, JSON.stringify({ env: all, ...more }));
    return { env: {}, args: ["--settings", path] };
  },
};

/** What Claude Code assumes of a model that it does not know. */
const ASSUMED_OUTPUT = 32_000;
/** It takes a smaller number for this one, and says so. Versions that know CLAUDE_CODE_MAX_CONTEXT_TOKENS need no other. */
const LEAST_COMPACTED = 100_000;

/** Its requests for titles, summaries and subagents name models of Anthropic by themselves.
 *  https://code.claude.com/docs/en/llm-gateway, https://code.claude.com/docs/en/model-config */
function nameForeignModels(connection: Connection): Record<string, string> {
  const { foreign, limits } = connection;
  const [main, small] = [mainModelOf(connection), smallModelOf(connection)];
  if (foreign === undefined) return {};
  return {
    ...(main !== null && small !== null && listModelNames(main, small)),
    ...(main !== null && listWindow(limits?.get(main))),
    // A line that changes with every request, and that no other upstream knows: caches would miss.
    CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
    // Tools that are loaded when they are needed are known to Anthropic's models only.
    ENABLE_TOOL_SEARCH: "false",
    CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: "1",
    ...(foreign.hasEffort && { CLAUDE_CODE_ALWAYS_ENABLE_EFFORT: "1" }),
  };
}

function listModelNames(main: string, small: string): Record<string, string> {
  return {
    ANTHROPIC_MODEL: main,
    ANTHROPIC_DEFAULT_OPUS_MODEL: main,
    ANTHROPIC_DEFAULT_SONNET_MODEL: main,
    ANTHROPIC_DEFAULT_FABLE_MODEL: main,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: small,
    CLAUDE_CODE_SUBAGENT_MODEL: main,
    // The model menu has no other place for a name that is not Anthropic's.
    ANTHROPIC_CUSTOM_MODEL_OPTION: main,
  };
}

/** It compacts before the window is full. Its prompt and its longest answer have to fit together. */
function listWindow(
  { context, output }: ModelLimits = { context: null, output: null },
): Record<string, string> {
  const longest = Math.min(output ?? ASSUMED_OUTPUT, ASSUMED_OUTPUT);
  if (context === null) return output === null ? {} : { CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(longest) };
  // Some windows are divided: the longest answer has its own part.
  const window = context - Math.max(0, (output ?? 0) - ASSUMED_OUTPUT);
  const cap = Math.min(longest, Math.floor(window / 4));
  return {
    CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(window),
    ...(window >= LEAST_COMPACTED && { CLAUDE_CODE_AUTO_COMPACT_WINDOW: String(window) }),
    CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(cap),
  };
}

/** Its variable for the small model in versions before 2. */
const OLD_SMALL = "ANTHROPIC_SMALL_FAST_MODEL";

export const claude: ToolRow = {
  title: "Claude Code",
  program: { name: "claude", install: "npm install -g @anthropic-ai/claude-code" },
  overlay: () => overlay,
  hasStatusline: true,
  ownModels: {
    pattern: /claude/i,
    shown: "claude-…",
    variable: "ANTHROPIC_MODEL",
    flags: ["--model"],
    variableOf: (word) => {
      const [, family] = /^(opus|sonnet|haiku|fable)(?:\[1m\])?$/.exec(word) ?? [];
      return family === undefined ? null : `ANTHROPIC_DEFAULT_${family.toUpperCase()}_MODEL`;
    },
    asked: { main: ["claude-sonnet-5-5", "claude-opus-5-5"], small: "claude-haiku-5-5" },
  },
  smallModels: /haiku/i,
  headers: ANTHROPIC_HEADERS,
  // A login in the environment is a login, too.
  login: {
    misleading: [
      ...MISLEADING.claude.filter((name) => name !== "CLAUDE_CODE_OAUTH_TOKEN"),
      "ANTHROPIC_AUTH_TOKEN",
    ],
  },
  findOwnModel: (env) =>
    [env["ANTHROPIC_MODEL"], readAllVariables(env)["ANTHROPIC_MODEL"]].find(Boolean) ??
    findText(["model"], listFiles(env)),
  connect: (connection) => ({
    defaults: nameForeignModels(connection),
    env: {
      ANTHROPIC_BASE_URL: rootOf(connection),
      ...(connection.usesLogin !== true && {
        ANTHROPIC_AUTH_TOKEN: connection.secret,
        // Its model menu then shows the gateway's models.
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
      }),
    },
    args: [],
  }),
  // Seen in 2.1.330: with an API key it asks for five minutes, with a login for an hour.
  cacheVariables: {
    "1h": { ENABLE_PROMPT_CACHING_1H: "1", FORCE_PROMPT_CACHING_5M: "" },
    "5m": { ENABLE_PROMPT_CACHING_1H: "", FORCE_PROMPT_CACHING_5M: "1" },
  },
  equalise: ({ isDirect, hasTraces, smallModel = null, patienceMs }, env) => {
    const own = { ...env, ...readAllVariables(env) };
    const wanted = {
      // It takes the main model behind a base URL, which costs many times as much.
      ...(smallModel !== null &&
        own[OLD_SMALL] === undefined && { ANTHROPIC_DEFAULT_HAIKU_MODEL: smallModel }),
      // By itself it drops a request after five minutes without a byte, and asks again.
      ...(patienceMs !== undefined && {
        API_TIMEOUT_MS: String(patienceMs),
        CLAUDE_STREAM_IDLE_TIMEOUT_MS: String(patienceMs),
        API_FORCE_IDLE_TIMEOUT: "0",
      }),
      // Up to 2.1.278 it sends all definitions of MCP tools behind a base URL, and searches them without one.
      ...(isDirect === true && { ENABLE_TOOL_SEARCH: "true" }),
      // Behind a base URL it names its own trace only if it is told to.
      ...(hasTraces === true && { CLAUDE_CODE_PROPAGATE_TRACEPARENT: "1" }),
    };
    return Object.fromEntries(Object.entries(wanted).filter(([name]) => own[name] === undefined));
  },
};
