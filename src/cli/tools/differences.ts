// Where a tool's requests differ with the gateway from those without it, although all channels are at the vendor's own
// address: what is wanted, and what cannot be changed. `npm run test:tools` compares the requests of the released tools, and
// fails for every difference that is not here. docs/tools.md has these as a table, and `gateway doctor` what they cost.

import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import type { ToolName } from "../../dialects/platforms.ts";
import { readPlain } from "../../lib/files/own-file.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { homeOf } from "./programs/overlay.ts";
import { claude } from "./programs/claude.ts";

export interface Difference {
  /** Empty: all of them. */
  readonly tools: readonly ToolName[];
  /** As the comparison names it. */
  readonly part: RegExp;
  readonly what: string;
  readonly because: string;
}

export const DIFFERENCES: readonly Difference[] = [
  {
    tools: [],
    part: /^header (?:accept-encoding|connection|content-length|sec-fetch-mode|sec-websocket-(?:extensions|key))$/,
    what: "`accept-encoding` is `identity`; `connection`, `content-length`, `sec-fetch-mode` and `sec-websocket-*` are not the tool's",
    because: "the gateway meters answers, opens its own connections, and forwards no fields of browsers",
  },
  {
    tools: ["claude", "opencode", "qwen", "pi"],
    part: /^request GET \/v1(?:beta)?\/models$/,
    what: "one request more, for the list of models",
    because: "the tool, or `gateway run` for it, reads which models the key can use",
  },
  {
    tools: ["claude"],
    part: /^(?:header x-(?:claude-1p-request-class|claude-code-(?:prompt-id|request-class|sandy-plover)|client-request-id)|beta (?:cache-diagnosis|fallback-credit|mid-conversation-system|prompt-caching-scope|thinking-binding-controls|tool-provenance)\S*|body (?:diagnostics\S*|system\S*))$/,
    what: "no global cache mark on tools and system prompt, no question why a cache was missed (`diagnostics`), no request classes, fewer betas",
    because:
      "Claude Code sends them to Anthropic's own address only; `gateway run --transparent claude` keeps all of them",
  },
  {
    tools: ["codex"],
    part: /^(?:header version|body client_metadata\.mcp_attribution)$/,
    what: "no field `version`, whose value `user-agent` has too, and no `mcp_attribution`",
    because:
      "Codex adds them for its built-in provider only, and that one sends no header for a key or a label",
  },
  {
    tools: ["codex"],
    part: /^request GET \/backend-api\/codex\/models$/,
    what: "no request to chatgpt.com for the list of models",
    because: "Codex asks there for its built-in provider only, and has a list of its own",
  },
  {
    tools: ["codex"],
    part: /^(?:request GET \/backend-api\/codex\/responses|header x-openai-account-routing-override|body input\[\]\.(?:type|reasoning\.effort))$/,
    what: "with a ChatGPT login: no WebSocket, no `x-openai-account-routing-override`, and the effort once more in an item of its own",
    because:
      "the gateway passes on no login over a WebSocket, and Codex adds the field for its built-in provider only",
  },
  {
    tools: ["qwen"],
    part: /^request POST \/v1\/(?:chat\/completions|responses)$/,
    what: "Chat Completions arrive as Responses in a group of the platform responses",
    because: "the gateway converts them for such a group (see the interface, 4.3)",
  },
  {
    tools: ["opencode"],
    part: /^(?:body model|request POST \/v1beta\/models\/gemini-\S*flash\S*:streamGenerateContent)$/,
    what: "titles and summaries may be made by another small model",
    because: "opencode chooses among the models that the gateway lists",
  },
];

/** What Claude Code does without at any base URL but its own. */
const BASE_URL_LOSS =
  "behind a base URL, Claude Code marks no cache as global, does not ask why a cache was missed, and sends fewer betas";

/** What the user's own settings take from a tool. `fix`: what to do. */
export interface Loss {
  readonly tool: ToolName;
  readonly detail: string;
  readonly fix: string;
}

export function findLosses(env: Environment): Loss[] {
  return [...findClaudeLosses(env), findCodexLoss(env)].filter((loss) => loss !== null);
}

/** Variables of Claude Code, the values that cost it something, and what. https://code.claude.com/docs/en/env-vars */
const COSTLY: readonly (readonly [
  name: string,
  costs: (value: string) => boolean,
  loss: string,
  fix: string,
])[] = [
  [
    "ANTHROPIC_BASE_URL",
    (value) => URL.parse(value)?.host !== claude.transparent?.host,
    BASE_URL_LOSS,
    ", and start `gateway run --transparent claude`",
  ],
  ["DISABLE_PROMPT_CACHING", isOn, "every request pays for its whole prompt", ""],
  [
    "ENABLE_TOOL_SEARCH",
    (value) => !isOn(value) && !value.startsWith("auto"),
    "the definitions of all MCP tools are in every request",
    "",
  ],
  [
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
    isOn,
    "Claude Code sends fewer betas, and searches no tools",
    "",
  ],
];

function isOn(value: string): boolean {
  return /^(?:1|true|yes|on)$/i.test(value);
}

function findClaudeLosses(env: Environment): Loss[] {
  const files = claude.transparent?.readVariables(env) ?? {};
  return COSTLY.flatMap(([name, costs, loss, then]) => {
    const value = files[name] ?? env[name] ?? "";
    if (value === "" || !costs(value)) return [];
    const where = name in files ? "in its settings" : "in this shell";
    return [{ tool: "claude", detail: `${name} is set ${where}: ${loss}`, fix: `remove it there${then}` }];
  });
}

/** Codex decides by the name of a provider. */
function findCodexLoss(env: Environment): Loss | null {
  const path = join(env["CODEX_HOME"] || join(homeOf(env), ".codex"), "config.toml");
  const config = readToml(path);
  const id = getField(config, "model_provider");
  if (typeof id !== "string" || id === "openai") return null;
  const provider = getField(getField(config, "model_providers"), id);
  if (!isObject(provider) || provider["name"] === "OpenAI") return null;
  const detail = `the provider in ${path} is not named "OpenAI": Codex then offers no web search of its own and compacts without the upstream`;
  const fix =
    'for an upstream that is OpenAI\'s own: `gateway run codex`, or name = "OpenAI" and supports_websockets = true';
  return { tool: "codex", detail, fix };
}

function readToml(path: string): unknown {
  try {
    return Bun.TOML.parse(readPlain(path));
  } catch {
    return null;
  }
}
