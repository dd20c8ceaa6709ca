// Upstream failures, in chat's words and the client's names.

import { describe, expect, test } from "bun:test";
import type { BridgeContext } from "../../../src/bridges/responses-to-chat/context.ts";
import { convertError } from "../../../src/bridges/responses-to-chat/errors.ts";
import { translatePath } from "../../../src/bridges/responses-to-chat/request/paths.ts";
import { convertReply } from "../../../src/bridges/responses-to-chat/response/completion.ts";
import { convertRequest } from "../../../src/bridges/responses-to-chat/request/request.ts";
import { openChatStream } from "../../../src/bridges/responses-to-chat/response/stream.ts";
import type { Json } from "./accumulate.ts";
import { ASKED, absent, findRecording, listRecordings, PLAIN, readBytes } from "./recordings.ts";

function ask(request: object): BridgeContext {
  return convertRequest(new TextEncoder().encode(JSON.stringify({ model: "m", ...request })), ASKED).context;
}

const grammar = { type: "grammar", grammar: { syntax: "lark", definition: "" } };
const MODERN = ask({
  max_completion_tokens: 50,
  tools: [
    { type: "function", function: { name: "f" } },
    { type: "custom", custom: { name: "c", format: grammar } },
  ],
  messages: [
    { role: "system", content: "s" },
    { role: "user", content: [{ type: "text", text: "t" }] },
    {
      role: "assistant",
      content: "x",
      tool_calls: [
        { id: "c1", type: "function", function: { name: "f", arguments: "{}" } },
        { id: "c2", type: "custom", custom: { name: "c", input: "" } },
      ],
    },
    { role: "tool", tool_call_id: "c1", content: "1" },
    { role: "tool", tool_call_id: "c2", content: "2" },
  ],
});
const LEGACY = ask({
  max_tokens: 50,
  functions: [{ name: "f" }],
  messages: [
    { role: "user", content: "u" },
    { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
    { role: "function", name: "f", content: "1" },
  ],
});

describe("a field path of the upstream becomes the client's field path", () => {
  const paths: [upstream: string, chat: string | null][] = [
    ["model", "model"],
    ["temperature", "temperature"],
    ["input", "messages"],
    ["input[0]", "messages[0]"],
    ["input[0].content", "messages[0].content"],
    ["input[1].content[0].image_url", "messages[1].content[0].image_url.url"],
    ["input[1].content[0].file_data", "messages[1].content[0].file.file_data"],
    ["input[1].content[0].text", "messages[1].content[0].text"],
    ["input[2].content", "messages[2].content"],
    ["input[3].arguments", "messages[2].tool_calls[0].function.arguments"],
    ["input[3].call_id", "messages[2].tool_calls[0].id"],
    ["input[4].input", "messages[2].tool_calls[1].custom.input"],
    ["input[5].output", "messages[3].content"],
    ["input[5].output[0].file_data", "messages[3].content[0].file.file_data"],
    ["input[6].call_id", "messages[4].tool_call_id"],
    ["input[99].content", null],
    ["max_output_tokens", "max_completion_tokens"],
    ["reasoning.effort", "reasoning_effort"],
    ["reasoning.summary", null],
    ["text.verbosity", "verbosity"],
    ["text.format", "response_format"],
    ["text.format.schema", "response_format.json_schema.schema"],
    ["tools[0].parameters", "tools[0].function.parameters"],
    ["tools[0].type", "tools[0].type"],
    ["tools[1].name", "tools[1].custom.name"],
    ["tools[1].format.definition", "tools[1].custom.format.grammar.definition"],
    ["tool_choice", "tool_choice"],
    ["tool_choice.name", "tool_choice"],
    ["tool_choice.tools[0].name", "tool_choice"],
    ["include", "logprobs"],
    ["include[0]", "logprobs"],
  ];
  for (const [upstream, chat] of paths) {
    test(`${upstream} is ${chat}`, () => expect(translatePath(upstream, MODERN)).toBe(chat));
  }

  const legacy: [upstream: string, chat: string][] = [
    ["tools", "functions"],
    ["tools[0].parameters", "functions[0].parameters"],
    ["tool_choice", "function_call"],
    ["tool_choice.name", "function_call.name"],
    ["max_output_tokens", "max_tokens"],
    ["input[1].arguments", "messages[1].function_call.arguments"],
    ["input[2].output", "messages[2].content"],
  ];
  for (const [upstream, chat] of legacy) {
    test(`${upstream} is ${chat} for legacy functions`, () =>
      expect(translatePath(upstream, LEGACY)).toBe(chat));
  }
});

function convert(status: number, error: unknown, context = MODERN): { status: number; error: Json } {
  const converted = convertError(status, JSON.stringify({ error }), context);
  return { status: converted.status, error: JSON.parse(converted.body).error };
}

describe("an upstream's HTTP error", () => {
  test.skipIf(absent)("a recorded error of the upstream names the client's part", () => {
    const id =
      "openai-responses/pydantic-ai--test-multimodal-tool-returns-test-multimodal-tool-return-matrix-direct-url-f-6290fa-2";
    const context = {
      ...PLAIN,
      origins: [0, 1, 2, 3].map((index) => ({ path: `messages[${index}]`, kind: "output" as const })),
    };
    const { status, body } = convertError(400, readBytes(findRecording(id)), context);
    const { error } = JSON.parse(body);
    expect(status).toBe(400);
    expect(error.param).toBe("messages[3].content[0].file.file_data");
    expect(error.message).toStartWith("Invalid file data: 'messages[3].content[0].file.file_data'. Expected");
    expect(error.message).not.toContain("input[");
  });

  for (const recording of listRecordings("openai-responses").filter((each) => each.status >= 400)) {
    test(`${recording.id} keeps its message, and has all four keys`, () => {
      const { status, body } = convertError(recording.status, readBytes(recording), PLAIN);
      const { error } = JSON.parse(body);
      expect(Object.keys(error).toSorted()).toEqual(["code", "message", "param", "type"]);
      expect(error.message.length).toBeGreaterThan(10);
      const found = recording.expect.error?.code === "model_not_found";
      expect(status).toBe(found ? 404 : recording.status);
    });
  }

  test("an unknown model is 404 with chat's message and the client's model name", () => {
    const error = {
      message: "The requested model 'up' does not exist.",
      type: "invalid_request_error",
      param: "model",
      code: "model_not_found",
    };
    expect(convert(400, error)).toEqual({
      status: 404,
      error: {
        message: "The model `m` does not exist or you do not have access to it.",
        type: "invalid_request_error",
        param: null,
        code: "model_not_found",
      },
    });
  });

  test("an error about a context that is too long names `messages`", () => {
    const error = {
      message: "Your input exceeds the context window.",
      type: "invalid_request_error",
      param: "input",
      code: "context_length_exceeded",
    };
    expect(convert(400, error).error["param"]).toBe("messages");
  });

  test("field names in the text are the client's", () => {
    const message =
      "'max_output_tokens' and 'text.format' and 'input[3].arguments' and 'tools[0].parameters' and 'tool_choice.name', not 'text'";
    expect(convert(400, { message }).error["message"]).toBe(
      "'max_completion_tokens' and 'response_format' and 'messages[2].tool_calls[0].function.arguments' and 'tools[0].function.parameters' and 'tool_choice', not 'text'",
    );
  });

  test("a body of another shape becomes the message", () => {
    expect(JSON.parse(convertError(500, "<html>Bad</html>", PLAIN).body).error.message).toBe(
      "<html>Bad</html>",
    );
    expect(JSON.parse(convertError(400, '{"error":"wrong"}', PLAIN).body).error.message).toBe("wrong");
    expect(JSON.parse(convertError(400, '{"detail":"bad"}', PLAIN).body).error.message).toBe("bad");
    const listed = '{"detail":[{"loc":["body","input"],"msg":"Field required"}]}';
    expect(JSON.parse(convertError(422, listed, PLAIN).body).error.message).toBe(listed);
    const wordless = '{"error":{"code":429,"metadata":{"raw":"slow down"}}}';
    expect(JSON.parse(convertError(429, wordless, PLAIN).body).error.message).toBe(wordless);
    expect(JSON.parse(convertError(502, "", PLAIN).body).error).toMatchObject({
      type: "server_error",
      code: null,
    });
  });
});

describe("a response that failed", () => {
  const failures: [error: Json, status: number, code: string | null][] = [
    [{ code: "rate_limit_exceeded", message: "slow" }, 429, "rate_limit_exceeded"],
    [{ code: "server_error", message: "oops" }, 500, "server_error"],
    [{ code: "vector_store_timeout", message: "oops" }, 500, "vector_store_timeout"],
    [{ code: "insufficient_quota", message: "org-x is out of money" }, 503, "upstream_unavailable"],
    [{ code: "context_length_exceeded", message: "long" }, 400, "context_length_exceeded"],
    [{ code: "invalid_prompt", message: "bad" }, 400, "invalid_prompt"],
    [{ code: "image_too_large", message: "bad" }, 400, "image_too_large"],
    [{ code: "failed_to_download_image", message: "bad" }, 400, "failed_to_download_image"],
    [{ code: "bio_policy", message: "bad" }, 400, "bio_policy"],
    [{ code: "model_not_found", message: "bad" }, 404, "model_not_found"],
    [{ message: "?" }, 500, null],
  ];
  for (const [error, status, code] of failures) {
    test(`a failed response with ${error["code"]} is ${status}, whole or streamed`, () => {
      const whole = convertReply({ status: "failed", error, output: [] }, PLAIN);
      expect(whole.status).toBe(status);
      expect(JSON.parse(whole.body).error.code).toBe(code);
      expect(whole.body).not.toContain("org-x");
      const event = { type: "response.failed", response: { status: "failed", error } };
      const streamed = openChatStream(PLAIN).push(
        new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`),
      );
      expect(streamed.phase).toBe("refused");
      expect(streamed.refusal).toEqual(whole);
    });
  }

  test("a reply that was cancelled, or is no reply, is an error and never an empty answer", () => {
    expect(convertReply({ status: "cancelled", output: [] }, PLAIN).status).toBe(500);
    expect(convertReply({ status: "in_progress", output: [] }, PLAIN).status).toBe(500);
    expect(convertReply({ status: "completed" }, PLAIN).status).toBe(502);
    expect(convertReply("hello", PLAIN).status).toBe(502);
    expect(convertReply(null, PLAIN).status).toBe(502);
  });
});
