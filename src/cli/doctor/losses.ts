// What the user's own settings of a tool take from it: `gateway doctor` says so.

import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import { readPlain } from "../../lib/files/own-file.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { readAllVariables } from "../tools/programs/claude.ts";
import { homeOf } from "../tools/programs/overlay.ts";
import { type Finding, note } from "./finding.ts";

export function findLosses(env: Environment): Finding[] {
  return [...findClaudeLosses(env), ...findCodexLosses(env)];
}

/** Variables of Claude Code, the values that cost it something, and what. https://code.claude.com/docs/en/env-vars */
const COSTLY: readonly (readonly [name: string, costs: (value: string) => boolean, loss: string])[] = [
  ["DISABLE_PROMPT_CACHING", isOn, "every request pays for its whole prompt"],
  [
    "ENABLE_TOOL_SEARCH",
    (value) => !isOn(value) && !value.startsWith("auto"),
    "the definitions of all MCP tools are in every request",
  ],
  ["CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", isOn, "Claude Code sends fewer betas, and searches no tools"],
];

function isOn(value: string): boolean {
  return /^(?:1|true|yes|on)$/i.test(value);
}

function findClaudeLosses(env: Environment): Finding[] {
  const files = readAllVariables(env);
  return COSTLY.flatMap(([name, costs, loss]) => {
    const value = files[name] ?? env[name] ?? "";
    if (value === "" || !costs(value)) return [];
    const where = name in files ? "in its settings" : "in this shell";
    return [note("tool claude", `${name} is set ${where}: ${loss}`, "remove it there")];
  });
}

/** Codex decides by the name of a provider. */
function findCodexLosses(env: Environment): Finding[] {
  const path = join(env["CODEX_HOME"] || join(homeOf(env), ".codex"), "config.toml");
  const config = readToml(path);
  const id = getField(config, "model_provider");
  if (typeof id !== "string" || id === "openai") return [];
  const provider = getField(getField(config, "model_providers"), id);
  if (!isObject(provider) || provider["name"] === "OpenAI") return [];
  const detail = `the provider in ${path} is not named "OpenAI": Codex then offers no web search of its own and compacts without the upstream`;
  const fix =
    'for an upstream that is OpenAI\'s own: `gateway run codex`, or name = "OpenAI" and supports_websockets = true';
  return [note("tool codex", detail, fix)];
}

function readToml(path: string): unknown {
  try {
    return Bun.TOML.parse(readPlain(path));
  } catch {
    return null;
  }
}
