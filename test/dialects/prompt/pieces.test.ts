// What the parts of a prompt are, in each dialect.

import { describe, expect, test } from "bun:test";

import {
  CHAT_LAYOUT,
  CONTENT_LAYOUT,
  type Layout,
  MESSAGES_LAYOUT,
  RESPONSES_LAYOUT,
} from "../../../src/dialects/prompt/layouts.ts";
import { readPieces as readAll } from "../../harness/prompt.ts";

function readPieces(layout: Layout, body: object) {
  return readAll(Buffer.from(JSON.stringify(body)), layout).map(({ kind, name }) =>
    name === "" ? kind : `${kind} ${name}`,
  );
}

const BODIES: Readonly<Record<string, readonly [Layout, object]>> = {
  messages: [
    MESSAGES_LAYOUT,
    {
      tools: [{ name: "Read" }, { name: "mcp__git__log" }],
      system: "You are an agent",
      messages: [
        { role: "user", content: "Look" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm" },
            { type: "text", text: "I read" },
            { type: "tool_use", id: "t1", name: "Read", input: {} },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "text" }] },
      ],
    },
  ],
  responses: [
    RESPONSES_LAYOUT,
    {
      tools: [
        { type: "function", name: "Read" },
        { type: "function", name: "mcp__git__log" },
      ],
      instructions: "You are an agent",
      input: [
        { role: "user", content: "Look" },
        { type: "reasoning", summary: [] },
        { type: "message", role: "assistant", content: [] },
        { type: "function_call", call_id: "t1", name: "Read", arguments: "{}" },
        { type: "function_call_output", call_id: "t1", output: "text" },
      ],
    },
  ],
  chat: [
    CHAT_LAYOUT,
    {
      tools: ["Read", "mcp__git__log"].map((name) => ({ type: "function", function: { name } })),
      messages: [
        { role: "system", content: "You are an agent" },
        { role: "user", content: "Look" },
        { role: "assistant", content: "I read" },
        { role: "assistant", tool_calls: [{ id: "t1", function: { name: "Read" } }] },
        { role: "tool", tool_call_id: "t1", content: "text" },
      ],
    },
  ],
  content: [
    CONTENT_LAYOUT,
    {
      tools: [{ functionDeclarations: [{ name: "Read" }, { name: "mcp__git__log" }] }],
      systemInstruction: { parts: [{ text: "You are an agent" }] },
      contents: [
        { role: "user", parts: [{ text: "Look" }] },
        { role: "model", parts: [{ text: "I read" }] },
        { role: "model", parts: [{ functionCall: { name: "Read" } }] },
        { role: "user", parts: [{ functionResponse: { name: "Read" } }] },
      ],
    },
  ],
};

describe("the parts of a prompt", () => {
  test.each(Object.entries(BODIES))(
    "of %s have their kinds, and the tools that they are about",
    (name, body) => {
      const hasThoughts = name === "messages" || name === "responses";
      expect(readPieces(...body)).toEqual([
        "tool Read",
        "tool mcp__git__log",
        "system",
        "user",
        ...(hasThoughts ? ["thinking"] : []),
        "assistant",
        "call Read",
        "result Read",
      ]);
    },
  );

  test("with names and types that are no text are still parts", () => {
    const tools = [{ name: 1 }, null, "x"];
    const messages = [
      null,
      1,
      { role: "user", content: [{ type: 7 }, { type: "tool_result", tool_use_id: {} }] },
    ];
    expect(readPieces(MESSAGES_LAYOUT, { tools, messages })).toHaveLength(7);
  });

  test("of tools that Codex groups are these tools, named as they are called", () => {
    const tools = [
      { type: "namespace", name: "functions", tools: [{ type: "custom", name: "exec" }] },
      { type: "namespace", name: "mcp__git__", tools: [{ type: "function", name: "log" }] },
      { type: "web_search" },
    ];
    const input = [
      { type: "additional_tools", role: "developer", tools },
      { role: "developer", content: "You are an agent" },
      { type: "function_call", call_id: "c1", namespace: "mcp__git__", name: "log" },
      { type: "custom_tool_call", call_id: "c2", name: "exec" },
      { type: "function_call_output", call_id: "c1", output: "text" },
      { type: "web_search_call" },
    ];
    expect(readPieces(RESPONSES_LAYOUT, { input })).toEqual([
      "tool exec",
      "tool mcp__git__log",
      "tool web_search",
      "system",
      "call mcp__git__log",
      "call exec",
      "result mcp__git__log",
      "call web_search",
    ]);
  });

  test("of tools that the upstream runs are calls and results", () => {
    const content = [
      { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
      { type: "web_search_tool_result", tool_use_id: "s1", content: [] },
    ];
    const messages = [{ role: "assistant", content }];
    expect(readPieces(MESSAGES_LAYOUT, { messages })).toEqual(["call web_search", "result web_search"]);
  });
});
