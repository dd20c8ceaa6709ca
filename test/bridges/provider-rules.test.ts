// Converted requests obey a provider's rules that are stricter than its dialect, such as those for schemas.

import { describe, expect, test } from "bun:test";
import { type Any, BASES, convert, HI, readDirection, refusal, type Setting } from "./calls.ts";
import { judge } from "./judge.ts";
import { PIXEL } from "./session.ts";

/** Converts a request. Returns what the upstream gets, and fails if a strict upstream would refuse any of it. */
function send(direction: string, sent: Any, setting: Setting = {}): { body: Any; notes: readonly string[] } {
  const [client, upstream] = readDirection(direction);
  const { body, conversion } = convert(direction, { ...BASES[client], ...sent }, setting);
  expect(judge(upstream, body)).toEqual([]);
  return { body, notes: conversion.adjusted };
}

const OPEN = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
const CLOSED = { ...OPEN, additionalProperties: false };
const MAP = { type: "object", additionalProperties: { type: "string" } };
const OPTIONAL = { ...CLOSED, required: [] };
const ANSWERS: Any = {
  responses: (schema: Any) => ({
    text: { format: { type: "json_schema", name: "s", schema, strict: true } },
  }),
  chat: (schema: Any) => ({
    response_format: { type: "json_schema", json_schema: { name: "s", schema, strict: true } },
  }),
  content: (schema: Any) => ({
    generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema },
  }),
  messages: (schema: Any) => ({ output_config: { format: { type: "json_schema", schema } } }),
};

describe("an answer's schema reaches Claude in the form that Claude accepts", () => {
  const ask = (client: string, schema: Any): { schema: Any; notes: readonly string[] } => {
    const { body, notes } = send(`${client}>messages`, ANSWERS[client](schema));
    return { schema: body.output_config.format.schema, notes };
  };

  test.each(["responses", "chat", "content"])(
    "Claude gets a %s client's answer schema with `additionalProperties: false` in every object",
    (client) => {
      const { schema, notes } = ask(client, {
        ...OPEN,
        properties: { a: OPEN, b: { type: "array", items: OPEN } },
      });
      expect([schema.additionalProperties, schema.properties.a.additionalProperties]).toEqual([false, false]);
      expect([schema.properties.b.items.additionalProperties, notes]).toEqual([false, []]);
    },
  );

  test("Claude gets the limits of an answer's schema in descriptions, and a note says so to the client", () => {
    const a = { type: "integer", description: "A.", minimum: 1, maximum: 5 };
    const { schema, notes } = ask("chat", { ...CLOSED, properties: { a } });
    expect(schema.properties.a).toEqual({ type: "integer", description: 'A.\n\n{"minimum":1,"maximum":5}' });
    expect(notes).toEqual(["response_format.json_schema"]);
  });

  test("a schema in Gemini's own form becomes JSON Schema for Claude", () => {
    const schema = {
      type: "OBJECT",
      propertyOrdering: ["a"],
      properties: { a: { type: "ARRAY", items: { type: "STRING", nullable: true }, minItems: "1" } },
    };
    const config = { responseMimeType: "application/json", responseSchema: schema };
    const { body } = send("content>messages", { generationConfig: config });
    expect(body.output_config.format.schema).toEqual({
      type: "object",
      properties: { a: { type: "array", items: { type: ["string", "null"] }, minItems: 1 } },
      additionalProperties: false,
    });
  });
});

describe("a schema is strict only if OpenAI's strict mode allows it", () => {
  const SCHEMAS: [string, Any, boolean][] = [
    ["a closed object", CLOSED, true],
    ["an open object", OPEN, false],
    ["an optional member", OPTIONAL, false],
    ["a map", { ...CLOSED, properties: { a: MAP } }, false],
    ["an optional member in a definition", { ...CLOSED, $defs: { d: OPTIONAL } }, false],
    ["a oneOf", { ...CLOSED, properties: { a: { oneOf: [{ type: "string" }] } } }, false],
  ];

  test.each(SCHEMAS)("an answer's schema is strict only if OpenAI allows it: %s", (_name, schema, strict) => {
    expect(send("messages>responses", ANSWERS.messages(schema)).body.text.format.strict).toBe(strict);
    const { json_schema } = send("messages>chat", ANSWERS.messages(schema)).body.response_format;
    expect(json_schema.strict).toBe(strict);
  });

  test.each(SCHEMAS)("a strict tool stays strict only if OpenAI allows it: %s", (_name, schema, strict) => {
    const tools = [{ name: "f", input_schema: schema, strict: true }];
    expect(send("messages>responses", { tools }).body.tools[0].strict).toBe(strict);
    expect(send("messages>chat", { tools }).body.tools[0].function.strict ?? false).toBe(strict);
  });
});

test.each([
  ["messages>responses", (body: Any) => body.tools[0].parameters],
  ["messages>chat", (body: Any) => body.tools[0].function.parameters],
  ["messages>content", (body: Any) => body.tools[0].functionDeclarations[0].parametersJsonSchema],
])("%s: a tool's schema without a type becomes the schema of an object", (direction, read) => {
  const { body } = send(direction, { tools: [{ name: "f", input_schema: {} }] });
  expect(read(body)).toEqual({ type: "object", properties: {} });
});

test.each([
  [{ temperature: 1.5 }, "claude-opus-4-5", {}, ["temperature=1"]],
  [{ temperature: 0.5, top_p: 0.9 }, "claude-sonnet-4-5", { temperature: 0.5 }, ["top_p"]],
  [{ temperature: 0.5, top_p: 0.9 }, "claude-3-7-sonnet", { temperature: 0.5, top_p: 0.9 }, []],
  [{ top_p: 0.9 }, "claude-haiku-4-5", { top_p: 0.9 }, []],
])("if a chat client sends %j, %s gets only values that it accepts", (sent, model, seen, notes) => {
  const { body, notes: noted } = send("chat>messages", sent, { model });
  const { temperature, top_p } = body;
  expect(JSON.parse(JSON.stringify({ temperature, top_p }))).toEqual(seen);
  expect(noted).toEqual(notes);
});

test.each([
  ["data:image/jpg;base64,AA==", "image/jpeg"],
  ["data:image/png;charset=utf-8;base64,AA==", "image/png"],
])("the picture %s has the media type %s for Claude", (url, type) => {
  const content = [{ type: "image_url", image_url: { url } }];
  const { body } = send("chat>messages", { messages: [{ role: "user", content }] });
  expect(body.messages[0].content[0].source.media_type).toBe(type);
});

const READ = (name: string): Any => ({ type: "function", function: { name, parameters: OPEN } });

describe("a choice among some tools is converted for each upstream", () => {
  const sent = {
    tools: ["a", "b", "c"].map(READ),
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: {
        mode: "required",
        tools: ["a", "b"].map((name) => ({ type: "function", function: { name } })),
      },
    },
  };

  test("if a chat client allows only some of its tools, Claude gets only these", () => {
    const { body } = send("chat>messages", sent);
    expect([body.tools.map(({ name }: Any) => name), body.tool_choice.type]).toEqual([["a", "b"], "any"]);
  });

  test("a chat client's choice among some tools becomes Gemini's list of allowed names", () => {
    const { body } = send("chat>content", sent);
    expect(body.toolConfig.functionCallingConfig).toEqual({ mode: "ANY", allowedFunctionNames: ["a", "b"] });
  });

  test("a content client's choice among some tools becomes OpenAI's list, and a chat server gets only these tools", () => {
    const request = {
      tools: [
        { functionDeclarations: ["a", "b", "c"].map((name) => ({ name, parametersJsonSchema: OPEN })) },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["a", "b"] } },
    };
    expect(send("content>responses", request).body.tool_choice).toEqual({
      type: "allowed_tools",
      mode: "required",
      tools: ["a", "b"].map((name) => ({ type: "function", name })),
    });
    const { body } = send("content>chat", request);
    expect([body.tools.length, body.tool_choice]).toEqual([2, "required"]);
  });
});

describe("a web search on Gemini is refused or changed if Gemini lacks an option", () => {
  const search = (more: Any): Any => ({
    tools: [{ type: "web_search_20250305", name: "web_search", ...more }],
  });

  test.each(["allowed_domains", "blocked_domains"])("a web search on Gemini with %s is refused", (name) => {
    const sent = { ...BASES.messages, ...search({ [name]: ["example.com"] }) };
    expect(refusal("messages>content", sent)).toBe(`400 tools[].${name}`);
  });

  test("a web search goes to Gemini without its place and limit, and a note says so to the client", () => {
    const { notes } = send(
      "messages>content",
      search({ max_uses: 3, user_location: { type: "approximate" } }),
    );
    expect(notes).toEqual(["tools[].user_location", "tools[].max_uses"]);
  });
});

describe("P163: nothing inside a tool, a message or a part is lost in silence", () => {
  const noted: [string, Any, string][] = [
    [
      "messages>chat",
      { tools: [{ name: "f", input_schema: OPEN, input_examples: [{}] }] },
      "tools[].input_examples",
    ],
    ["messages>chat", { tools: [{ name: "f", input_schema: OPEN, brand_new: 1 }] }, "tools[].brand_new"],
    ["chat>messages", { messages: [{ ...HI, name: "Ada" }] }, "messages[].name"],
    [
      "chat>content",
      {
        messages: [
          { role: "user", content: [{ type: "image_url", image_url: { url: PIXEL, detail: "high" } }] },
        ],
      },
      "messages[].content[].image_url.detail",
    ],
    [
      "responses>messages",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: PIXEL, detail: "low" }] }] },
      "input[].content[].detail",
    ],
    [
      "messages>chat",
      {
        messages: [
          {
            role: "user",
            content: [{ type: "document", source: { type: "text", data: "a" }, context: "from a book" }],
          },
        ],
      },
      "messages[].content[].context",
    ],
    [
      "chat>messages",
      { tools: [{ type: "function", function: { name: "f", parameters: CLOSED, strict: true } }] },
      "tools[].function.strict",
    ],
    [
      "responses>chat",
      {
        tools: [
          { type: "web_search", search_context_size: "low" },
          { type: "function", name: "f" },
        ],
      },
      "tools[].search_context_size",
    ],
    [
      "responses>messages",
      { text: { format: { ...ANSWERS.responses(CLOSED).text.format, brand_new: 1 } } },
      "text.format.brand_new",
    ],
    [
      "content>messages",
      { tools: [{ functionDeclarations: [{ name: "f", response: { type: "OBJECT" } }] }] },
      "tools[].functionDeclarations[].response",
    ],
    [
      "content>chat",
      { contents: [{ role: "user", parts: [{ text: "Hi", videoMetadata: { fps: 1 } }] }] },
      "contents[].parts[].videoMetadata",
    ],
  ];

  test.each(noted)("%s: the request %j loses a field, and the gateway names it", (direction, sent, name) => {
    expect(send(direction, sent).notes).toContain(name);
  });

  test.each([
    [
      "content>messages",
      { systemInstruction: { parts: [{ inlineData: { mimeType: "image/png", data: PIXEL } }] } },
      "systemInstruction.parts[0].inlineData",
    ],
    [
      "content>responses",
      { contents: [{ parts: [{ inlineData: { mimeType: "audio/mp3", data: "AA" } }] }] },
      "contents.parts",
    ],
    [
      "content>messages",
      { contents: [{ parts: [{ inlineData: { mimeType: "application/zip", data: "AA" } }] }] },
      "contents.parts",
    ],
  ])("%s: the request %j is refused, and the error names the field", (direction, sent, name) => {
    expect(refusal(direction, { ...BASES.content, ...sent })).toBe(`400 ${name}`);
  });
});

test("a failed tool result without words reaches a responses channel as an error", () => {
  const source = { type: "base64", media_type: "image/png", data: PIXEL };
  for (const content of [[], [{ type: "image", source }]]) {
    const messages = [
      HI,
      { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", is_error: true, content }] },
    ];
    const { body } = send("messages>responses", { messages }, { model: "gpt-4o" });
    expect(JSON.stringify(body.input.at(-1).output)).toContain("Error");
  }
});

test.each([
  [{ type: "search", query: "a" }, "[web search: a]"],
  [{ type: "search", queries: ["a", "b"] }, "[web search: a; b]"],
  [{ type: "open_page", url: "https://x" }, "[web search: https://x]"],
])("the search %j in the history of Codex becomes %s", (action, text) => {
  const input = [
    { ...HI, type: "message" },
    { type: "web_search_call", id: "ws", action },
    { ...HI, type: "message" },
  ];
  expect(JSON.stringify(send("responses>messages", { input }).body.messages)).toContain(text);
});
