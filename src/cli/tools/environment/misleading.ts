// Variables that make a tool bypass the gateway or send another credential. `gateway run` clears them, `gateway env`
// unsets them, `gateway doctor` names them. Each was tested with the released tool; variables that have no effect
// together with the gateway's own settings are not listed.

import type { Environment } from "../../../config/yaml/expand.ts";

export const MISLEADING = {
  claude: [
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
  ],
  // Its provider is set on the command line, which overrides every variable.
  codex: [],
  gemini: ["GEMINI_CLI_CUSTOM_HEADERS", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"],
  // A login, and the only settings that override OPENCODE_CONFIG_CONTENT.
  opencode: ["OPENCODE_AUTH_CONTENT", "OPENCODE_TEST_MANAGED_CONFIG_DIR"],
  copilot: [
    "COPILOT_PROVIDER_API_KEY_COMMAND",
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "COPILOT_PROVIDER_HEADERS",
    "COPILOT_PROVIDER_MODEL_ID",
    "COPILOT_PROVIDER_WIRE_MODEL",
  ],
  // It uses the SDKs below, which read these themselves.
  pi: [
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "GOOGLE_GENAI_USE_ENTERPRISE",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "OPENAI_CUSTOM_HEADERS",
  ],
  openai: ["OPENAI_CUSTOM_HEADERS"],
  anthropic: ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"],
  google: ["GEMINI_API_KEY", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"],
} as const satisfies Record<string, readonly string[]>;

/** They add header fields. Most are harmless, but one with a credential replaces the gateway's key. */
const HEADER_VARIABLES: ReadonlySet<string> = new Set([
  "ANTHROPIC_CUSTOM_HEADERS",
  "COPILOT_PROVIDER_HEADERS",
  "GEMINI_CLI_CUSTOM_HEADERS",
  "OPENAI_CUSTOM_HEADERS",
]);

/** Claude Code and the SDKs separate the fields by line breaks, Gemini CLI by commas. */
const CREDENTIAL_FIELD = /(?:^|[\n,])\s*(?:authorization|x-api-key|x-goog-api-key)\s*:/i;

/** Whether the variable misleads the tool with this value. */
export function isMisleading(name: string, value: string | undefined = ""): boolean {
  return HEADER_VARIABLES.has(name) ? CREDENTIAL_FIELD.test(value) : value !== "";
}

/** Includes variables that are not set here: the lines of `gateway env` may be evaluated elsewhere, later. */
export function listUnset(names: readonly string[], env: Environment): string[] {
  return names.filter((name) => !HEADER_VARIABLES.has(name) || isMisleading(name, env[name]));
}

/** The start of a sentence; null when no variable misleads the tool. */
export function describeMisleading(title: string, names: readonly string[], env: Environment): string | null {
  const found = names.filter((name) => isMisleading(name, env[name]));
  if (found.length === 0) return null;
  const [are, make, give] = found.length === 1 ? ["is", "makes", "gives"] : ["are", "make", "give"];
  return `${found.join(", ")} ${are} set, which ${make} ${title} bypass the gateway or ${give} it another credential`;
}
