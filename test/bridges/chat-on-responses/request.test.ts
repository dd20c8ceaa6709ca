// Each chat request becomes the Responses request that asks for the same.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../src/lib/errors.ts";
import { getField } from "../../../src/lib/json/json.ts";
import type { Json } from "./accumulate.ts";
import { type Converted, convertRequest } from "./direction.ts";
import { hasFixtures, listFixtures, readRequest } from "../../harness/fixtures.ts";
import { findFaults, listFields, schemasAbsent } from "./schemas.ts";

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const decode = (bytes: Uint8Array): Json => JSON.parse(new TextDecoder().decode(bytes));

const ASK = { model: "gpt-5", messages: [{ role: "user", content: "Hello" }] };

function convertBody(body: Uint8Array): Converted {
  const value: unknown = JSON.parse(new TextDecoder().decode(body));
  return convertRequest(body, String(getField(value, "model")), getField(value, "stream") === true);
}

function convert(request: object): Json {
  return decode(convertBody(encode({ ...ASK, ...request })).body);
}

function convertMessages(...messages: object[]): Json[] {
  return convert({ messages })["input"];
}

interface Refused {
  status: number;
  param: string | null;
  code: string | null;
  message: string;
}

function refuse(body: Uint8Array): Refused | null {
  try {
    convertRequest(body, "m", false);
    return null;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { status: error.status, param: error.param, code: error.wireCode, message: error.message };
  }
}

const refuseAsk = (request: object): Refused | null => refuse(encode({ ...ASK, ...request }));

const AUDIO = ["messages[0].content[1]", "unsupported_parameter"] as const;
const COUNT = ["n", "unsupported_parameter"] as const;
const SEARCH = ["web_search_options", "unsupported_parameter"] as const;

/** Recorded requests that have no counterpart, or that the native endpoint refused as well. */
const REFUSALS: Readonly<Record<string, readonly [param: string, code: string]>> = {
  "crewai--test-custom-llm-within-crew-0": ["messages[1].content[0].role", "unknown_parameter"],
  "crewai--utilities-test-stream-llm-emits-event-with-task-and-agent-info": ["stop", "unsupported_parameter"],
  "dd-trace-py--completion-stream-multiple-choices": COUNT,
  "dd-trace-py--completion-stream-multiple-choices-exclude-usage": COUNT,
  "elastic-otel--test-chat-multiple-choices-with-capture-message-content": COUNT,
  "envoy-ai-gateway--chat-bad-request": ["messages[0].content", "invalid_value"],
  "envoy-ai-gateway--chat-no-messages": ["messages", "empty_array"],
  "envoy-ai-gateway--chat-streaming-web-search": SEARCH,
  "envoy-ai-gateway--chat-text-to-audio": ["audio", "unsupported_parameter"],
  "fantasy--testvercelthinking-gemini-3-pro-preview-thinking-0": ["reasoning", "unknown_parameter"],
  "logfire--test-openai-test-chat-completions-with-audio-input": AUDIO,
  "mirascope--test-call-with-audio-openai-gpt-audio": AUDIO,
  "mirascope--test-call-with-params-openai-gpt-4o-completions": ["stop", "unsupported_parameter"],
  "otel-contrib--test-async-chat-completion-multiple-choices": COUNT,
  "otel-contrib--test-chat-completion-multiple-choices-streaming": COUNT,
  "pydantic-ai--test-multimodal-tool-returns-test-multimodal-tool-return-matrix-direct-binar-27f597-1": [
    "messages[3].content[1]",
    "unsupported_parameter",
  ],
  "pydantic-ai--test-openai-web-search-tool": SEARCH,
  "pydantic-ai--test-snowflake-thinking-streaming": ["reasoning", "unknown_parameter"],
  "pydantic-ai--test-thinking-wire-contract-test-reasoning-wire-contract-groq-gpt-oss-thinki-b81f5c": [
    "reasoning_format",
    "unknown_parameter",
  ],
  "pydantic-ai--test-zai-glm-5-3-reasoning-effort-1": ["thinking", "unknown_parameter"],
  "ruby-llm--chat-audio-models-bedrock-mistral-voxtral-mini-3b-2507-can-understand-mp3-audio": AUDIO,
  "ruby-llm--chat-audio-models-openai-gpt-audio-mini-can-understand-audio": AUDIO,
  "ruby-llm--chat-citations-with-openai-gpt-4o-mini-search-preview-returns-url-citations--0aca6e": SEARCH,
  "ruby-llm--chat-deepseek-thinking-control-returns-reasoning-content-for-effort-high": [
    "thinking",
    "unknown_parameter",
  ],
};

describe.skipIf(!hasFixtures || schemasAbsent)("recorded chat requests become valid or are refused", () => {
  const fields = new Set(listFields("CreateResponse"));
  for (const recording of listFixtures(
    (each) => each.family === "openai-chat" && each.request_file !== undefined,
  )) {
    const name = recording.id.slice("openai-chat/".length);
    const refusal = REFUSALS[name];
    test(`the recorded request ${name} ${refusal === undefined ? "becomes a valid Responses request" : `is refused for ${refusal[0]}`}`, () => {
      const body = readRequest(recording);
      if (refusal !== undefined) {
        expect(refuse(body)).toMatchObject({ status: 400, param: refusal[0], code: refusal[1] });
        return;
      }
      const upstream = decode(convertBody(body).body);
      expect(findFaults("CreateResponse", upstream)).toEqual([]);
      expect(Object.keys(upstream).filter((field) => !fields.has(field))).toEqual([]);
      expect(typeof upstream["store"]).toBe("boolean");
      for (const tool of upstream["tools"] ?? []) {
        if (tool.type === "function") expect(typeof tool.strict).toBe("boolean");
      }
    });
  }
});

describe("defaults that differ between the two APIs are written out", () => {
  const tool = { type: "function", function: { name: "f" } };
  const schema = { type: "json_schema", json_schema: { name: "s", schema: { type: "object" } } };

  test("`store`, and `strict` of functions and schemas, are sent as false if the client leaves them out", () => {
    const upstream = convert({ tools: [tool], response_format: schema });
    expect(upstream["store"]).toBe(false);
    expect(upstream["tools"]).toEqual([
      { type: "function", name: "f", parameters: { type: "object", properties: {} }, strict: false },
    ]);
    expect(upstream["text"]).toEqual({
      format: { type: "json_schema", name: "s", schema: { type: "object" }, strict: false },
    });
  });

  test("where the defaults of the two APIs differ, a value of the client reaches the upstream", () => {
    const strict = { ...schema, json_schema: { ...schema.json_schema, strict: true, description: "d" } };
    const upstream = convert({
      store: true,
      tools: [{ type: "function", function: { name: "f", strict: true, parameters: {} } }],
      response_format: strict,
    });
    expect(upstream["store"]).toBe(true);
    expect(upstream["tools"][0]).toMatchObject({ strict: true });
    expect(upstream["text"].format).toMatchObject({ strict: true, description: "d" });
  });

  test("legacy functions are not strict, and the model may call only one of them at a time", () => {
    const upstream = convert({
      functions: [{ name: "f", parameters: { type: "object" } }],
      function_call: "auto",
    });
    expect(upstream["tools"][0].strict).toBe(false);
    expect(upstream["parallel_tool_calls"]).toBe(false);
    expect(upstream["tool_choice"]).toBe("auto");
  });
});

describe("top-level fields of a chat request are converted or refused", () => {
  const same: Json = {
    temperature: 0.5,
    top_p: 0.9,
    metadata: { a: "b" },
    user: "u",
    safety_identifier: "s",
    prompt_cache_key: "k",
    prompt_cache_retention: "24h",
    prompt_cache_options: { mode: "explicit", ttl: "30m" },
    service_tier: "flex",
    moderation: { model: "omni-moderation-latest" },
  };
  test("top-level fields keep their name where both APIs have it", () => {
    expect(convert(same)).toMatchObject(same);
  });

  const changed: [chat: Json, upstream: Json][] = [
    [{ max_tokens: 100 }, { max_output_tokens: 100 }],
    [{ max_completion_tokens: 16 }, { max_output_tokens: 16 }],
    [{ reasoning_effort: "low" }, { reasoning: { effort: "low" } }],
    [{ verbosity: "low" }, { text: { verbosity: "low" } }],
    [
      { response_format: { type: "json_object" }, verbosity: "high" },
      { text: { format: { type: "json_object" }, verbosity: "high" } },
    ],
    [{ logprobs: true }, { include: ["message.output_text.logprobs"] }],
    [
      { logprobs: true, top_logprobs: 3 },
      { include: ["message.output_text.logprobs"], top_logprobs: 3 },
    ],
    [{ stream: true }, { stream: true, stream_options: { include_obfuscation: false } }],
    [
      { stream: true, stream_options: { include_usage: true, include_obfuscation: true } },
      { stream_options: { include_obfuscation: false } },
    ],
  ];
  for (const [chat, upstream] of changed) {
    test(`${JSON.stringify(chat)} becomes ${JSON.stringify(upstream)}`, () => {
      expect(convert(chat)).toMatchObject(upstream);
    });
  }

  test("null, and values that change nothing, mean the same as a missing field", () => {
    const plain = convert({});
    const nothing = {
      n: 1,
      stop: [],
      logit_bias: {},
      frequency_penalty: 0,
      presence_penalty: 0,
      modalities: ["text"],
      audio: null,
      prediction: null,
      web_search_options: null,
      seed: 7,
      logprobs: false,
      top_logprobs: null,
      temperature: null,
      tools: null,
      tool_choice: null,
      parallel_tool_calls: null,
      functions: null,
      max_tokens: null,
      response_format: null,
      reasoning_effort: null,
      stream: false,
      stream_options: null,
    };
    expect(convert(nothing)).toEqual(plain);
    expect(Object.keys(plain).toSorted()).toEqual(["input", "model", "store", "stream"]);
  });

  const refused: [request: Json, param: string, code: string][] = [
    [{ n: 2 }, "n", "unsupported_parameter"],
    [{ stop: "x" }, "stop", "unsupported_parameter"],
    [{ stop: ["x"] }, "stop", "unsupported_parameter"],
    [{ stop: 5 }, "stop", "invalid_value"],
    [{ logit_bias: { 5: 1 } }, "logit_bias", "unsupported_parameter"],
    [{ frequency_penalty: 0.1 }, "frequency_penalty", "unsupported_parameter"],
    [{ presence_penalty: -1 }, "presence_penalty", "unsupported_parameter"],
    [{ modalities: ["text", "audio"] }, "modalities", "unsupported_parameter"],
    [{ modalities: "audio" }, "modalities", "unsupported_parameter"],
    [{ audio: { voice: "alloy", format: "mp3" } }, "audio", "unsupported_parameter"],
    [{ prediction: { type: "content", content: "x" } }, "prediction", "unsupported_parameter"],
    [{ web_search_options: {} }, "web_search_options", "unsupported_parameter"],
    [{ thinking: { type: "enabled" } }, "thinking", "unknown_parameter"],
    [{ max_completion_tokens: "20" }, "max_completion_tokens", "invalid_value"],
    [{ stream: true, stream_options: { other: 1 } }, "stream_options.other", "unknown_parameter"],
    [{ functions: [{ name: "f" }], function_call: {} }, "function_call.name", "invalid_value"],
    [{ tools: [{ type: "web_search" }] }, "tools[0].type", "unsupported_parameter"],
    [{ tools: [{ type: "function", name: "f" }] }, "tools[0].name", "unknown_parameter"],
    [{ tools: [{ type: "function" }] }, "tools[0].function", "missing_required_parameter"],
    [{ tools: [{ type: "function", function: {} }] }, "tools[0].function.name", "invalid_value"],
    [{ response_format: { type: "xml" } }, "response_format.type", "invalid_value"],
    [{ response_format: { type: "text", schema: { a: 1 } } }, "response_format.schema", "unknown_parameter"],
    [
      { response_format: { type: "json_schema", json_schema: { name: "s", schema: {}, extra: 1 } } },
      "response_format.json_schema.extra",
      "unknown_parameter",
    ],
    [{ messages: undefined }, "messages", "missing_required_parameter"],
    [{ messages: "hi" }, "messages", "invalid_type"],
  ];
  for (const [request, param, code] of refused) {
    test(`${JSON.stringify(request).slice(0, 80)} is refused for ${param}`, () => {
      expect(refuseAsk(request)).toMatchObject({ status: 400, param, code });
    });
  }

  test("`user` may have 64 characters, and an empty `stop` is accepted", () => {
    expect(convert({ user: "u".repeat(64), stop: "" })).toMatchObject({ user: "u".repeat(64) });
  });

  test("a cap of output tokens that is too small for Responses is raised and reported", () => {
    const { body, conversion } = convertBody(encode({ ...ASK, max_tokens: 1 }));
    expect(decode(body)["max_output_tokens"]).toBe(16);
    expect(conversion.adjusted).toEqual(["max_tokens=16"]);
    expect(convertBody(encode({ ...ASK, max_tokens: 16 })).conversion.adjusted).toEqual([]);
  });

  test("a body that is not UTF-8 is refused", () => {
    expect(refuse(Uint8Array.of(0x7b, 0xff, 0x7d))?.status).toBe(400);
  });

  test("a body that is nested too deeply to be serialised is refused", () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const tool = `{"type":"function","function":{"name":"f","parameters":{"x":${deep}}}}`;
    const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[${tool}]}`;
    expect(() => convertRequest(Buffer.from(body), "m", false)).toThrow("nested too deeply");
  });

  test("64-bit numbers in a schema keep their digits", () => {
    const text = JSON.stringify({
      ...ASK,
      tools: [{ type: "function", function: { name: "f", parameters: { maximum: 0 } } }],
    });
    const exact = text.replace('"maximum":0', '"maximum":9223372036854775807');
    const { body } = convertBody(new TextEncoder().encode(exact));
    expect(new TextDecoder().decode(body)).toContain('"maximum":9223372036854775807');
  });
});

describe("the messages of a chat request become items of a Responses request", () => {
  const message = (role: string, content: unknown): Json => ({ type: "message", role, content });
  const call = (id: string, name = "f"): Json => ({
    id,
    type: "function",
    function: { name, arguments: "{}" },
  });

  test("system and developer messages keep their position and role", () => {
    const items = convertMessages(
      { role: "system", content: "one", name: "boss" },
      { role: "user", content: "two" },
      { role: "developer", content: [{ type: "text", text: "three" }] },
    );
    expect(items).toEqual([
      message("system", [{ type: "input_text", text: "one" }]),
      message("user", [{ type: "input_text", text: "two" }]),
      message("developer", [{ type: "input_text", text: "three" }]),
    ]);
  });

  test("the parts of a user's message are converted one by one", () => {
    const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } };
    const [item] = convertMessages({
      role: "user",
      content: [
        { type: "text", text: "look", ...breakpoint },
        { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "high" } },
        { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
        { type: "file", file: { file_id: "file-1" } },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" } },
      ],
    });
    expect(item?.["content"]).toEqual([
      { type: "input_text", text: "look", ...breakpoint },
      { type: "input_image", image_url: "https://example.com/a.png", detail: "high" },
      { type: "input_image", image_url: "data:image/png;base64,AA==", detail: "auto" },
      { type: "input_file", file_id: "file-1" },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" },
    ]);
  });

  test("the assistant's text comes before its calls, and outputs have the type of their call", () => {
    const custom = { id: "c2", type: "custom", custom: { name: "sql", input: "SELECT 1" } };
    const items = convertMessages(
      { role: "user", content: "go" },
      { role: "assistant", content: "Wait.", tool_calls: [call("c1"), custom], refusal: null },
      { role: "tool", tool_call_id: "c2", content: "1" },
      { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "ok" }], name: "f" },
    );
    expect(items.slice(1)).toEqual([
      message("assistant", "Wait."),
      { type: "function_call", call_id: "c1", name: "f", arguments: "{}" },
      { type: "custom_tool_call", call_id: "c2", name: "sql", input: "SELECT 1" },
      { type: "function_call_output", call_id: "c1", output: "ok" },
      { type: "custom_tool_call_output", call_id: "c2", output: "1" },
    ]);
  });

  test("an assistant message with only calls becomes no message item", () => {
    for (const content of [null, "", undefined]) {
      const items = convertMessages(
        {
          role: "assistant",
          content,
          tool_calls: [{ ...call("c"), function: { name: "f", arguments: "" } }],
        },
        { role: "tool", tool_call_id: "c", content: "" },
      );
      expect(items).toEqual([
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "" },
      ]);
    }
  });

  test("a refusal is a part of the assistant's message", () => {
    const refusal = { type: "refusal", refusal: "No." };
    expect(convertMessages({ role: "assistant", content: null, refusal: "No." })).toEqual([
      message("assistant", [refusal]),
    ]);
    const parts = [{ type: "text", text: "Hm." }, refusal];
    expect(convertMessages({ role: "assistant", content: parts })).toEqual([
      message("assistant", [{ type: "output_text", text: "Hm." }, refusal]),
    ]);
  });

  test("names, and fields that clients echo from an answer, are accepted without effect", () => {
    const echoed = {
      annotations: [],
      reasoning_content: "hm",
      reasoning_details: [],
      audio: null,
      function_call: null,
      tool_calls: null,
      parsed: null,
      refusal: null,
      name: "bot",
    };
    expect(convertMessages({ role: "assistant", content: "Hi", ...echoed })).toEqual([
      message("assistant", "Hi"),
    ]);
  });

  test("a legacy call gets an id from its position, and so does its result", () => {
    const items = convertMessages(
      { role: "user", content: "go" },
      { role: "assistant", content: null, function_call: { name: "f", arguments: '{"a":1}' } },
      { role: "function", name: "f", content: "done" },
    );
    expect(items.slice(1)).toEqual([
      { type: "function_call", call_id: "call_legacy_1", name: "f", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "call_legacy_1", output: "done" },
    ]);
  });

  test("a long call id is shortened in the same way in call and output", () => {
    const id = "x".repeat(200);
    const [, asked, answered] = convertMessages(
      { role: "user", content: "go" },
      { role: "assistant", tool_calls: [call(id)] },
      { role: "tool", tool_call_id: id, content: "" },
    );
    expect(asked?.["call_id"]).toHaveLength(64);
    expect(answered?.["call_id"]).toBe(asked?.["call_id"]);
  });

  const user = { role: "user", content: "go" };
  const refused: [messages: Json[], param: string, code: string][] = [
    [[{ role: "robot", content: "x" }], "messages[0].role", "invalid_value"],
    [[{ role: "user", content: null }], "messages[0].content", "invalid_value"],
    [[{ role: "assistant", content: "x", audio: { id: "a" } }], "messages[0].audio", "unsupported_parameter"],
    [[{ ...user, memory: { a: 1 } }], "messages[0].memory", "unknown_parameter"],
    [[{ role: "user", content: [{ type: "video" }] }], "messages[0].content[0].type", "invalid_value"],
    [
      [{ role: "user", content: [{ type: "image_url", image_url: "https://x" }] }],
      "messages[0].content[0].image_url.url",
      "invalid_value",
    ],
    [
      [{ role: "user", content: [{ type: "text", text: "x", memory: { a: 1 } }] }],
      "messages[0].content[0].memory",
      "unknown_parameter",
    ],
    [
      [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "", format: "mp3" } }] }],
      "messages[0].content[0]",
      "unsupported_parameter",
    ],
    [
      [
        user,
        { role: "assistant", tool_calls: [{ type: "function", function: { name: "f", arguments: "" } }] },
      ],
      "messages[1].tool_calls[0].id",
      "invalid_value",
    ],
    [
      [
        {
          role: "assistant",
          content: [{ type: "text", text: "x", prompt_cache_breakpoint: { mode: "explicit" } }],
        },
      ],
      "messages[0].content",
      "unsupported_parameter",
    ],
  ];
  for (const [messages, param, code] of refused) {
    test(`${JSON.stringify(messages).slice(0, 90)} is refused for ${param}`, () => {
      expect(refuseAsk({ messages })).toMatchObject({ status: 400, param, code });
    });
  }
});

describe("the tools of a chat request become tools of a Responses request", () => {
  const tools = [
    { type: "function", function: { name: "f", description: "d" } },
    { type: "custom", custom: { name: "c" } },
  ];

  test("a custom tool is sent without the objects `custom` and `grammar` around its fields", () => {
    const grammar = { syntax: "lark", definition: "start: WORD" };
    const custom = { name: "c", description: "d", format: { type: "grammar", grammar } };
    expect(convert({ tools: [{ type: "custom", custom }] })["tools"]).toEqual([
      { type: "custom", name: "c", description: "d", format: { type: "grammar", ...grammar } },
    ]);
  });

  const named = { type: "function", function: { name: "f" } };
  const choices: [chat: unknown, upstream: unknown][] = [
    ["none", "none"],
    ["auto", "auto"],
    ["required", "required"],
    [named, { type: "function", name: "f" }],
    [
      { type: "custom", custom: { name: "c" } },
      { type: "custom", name: "c" },
    ],
    [
      { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [named] } },
      { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
    ],
  ];
  for (const [chat, upstream] of choices) {
    test(`${JSON.stringify(chat)} becomes ${JSON.stringify(upstream)}`, () => {
      expect(convert({ tools, tool_choice: chat })["tool_choice"]).toEqual(upstream);
      expect(convert({ tools, parallel_tool_calls: false })["parallel_tool_calls"]).toBe(false);
    });
  }

  test("the format of a custom tool reaches the upstream", () => {
    const custom = (format: Json): Json => ({ tools: [{ type: "custom", custom: { name: "c", format } }] });
    expect(convert(custom({ type: "text" }))["tools"][0].format).toEqual({ type: "text" });
  });

  test("an unknown tool_choice is refused", () => {
    expect(refuseAsk({ tools, tool_choice: { type: "mcp" } })).toMatchObject({
      param: "tool_choice.function.name",
    });
    expect(refuseAsk({ tools, tool_choice: "any" })).toMatchObject({
      param: "tool_choice",
      code: "invalid_value",
    });
  });

  test("the legacy `function_call` chooses a function", () => {
    const functions = [{ name: "f" }];
    expect(convert({ functions, function_call: { name: "f" } })["tool_choice"]).toEqual({
      type: "function",
      name: "f",
    });
    expect(convert({ functions })["tool_choice"]).toBeUndefined();
  });
});
