// Agents as small programs: they send what released ones were seen to send (Claude Code 2.1, Codex 0.169, opencode 1.18, Gemini
// CLI 0.61), with the official SDKs, and keep their history as those do. The words are our own.

import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import type { DialectName } from "../../../src/dialects/dialect.ts";
import type { Any } from "../../bridges/calls.ts";
import { keepAnswer } from "../../bridges/session.ts";

/** A call as the agent runs it. */
export interface AgentCall {
  readonly id: string;
  readonly name: string;
  readonly input: Any;
  readonly isCustom: boolean;
}

export interface Outcome {
  readonly text: string;
  readonly isFailed?: boolean;
  /** Base64 of a PNG. */
  readonly image?: string;
}

export interface ProgramAgent {
  readonly name: string;
  readonly client: DialectName;
  say(text: string): Any;
  answer(calls: readonly AgentCall[], outcomes: readonly Outcome[]): Any[];
  /** What the client adds to its history for the answer. */
  send(history: readonly Any[], signal: AbortSignal, isStream: boolean): Promise<Any[]>;
  listCalls(kept: readonly Any[]): AgentCall[];
}

const SESSION = "0d2f7c1e-6a53-4b8e-9d31-2f0a54c8e7b6";
const SYSTEM = "You are an agent. You work on the files of a folder. ".repeat(40);
const SECOND_SYSTEM = "You may use tools. ".repeat(60);

const text = { type: "string" };
const optional = { type: "number" };
const PARAMETERS: Readonly<Record<string, Any>> = {
  path: { file_path: text },
  camelPath: { filePath: text, offset: optional },
  camelEdit: { filePath: text, oldString: text, newString: text },
  edit: { file_path: text, old_string: text, new_string: text },
  command: { command: text, description: text, timeout: optional },
  cmd: { cmd: text, yield_time_ms: optional },
  view: { path: text },
  nothing: {},
};

function schemaOf(kind: string): Any {
  const properties = PARAMETERS[kind];
  return {
    type: "object",
    properties,
    required: Object.keys(properties).slice(0, 1),
    additionalProperties: false,
  };
}

const DESCRIPTION = "Does what its name says, and answers with a text. ".repeat(8);

const CLAUDE_TOOLS = [
  ["Bash", "command"],
  ["Edit", "edit"],
  ["Read", "path"],
  ["mcp__a_server_with_a_long_name__a_tool_with_a_name_that_is_longer_than_others_allow", "nothing"],
] as const;
const EPHEMERAL = { cache_control: { type: "ephemeral" } };

function openClaude(baseURL: string, apiKey: string): ProgramAgent {
  const sdk = new Anthropic({
    apiKey,
    baseURL,
    maxRetries: 0,
    defaultHeaders: { "x-claude-code-session-id": SESSION },
  });
  const reminder = {
    role: "system",
    content: [{ type: "text", text: SECOND_SYSTEM, ...EPHEMERAL }],
    output_config: { effort: "medium" },
  };
  let asked = 0;
  const form = (history: readonly Any[], stream: boolean): Any => {
    asked += 1;
    return {
      model: "claude-opus-5-5",
      messages: [
        history[0],
        reminder,
        ...history.slice(1).map((each, at) => (at === history.length - 2 ? mark(each) : each)),
      ],
      system: [
        { type: "text", text: `x-anthropic-billing-header: cc_version=2.1.330; cch=${asked}` },
        { type: "text", text: SYSTEM, ...EPHEMERAL },
      ],
      tools: [
        ...CLAUDE_TOOLS.map(([name, kind]) => ({
          name,
          description: DESCRIPTION,
          input_schema: { $schema: "https://json-schema.org/draft/2020-12/schema", ...schemaOf(kind) },
        })),
        { name: "Placeholder", description: "", input_schema: schemaOf("nothing"), defer_loading: true },
      ],
      metadata: { user_id: JSON.stringify({ device_id: "d", account_uuid: "", session_id: SESSION }) },
      max_tokens: stream ? 128_000 : 64_000,
      thinking: { type: "adaptive", display: "omitted" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      output_config: { effort: "medium" },
      stream,
    };
  };
  return {
    name: "Claude Code",
    client: "messages",
    say: (said) => ({ role: "user", content: [{ type: "text", text: said }] }),
    answer: (calls, outcomes) => [
      {
        role: "user",
        content: calls.map(({ id }, at) => {
          const { text: said, isFailed = false, image } = outcomes[at] ?? { text: "" };
          const source = { type: "base64", media_type: "image/png", data: image };
          const content = image === undefined ? said : [{ type: "image", source }];
          return { type: "tool_result", tool_use_id: id, content, ...(isFailed && { is_error: true }) };
        }),
      },
    ],
    async send(history, signal, isStream) {
      const body = form(history, isStream);
      const message = isStream
        ? await sdk.messages.stream(body, { signal }).finalMessage()
        : await sdk.messages.create(body, { signal, timeout: 600_000 });
      return [{ role: "assistant", content: message.content }];
    },
    listCalls: (kept) =>
      kept
        .flatMap(({ content }) => content)
        .filter(({ type }) => type === "tool_use")
        .map(({ id, name, input }) => ({ id, name, input, isCustom: false })),
  };
}

function mark({ role, content }: Any): Any {
  return {
    role,
    content: content.map((block: Any, at: number) =>
      at < content.length - 1 ? block : { ...block, ...EPHEMERAL },
    ),
  };
}

const CODEX_TOOLS = [
  {
    type: "function",
    name: "exec_command",
    description: DESCRIPTION,
    strict: false,
    parameters: schemaOf("cmd"),
  },
  {
    type: "custom",
    name: "apply_patch",
    description: DESCRIPTION,
    format: { type: "grammar", syntax: "lark", definition: "start: /.+/" },
  },
  {
    type: "function",
    name: "view_image",
    description: DESCRIPTION,
    strict: false,
    parameters: schemaOf("view"),
  },
];
const CODEX_SPECIAL_TOOLS = [
  {
    type: "namespace",
    name: "agents",
    description: "",
    tools: [{ type: "function", name: "spawn", description: "", parameters: null }],
  },
  { type: "tool_search", execution: "client", description: DESCRIPTION, parameters: schemaOf("nothing") },
  { type: "web_search", external_web_access: true },
];

/** `isLite`: the tools are an item of the input, in a namespace. */
function openCodex(baseURL: string, apiKey: string, isLite: boolean): ProgramAgent {
  const defaultHeaders = {
    originator: "codex_exec",
    "session-id": SESSION,
    "user-agent": "codex_exec/0.169.0",
  };
  const sdk = new OpenAI({ apiKey, baseURL: `${baseURL}/v1`, maxRetries: 0, defaultHeaders });
  const own = [{ type: "namespace", name: "functions", description: "", tools: CODEX_TOOLS }];
  const lite = { type: "additional_tools", id: "at_1", role: "developer", tools: own };
  const message = (id: string, role: string, said: string): Any => ({
    type: "message",
    id,
    role,
    content: [{ type: "input_text", text: said }],
  });
  const start = [
    ...(isLite ? [lite] : []),
    message("msg_1", "developer", SYSTEM),
    message("msg_2", "developer", SECOND_SYSTEM),
    message("msg_3", "user", "<environment_context>here</environment_context>"),
  ];
  return {
    name: isLite ? "Codex with its tools in the input" : "Codex",
    client: "responses",
    say: (said) => message("msg_4", "user", said),
    answer: (calls, outcomes) =>
      calls.map(({ id, isCustom }, at) => {
        const { text: said, image } = outcomes[at] ?? { text: "" };
        const image_url = `data:image/png;base64,${image}`;
        const output = image === undefined ? said : [{ type: "input_image", image_url, detail: "original" }];
        return {
          type: isCustom ? "custom_tool_call_output" : "function_call_output",
          id: `fco_${id}`,
          call_id: id,
          output,
        };
      }),
    async send(history, signal) {
      const body: Any = {
        model: "gpt-5.5-terra",
        stream: true,
        input: [...start, ...history],
        ...(!isLite && { tools: [...CODEX_TOOLS, ...CODEX_SPECIAL_TOOLS] }),
        tool_choice: "auto",
        parallel_tool_calls: !isLite,
        reasoning: { effort: "medium", ...(isLite && { context: "all_turns" }) },
        store: false,
        include: ["reasoning.encrypted_content"],
        prompt_cache_key: SESSION,
        text: { verbosity: "low" },
        client_metadata: { "x-codex-window-id": `${SESSION}:0` },
      };
      const { output } = await sdk.responses.stream(body, { signal }).finalResponse();
      return output;
    },
    listCalls: (kept) =>
      kept.flatMap((item): AgentCall[] => {
        const { type, call_id: id, name, input, arguments: args } = item;
        if (type === "function_call") return [{ id, name, input: JSON.parse(args), isCustom: false }];
        return type === "custom_tool_call" ? [{ id, name, input: { input }, isCustom: true }] : [];
      }),
  };
}

const OPENCODE_TOOLS = [
  ["bash", "command"],
  ["edit", "camelEdit"],
  ["read", "camelPath"],
] as const;

function openChatAgent(baseURL: string, apiKey: string): ProgramAgent {
  const sdk = new OpenAI({
    apiKey,
    baseURL: `${baseURL}/v1`,
    maxRetries: 0,
    defaultHeaders: { "x-session-id": SESSION },
  });
  return {
    name: "opencode",
    client: "chat",
    say: (said) => ({ role: "user", content: said }),
    answer(calls, outcomes) {
      const images = outcomes.flatMap(({ image }) => (image === undefined ? [] : [image]));
      const parts = images.map((data) => ({
        type: "image_url",
        image_url: { url: `data:image/png;base64,${data}` },
      }));
      return [
        ...calls.map(({ id }, at) => ({ role: "tool", tool_call_id: id, content: outcomes[at]?.text ?? "" })),
        ...(parts.length === 0
          ? []
          : [{ role: "user", content: [{ type: "text", text: "The image:" }, ...parts] }]),
      ];
    },
    async send(history, signal) {
      const body: Any = {
        model: "asked",
        max_tokens: 32_000,
        messages: [{ role: "system", content: SYSTEM }, ...history],
        tools: OPENCODE_TOOLS.map(([name, kind]) => ({
          type: "function",
          function: { name, description: DESCRIPTION, parameters: schemaOf(kind) },
        })),
        tool_choice: "auto",
        reasoning_effort: "medium",
        stream: true,
        stream_options: { include_usage: true },
      };
      const { choices } = await sdk.chat.completions.stream(body, { signal }).finalChatCompletion();
      return [choices[0]?.message];
    },
    listCalls: (kept) =>
      kept
        .flatMap(({ tool_calls = [] }) => tool_calls)
        .map((call) => ({
          id: call.id,
          name: call.function.name,
          input: JSON.parse(call.function.arguments),
          isCustom: false,
        })),
  };
}

const GEMINI_TOOLS = [
  ["replace", "edit"],
  ["read_file", "path"],
  ["run_shell_command", "command"],
] as const;

function openGemini(baseUrl: string, apiKey: string): ProgramAgent {
  const headers = { "x-gateway-session": SESSION };
  const sdk = new GoogleGenAI({ apiKey, httpOptions: { baseUrl, headers } });
  return {
    name: "Gemini CLI",
    client: "content",
    say: (said) => ({ role: "user", parts: [{ text: said }] }),
    answer: (calls, outcomes) => [
      {
        role: "user",
        parts: calls.flatMap(({ id, name }, at) => {
          const { text: said, isFailed = false, image } = outcomes[at] ?? { text: "" };
          const response = {
            functionResponse: { id, name, response: { [isFailed ? "error" : "output"]: said } },
          };
          return image === undefined
            ? [response]
            : [response, { inlineData: { mimeType: "image/png", data: image } }];
        }),
      },
    ],
    async send(history, abortSignal) {
      const functionDeclarations = GEMINI_TOOLS.map(([name, kind]) => ({
        name,
        description: DESCRIPTION,
        parametersJsonSchema: schemaOf(kind),
      }));
      const config: Any = {
        abortSignal,
        systemInstruction: { role: "user", parts: [{ text: SYSTEM }] },
        tools: [{ functionDeclarations }],
        temperature: 1,
        topP: 0.95,
        topK: 64,
        thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" },
      };
      const stream = await sdk.models.generateContentStream({
        model: "gemini-3.8-flash",
        contents: [...history],
        config,
      });
      const chunks: Any[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      if (chunks.at(-1)?.candidates?.[0]?.finishReason === undefined)
        throw new Error("the answer has no end");
      return keepAnswer("content", chunks);
    },
    listCalls: (kept) =>
      kept
        .flatMap(({ parts }) => parts)
        .flatMap(({ functionCall: call }) =>
          call === undefined ? [] : [{ id: call.id, name: call.name, input: call.args, isCustom: false }],
        ),
  };
}

/** Each opens an agent at the gateway's address, with a key. */
export const PROGRAM_AGENTS: readonly ((url: string, key: string) => ProgramAgent)[] = [
  openClaude,
  (url, key) => openCodex(url, key, false),
  (url, key) => openCodex(url, key, true),
  openChatAgent,
  openGemini,
];
