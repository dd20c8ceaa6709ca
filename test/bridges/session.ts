// A session of an agent: what the user sends, and the history that a client of each dialect makes of it. Written by hand from
// the providers' documents, without any code of the bridges.

import type { DialectName } from "../../src/dialects/dialect.ts";
import type { Any } from "./calls.ts";

export interface ModelCall {
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export interface ModelTurn {
  readonly thought: string | null;
  readonly text: string | null;
  readonly calls: readonly ModelCall[];
}

export interface UserTurn {
  /** The results of the calls in the model's turn before. */
  readonly results: readonly string[];
  readonly text: string | null;
  readonly image: boolean;
}

export const TOOLS = [
  "Read",
  "Bash",
  "mcp__server__a_tool_with_a_very_long_name_that_no_provider_accepts_as_it_is_0123456789",
];
export const PIXEL = "iVBORw0KGgo=";
const SCHEMA = { type: "object", properties: { path: { type: "string" } }, additionalProperties: false };

/** Writes a client's request. Its history is a list of entries in the client's own form. */
export function formRequest(client: DialectName, history: readonly Any[], stream: boolean): Any {
  switch (client) {
    case "messages":
      return {
        model: "asked",
        max_tokens: 4096,
        stream,
        system: [{ type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } }],
        thinking: { type: "adaptive" },
        tools: TOOLS.map((name) => ({ name, description: "A tool.", input_schema: SCHEMA })),
        messages: history.map((message, at) => (at < history.length - 1 ? message : markLast(message))),
      };
    case "responses":
      return {
        model: "asked",
        stream,
        store: false,
        instructions: "You are an agent.",
        reasoning: { effort: "high", summary: "auto" },
        include: ["reasoning.encrypted_content"],
        tools: TOOLS.map((name) => ({ type: "function", name, parameters: SCHEMA, strict: false })),
        input: history,
      };
    case "chat":
      return {
        model: "asked",
        stream,
        ...(stream ? { stream_options: { include_usage: true } } : {}),
        reasoning_effort: "high",
        tools: TOOLS.map((name) => ({ type: "function", function: { name, parameters: SCHEMA } })),
        messages: [{ role: "system", content: "You are an agent." }, ...history],
      };
    case "content":
      return {
        systemInstruction: { role: "user", parts: [{ text: "You are an agent." }] },
        generationConfig: { thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" } },
        tools: [{ functionDeclarations: TOOLS.map((name) => ({ name, parametersJsonSchema: SCHEMA })) }],
        contents: history,
      };
  }
}

/** Claude Code marks the end of each request for the cache, and keeps no mark in its history. */
function markLast({ role, content }: Any): Any {
  if (typeof content === "string") return { role, content };
  const last = { ...content.at(-1), cache_control: { type: "ephemeral" } };
  return { role, content: [...content.slice(0, -1), last] };
}

/** Writes what a client adds to its history for the user's turn. */
export function formUser(client: DialectName, turn: UserTurn, calls: readonly ModelCall[]): Any[] {
  const results = calls.map((call, index) => ({ ...call, result: turn.results[index] ?? "ok" }));
  return USERS[client](results, turn);
}

type FormUser = (results: readonly (ModelCall & { readonly result: string })[], turn: UserTurn) => Any[];

const URL = `data:image/png;base64,${PIXEL}`;

/** Writes the given parts as a message of the user, or no message if all parts are null. */
function say(parts: readonly Any[], more: Any = {}, field = "content"): Any[] {
  const said = parts.filter((part) => part !== null);
  return said.length === 0 ? [] : [{ ...more, role: "user", [field]: said }];
}

const USERS: Readonly<Record<DialectName, FormUser>> = {
  messages: (results, { text, image }) =>
    say([
      ...results.map(({ id, result }) => ({ type: "tool_result", tool_use_id: id, content: result })),
      text === null ? null : { type: "text", text },
      image ? { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } } : null,
    ]),
  responses: (results, { text, image }) => [
    ...results.map(({ id, result }) => ({ type: "function_call_output", call_id: id, output: result })),
    ...say(
      [
        text === null ? null : { type: "input_text", text },
        image ? { type: "input_image", image_url: URL } : null,
      ],
      { type: "message" },
    ),
  ],
  chat: (results, { text, image }) => [
    ...results.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result })),
    ...say([
      text === null ? null : { type: "text", text },
      image ? { type: "image_url", image_url: { url: URL } } : null,
    ]),
  ],
  content: (results, { text, image }) =>
    say(
      [
        ...results.map(({ id, name, result }) => ({
          functionResponse: { id, name, response: { output: result } },
        })),
        text === null ? null : { text },
        image ? { inlineData: { mimeType: "image/png", data: PIXEL } } : null,
      ],
      {},
      "parts",
    ),
};

/** Returns what a client adds to its history for an answer. A whole answer is a list of one event. */
export function keepAnswer(client: DialectName, events: readonly Any[]): Any[] {
  return KEEP[client](events);
}

/** The field of a block that a delta continues. */
const DELTA_FIELDS: Readonly<Record<string, string>> = {
  text_delta: "text",
  thinking_delta: "thinking",
  signature_delta: "signature",
  input_json_delta: "json",
};

const KEEP: Readonly<Record<DialectName, (events: readonly Any[]) => Any[]>> = {
  messages(events) {
    if (events[0]?.type === "message") return [{ role: "assistant", content: events[0].content }];
    const content: Any[] = [];
    for (const event of events) {
      if (event.type === "content_block_start") content[event.index] = { ...event.content_block, json: "" };
      const { delta } = event;
      if (event.type !== "content_block_delta") continue;
      const field = DELTA_FIELDS[delta.type] ?? "";
      content[event.index][field] += delta.partial_json ?? delta[field];
    }
    for (const block of content) {
      if (block.type === "tool_use") block.input = JSON.parse(block.json);
      delete block.json;
    }
    return content.length === 0 ? [] : [{ role: "assistant", content }];
  },
  responses(events) {
    const last = events.at(-1);
    return (last.response ?? last).output;
  },
  chat(events) {
    const message: Any = { role: "assistant", content: null };
    for (const event of events) {
      const [choice] = event.choices ?? [];
      keepDelta(message, choice?.delta ?? choice?.message ?? {});
    }
    return [message];
  },
  content(events) {
    const parts: Any[] = [];
    for (const event of events) {
      for (const part of event.candidates?.[0]?.content?.parts ?? []) {
        const last = parts.at(-1);
        const joins = last?.text !== undefined && part.text !== undefined && last.thought === part.thought;
        if (joins && part.thoughtSignature === undefined) last.text += part.text;
        else parts.push({ ...part });
      }
    }
    return [{ role: "model", parts: parts.filter(({ thought }) => thought !== true) }];
  },
};

function keepDelta(message: Any, delta: Any): void {
  for (const field of ["content", "reasoning_content"])
    if (delta[field]) message[field] = (message[field] ?? "") + delta[field];
  if (delta.reasoning_details)
    message.reasoning_details = [...(message.reasoning_details ?? []), ...delta.reasoning_details];
  for (const [at, call] of (delta.tool_calls ?? []).entries()) keepCall(message, call, call.index ?? at);
}

function keepCall(message: Any, call: Any, index: number): void {
  message.tool_calls ??= [];
  const known = message.tool_calls[index];
  if (known !== undefined) known.function.arguments += call.function.arguments;
  else message.tool_calls[index] = { id: call.id, type: call.type, function: { ...call.function } };
}
