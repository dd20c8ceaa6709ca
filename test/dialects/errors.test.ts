import { describe, expect, test } from "bun:test";
import { chat } from "../../src/dialects/formats/chat.ts";
import { content } from "../../src/dialects/formats/content.ts";
import { errorFields, ERROR_NAMES } from "../../src/dialects/errors.ts";
import { messages } from "../../src/dialects/formats/messages.ts";
import { relay } from "../../src/dialects/formats/relay.ts";
import { responses } from "../../src/dialects/formats/responses.ts";
import { writeErrorEvent } from "../../src/dialects/formats/responses-websocket.ts";
import { type ErrorCode, GatewayError, STATUS_OF } from "../../src/lib/errors.ts";

const parse = (text: string): unknown => JSON.parse(text);
const MODEL_GONE = new GatewayError("unknown_model", `No "m".`, { param: "model" });

describe("an error in each dialect's shape", () => {
  test("messages", () => {
    expect(parse(messages.errorBody(MODEL_GONE, "req_1"))).toEqual({
      type: "error",
      error: { type: "not_found_error", message: `No "m".` },
      request_id: "req_1",
    });
    expect(relay.errorBody(MODEL_GONE, "req_1")).toBe(messages.errorBody(MODEL_GONE, "req_1"));
  });

  test("responses and chat, all four keys always", () => {
    const body = {
      message: `No "m".`,
      type: "invalid_request_error",
      param: "model",
      code: "model_not_found",
    };
    expect(parse(responses.errorBody(MODEL_GONE, "req_1"))).toEqual({ error: body });
    expect(chat.errorBody(MODEL_GONE, "req_1")).toBe(responses.errorBody(MODEL_GONE, "req_1"));
    expect(parse(chat.errorBody(new GatewayError("bad_request", "x"), "r"))).toEqual({
      error: { message: "x", type: "invalid_request_error", param: null, code: null },
    });
  });

  test("content, with the reason, the field and the time to retry", () => {
    expect(parse(content.errorBody(MODEL_GONE, "req_1"))).toEqual({
      error: {
        code: 404,
        message: `No "m".`,
        status: "NOT_FOUND",
        details: [
          {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            reason: "UNKNOWN_MODEL",
            domain: "gateway",
            metadata: { request_id: "req_1", param: "model" },
          },
        ],
      },
    });
    const spent = new GatewayError("limit_spent", "x", { retryAfterSeconds: 1.2 });
    expect(parse(content.errorBody(spent, "r"))).toMatchObject({
      error: {
        code: 429,
        status: "RESOURCE_EXHAUSTED",
        details: [{}, { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "2s" }],
      },
    });
  });

  test("an error's own wire code replaces the one of the table", () => {
    const error = new GatewayError("unsupported", "x", { param: "n", wireCode: "unsupported_value" });
    expect(parse(chat.errorBody(error, "r"))).toEqual({
      error: { message: "x", type: "invalid_request_error", param: "n", code: "unsupported_value" },
    });
  });
});

describe("the names of errors in the contract", () => {
  test.each<[ErrorCode, number, string, string | null, string]>([
    ["key_missing", 401, "authentication_error", "invalid_api_key", "UNAUTHENTICATED"],
    ["key_unknown", 401, "authentication_error", "invalid_api_key", "UNAUTHENTICATED"],
    ["key_disabled", 401, "authentication_error", "invalid_api_key", "UNAUTHENTICATED"],
    ["key_expired", 401, "authentication_error", "invalid_api_key", "UNAUTHENTICATED"],
    ["wrong_platform", 403, "permission_error", "model_not_found", "PERMISSION_DENIED"],
    ["plan_inactive", 403, "permission_error", "plan_inactive", "PERMISSION_DENIED"],
    ["rate_limited", 429, "rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"],
    ["limit_spent", 429, "rate_limit_error", "insufficient_quota", "RESOURCE_EXHAUSTED"],
    ["limit_unenforceable", 403, "rate_limit_error", "model_not_found", "RESOURCE_EXHAUSTED"],
    ["unknown_path", 404, "not_found_error", "model_not_found", "NOT_FOUND"],
    ["method_not_allowed", 405, "invalid_request_error", "model_not_found", "UNIMPLEMENTED"],
    ["unknown_model", 404, "not_found_error", "model_not_found", "NOT_FOUND"],
    ["bad_request", 400, "invalid_request_error", null, "INVALID_ARGUMENT"],
    ["body_too_large", 413, "request_too_large", null, "INVALID_ARGUMENT"],
    ["upstream_failed", 502, "api_error", "server_error", "UNAVAILABLE"],
    ["unavailable", 503, "api_error", "server_error", "UNAVAILABLE"],
    ["ledger_unwritable", 503, "api_error", "server_error", "UNAVAILABLE"],
    ["upstream_timeout", 504, "timeout_error", "server_error", "DEADLINE_EXCEEDED"],
    ["overloaded", 529, "overloaded_error", "server_error", "UNAVAILABLE"],
  ])("%s", (code, status, type, wireCode, rpc) => {
    expect<number>(STATUS_OF[code]).toBe(status);
    expect(ERROR_NAMES[code].messages).toBe(type);
    expect(ERROR_NAMES[code].openai[1]).toBe(wireCode);
    expect(ERROR_NAMES[code].content).toBe(rpc);
  });
});

describe("a limit that is spent", () => {
  const text = 'The key "ci" has spent $5 — Modell "größer".\nIt resets at noon.';
  const spent = new GatewayError("limit_spent", text, { retryAfterSeconds: 60, resetsAt: 1_800_000_000_001 });
  const shown = 'The key "ci" has spent $5 ? Modell "gr??er".?It resets at noon';

  test.each([
    ["responses", responses],
    ["chat", chat],
  ])("is told to Codex by its type, a header and its end, and to others by its code: %s", (_, dialect) => {
    expect(parse(dialect.errorBody(spent, "r"))).toEqual({
      error: {
        message: text,
        type: "usage_limit_reached",
        param: null,
        code: "insufficient_quota",
        resets_at: 1_800_000_001,
      },
    });
    expect(dialect.reasonFields?.(spent)).toEqual([["x-codex-promo-message", shown]]);
    expect(dialect.reasonFields?.(new GatewayError("rate_limited", "x"))).toEqual([]);
  });

  test("is told to Codex over a WebSocket by the same fields", () => {
    expect(JSON.parse(writeErrorEvent(spent, null).toString())).toMatchObject({
      status: 429,
      error: { type: "usage_limit_reached", code: "insufficient_quota", resets_at: 1_800_000_001 },
      headers: { "retry-after": "60", "x-codex-promo-message": shown },
    });
  });
});

describe("the headers of an error", () => {
  const fields = (code: ErrorCode, retryAfterSeconds?: number) =>
    Object.fromEntries(
      errorFields(new GatewayError(code, "x", retryAfterSeconds === undefined ? {} : { retryAfterSeconds })),
    );

  test("stop clients from retrying what cannot succeed", () => {
    const json = { "content-type": "application/json" };
    expect(fields("unknown_model")).toEqual({ ...json, "x-should-retry": "false" });
    expect(fields("key_unknown")).toEqual({
      ...json,
      "x-should-retry": "false",
      "www-authenticate": "Bearer",
    });
    expect(fields("limit_spent", 30)).toEqual({ ...json, "retry-after": "30" });
    // It says when the limit resets, and that nobody should wait for that.
    expect(fields("limit_spent", 58_282)).toEqual({
      ...json,
      "retry-after": "58282",
      "retry-after-ms": "1",
      "x-should-retry": "false",
    });
    expect(fields("unavailable", 0.5)).toEqual({ ...json, "retry-after": "1" });
    expect(fields("upstream_failed")).toEqual(json);
    expect(fields("overloaded")).toEqual(json);
  });
});

describe("a stream that breaks", () => {
  const broken = new GatewayError("upstream_failed", "The channel broke off.\n");
  const dataOf = (event: string) => parse(/^data: (.*)$/m.exec(event)?.[1] ?? "");

  test("messages: an event named error", () => {
    const event = messages.errorEvent(broken, "req_1");
    expect(event).toStartWith("event: error\ndata: {");
    expect(event).toEndWith("}\n\n");
    expect(dataOf(event)).toEqual({
      type: "error",
      error: { type: "api_error", message: "The channel broke off.\n" },
      request_id: "req_1",
    });
  });

  test("responses: response.failed, with the known parts of the answer", () => {
    const event = responses.errorEvent(broken, "req_1", { id: "resp_9", model: "m", sequence: 7 });
    expect(event).toStartWith("event: response.failed\ndata: {");
    expect(dataOf(event)).toMatchObject({
      type: "response.failed",
      sequence_number: 7,
      response: {
        id: "resp_9",
        object: "response",
        status: "failed",
        model: "m",
        error: { code: "server_error", message: "The channel broke off.\n" },
        output: [],
        usage: null,
      },
      error: { message: "The channel broke off.\n", type: "server_error", param: null, code: "server_error" },
    });
    expect(dataOf(responses.errorEvent(broken, "req_1"))).toMatchObject({
      response: { id: "resp_req_1", model: "" },
    });
  });

  test("chat: an error and no [DONE]", () => {
    const event = chat.errorEvent(broken, "req_1");
    expect(dataOf(event)).toEqual({
      error: { message: "The channel broke off.\n", type: "server_error", param: null, code: "server_error" },
    });
    expect(event).not.toContain("DONE");
  });

  test("content: an error, then a reset, because clients read the error as one more chunk", () => {
    const event = content.errorEvent(broken, "req_1");
    expect(event).toEndWith("}\r\n\r\n");
    expect(dataOf(event.trim())).toMatchObject({ error: { code: 502, status: "UNAVAILABLE" } });
    expect([messages, responses, chat, content].map((dialect) => dialect.resetAfterErrorEvent)).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });

  test("content as a JSON array: the error is the last element, and the array is closed", () => {
    const first = content.errorEvent(broken, "r", { form: "json-array" });
    const later = content.errorEvent(broken, "r", { form: "json-array", begun: true });
    expect(parse(first)).toMatchObject([{ error: { code: 502 } }]);
    expect(parse(`[{"a":1}${later}`)).toMatchObject([{ a: 1 }, { error: { code: 502 } }]);
  });
});
