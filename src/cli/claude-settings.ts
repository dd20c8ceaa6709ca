// Claude Code sets the variables that its settings files name, over those that it was started with: somebody's
// earlier gateway may stand there. A run then gets a settings file of its own, which comes before those.

import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../config/expand.ts";
import { fieldOf, isObject } from "../lib/json.ts";
import { createFile } from "../lib/own-file.ts";
import { type Overlay, readSettings } from "./overlay.ts";

/** Where the variables that Claude Code listens to first would lead it elsewhere. */
export const CLAUDE_MISLEADING = [
  "ANTHROPIC_API_KEY",
  "CLAUDE_CODE_OAUTH_TOKEN",
  "CLAUDE_CODE_USE_BEDROCK",
  "CLAUDE_CODE_USE_VERTEX",
  "CLAUDE_CODE_USE_FOUNDRY",
] as const;

function listFiles(env: Environment): string[] {
  const own = env["CLAUDE_CONFIG_DIR"] || join(env["HOME"] || homedir(), ".claude");
  const project = join(process.cwd(), ".claude");
  return [join(project, "settings.local.json"), join(project, "settings.json"), join(own, "settings.json")];
}

function listContradictions(path: string, names: readonly string[]): string[] {
  const env = fieldOf(readSettings(path), "env");
  return isObject(env) ? names.filter((name) => (env[name] ?? "") !== "") : [];
}

export const claudeOverlay: Overlay = {
  find(env, setting) {
    const names = [...Object.keys(setting.env), ...CLAUDE_MISLEADING];
    for (const path of listFiles(env)) {
      const found = listContradictions(path, names);
      if (found.length === 0) continue;
      const words = `takes ${found.join(" and ")} from ${path}, whatever the environment says: take it out there`;
      return { path, content: { env: setting.env }, words };
    }
    return null;
  },
  make(_, setting, folder) {
    const path = join(folder, "settings.json");
    const cleared = Object.fromEntries(CLAUDE_MISLEADING.map((name) => [name, ""]));
    createFile(path, JSON.stringify({ env: { ...cleared, ...setting.env } }));
    return { env: {}, args: ["--settings", path] };
  },
};
