// The four dialects as traffic needs them: a request, and answers of an upstream, whole and as a stream.

import type { Fields, Script } from "./wire.ts";

export type Dialect = "messages" | "responses" | "chat" | "content";
export const DIALECTS: readonly Dialect[] = ["messages", "responses", "chat", "content"];

export const JSON_TYPE: Fields = [["content-type", "application/json"]];
export const SSE_TYPE: Fields = [["content-type", "text/event-stream"]];

export const MODELS: Readonly<Record<Dialect, string>> = {
  messages: "claude-haiku-4-5",
  responses: "gpt-5.4",
  chat: "gpt-5-mini",
  content: "gemini-2.5-flash",
};

const TOOL = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

export interface Asked {
  readonly target: string;
  readonly body: object;
}

/** A request with a system prompt and a tool. `more` goes into its body. */
export function request(dialect: Dialect, stream: boolean, more: object = {}): Asked {
  const model = MODELS[dialect];
  const common = { model, ...(stream ? { stream } : {}), ...more };
  if (dialect === "messages") {
    const tools = [{ name: "weather", description: "The weather.", input_schema: TOOL }];
    const messages = [{ role: "user", content: [{ type: "text", text: "Hello" }] }];
    return {
      target: "/v1/messages",
      body: { max_tokens: 400, system: "Be short.", tools, messages, ...common },
    };
  }
  if (dialect === "responses") {
    const tools = [
      { type: "function", name: "weather", description: "The weather.", parameters: TOOL, strict: false },
    ];
    const input = [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] }];
    return {
      target: "/v1/responses",
      body: { max_output_tokens: 400, instructions: "Be short.", tools, input, ...common },
    };
  }
  if (dialect === "chat") {
    const tools = [
      { type: "function", function: { name: "weather", description: "The weather.", parameters: TOOL } },
    ];
    const messages = [
      { role: "system", content: "Be short." },
      { role: "user", content: "Hello" },
    ];
    return {
      target: "/v1/chat/completions",
      body: { max_completion_tokens: 400, tools, messages, ...common },
    };
  }
  const tools = [
    {
      functionDeclarations: [
        { name: "weather", description: "The weather.", parameters: { ...TOOL, type: "OBJECT" } },
      ],
    },
  ];
  const contents = [{ role: "user", parts: [{ text: "Hello" }] }];
  const body = {
    systemInstruction: { parts: [{ text: "Be short." }] },
    generationConfig: { maxOutputTokens: 400 },
    tools,
    contents,
    ...more,
  };
  const verb = stream ? "streamGenerateContent?alt=sse" : "generateContent";
  return { target: `/v1beta/models/${model}:${verb}`, body };
}

interface Event {
  readonly type: string;
  readonly [name: string]: unknown;
}

const data = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
const named = (event: Event): string => `event: ${event.type}\n${data(event)}`;

/** The events of a stream that says "Hello " and "world" and calls the tool. */
export function events(dialect: Dialect, model: string = MODELS[dialect]): string[] {
  if (dialect === "messages") {
    const usage = {
      input_tokens: 20,
      cache_creation_input_tokens: 30,
      cache_read_input_tokens: 400,
      output_tokens: 1,
      service_tier: "standard",
    };
    const message = {
      id: "msg_01ABC",
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    };
    return [
      named({ type: "message_start", message }),
      named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
      ...["Hello ", "world"].map((text) =>
        named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
      ),
      named({ type: "content_block_stop", index: 0 }),
      named({
        type: "content_block_start",
        index: 1,
        content_block: { type: "tool_use", id: "toolu_01A", name: "weather", input: {} },
      }),
      named({
        type: "content_block_delta",
        index: 1,
        delta: { type: "input_json_delta", partial_json: '{"city":"Bonn"}' },
      }),
      named({ type: "content_block_stop", index: 1 }),
      named({
        type: "message_delta",
        delta: { stop_reason: "tool_use", stop_sequence: null },
        usage: { output_tokens: 25 },
      }),
      named({ type: "message_stop" }),
    ];
  }
  if (dialect === "responses") {
    const base = {
      id: "resp_01ABC",
      object: "response",
      created_at: 1750000000,
      model,
      status: "in_progress",
      output: [],
      usage: null,
    };
    const final = answer("responses", model);
    const item = { id: "msg_1", type: "message", status: "in_progress", role: "assistant", content: [] };
    const call = {
      id: "fc_1",
      type: "function_call",
      status: "in_progress",
      call_id: "call_1",
      name: "weather",
      arguments: "",
    };
    const list: Event[] = [
      { type: "response.created", response: base },
      { type: "response.output_item.added", output_index: 0, item },
      {
        type: "response.content_part.added",
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        part: { type: "output_text", text: "", annotations: [] },
      },
      ...["Hello ", "world"].map((delta) => ({
        type: "response.output_text.delta",
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        delta,
      })),
      {
        type: "response.output_text.done",
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        text: "Hello world",
      },
      { type: "response.output_item.done", output_index: 0, item: final.output[0] },
      { type: "response.output_item.added", output_index: 1, item: call },
      {
        type: "response.function_call_arguments.delta",
        item_id: "fc_1",
        output_index: 1,
        delta: '{"city":"Bonn"}',
      },
      {
        type: "response.function_call_arguments.done",
        item_id: "fc_1",
        output_index: 1,
        arguments: '{"city":"Bonn"}',
      },
      { type: "response.output_item.done", output_index: 1, item: final.output[1] },
      { type: "response.completed", response: final },
    ];
    return list.map((event, sequence_number) => named({ ...event, sequence_number }));
  }
  if (dialect === "chat") {
    const chunk = (delta: object, finish_reason: string | null = null, usage: object | null = null): string =>
      data({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1750000000,
        model,
        choices: [{ index: 0, delta, finish_reason }],
        usage,
      });
    const call = {
      index: 0,
      id: "call_1",
      type: "function",
      function: { name: "weather", arguments: '{"city":"Bonn"}' },
    };
    return [
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "Hello " }),
      chunk({ content: "world" }),
      chunk({ tool_calls: [call] }),
      chunk({}, "tool_calls"),
      data({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1750000000,
        model,
        choices: [],
        usage: CHAT_USAGE,
      }),
      "data: [DONE]\n\n",
    ];
  }
  const piece = (parts: object[], more: object = {}, candidate: object = {}): string =>
    data({
      candidates: [{ index: 0, content: { role: "model", parts }, ...candidate }],
      modelVersion: model,
      responseId: "r1",
      ...more,
    });
  const end = { finishReason: "STOP" };
  return [
    piece([{ text: "Hello " }], { usageMetadata: { promptTokenCount: 450, totalTokenCount: 450 } }),
    piece([{ text: "world" }]),
    piece(
      [{ functionCall: { name: "weather", args: { city: "Bonn" } } }],
      { usageMetadata: CONTENT_USAGE },
      end,
    ),
  ];
}

const CHAT_USAGE = {
  prompt_tokens: 450,
  completion_tokens: 25,
  total_tokens: 475,
  prompt_tokens_details: { cached_tokens: 400 },
};
const CONTENT_USAGE = {
  promptTokenCount: 450,
  cachedContentTokenCount: 400,
  candidatesTokenCount: 20,
  thoughtsTokenCount: 5,
  totalTokenCount: 475,
};

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of four kinds
type Any = any;

/** The same as one document. */
export function answer(dialect: Dialect, model: string = MODELS[dialect]): Any {
  if (dialect === "messages") {
    const content = [
      { type: "text", text: "Hello world" },
      { type: "tool_use", id: "toolu_01A", name: "weather", input: { city: "Bonn" } },
    ];
    const cache_creation = { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 };
    const usage = {
      input_tokens: 20,
      cache_creation_input_tokens: 30,
      cache_creation,
      cache_read_input_tokens: 400,
      output_tokens: 25,
      service_tier: "standard",
    };
    return {
      id: "msg_01ABC",
      type: "message",
      role: "assistant",
      model,
      content,
      stop_reason: "tool_use",
      stop_sequence: null,
      usage,
    };
  }
  if (dialect === "responses") {
    const text = { type: "output_text", text: "Hello world", annotations: [] };
    const output = [
      { id: "msg_1", type: "message", status: "completed", role: "assistant", content: [text] },
      {
        id: "fc_1",
        type: "function_call",
        status: "completed",
        call_id: "call_1",
        name: "weather",
        arguments: '{"city":"Bonn"}',
      },
    ];
    const usage = {
      input_tokens: 450,
      input_tokens_details: { cached_tokens: 400 },
      output_tokens: 25,
      output_tokens_details: { reasoning_tokens: 5 },
      total_tokens: 475,
    };
    return {
      id: "resp_01ABC",
      object: "response",
      created_at: 1750000000,
      status: "completed",
      error: null,
      incomplete_details: null,
      model,
      output,
      service_tier: "default",
      usage,
    };
  }
  if (dialect === "chat") {
    const call = {
      id: "call_1",
      type: "function",
      function: { name: "weather", arguments: '{"city":"Bonn"}' },
    };
    const message = { role: "assistant", content: "Hello world", tool_calls: [call], refusal: null };
    return {
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1750000000,
      model,
      choices: [{ index: 0, message, finish_reason: "tool_calls" }],
      usage: CHAT_USAGE,
    };
  }
  const parts = [{ text: "Hello world" }, { functionCall: { name: "weather", args: { city: "Bonn" } } }];
  return {
    candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }],
    usageMetadata: CONTENT_USAGE,
    modelVersion: model,
    responseId: "r1",
  };
}

export function answered(dialect: Dialect, stream: boolean, model?: string): Script {
  return stream
    ? { fields: SSE_TYPE, pieces: events(dialect, model) }
    : { fields: JSON_TYPE, pieces: [JSON.stringify(answer(dialect, model))], framing: "length" };
}

/** An error of this dialect's upstreams. */
export function failure(dialect: Dialect, status: number, message = "as scripted"): Script {
  const body =
    dialect === "messages"
      ? { type: "error", error: { type: "api_error", message }, request_id: "req_011Upstream" }
      : dialect === "content"
        ? { error: { code: status, message, status: "INTERNAL" } }
        : { error: { message, type: "server_error", param: null, code: "as_scripted" } };
  return { status, fields: JSON_TYPE, pieces: [JSON.stringify(body)], framing: "length" };
}

/** An error as an event of a stream. */
export function errorEvent(dialect: Dialect): string {
  const error = { type: "overloaded_error", message: "as scripted" };
  if (dialect === "messages") return named({ type: "error", error });
  if (dialect === "responses") {
    const response = {
      ...answer("responses"),
      status: "failed",
      error: { code: "server_error", message: "as scripted" },
      usage: null,
    };
    return named({ type: "response.failed", sequence_number: 9, response });
  }
  return dialect === "chat"
    ? data({ error })
    : data({ error: { code: 503, message: "as scripted", status: "UNAVAILABLE" } });
}
