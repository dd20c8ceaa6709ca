// The variables with which a tool passes the gateway by, or sends another credential along. `gateway run` clears
// them, `gateway env` unsets them, `gateway doctor` names them. Each was tried with the released tool; a variable
// that makes no difference beside the gateway's own settings is not here.

import type { Environment } from "../../config/expand.ts";

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
  // Its provider stands on the command line, which comes before every variable.
  codex: [],
  gemini: ["GEMINI_CLI_CUSTOM_HEADERS", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"],
  // A login, and the only settings that come after OPENCODE_CONFIG_CONTENT.
  opencode: ["OPENCODE_AUTH_CONTENT", "OPENCODE_TEST_MANAGED_CONFIG_DIR"],
  openai: ["OPENAI_CUSTOM_HEADERS"],
  anthropic: ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"],
  google: ["GEMINI_API_KEY", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"],
} as const satisfies Record<string, readonly string[]>;

/** They add header fields, most of which do no harm: those that hold a credential replace the gateway's key. */
const HEADER_VARIABLES: ReadonlySet<string> = new Set([
  "ANTHROPIC_CUSTOM_HEADERS",
  "GEMINI_CLI_CUSTOM_HEADERS",
  "OPENAI_CUSTOM_HEADERS",
]);

/** Claude Code and the SDKs separate the fields by line breaks, Gemini CLI by commas. */
const CREDENTIAL_FIELD = /(?:^|[\n,])\s*(?:authorization|x-api-key|x-goog-api-key)\s*:/i;

/** With this value. */
export function isMisleading(name: string, value: string | undefined = ""): boolean {
  return HEADER_VARIABLES.has(name) ? CREDENTIAL_FIELD.test(value) : value !== "";
}

/** The lines of `gateway env` may be evaluated elsewhere and later: they unset what is not set here too. */
export function listUnset(names: readonly string[], env: Environment): string[] {
  return names.filter((name) => !HEADER_VARIABLES.has(name) || isMisleading(name, env[name]));
}

/** A sentence's beginning; null where there are none. */
export function describeMisleading(title: string, names: readonly string[], env: Environment): string | null {
  const found = names.filter((name) => isMisleading(name, env[name]));
  if (found.length === 0) return null;
  const [are, lead, give] = found.length === 1 ? ["is", "leads", "gives"] : ["are", "lead", "give"];
  return `${found.join(", ")} ${are} set, which ${lead} ${title} past the gateway or ${give} it another credential`;
}
