// The simulated model's texts, in four wire formats. Four characters are a token.

import { getText, getField, getList, isObject } from "../lib/json/json.ts";

type Json = Readonly<Record<string, unknown>>;

export interface ModelAnswer {
  readonly id: string;
  readonly model: string;
  readonly words: readonly string[];
  /** The client's limit ended the answer. */
  readonly isCut: boolean;
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

export type FormatName = "messages" | "responses" | "chat" | "content";

export interface Format {
  readonly conversation: (body: unknown) => readonly unknown[];
  readonly limit: (body: unknown) => unknown;
  readonly writeReply: (answer: ModelAnswer) => Json;
  readonly writeEvents: (answer: ModelAnswer, body: unknown) => readonly string[];
  readonly count?: (tokens: number) => Json;
  readonly embed?: (tokens: number, body: unknown) => Json;
  readonly compact?: (tokens: number, body: unknown) => Json;
}

const LEAST_CACHED_TOKENS = 1024;
const MAX_PROMPTS = 16;
const ECHOED = 200;

export function createModel() {
  let serial = 0;
  const prompts: string[] = [];
  return {
    countInput: (body: unknown): number => countTokens(writePrompt(body)),
    answer: (format: Format, body: unknown, model: unknown): ModelAnswer => {
      serial += 1;
      const prompt = writePrompt(body);
      const shared = Math.max(0, ...prompts.map((earlier) => countShared(earlier, prompt)));
      prompts.push(prompt);
      if (prompts.length > MAX_PROMPTS) prompts.shift();
      const cached = Math.floor(shared / 4) < LEAST_CACHED_TOKENS ? 0 : Math.floor(shared / 4);
      const said = readTexts(format.conversation(body).at(-1)).slice(0, ECHOED);
      const name = getText(model);
      const text = `You said: "${said}" I am ${name}, a simulated model, and I have counted every word of this answer.`;
      const all = text.match(/\S{1,16}\s*|\s+/gu) ?? [];
      const limit = Number(format.limit(body) ?? Infinity);
      const words = all.slice(0, Math.max(1, limit));
      return {
        id: `demo${String(serial).padStart(8, "0")}`,
        model: name,
        words,
        isCut: words.length < all.length,
        input: countTokens(prompt) - cached,
        cached,
        output: words.length,
      };
    },
  };
}

function countTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** Upstreams cache in this order: tools, system, messages. */
function writePrompt(body: unknown): string {
  const members = [
    "model",
    "tools",
    "system",
    "systemInstruction",
    "instructions",
    "messages",
    "contents",
    "input",
  ];
  return members.map((name) => JSON.stringify(getField(body, name)) ?? "").join("");
}

function countShared(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

function readTexts(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(readTexts).join(" ");
  if (!isObject(value)) return "";
  return readTexts(value["text"] ?? value["content"] ?? value["parts"] ?? "");
}

const event = (payload: Json): string =>
  `event: ${String(payload["type"])}\ndata: ${JSON.stringify(payload)}\n\n`;
const data = (payload: unknown, end = "\n\n"): string => `data: ${JSON.stringify(payload)}${end}`;

const NOW_SECONDS = () => Math.floor(Date.now() / 1000);

// ── Messages ──

function writeMessage(
  answer: ModelAnswer,
  content: readonly Json[],
  stop: string | null,
  output: number,
): Json {
  const { id, model, input, cached } = answer;
  return {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model,
    content,
    stop_reason: stop,
    stop_sequence: null,
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: cached,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: output,
      service_tier: "standard",
    },
  };
}

const stopOf = ({ isCut }: ModelAnswer): string => (isCut ? "max_tokens" : "end_turn");

const messages: Format = {
  conversation: (body) => getList(getField(body, "messages")),
  limit: (body) => getField(body, "max_tokens"),
  writeReply: (answer) =>
    writeMessage(answer, [{ type: "text", text: answer.words.join("") }], stopOf(answer), answer.output),
  writeEvents: (answer) => {
    const delta = { stop_reason: stopOf(answer), stop_sequence: null };
    return [
      { type: "message_start", message: writeMessage(answer, [], null, 1) },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      ...answer.words.map((text) => ({
        type: "content_block_delta",
        index: 0,
        delta: { type: "text_delta", text },
      })),
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta, usage: { output_tokens: answer.output } },
      { type: "message_stop" },
    ].map(event);
  },
  count: (input_tokens) => ({ input_tokens }),
};

// ── Responses ──

function writeResponse(answer: ModelAnswer, status: string, output: readonly Json[]): Json {
  const { id, model, input, cached, isCut } = answer;
  const usage = {
    input_tokens: input + cached,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: answer.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + cached + answer.output,
  };
  const isOver = output.length > 0;
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: NOW_SECONDS(),
    status,
    model,
    output,
    error: null,
    incomplete_details: isOver && isCut ? { reason: "max_output_tokens" } : null,
    parallel_tool_calls: true,
    service_tier: "default",
    tool_choice: "auto",
    tools: [],
    usage: isOver ? usage : null,
  };
}

const endOf = ({ isCut }: ModelAnswer): string => (isCut ? "incomplete" : "completed");

function writeItem(answer: ModelAnswer, text: string | null): Json {
  const content = text === null ? [] : [{ type: "output_text", text, annotations: [], logprobs: [] }];
  const status = text === null ? "in_progress" : endOf(answer);
  return { id: `msg_${answer.id}`, type: "message", role: "assistant", status, content };
}

const responses: Format = {
  conversation: (body) => {
    const input = getField(body, "input");
    return typeof input === "string" ? [input] : getList(input);
  },
  limit: (body) => getField(body, "max_output_tokens"),
  writeReply: (answer) => writeResponse(answer, endOf(answer), [writeItem(answer, answer.words.join(""))]),
  writeEvents: (answer) => {
    const text = answer.words.join("");
    const item = writeItem(answer, text);
    const [part] = getList(item["content"]);
    const at = { output_index: 0, content_index: 0, item_id: item["id"] };
    const empty = { type: "output_text", text: "", annotations: [], logprobs: [] };
    const steps: Json[] = [
      { type: "response.created", response: writeResponse(answer, "in_progress", []) },
      { type: "response.output_item.added", output_index: 0, item: writeItem(answer, null) },
      { type: "response.content_part.added", ...at, part: empty },
      ...answer.words.map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
      { type: "response.output_text.done", ...at, text, logprobs: [] },
      { type: "response.content_part.done", ...at, part },
      { type: "response.output_item.done", output_index: 0, item },
      { type: `response.${endOf(answer)}`, response: writeResponse(answer, endOf(answer), [item]) },
    ];
    return steps.map((step, sequence_number) => event({ ...step, sequence_number }));
  },
  count: (input_tokens) => ({ object: "response.input_tokens", input_tokens }),
  compact: (tokens, body) => {
    const seal = { id: "cmp_demo", type: "compaction", encrypted_content: "demo" };
    const kept = getList(getField(body, "input")).filter((item) => getField(item, "role") === "user");
    const usage = { input_tokens: tokens, output_tokens: 1, total_tokens: tokens + 1 };
    return {
      id: "resp_demo",
      object: "response.compaction",
      created_at: NOW_SECONDS(),
      output: [...kept, seal],
      usage,
    };
  },
};

// ── Chat Completions ──

function writeChunk(answer: ModelAnswer, object: string, more: Json): Json {
  return { id: `chatcmpl-${answer.id}`, object, created: NOW_SECONDS(), model: answer.model, ...more };
}

const writeChatUsage = ({ input, cached, output }: ModelAnswer): Json => ({
  prompt_tokens: input + cached,
  completion_tokens: output,
  total_tokens: input + cached + output,
  prompt_tokens_details: { cached_tokens: cached },
});

const chat: Format = {
  conversation: (body) => getList(getField(body, "messages")),
  limit: (body) => getField(body, "max_completion_tokens") ?? getField(body, "max_tokens"),
  writeReply: (answer) =>
    writeChunk(answer, "chat.completion", {
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: answer.words.join(""), refusal: null },
          finish_reason: answer.isCut ? "length" : "stop",
        },
      ],
      usage: writeChatUsage(answer),
    }),
  writeEvents: (answer, body) => {
    const isCounted = getField(getField(body, "stream_options"), "include_usage") === true;
    const write = (choices: readonly Json[], usage: Json | null): string =>
      data(writeChunk(answer, "chat.completion.chunk", { choices, ...(isCounted && { usage }) }));
    const step = (delta: Json, finish_reason: string | null = null): string =>
      write([{ index: 0, delta, finish_reason }], null);
    return [
      step({ role: "assistant", content: "" }),
      ...answer.words.map((content) => step({ content })),
      step({}, answer.isCut ? "length" : "stop"),
      ...(isCounted ? [write([], writeChatUsage(answer))] : []),
      "data: [DONE]\n\n",
    ];
  },
  embed: (tokens, body) => {
    const input = getField(body, "input");
    const texts = Array.isArray(input) ? input : [input];
    const isPacked = getField(body, "encoding_format") === "base64";
    const vector = isPacked ? Buffer.from(new Float32Array(VECTOR).buffer).toString("base64") : VECTOR;
    return {
      object: "list",
      data: texts.map((_, index) => ({ object: "embedding", index, embedding: vector })),
      model: getField(body, "model"),
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
  },
};

const VECTOR = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];

// ── Content ──

/** Each chunk of a stream has the usage so far. */
function writeContent(answer: ModelAnswer, text: string, output: number, isLast: boolean): Json {
  const { id, model, input, cached, isCut } = answer;
  const finish = isLast ? { finishReason: isCut ? "MAX_TOKENS" : "STOP" } : {};
  return {
    candidates: [{ content: { parts: [{ text }], role: "model" }, ...finish, index: 0 }],
    usageMetadata: {
      promptTokenCount: input + cached,
      candidatesTokenCount: output,
      totalTokenCount: input + cached + output,
      ...(cached > 0 && { cachedContentTokenCount: cached }),
    },
    modelVersion: model,
    responseId: id,
  };
}

const content: Format = {
  conversation: (body) => getList(getField(body, "contents")),
  limit: (body) => getField(getField(body, "generationConfig"), "maxOutputTokens"),
  writeReply: (answer) => writeContent(answer, answer.words.join(""), answer.output, true),
  writeEvents: (answer) =>
    answer.words.map((text, index) => {
      const isLast = index === answer.words.length - 1;
      return data(writeContent(answer, text, index + 1, isLast), "\r\n\r\n");
    }),
  count: (totalTokens) => ({
    totalTokens,
    promptTokensDetails: [{ modality: "TEXT", tokenCount: totalTokens }],
  }),
  embed: (_, body) => {
    const values = VECTOR;
    const requests = getField(body, "requests");
    return Array.isArray(requests)
      ? { embeddings: requests.map(() => ({ values })) }
      : { embedding: { values } };
  },
};

export const FORMATS: Readonly<Record<FormatName, Format>> = { messages, responses, chat, content };
