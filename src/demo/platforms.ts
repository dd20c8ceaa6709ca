// What each simulated platform serves: models, paths, and calls to try.

import type { FormatName } from "./answers.ts";

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

interface Endpoint {
  readonly format: FormatName;
  readonly purpose: "generate" | "count" | "embed" | "compact";
  /** The model in the path, if the body names none. */
  readonly model?: string;
  readonly streams?: boolean;
}

const ENDPOINTS: ReadonlyArray<readonly [end: string, FormatName, Endpoint["purpose"]]> = [
  ["/messages", "messages", "generate"],
  ["/messages/count_tokens", "messages", "count"],
  ["/responses", "responses", "generate"],
  ["/responses/input_tokens", "responses", "count"],
  ["/responses/compact", "responses", "compact"],
  ["/chat/completions", "chat", "generate"],
  ["/embeddings", "chat", "embed"],
];

const VERBS: Readonly<Record<string, Pick<Endpoint, "purpose" | "streams">>> = {
  generateContent: { purpose: "generate", streams: false },
  streamGenerateContent: { purpose: "generate", streams: true },
  countTokens: { purpose: "count" },
  embedContent: { purpose: "embed" },
  batchEmbedContents: { purpose: "embed" },
};

export function findEndpoint(path: string): Endpoint | null {
  const [, model = "", verb = ""] = /\/models\/(.+):(\w+)$/.exec(path) ?? [];
  const found = Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined;
  if (found !== undefined) return { format: "content", model, ...found };
  const row = ENDPOINTS.find(([end]) => path.endsWith(end));
  return row === undefined ? null : { format: row[1], purpose: row[2] };
}

interface DemoCall {
  readonly path: string;
  readonly body: object;
}

const HELLO = [{ role: "user", content: "Hello" }];
const TO_MESSAGES = {
  path: "/v1/messages",
  body: {
    model: "claude-haiku-4-5",
    max_tokens: 256,
    stream: true,
    messages: HELLO,
  },
};
const toChat = (model: string) => ({
  path: "/v1/chat/completions",
  body: { model, stream: true, messages: HELLO },
});

export const CALLS: Readonly<Record<DemoPlatform, readonly DemoCall[]>> = {
  messages: [TO_MESSAGES],
  responses: [
    {
      path: "/v1/responses",
      body: {
        model: "gpt-5.4",
        stream: true,
        input: HELLO,
      },
    },
    toChat("gpt-5.4"),
  ],
  content: [
    {
      path: "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
      body: {
        contents: [{ role: "user", parts: [{ text: "Hello" }] }],
        generationConfig: { temperature: 1 },
      },
    },
  ],
  relay: [TO_MESSAGES],
  chat: [toChat("qwen3-coder")],
};
