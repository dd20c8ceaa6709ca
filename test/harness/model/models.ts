// Lists the models of the simulated upstream, in the format of each platform.

import type { Json } from "./json.ts";

/** The kind of upstream that is simulated. */
export type DemoPlatform = "messages" | "responses" | "content" | "relay" | "chat";

/** The format of a model list. */
export type ListShape = "messages" | "openai" | "content" | "relay";

const CREATED_AT = "2026-01-01T00:00:00Z";
const CREATED = Date.parse(CREATED_AT) / 1000;

const IDS = {
  messages: ["claude-opus-4-8", "claude-sonnet-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5"],
  responses: "gpt-5.6-sol gpt-5.6-luna gpt-5.4 gpt-5.4-nano gpt-5.3-codex text-embedding-3-small".split(" "),
  content: [
    "gemini-3.8-flash",
    "gemini-3.5-flash",
    "gemini-3.1-pro-preview",
    "gemini-2.5-pro",
    "gemini-embedding-001",
  ],
} as const;

const IDS_OF: Readonly<Record<DemoPlatform, readonly string[]>> = {
  ...IDS,
  relay: [...IDS.messages, ...IDS.content],
  chat: ["qwen3-coder", "llama3.3", "nomic-embed-text"],
};

export function listIds(platform: DemoPlatform | null): readonly string[] {
  return platform === null ? [...IDS.messages, ...IDS.responses, ...IDS.content] : IDS_OF[platform];
}

/** The ids whose vendor writes lists in this shape. If there are none, all ids. */
export function filterIds(ids: readonly string[], shape: ListShape): readonly string[] {
  const marks = {
    messages: /^claude/,
    content: /^gemini/,
    openai: /^(gpt|o\d|text-embedding)/,
    relay: /^(claude|gemini)/,
  };
  const own = ids.filter((id) => marks[shape].test(id));
  return own.length > 0 ? own : ids;
}

export function writeModel(id: string, shape: ListShape): Json {
  return RECORDS[shape](id);
}

/** Writes a list of all ids on one page. */
export function writeList(ids: readonly string[], shape: ListShape): Json {
  const data = ids.map(RECORDS[shape]);
  if (shape === "content") return { models: data };
  if (shape === "openai") return { object: "list", data };
  const ends = { has_more: false, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null };
  return { ...(shape === "relay" && { object: "list" }), data, ...ends };
}

const RECORDS: Readonly<Record<ListShape, (id: string) => Json>> = {
  messages: (id) => ({ type: "model", id, display_name: nameModel(id), created_at: CREATED_AT }),
  openai: (id) => ({ id, object: "model", created: CREATED, owned_by: "demo" }),
  relay: (id) => ({ ...RECORDS.openai(id), ...RECORDS.messages(id) }),
  content: (id) => ({
    name: `models/${id}`,
    version: "001",
    displayName: nameModel(id),
    description: "A simulated model",
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: [
      id.includes("embedding") ? "embedContent" : "generateContent",
      "countTokens",
    ],
    temperature: 1,
    topP: 0.95,
    topK: 64,
  }),
};

function nameModel(id: string): string {
  return id
    .split("-")
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join(" ");
}
