// Models and model lists of the simulated upstreams.

export type DemoPlatform = "messages" | "responses" | "content" | "relay" | "chat";

const CLAUDE = ["claude-opus-4-8", "claude-sonnet-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5"];
const GPT = [
  "gpt-5.6-sol",
  "gpt-5.6-luna",
  "gpt-5.4",
  "gpt-5.4-nano",
  "gpt-5.3-codex",
  "text-embedding-3-small",
];
const GEMINI = [
  "gemini-3.8-flash",
  "gemini-3.5-flash",
  "gemini-3.1-pro-preview",
  "gemini-2.5-pro",
  "gemini-embedding-001",
];

const IDS: Readonly<Record<DemoPlatform, readonly string[]>> = {
  messages: CLAUDE,
  responses: GPT,
  content: GEMINI,
  relay: [...CLAUDE, ...GEMINI],
  chat: ["qwen3-coder", "llama3.3", "nomic-embed-text"],
};

/** The list or the model at this path; null: neither. */
export function listModels(platform: DemoPlatform, path: string): object | null {
  const [, id] = /\/models(?:\/([^:]+))?$/.exec(path) ?? [];
  if (!path.includes("/models")) return null;
  const isContent = path.includes("/v1beta/");
  const ids = IDS[platform].filter(
    (each) => platform !== "relay" || !path.includes("/v1") || each.startsWith("gemini") === isContent,
  );
  const describe = isContent ? describeContent : describeModel;
  if (id !== undefined) return ids.includes(id) ? describe(id) : null;
  if (isContent) return { models: ids.map(describe) };
  return { object: "list", data: ids.map(describe), has_more: false, first_id: ids[0], last_id: ids.at(-1) };
}

/** Has the fields of Anthropic and of OpenAI. */
function describeModel(id: string): object {
  const created_at = "2026-01-01T00:00:00Z";
  const common = { id, type: "model", display_name: id, created_at };
  return { ...common, object: "model", created: Date.parse(created_at) / 1000, owned_by: "demo" };
}

function describeContent(id: string): object {
  const verb = id.includes("embedding") ? "embedContent" : "generateContent";
  return {
    name: `models/${id}`,
    version: "001",
    displayName: id,
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: [verb, "countTokens"],
  };
}
