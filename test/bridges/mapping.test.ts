// Tests what becomes of each option of a client: a table for each direction has a row for each option.

import { describe, expect, test } from "bun:test";
import { type Any, BASES, convert, HI, openCall, refusal, type Setting } from "./calls.ts";
import { PIXEL } from "./session.ts";

type Row = readonly [what: string, sent: Any, seen: Any, notes?: readonly string[], setting?: Setting];

const TOOL = { name: "Read", input_schema: { type: "object" } };
const SCHEMA = {
  type: "object",
  properties: { a: { type: "string" } },
  required: ["a"],
  additionalProperties: false,
};
const CLAUDE_4_5 = { model: "claude-sonnet-4-5" };
const EPHEMERAL = { type: "ephemeral" };
const OPENAI: Setting = { model: "gpt-5.1", quirks: { cap: "max_completion_tokens", reasoning: "effort" } };
const PDF = "data:application/pdf;base64,JVBERi0=";
const CALL = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "Read", input: {} }] };
const ANY = expect.anything();
const user = (...content: Any[]): Any => ({ role: "user", content });

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  "messages>chat": [
    ["a cap", {}, { max_tokens: 1000 }],
    ["a cap for OpenAI", {}, { max_completion_tokens: 1000 }, [], OPENAI],
    [
      "a cap above the model's",
      { max_tokens: 200_000 },
      { max_tokens: 16_384 },
      ["max_tokens=16384"],
      { model: "gpt-4o" },
    ],
    ["sampling", { temperature: 0.5, top_p: 0.9 }, { temperature: 0.5, top_p: 0.9 }],
    [
      "sampling while OpenAI's model thinks",
      { temperature: 0.5, thinking: { type: "adaptive" } },
      { temperature: undefined, reasoning_effort: "high" },
      ["temperature"],
      OPENAI,
    ],
    ["top_k for a server that has it", { top_k: 5 }, { top_k: 5 }, [], { quirks: { top_k: true } }],
    ["top_k for other servers", { top_k: 5 }, { top_k: undefined }, ["top_k"]],
    ["stop sequences", { stop_sequences: ["a"] }, { stop: ["a"] }],
    [
      "a schema",
      { output_config: { format: { type: "json_schema", schema: SCHEMA } } },
      {
        response_format: {
          type: "json_schema",
          json_schema: { name: "answer", schema: SCHEMA, strict: true },
        },
      },
    ],
    [
      "a schema for a server without schemas",
      { output_config: { format: { type: "json_schema", schema: SCHEMA } } },
      { response_format: undefined },
      ["output_config.format"],
      { quirks: { schemas: false } },
    ],
    [
      "an effort for a server without efforts",
      { thinking: { type: "enabled", budget_tokens: 2000 } },
      { reasoning_effort: undefined },
    ],
    [
      "a budget",
      { thinking: { type: "enabled", budget_tokens: 2000 } },
      { reasoning_effort: "low" },
      [],
      OPENAI,
    ],
    [
      "an effort",
      { thinking: { type: "adaptive" }, output_config: { effort: "medium" } },
      { reasoning_effort: "medium" },
      [],
      OPENAI,
    ],
    [
      "the highest effort for an older model",
      { thinking: { type: "adaptive" }, output_config: { effort: "max" } },
      { reasoning_effort: "high" },
      [],
      OPENAI,
    ],
    [
      "no thinking, with an effort",
      { thinking: { type: "disabled" }, output_config: { effort: "high" } },
      { reasoning_effort: "none" },
      [],
      OPENAI,
    ],
    [
      "no thinking for a model that always thinks",
      {},
      { reasoning_effort: "minimal" },
      [],
      { ...OPENAI, model: "gpt-5" },
    ],
    [
      "no thinking for a model that never thinks",
      {},
      { reasoning_effort: undefined },
      [],
      { ...OPENAI, model: "gpt-4o" },
    ],
    [
      "thinking on OpenRouter",
      { thinking: { type: "adaptive" } },
      { reasoning: { effort: "high" } },
      [],
      { quirks: { reasoning: "openrouter" } },
    ],
    [
      "thinking on Qwen",
      {},
      { chat_template_kwargs: { enable_thinking: false } },
      [],
      { quirks: { reasoning: "qwen" } },
    ],
    ["any tool", { tools: [TOOL], tool_choice: { type: "any" } }, { tool_choice: "required" }],
    [
      "one tool",
      { tools: [TOOL], tool_choice: { type: "tool", name: "Read" } },
      { tool_choice: { type: "function", function: { name: "Read" } } },
    ],
    ["no tool", { tools: [TOOL], tool_choice: { type: "none" } }, { tool_choice: "none" }],
    [
      "a choice without tools",
      { tool_choice: { type: "auto" } },
      { tool_choice: undefined, tools: undefined },
    ],
    [
      "one call at a time",
      { tools: [TOOL], tool_choice: { type: "auto", disable_parallel_tool_use: true } },
      { parallel_tool_calls: false },
    ],
    ["the standard tier", { service_tier: "standard_only" }, { service_tier: "default" }, [], OPENAI],
    [
      "the standard tier for a server that is not OpenAI's",
      { service_tier: "standard_only" },
      { service_tier: undefined },
      ["service_tier"],
    ],
    ["a fast answer, which costs more", { speed: "fast" }, { speed: undefined }, ["speed"]],
    ["the user's id", { metadata: { user_id: "device_account" } }, { metadata: undefined, user: undefined }],
    [
      "a key for the cache",
      {},
      { prompt_cache_key: "s1" },
      [],
      { session: "s1", quirks: { cache_key: true } },
    ],
    ["an unknown field", { novelty: 1 }, { novelty: undefined }, ["novelty"]],
    [
      "a text document",
      { messages: [user({ type: "document", title: "T", source: { type: "text", data: "D" } })] },
      { messages: [{ role: "user", content: "T\nD" }] },
    ],
    [
      "an image",
      { messages: [user({ type: "image", source: { type: "url", url: "https://x/y.png" } })] },
      { messages: [user({ type: "image_url", image_url: { url: "https://x/y.png" } })] },
    ],
    [
      "an image in a result, which a tool's message cannot have",
      {
        messages: [
          HI,
          CALL,
          user({
            type: "tool_result",
            tool_use_id: "a",
            content: [{ type: "image", source: { type: "url", url: "https://x/y.png" } }],
          }),
        ],
      },
      {
        messages: [
          HI,
          ANY,
          { role: "tool", tool_call_id: "a" },
          user({ type: "image_url", image_url: { url: "https://x/y.png" } }),
        ],
      },
    ],
    [
      "a loaded tool",
      {
        messages: [
          HI,
          CALL,
          user({
            type: "tool_result",
            tool_use_id: "a",
            content: [{ type: "tool_reference", tool_name: "Bash" }],
          }),
        ],
      },
      { messages: [HI, ANY, { role: "tool", tool_call_id: "a", content: "Tool loaded: Bash" }] },
    ],
    [
      "a removed tool",
      { messages: [HI, { role: "system", content: [{ type: "tool_removal", tool_name: "Read" }] }] },
      { messages: [HI, { role: "system", content: "Tool Read is no longer available." }] },
    ],
    [
      "an added tool",
      { messages: [HI, { role: "system", content: [{ type: "tool_addition", tool: TOOL }] }] },
      { tools: [{ function: { name: "Read" } }] },
    ],
    [
      "a call without a result",
      { messages: [HI, CALL, HI] },
      { messages: [HI, ANY, { role: "tool", tool_call_id: "a", content: "[no result]" }, HI] },
    ],
    [
      "a result without a call",
      { messages: [user({ type: "tool_result", tool_use_id: "a", content: "x" })] },
      {
        messages: [
          user({ type: "text", text: "Result of a call that is not shown:" }, { type: "text", text: "x" }),
        ],
      },
      ["result_without_call"],
    ],
    [
      "cache marks on the instructions and the last two messages, if the server asks for marks",
      {
        system: "Be brief.",
        messages: [HI, CALL, user({ type: "tool_result", tool_use_id: "a", content: "x" }), HI],
      },
      {
        messages: [
          { role: "system", content: [{ type: "text", text: "Be brief.", cache_control: EPHEMERAL }] },
          { role: "user", content: expect.arrayContaining([{ type: "text", text: "Hi" }]) },
          expect.objectContaining({ role: "assistant" }),
          { role: "tool", tool_call_id: "a", content: "x", cache_control: EPHEMERAL },
          user({ type: "text", text: "Hi", cache_control: EPHEMERAL }),
        ],
      },
      [],
      { model: "anthropic/claude-opus-5-5", quirks: { cache_marks: true } },
    ],
    [
      "no cache marks for a model whose server caches by itself",
      { system: "Be brief.", messages: [HI] },
      { messages: [{ role: "system", content: "Be brief." }, HI] },
      [],
      { model: "openai/gpt-5.6", quirks: { cache_marks: true } },
    ],
    [
      "a result that is sent twice, as Gemini CLI does when it resumes a session",
      {
        messages: [
          HI,
          CALL,
          user(
            { type: "tool_result", tool_use_id: "a", content: "x" },
            { type: "tool_result", tool_use_id: "a", content: "x" },
            { type: "tool_result", tool_use_id: "a", content: "y" },
          ),
        ],
      },
      {
        messages: [
          HI,
          ANY,
          { role: "tool", tool_call_id: "a", content: "x" },
          user({ type: "text", text: "Result of a call that is not shown:" }, { type: "text", text: "y" }),
        ],
      },
      ["result_without_call"],
    ],
    [
      "text after a call",
      {
        messages: [
          HI,
          {
            role: "assistant",
            content: [
              { type: "tool_use", id: "a", name: "Read", input: {} },
              { type: "text", text: "later" },
            ],
          },
          HI,
        ],
      },
      { messages: [HI, { role: "assistant", content: "later", tool_calls: [{ id: "a" }] }, ANY, HI] },
    ],
  ],
  "messages>responses": [
    [
      "instructions, one part for each block",
      {
        system: [
          { type: "text", text: "A" },
          { type: "text", text: "B" },
        ],
      },
      {
        instructions: undefined,
        input: [
          {
            type: "message",
            role: "developer",
            content: [
              { type: "input_text", text: "A" },
              { type: "input_text", text: "B" },
            ],
          },
          ANY,
        ],
      },
    ],
    ["no stored answer", {}, { store: false }],
    ["a cap", {}, { max_output_tokens: 1000 }],
    ["a small cap", { max_tokens: 1 }, { max_output_tokens: 16 }, ["max_tokens=16"]],
    ["top_k", { top_k: 5 }, { top_k: undefined }, ["top_k"]],
    [
      "sampling of a model that thinks",
      { temperature: 1, thinking: { type: "adaptive" } },
      { temperature: undefined },
      ["temperature"],
    ],
    [
      "an effort",
      { thinking: { type: "adaptive" }, output_config: { effort: "xhigh" } },
      { reasoning: { effort: "xhigh", summary: "auto" }, include: ["reasoning.encrypted_content"] },
    ],
    [
      "thoughts that are not shown",
      { thinking: { type: "adaptive", display: "omitted" } },
      { reasoning: { effort: "high" } },
    ],
    ["no thinking", {}, { reasoning: { effort: "none" } }],
    ["no thinking for a model that never thinks", {}, { reasoning: undefined }, [], { model: "gpt-4o" }],
    [
      "a strict schema",
      { output_config: { format: { type: "json_schema", schema: SCHEMA } } },
      { text: { format: { type: "json_schema", name: "answer", schema: SCHEMA, strict: true } } },
    ],
    [
      "a loose schema",
      {
        output_config: { format: { type: "json_schema", schema: { type: "object", properties: { a: {} } } } },
      },
      { text: { format: { strict: false } } },
    ],
    [
      "a tool with a schema's dialect",
      { tools: [{ name: "Read", input_schema: { $schema: "x", type: "object" } }] },
      {
        tools: [{ type: "function", name: "Read", parameters: { type: "object" }, strict: false }],
      },
    ],
    [
      "one tool",
      { tools: [TOOL], tool_choice: { type: "tool", name: "Read" } },
      { tool_choice: { type: "function", name: "Read" } },
    ],
    [
      "a PDF",
      {
        messages: [
          user({
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
          }),
        ],
      },
      { input: [user({ type: "input_file", filename: "document.pdf", file_data: PDF })] },
    ],
    [
      "a system message in the middle",
      { messages: [HI, { role: "system", content: "S" }] },
      { input: [ANY, { type: "message", role: "developer", content: [{ type: "input_text", text: "S" }] }] },
    ],
    [
      "a long id of a call",
      {
        messages: [
          HI,
          { role: "assistant", content: [{ type: "tool_use", id: "x".repeat(80), name: "Read", input: {} }] },
          HI,
        ],
      },
      {
        input: [
          ANY,
          { call_id: expect.stringMatching(/^x{51}_[0-9a-f]{12}$/) },
          { call_id: expect.stringMatching(/^x{51}_[0-9a-f]{12}$/) },
          ANY,
        ],
      },
    ],
  ],
  "messages>content": [
    [
      "a cap and sampling",
      { temperature: 0.5, top_p: 0.9, top_k: 5, stop_sequences: ["a"] },
      {
        generationConfig: {
          maxOutputTokens: 1000,
          temperature: 0.5,
          topP: 0.9,
          topK: 5,
          stopSequences: ["a"],
        },
      },
    ],
    ["instructions", { system: "S" }, { systemInstruction: { parts: [{ text: "S" }] } }],
    [
      "a budget for Gemini 2.5",
      { thinking: { type: "adaptive" } },
      { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 16_384 } } },
      [],
      { model: "gemini-2.5-flash" },
    ],
    [
      "no thinking on Gemini 2.5 Pro",
      {},
      { generationConfig: { thinkingConfig: { includeThoughts: false, thinkingBudget: 128 } } },
      [],
      { model: "gemini-2.5-pro" },
    ],
    [
      "no thinking on Gemini 3 Flash",
      {},
      { generationConfig: { thinkingConfig: { thinkingLevel: "minimal" } } },
      [],
      { model: "gemini-3.5-flash" },
    ],
    [
      "one tool",
      { tools: [TOOL], tool_choice: { type: "tool", name: "Read" } },
      { toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["Read"] } } },
    ],
    [
      "one call at a time",
      { tools: [TOOL], tool_choice: { type: "auto", disable_parallel_tool_use: true } },
      {},
      ["tool_choice.disable_parallel_tool_use"],
    ],
    [
      "a search alone",
      { tools: [{ type: "web_search_20250305", name: "web_search" }] },
      { tools: [{ googleSearch: {} }] },
    ],
    [
      "a search next to functions",
      { tools: [{ type: "web_search_20250305", name: "web_search" }, TOOL] },
      { tools: [{ functionDeclarations: [{ name: "Read" }] }] },
      ["tools:web_search"],
    ],
    [
      "a schema",
      { output_config: { format: { type: "json_schema", schema: SCHEMA } } },
      { generationConfig: { responseMimeType: "application/json", responseJsonSchema: SCHEMA } },
    ],
    [
      "an assistant first",
      { messages: [{ role: "assistant", content: "A" }, HI] },
      {
        contents: [
          { role: "user", parts: [{ text: "[conversation continues]" }] },
          { role: "model", parts: [{ text: "A" }] },
          { role: "user", parts: [{ text: "Hi" }] },
        ],
      },
    ],
  ],
  "responses>messages": [
    [
      "an unknown member of a known field",
      {
        reasoning: { effort: "low", mode: "pro", context: "all_turns" },
        text: { verbosity: null, tone: "x" },
      },
      { output_config: { effort: "low" } },
      ["reasoning.mode", "text.tone"],
    ],
    [
      "instructions",
      { instructions: "A", input: [{ role: "developer", content: "B" }, HI] },
      {
        system: [
          { type: "text", text: "A" },
          { type: "text", text: "B", cache_control: { type: "ephemeral" } },
        ],
      },
    ],
    ["no cap", {}, { max_tokens: 32_000 }],
    ["no cap for an old model", {}, { max_tokens: 4096 }, [], { model: "claude-3-haiku-20240307" }],
    [
      "an effort",
      { reasoning: { effort: "high" } },
      { thinking: { type: "adaptive" }, output_config: { effort: "high" } },
    ],
    [
      "an effort for an older model",
      { max_output_tokens: 10_000, reasoning: { effort: "high" } },
      { thinking: { type: "enabled", budget_tokens: 5000 }, output_config: undefined },
      [],
      CLAUDE_4_5,
    ],
    ["no effort", {}, { thinking: undefined }],
    [
      "sampling of a model that refuses it",
      { temperature: 0.2 },
      { temperature: undefined },
      ["temperature"],
    ],
    ["the default of sampling", { temperature: 1 }, { temperature: undefined }],
    ["sampling of an older model", { temperature: 0.2 }, { temperature: 0.2 }, [], CLAUDE_4_5],
    ["a verbosity", { text: { verbosity: "low" } }, {}, ["text.verbosity"]],
    ["a tier", { service_tier: "priority" }, { service_tier: undefined, speed: undefined }, ["service_tier"]],
    [
      "a schema",
      { text: { format: { type: "json_schema", name: "n", schema: SCHEMA } } },
      { output_config: { format: { type: "json_schema", schema: SCHEMA } } },
    ],
    ["truncation", { truncation: "auto" }, {}, ["truncation"]],
    ["a stored answer", { store: true }, {}, ["store"]],
    [
      "any tool",
      { tools: [{ type: "function", name: "Read" }], tool_choice: "required" },
      { tool_choice: { type: "any" } },
    ],
    [
      "a forced tool while thinking",
      {
        reasoning: { effort: "high" },
        tools: [{ type: "function", name: "Read" }],
        tool_choice: { type: "function", name: "Read" },
      },
      { thinking: undefined, tool_choice: { type: "tool", name: "Read" } },
      ["reasoning.effort"],
    ],
    [
      "one call at a time",
      { tools: [{ type: "function", name: "Read" }], parallel_tool_calls: false },
      { tool_choice: { type: "auto", disable_parallel_tool_use: true } },
    ],
    [
      "a tool without parameters",
      { tools: [{ type: "function", name: "Read", parameters: null }] },
      { tools: [{ name: "Read", input_schema: { type: "object", properties: {} } }] },
    ],
    [
      "a search",
      { tools: [{ type: "web_search" }] },
      { tools: [{ type: "web_search_20250305", name: "web_search" }] },
    ],
    [
      "an image",
      { input: [user({ type: "input_image", image_url: `data:image/png;base64,${PIXEL}` })] },
      {
        messages: [user({ type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } })],
      },
    ],
    [
      "an image in a result",
      {
        input: [
          HI,
          { type: "function_call", call_id: "a", name: "Read", arguments: "{}" },
          {
            type: "function_call_output",
            call_id: "a",
            output: [{ type: "input_image", image_url: "https://x/y.png" }],
          },
        ],
      },
      {
        messages: [
          ANY,
          ANY,
          user({
            type: "tool_result",
            tool_use_id: "a",
            content: [{ type: "image", source: { type: "url", url: "https://x/y.png" } }],
          }),
        ],
      },
    ],
    [
      "arguments that are not JSON",
      { input: [HI, { type: "function_call", call_id: "a", name: "Read", arguments: "{" }] },
      { messages: [ANY, CALL, ANY] },
    ],
    [
      "a call id with characters that Claude refuses",
      { input: [HI, { type: "function_call", call_id: "functions.Read:0", name: "Read", arguments: "{}" }] },
      {
        messages: [
          ANY,
          { content: [{ id: expect.stringMatching(/^functions_Read_0_[0-9a-f]{12}$/) }] },
          { content: [{ tool_use_id: expect.stringMatching(/^functions_Read_0_[0-9a-f]{12}$/) }] },
        ],
      },
    ],
    [
      "a call id that comes twice",
      {
        input: [
          HI,
          ...["1", "2"].flatMap((output) => [
            { type: "function_call", call_id: "a", name: "Read", arguments: "{}" },
            { type: "function_call_output", call_id: "a", output },
          ]),
        ],
      },
      {
        messages: [
          ANY,
          ANY,
          { content: [{ tool_use_id: "a", content: "1" }] },
          ANY,
          { content: [{ tool_use_id: "a_2", content: "2" }] },
        ],
      },
    ],
    [
      "a late instruction",
      { input: [HI, { role: "developer", content: "D" }] },
      {
        messages: [
          user(
            { type: "text", text: "Hi" },
            {
              type: "text",
              text: "<system-reminder>\nD\n</system-reminder>",
              cache_control: { type: "ephemeral" },
            },
          ),
        ],
      },
    ],
    [
      "empty texts",
      { input: [HI, { role: "assistant", content: [{ type: "output_text", text: " " }] }, HI] },
      { messages: [user({ text: "Hi" }, { text: "Hi" })] },
    ],
    ["the session", {}, { metadata: { user_id: "s1" } }, [], { session: "s1" }],
  ],
  "responses>chat": [
    [
      "instructions",
      { instructions: "A", input: [{ role: "developer", content: "B" }, HI] },
      { messages: [{ role: "system", content: "A\n\nB" }, HI] },
    ],
    ["the usage of a stream", { stream: true }, { stream: true, stream_options: { include_usage: true } }],
    ["a verbosity", { text: { verbosity: "low" } }, { verbosity: "low" }, [], OPENAI],
    ["a verbosity for others", { text: { verbosity: "low" } }, { verbosity: undefined }, ["text.verbosity"]],
    ["any JSON", { text: { format: { type: "json_object" } } }, { response_format: { type: "json_object" } }],
    ["a tier", { service_tier: "flex" }, { service_tier: "flex" }, [], OPENAI],
    [
      "the local shell",
      { tools: [{ type: "local_shell" }] },
      { tools: [{ type: "function", function: { name: "local_shell" } }] },
    ],
    [
      "tools that come later",
      { input: [HI, { type: "additional_tools", tools: [{ type: "function", name: "late" }] }] },
      { tools: [{ function: { name: "late" } }] },
    ],
  ],
  "responses>content": [
    ["a cap", { max_output_tokens: 100 }, { generationConfig: { maxOutputTokens: 100 } }],
    ["a verbosity", { text: { verbosity: "low" } }, {}, ["text.verbosity"]],
    [
      "any JSON",
      { text: { format: { type: "json_object" } } },
      { generationConfig: { responseMimeType: "application/json" } },
    ],
  ],
  "chat>messages": [
    ["both caps", { max_tokens: 5, max_completion_tokens: 7 }, { max_tokens: 7 }],
    ["a stop", { stop: "END" }, { stop_sequences: ["END"] }],
    ["a seed", { seed: 1 }, { seed: undefined }],
    ["values that change nothing", { n: 1, frequency_penalty: 0, logit_bias: {}, modalities: ["text"] }, {}],
    [
      "several results",
      {
        messages: [
          HI,
          {
            role: "assistant",
            content: null,
            tool_calls: ["a", "b"].map((id) => ({
              id,
              type: "function",
              function: { name: "Read", arguments: "{}" },
            })),
          },
          { role: "tool", tool_call_id: "b", content: "2" },
          { role: "tool", tool_call_id: "a", content: "1" },
        ],
      },
      { messages: [ANY, ANY, user({ tool_use_id: "a" }, { tool_use_id: "b" })] },
    ],
    [
      "an assistant first",
      { messages: [{ role: "assistant", content: "A" }, HI] },
      { messages: [user({ text: "[conversation continues]" }), ANY, ANY] },
    ],
    [
      "an effort for an older model, after a call whose thoughts are lost",
      {
        reasoning_effort: "high",
        max_tokens: 9000,
        messages: [
          HI,
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "a", type: "function", function: { name: "Read", arguments: "{}" } }],
          },
          { role: "tool", tool_call_id: "a", content: "1" },
        ],
      },
      { thinking: undefined },
      ["reasoning_effort"],
      CLAUDE_4_5,
    ],
  ],
  "chat>content": [
    [
      "any JSON",
      { response_format: { type: "json_object" } },
      { generationConfig: { responseMimeType: "application/json" } },
    ],
    [
      "a custom tool",
      { tools: [{ type: "custom", custom: { name: "p" } }] },
      { tools: [{ functionDeclarations: [{ name: "p", parametersJsonSchema: { required: ["input"] } }] }] },
    ],
  ],
  "content>messages": [
    [
      "a failed result",
      {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: [{ functionCall: { name: "f", args: {} } }] },
          { role: "user", parts: [{ functionResponse: { name: "f", response: { error: "no" } } }] },
        ],
      },
      { messages: [ANY, ANY, user({ type: "tool_result", content: "no", is_error: true })] },
    ],
    [
      "a generationConfig",
      { generationConfig: { maxOutputTokens: 100, stopSequences: ["a"], topK: 3 } },
      { max_tokens: 100, stop_sequences: ["a"], top_k: 3 },
      [],
      CLAUDE_4_5,
    ],
    [
      "a thinking level",
      { generationConfig: { thinkingConfig: { thinkingLevel: "LOW" } } },
      { output_config: { effort: "low" } },
    ],
    [
      "a thinking budget of zero",
      { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
      { thinking: undefined },
    ],
    [
      "a thinking budget of the model's choice",
      { generationConfig: { thinkingConfig: { thinkingBudget: -1 } } },
      { output_config: { effort: "medium" } },
    ],
    [
      "types in capitals",
      {
        tools: [
          {
            functionDeclarations: [
              { name: "f", parameters: { type: "OBJECT", properties: { type: { type: "STRING" } } } },
            ],
          },
        ],
      },
      { tools: [{ name: "f", input_schema: { type: "object", properties: { type: { type: "string" } } } }] },
    ],
    [
      "calls without ids",
      {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: ["1", "2"].map((a) => ({ functionCall: { name: "f", args: { a } } })) },
          {
            role: "user",
            parts: ["1", "2"].map((output) => ({ functionResponse: { name: "f", response: { output } } })),
          },
        ],
      },
      {
        messages: [
          ANY,
          { content: [{ id: "call_1_0" }, { id: "call_1_1" }] },
          {
            content: [
              { tool_use_id: "call_1_0", content: "1" },
              { tool_use_id: "call_1_1", content: "2" },
            ],
          },
        ],
      },
    ],
    [
      "fields in snake case",
      {
        system_instruction: { parts: [{ text: "S" }] },
        generation_config: { max_output_tokens: 9, stop_sequences: ["a"] },
        contents: [{ parts: [{ inline_data: { mime_type: "image/png", data: "AAAA" } }] }],
      },
      {
        system: [{ text: "S" }],
        max_tokens: 9,
        stop_sequences: ["a"],
        messages: [{ content: [{ type: "image", source: { media_type: "image/png", data: "AAAA" } }] }],
      },
    ],
    [
      "a schema for the answer",
      { generationConfig: { responseMimeType: "application/json", responseSchema: { type: "OBJECT" } } },
      { output_config: { format: { schema: { type: "object" } } } },
    ],
    ["settings of safety", { safetySettings: [{}] }, {}],
  ],
  "content>responses": [["a search", { tools: [{ googleSearch: {} }] }, { tools: [{ type: "web_search" }] }]],
  "content>chat": [
    [
      "a file by its address",
      {
        contents: [
          { role: "user", parts: [{ fileData: { mimeType: "image/png", fileUri: "https://x/y.png" } }] },
        ],
      },
      { messages: [{ content: [{ type: "image_url", image_url: { url: "https://x/y.png" } }] }] },
    ],
  ],
};

describe.each(Object.entries(TABLES))("a client's options are converted (%s)", (direction, rows) => {
  const cases = rows.map((row) => [...row] as const);
  test.each(cases)(
    `the upstream gets what its dialect can express of %s (${direction})`,
    (_, sent, seen, notes = [], setting = {}) => {
      const base = BASES[direction.split(">")[0] ?? ""];
      const { body, conversion } = convert(direction, { ...base, ...sent }, setting);
      for (const name of Object.keys(seen)) {
        const value = seen[name];
        if (value === undefined) expect(body[name]).toBeUndefined();
        else if (typeof value === "object") expect(body[name]).toMatchObject(value);
        else expect(body[name]).toBe(value);
        if (Array.isArray(value)) expect(body[name]).toHaveLength(value.length);
      }
      expect(conversion.adjusted).toEqual(notes);
    },
  );
});

const FILE = user({ type: "document", source: { type: "file", file_id: "f" } });

test.each([
  ["messages>chat", "messages[0].content[0].source.file_id", { messages: [FILE] }],
  ["messages>chat", "messages[0].content[0]", { messages: [user({ type: "container_upload" })] }],
  ["messages>chat", "messages[0].role", { messages: [{ role: "robot", content: "x" }] }],
  ["messages>chat", "messages", { messages: [] }],
  ["responses>messages", "text.format.json_object", { text: { format: { type: "json_object" } } }],
  ["responses>messages", "input[0]", { input: [{ type: "item_reference", id: "x" }] }],
  ["responses>messages", "input", { instructions: "S", input: [] }],
  ["responses>chat", "tool_choice", { tool_choice: { type: "image_generation" } }],
  ["chat>messages", "messages", { messages: [{ role: "system", content: "S" }] }],
  ["content>messages", "tools.codeExecution", { tools: [{ codeExecution: {} }] }],
  ["content>messages", "contents", { contents: [] }],
  [
    "content>messages",
    "contents.parts.fileData.fileUri",
    { contents: [{ parts: [{ fileData: { fileUri: "gs://bucket/a.png" } }] }] },
  ],
])("the bridge %s refuses a request and names the field %s", (direction, field, sent) => {
  const base = BASES[direction.split(">")[0] ?? ""];
  expect(refusal(direction, { ...base, ...sent })).toBe(`400 ${field}`);
});

test("a body that is no JSON object is refused, and a body above 32 MiB is refused before it is parsed", () => {
  expect(refusal("messages>chat", "{")).toBe("400 null");
  expect(refusal("messages>chat", "[]")).toBe("400 null");
  expect(refusal("messages>chat", " ".repeat(32 * 1024 * 1024 + 1))).toBe("413 null");
});

test("parsing, converting and writing a request are separate steps, between which other work can run", () => {
  expect([...openCall("messages>chat", { ...BASES.messages })]).toHaveLength(2);
});
