// Claude Code's settings files set variables that override those of its environment, for example of a gateway that
// the user had before. In that case a run passes a settings file of its own, which overrides those files.

import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../../config/yaml/expand.ts";
import { getField, isObject } from "../../../lib/json/json.ts";
import { createFile } from "../../../lib/files/own-file.ts";
import { isMisleading, listUnset, MISLEADING } from "../environment/misleading.ts";
import { addEntries, NO_PROXY_NAMES, omitHosts, splitList } from "../environment/no-proxy.ts";
import { ANTHROPIC_HEADERS, listPlatforms, rootOf, type Tool } from "./tool.ts";
import { type Overlay, readSettings, type ToolEnvironment } from "./overlay.ts";

function listFiles(env: Environment): string[] {
  const own = env["CLAUDE_CONFIG_DIR"] || join(env["HOME"] || homedir(), ".claude");
  const project = join(process.cwd(), ".claude");
  return [join(project, "settings.local.json"), join(project, "settings.json"), join(own, "settings.json")];
}

function readVariables(path: string): Environment {
  const env = getField(readSettings(path), "env");
  if (!isObject(env)) return {};
  const texts = Object.entries(env).map(([name, value]) => [
    name,
    typeof value === "string" ? value : value === null ? "" : JSON.stringify(value),
  ]);
  return Object.fromEntries(texts);
}

function readAllVariables(env: Environment): Environment {
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
function combine(name: string, value: string, { env, proxied }: ToolEnvironment): string | null {
  const own = env[name] ?? "";
  if (name === HEADERS) return isMisleading(name, value) ? own : addOwnFields(value, own);
  const isList = NO_PROXY_NAMES.some((each) => each === name);
  if (!isList) return null;
  return addEntries(name, proxied === undefined ? value : omitHosts(value, proxied), splitList(own));
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

export const claude: Tool = {
  name: "claude",
  title: "Claude Code",
  program: { name: "claude", install: "npm install -g @anthropic-ai/claude-code" },
  platforms: listPlatforms("claude"),
  misleading: MISLEADING.claude,
  overlay: () => overlay,
  hasStatusline: true,
  ownModels: { pattern: /claude/i, shown: "claude-…", variable: "ANTHROPIC_MODEL", flags: ["--model"] },
  headers: () => ANTHROPIC_HEADERS,
  // A login in the environment is a login, too.
  login: {
    misleading: [
      ...MISLEADING.claude.filter((name) => name !== "CLAUDE_CODE_OAUTH_TOKEN"),
      "ANTHROPIC_AUTH_TOKEN",
    ],
  },
  connect: (connection) => ({
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
  transparent: {
    host: "api.anthropic.com",
    unset: ["ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"],
    readVariables: readAllVariables,
    connect: (placeholder) => ({ ANTHROPIC_API_KEY: placeholder }),
  },
};
