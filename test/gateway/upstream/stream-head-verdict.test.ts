import { describe, expect, test } from "bun:test";
import { readFirstEvent } from "../../../src/gateway/upstream/stream-head-verdict.ts";

const event = (data: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

const OVERLOADED = event(
  { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  "error",
);
const CREATED = event({ type: "response.created", response: { error: null, usage: null } });

describe("the first event of a stream", () => {
  test.each<[string, string, ReturnType<typeof readFirstEvent>]>([
    ["nothing yet", "", "open"],
    ["half an event", 'event: error\ndata: {"type":"error"', "open"],
    ["an event without its end", OVERLOADED.slice(0, -1), "open"],
    ["a comment", ": hello\n\n", "open"],
    ["a ping", event({ type: "ping" }, "ping"), "open"],
    ["an answer's beginning", event({ type: "message_start", message: { usage: {} } }), "good"],
    ["an answer created", CREATED, "open"],
    ["a delta after it", CREATED + event({ type: "response.output_text.delta", delta: "a" }), "good"],
    ["a chunk", event({ candidates: [{}] }), "good"],
    ["[DONE]", "data: [DONE]\n\n", "good"],
    ["an overload", OVERLOADED, { status: 529, message: "Overloaded" }],
    ["an overload after a comment", `: x\n\n${OVERLOADED}`, { status: 529, message: "Overloaded" }],
    [
      "an overload in lines that end otherwise",
      OVERLOADED.replaceAll("\n", "\r\n"),
      { status: 529, message: "Overloaded" },
    ],
    [
      "a failure after it was created",
      CREATED +
        event({
          type: "response.failed",
          response: { error: { code: "rate_limit_exceeded", message: "Slow" }, usage: null },
        }),
      { status: 429, message: "Slow" },
    ],
    [
      "a failure that has cost something",
      event({
        type: "response.failed",
        response: { error: { code: "server_error", message: "x" }, usage: { input_tokens: 5 } },
      }),
      "good",
    ],
    [
      "a bare error event",
      event({ type: "error", code: "server_is_overloaded", message: "busy" }),
      { status: 503, message: "busy" },
    ],
    [
      "an error by its number",
      event({ error: { code: 503, message: "m", status: "UNAVAILABLE" } }),
      { status: 503, message: "m" },
    ],
    ["an error of the request", event({ error: { code: 400, status: "INVALID_ARGUMENT" } }), "good"],
    [
      "a prompt that is too long",
      event({ type: "response.failed", response: { error: { code: "context_length_exceeded" } } }),
      "good",
    ],
    ["an error that nobody knows", event({ error: { type: "odd_error" } }), "good"],
    ["a list's beginning", "[", "open"],
    ["a list's first chunk", '[{"candidates":[]}', "good"],
    ["an error in a list, not whole", '[{"error":{"code":503,', "open"],
    ["an error in a list", '[{"error":{"code":503,"message":"m"}}\n]', { status: 503, message: "m" }],
    ["an error without framing", '{"error":{"code":500,"message":"m"}}', { status: 500, message: "m" }],
  ])("%s", (_, text, expected) => {
    expect(readFirstEvent(text)).toEqual(expected);
  });
});
