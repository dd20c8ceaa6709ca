// Requests and ordinary answers in each dialect. Each answer reports the same tokens: 1,000 of input, of which 200 were read
// from a cache, and 300 of output. At the prices of PRICES, that is $0.0008 + $0.00002 + $0.0006 = $0.00142.

import type { Reply, Seen } from "./upstream.ts";

export type Dialect = "messages" | "responses" | "chat" | "content";

export const DIALECTS: readonly Dialect[] = ["messages", "responses", "chat", "content"];

export const PRICES = {
  input: "1",
  cache_read: "0.1",
  cache_write_5m: "1.25",
  cache_write_1h: "2",
  output: "2",
};
/** The charge of an ordinary answer at PRICES. */
export const USUAL_USD = "0.00142";
export const TEXT = "Hello from upstream";

type Value = Record<string, unknown>;

const event = (name: string, value: Value): string =>
  `event: ${name}\ndata: ${JSON.stringify({ type: name, ...value })}\n\n`;
const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/** Counts of an answer's tokens. `input` includes those that were read from the cache. */
export interface Counts {
  readonly input: number;
  readonly read: number;
  readonly output: number;
}
const USUAL: Counts = { input: 1000, read: 200, output: 300 };

export interface Shape {
  readonly model?: string;
  readonly text?: string;
  readonly counts?: Counts;
  /** Further members of the usage. */
  readonly usage?: Value;
}

const usages: Readonly<Record<Dialect, (counts: Counts) => Value>> = {
  messages: ({ input, read, output }) => ({
    input_tokens: input - read,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: 0,
    output_tokens: output,
  }),
  responses: ({ input, read, output }) => ({
    input_tokens: input,
    input_tokens_details: { cached_tokens: read },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  }),
  chat: ({ input, read, output }) => ({
    prompt_tokens: input,
    prompt_tokens_details: { cached_tokens: read },
    completion_tokens: output,
    total_tokens: input + output,
  }),
  content: ({ input, read, output }) => ({
    promptTokenCount: input,
    cachedContentTokenCount: read,
    candidatesTokenCount: output,
    totalTokenCount: input + output,
  }),
};

const itemOf = (text: string): Value => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
});

/** Returns an ordinary answer that is not a stream. */
export function whole(dialect: Dialect, shape: Shape = {}): Value {
  const { model = "test-model", text = TEXT, counts = USUAL } = shape;
  const usage = { ...usages[dialect](counts), ...shape.usage };
  switch (dialect) {
    case "messages":
      return {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model,
        content: [{ type: "text", text }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage,
      };
    case "responses":
      return {
        id: "resp_1",
        object: "response",
        created_at: 1_700_000_000,
        status: "completed",
        model,
        output: [itemOf(text)],
        usage,
      };
    case "chat":
      return {
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1_700_000_000,
        model,
        choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
        usage,
      };
    case "content":
      return {
        candidates: [{ content: { role: "model", parts: [{ text }] }, finishReason: "STOP", index: 0 }],
        usageMetadata: usage,
        modelVersion: model,
      };
  }
}

/** The pieces of an ordinary stream. Those of Chat Completions have usage only if `asked`. */
export function stream(dialect: Dialect, shape: Shape = {}, asked = true): string[] {
  const { model = "test-model", text = TEXT, counts = USUAL } = shape;
  const usage = { ...usages[dialect](counts), ...shape.usage };
  const full = whole(dialect, shape);
  switch (dialect) {
    case "messages":
      return [
        event("message_start", {
          message: { ...full, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
        }),
        event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
        event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
        event("content_block_stop", { index: 0 }),
        event("message_delta", {
          delta: { stop_reason: "end_turn", stop_sequence: null },
          usage: { output_tokens: usage["output_tokens"] },
        }),
        event("message_stop", {}),
      ];
    case "responses": {
      const item = itemOf(text);
      const started = { ...item, status: "in_progress", content: [] };
      const at = { item_id: "msg_1", output_index: 0, content_index: 0 };
      const part = { type: "output_text", text, annotations: [] };
      return [
        event("response.created", {
          response: { ...full, status: "in_progress", output: [], usage: null },
        }),
        event("response.output_item.added", { output_index: 0, item: started }),
        event("response.content_part.added", { ...at, part: { ...part, text: "" } }),
        event("response.output_text.delta", { ...at, delta: text }),
        event("response.output_text.done", { ...at, text }),
        event("response.content_part.done", { ...at, part }),
        event("response.output_item.done", { output_index: 0, item }),
        event("response.completed", { response: full }),
      ];
    }
    case "chat": {
      const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model };
      const choice = (delta: Value, finish_reason: string | null) => ({
        ...base,
        choices: [{ index: 0, delta, finish_reason }],
      });
      return [
        data(choice({ role: "assistant", content: "" }, null)),
        data(choice({ content: text }, null)),
        data(choice({}, "stop")),
        ...(asked ? [data({ ...base, choices: [], usage })] : []),
        "data: [DONE]\n\n",
      ];
    }
    case "content": {
      const candidate = (part: Value, more: Value = {}) => ({
        candidates: [{ content: { role: "model", parts: [part] }, index: 0, ...more }],
        modelVersion: model,
      });
      return [
        data({ ...candidate({ text }), usageMetadata: { ...usage, candidatesTokenCount: 1 } }),
        data({ ...candidate({ text: "" }, { finishReason: "STOP" }), usageMetadata: usage }),
      ];
    }
  }
}

function dialectOf(path: string): Dialect {
  if (path.includes("/chat/completions")) return "chat";
  if (path.includes("/messages")) return "messages";
  return /:\w+/.test(path) ? "content" : "responses";
}

function modelOf(seen: Seen): string | undefined {
  const [, named] = /\/models\/([^:?]+)/.exec(seen.path) ?? [];
  return named ?? (/"model"\s*:\s*"([^"]+)"/.exec(seen.text) ?? [])[1];
}

/** Returns the ordinary answer to this request. */
export function answerTo(seen: Seen): Reply {
  if (/count_tokens|input_tokens|:countTokens/.test(seen.path))
    return { body: { input_tokens: 12, totalTokens: 12, object: "response.input_tokens" } };
  if (/[Ee]mbed/.test(seen.path)) {
    const usage = { prompt_tokens: 1000, total_tokens: 1000 };
    return { body: { object: "list", model: modelOf(seen), data: [], embeddings: [], usage } };
  }
  const dialect = dialectOf(seen.path);
  const model = modelOf(seen);
  const shape = model === undefined ? {} : { model };
  const asked = /"include_usage"\s*:\s*true/.test(seen.text);
  const streams = /"stream"\s*:\s*true/.test(seen.text) || seen.path.includes(":streamGenerateContent");
  return streams ? { pieces: stream(dialect, shape, asked) } : { body: whole(dialect, shape) };
}

/** Writes a page of a model list, in the shape of its path. */
export function listOf(path: string, all: readonly string[]): Value {
  const { searchParams: query } = new URL(path, "http://x");
  const isContent = path.includes("v1beta");
  const start = isContent ? Number(query.get("pageToken")) : all.indexOf(query.get("after_id") ?? "") + 1;
  const end = start + 2;
  const ids = all.slice(start, end);
  if (isContent)
    return {
      ...(end < all.length && { nextPageToken: String(end) }),
      models: ids.map((id) => ({
        name: `models/${id}`,
        displayName: id,
        supportedGenerationMethods: ["generateContent", "countTokens"],
      })),
    };
  return {
    object: "list",
    data: ids.map((id) => ({
      id,
      type: "model",
      object: "model",
      display_name: id,
      created: 1,
      owned_by: "test",
    })),
    has_more: end < all.length,
    first_id: ids[0] ?? null,
    last_id: ids.at(-1) ?? null,
  };
}

export interface Ask {
  readonly target: string;
  readonly body: Value;
}

/** Returns an ordinary request in a dialect. */
export function ask(dialect: Dialect, more: Value = {}, prefix = ""): Ask {
  const { model = "test-model", ...others } = more as { model?: string };
  const turns = [{ role: "user", content: "Hello" }];
  switch (dialect) {
    case "messages":
      return {
        target: `${prefix}/v1/messages`,
        body: { model, max_tokens: 500, messages: turns, ...others },
      };
    case "responses":
      return { target: `${prefix}/v1/responses`, body: { model, input: "Hello", ...others } };
    case "chat":
      return { target: `${prefix}/v1/chat/completions`, body: { model, messages: turns, ...others } };
    case "content": {
      const { stream: streams, ...rest } = others as { stream?: boolean };
      const verb = streams === true ? "streamGenerateContent?alt=sse" : "generateContent";
      return {
        target: `${prefix}/v1beta/models/${model}:${verb}`,
        body: { contents: [{ role: "user", parts: [{ text: "Hello" }] }], ...rest },
      };
    }
  }
}
