// Upstream failures, in chat's words and the client's names.

import { convertError, convertReply, openChatStream, PLAIN } from "./direction.ts";
import { describe, expect, test } from "bun:test";
import type { Json } from "./accumulate.ts";

function convert(status: number, error: unknown, wanted = PLAIN): { status: number; error: Json } {
  const converted = convertError(status, JSON.stringify({ error }), wanted);
  return { status: converted.status, error: JSON.parse(converted.body).error };
}

describe("an upstream's HTTP error", () => {
  test("a status that blames the request stays, whatever the type of the error", () => {
    expect(convert(422, { message: "No.", type: "server_error" }).status).toBe(422);
    expect(convert(500, { message: "No.", type: "server_error" }).status).toBe(500);
  });

  test("an unknown model is 404", () => {
    const error = {
      message: "No such model.",
      type: "invalid_request_error",
      param: "model",
      code: "model_not_found",
    };
    expect(convert(400, error)).toEqual({ status: 404, error });
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

  test("names of fields are the client's, in the text and as `param`", () => {
    const message = "'max_output_tokens' and 'input' and 'reasoning.effort' and 'temperature', not 'text'";
    const { error } = convert(400, { message, param: "text.verbosity", code: "invalid_value" });
    expect([error["message"], error["param"], error["code"]]).toEqual([
      "'max_tokens' and 'messages' and 'reasoning_effort' and 'temperature', not 'text'",
      "verbosity",
      "invalid_value",
    ]);
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
      code: "server_error",
    });
  });
});

describe("a response that failed", () => {
  const failures: [error: Json, status: number, code: string | null][] = [
    [{ code: "rate_limit_exceeded", message: "slow" }, 429, "rate_limit_exceeded"],
    [{ code: "server_error", message: "oops" }, 502, "server_error"],
    [{ code: "vector_store_timeout", message: "oops" }, 502, "vector_store_timeout"],
    [{ code: "insufficient_quota", message: "org-x is out of money" }, 503, "server_error"],
    [{ code: "context_length_exceeded", message: "long" }, 400, "context_length_exceeded"],
    [{ code: "invalid_prompt", message: "bad" }, 400, "invalid_prompt"],
    [{ code: "image_too_large", message: "bad" }, 400, "image_too_large"],
    [{ code: "failed_to_download_image", message: "bad" }, 400, "failed_to_download_image"],
    [{ code: "bio_policy", message: "bad" }, 400, "bio_policy"],
    [{ code: "model_not_found", message: "bad" }, 404, "model_not_found"],
    [{ message: "?" }, 502, "server_error"],
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
    expect(convertReply({ status: "cancelled", output: [] }, PLAIN).status).toBe(502);
    expect(convertReply({ status: "in_progress", output: [] }, PLAIN).status).toBe(502);
    expect(convertReply({ status: "completed" }, PLAIN).status).toBe(502);
    expect(convertReply("hello", PLAIN).status).toBe(502);
    expect(convertReply(null, PLAIN).status).toBe(502);
  });
});
