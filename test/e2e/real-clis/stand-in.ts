// `bun stand-in.ts TOOL ARGS` sends what was recorded from a tool. Parts that depend on no setting are
// shortened. The address and the credential are those that the tool's settings name. Recorded from
// Claude Code 2.1.278 and 2.1.330, Codex 0.169, Gemini CLI 0.61 and opencode 1.18.

import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Sent {
  readonly url: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: object;
}

const { env } = process;
const HELLO = [{ role: "user", content: "hello" }];

function readFields(text: string, separator: string): Record<string, string> {
  const fields = text.split(separator).filter((line) => line.includes(":"));
  return Object.fromEntries(
    fields.map((line) => [line.split(":")[0]!.trim(), line.replace(/^[^:]*:/, "").trim()]),
  );
}

function readLogin(): string | undefined {
  try {
    const path = join(env["HOME"] ?? "", ".claude/.credentials.json");
    return JSON.parse(readFileSync(path, "utf8")).claudeAiOauth.accessToken;
  } catch {
    return undefined;
  }
}

/** Signs a request as Claude Code does: a key or a token in the environment comes before a saved login. */
function signClaude(): Record<string, string> {
  const { ANTHROPIC_API_KEY: key, ANTHROPIC_AUTH_TOKEN: token } = env;
  if (token !== undefined) return { authorization: `Bearer ${token}` };
  if (key !== undefined) return { "x-api-key": key };
  return { authorization: `Bearer ${readLogin()}`, "anthropic-beta": "oauth-2025-04-20" };
}

/** Writes Claude Code's request. At Anthropic's own host, it uses what only Anthropic's API has. */
function askClaude(): Sent {
  const base = env["ANTHROPIC_BASE_URL"] ?? "https://api.anthropic.com";
  const isOwn = new URL(base).host === "api.anthropic.com";
  const signed = signClaude();
  const betas = [
    "claude-code-20250219",
    ...(isOwn ? ["prompt-caching-scope-2026-01-05", "cache-diagnosis-2026-04-07"] : []),
  ];
  return {
    url: `${base}/v1/messages?beta=true`,
    headers: {
      ...readFields(env["ANTHROPIC_CUSTOM_HEADERS"] ?? "", "\n"),
      "user-agent": "claude-cli/2.1.330 (external, sdk-cli)",
      "x-app": "cli",
      "anthropic-version": "2023-06-01",
      "x-claude-code-session-id": crypto.randomUUID(),
      ...(isOwn && {
        "x-claude-code-request-class": "foreground",
        "x-client-request-id": crypto.randomUUID(),
      }),
      ...signed,
      "anthropic-beta": [...betas, signed["anthropic-beta"] ?? []].flat().join(),
    },
    body: writeClaude(isOwn),
  };
}

/** Claude Code up to 2.1.278 used its tool search only at Anthropic's host, or if a variable asked for it. */
function writeClaude(isOwn: boolean): object {
  const tools = isOwn || env["ENABLE_TOOL_SEARCH"] === "true" ? ["ToolSearch"] : ["mcp__a", "mcp__b"];
  const mark = { type: "ephemeral", ...(isOwn && { scope: "global" }) };
  return {
    model: "claude-sonnet-4-5",
    max_tokens: 100,
    stream: true,
    system: [{ type: "text", text: "s", cache_control: mark }],
    messages: HELLO,
    tools: ["Bash", ...tools].map((name) => ({ name, input_schema: { type: "object" } })),
    ...(isOwn && { diagnostics: { previous_message_id: null } }),
  };
}

/** Writes Codex's request. Codex offers the web search only if the provider's name is OpenAI. */
function askCodex(args: readonly string[]): Sent {
  const set = new Map(
    args.flatMap((word) => {
      const [, name = "", value = ""] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
      return name === "" ? [] : [[name, value] as const];
    }),
  );
  const at = (name: string) => set.get(`model_providers.${set.get("model_provider")}.${name}`);
  const isBuiltIn = !set.has("model_provider");
  const isOpenai = isBuiltIn || at("name") === "OpenAI";
  const isOff = set.get("web_search") === "disabled";
  const fields = [...set].flatMap(([name, variable]) => {
    const [, field] = /\.env_http_headers\.(.+)$/.exec(name) ?? [];
    return field === undefined ? [] : [[field, env[variable]]];
  });
  return {
    url: `${at("base_url") ?? "https://api.openai.com/v1"}/responses`,
    headers: {
      ...Object.fromEntries(fields),
      "user-agent": "codex_exec/0.169.0",
      originator: "codex_exec",
      "session-id": "01a206a0-f3b5-7601-8ce8-0f7ee199a009",
      version: isBuiltIn ? "0.169.0" : undefined,
      authorization: `Bearer ${env[at("env_key") ?? "OPENAI_API_KEY"]}`,
    },
    body: {
      model: "gpt-5.4",
      stream: true,
      store: false,
      input: HELLO,
      tools: [...(isOpenai && !isOff ? ["web__run"] : []), "exec"].map((name) => ({
        type: "function",
        name,
      })),
    },
  };
}

function askGemini(): Sent {
  const base = env["GOOGLE_GEMINI_BASE_URL"] ?? "https://generativelanguage.googleapis.com";
  return {
    url: `${base}/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse`,
    headers: {
      ...readFields(env["GEMINI_CLI_CUSTOM_HEADERS"] ?? "", ","),
      "user-agent": "GeminiCLI/0.61.0",
      "x-goog-api-client": "google-genai-sdk/1.30.0",
      "x-goog-api-key": env["GEMINI_API_KEY"],
    },
    body: { contents: [{ role: "user", parts: [{ text: "hello" }] }], generationConfig: { temperature: 1 } },
  };
}

/** Writes opencode's requests. It sends its own betas only to a provider that no config names. */
function askOpencode(): Sent {
  const { provider } = JSON.parse(env["OPENCODE_CONFIG_CONTENT"] ?? "{}");
  const options = provider?.anthropic?.options;
  const betas = "interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14";
  return {
    url: `${options?.baseURL ?? "https://api.anthropic.com/v1"}/messages`,
    headers: {
      ...(options === undefined ? { "anthropic-beta": betas } : options.headers),
      "user-agent": "opencode/1.18.33",
      "anthropic-version": "2023-06-01",
      "x-api-key": options?.apiKey ?? env["ANTHROPIC_API_KEY"],
    },
    body: { model: "claude-sonnet-4-5", max_tokens: 100, stream: true, messages: HELLO },
  };
}

const [tool, ...args] = process.argv.slice(2);
const ASK: Readonly<Record<string, () => Sent>> = {
  claude: askClaude,
  codex: () => askCodex(args),
  gemini: askGemini,
  opencode: askOpencode,
};
const { url, headers, body } = ASK[tool ?? ""]!();
const given = Object.entries(headers).filter((field): field is [string, string] => field[1] !== undefined);
const response = await fetch(url, {
  method: "POST",
  headers: { ...Object.fromEntries(given), "content-type": "application/json" },
  body: JSON.stringify(body),
});
const text = await response.text();
console.log(response.ok ? "The simulated model has answered." : `${response.status} ${text}`);
