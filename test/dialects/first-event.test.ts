// The first event of a stream decides whether another channel is tried.

import { expect, test } from "bun:test";
import { type FirstEvent, FirstEventSearch } from "../../src/dialects/first-event.ts";
import { messages } from "../../src/dialects/formats/messages.ts";

const event = (data: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

const OVERLOADED = event(
  { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  "error",
);
const CREATED = event({ type: "response.created", response: { error: null, usage: null } });

const open = (): FirstEventSearch => new FirstEventSearch(messages.upstreamErrors);

/** The same text in pieces of this many bytes. */
function search(text: string, size: number): FirstEvent {
  const bytes = Buffer.from(text);
  const searched = open();
  let first: FirstEvent = "open";
  for (let at = 0; at < bytes.length && first === "open"; at += size)
    first = searched.add(bytes.subarray(at, at + size));
  return first;
}

test.each<[string, string, FirstEvent]>([
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
  ["an error of the request", event({ error: { code: 400, message: "m" } }), { status: 400, message: "m" }],
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
])("the first event of a stream with %s is judged, however the stream is cut", (_, text, expected) => {
  for (const size of [1, 2, 7, 1000]) expect(search(text, size)).toEqual(expected);
});

test("nothing behind the first event is read", () => {
  const bytes = Buffer.from(`data: {"a":1}\n\n${"data: {}\n\n".repeat(100_000)}`);
  const before = process.cpuUsage();
  for (let turn = 0; turn < 1000; turn += 1) expect(open().add(bytes)).toBe("good");
  const { user, system } = process.cpuUsage(before);
  // To read all of it a thousand times takes several seconds.
  expect(user + system).toBeLessThan(1_000_000);
});

test("an error without framing is parsed at most a hundred times, however many chunks may end it", () => {
  const searched = open();
  expect(searched.add(Buffer.from('{"error":{"a":"'))).toBe("open");
  for (let chunk = 1; chunk < 100; chunk += 1) expect(searched.add(Buffer.from("}"))).toBe("open");
  expect(searched.add(Buffer.from("}"))).toBe("good");
});

test("an error's message is read from an object, from a list, and from a text", () => {
  const readMessage = (body: unknown): string => messages.upstreamErrors.readMessage(body);
  for (const body of [{ error: { message: "m" } }, [{ error: { message: "m" } }], { error: "m" }])
    expect(readMessage(body)).toBe("m");
  for (const body of [undefined, null, "m", {}, { error: {} }, { error: { message: 1 } }, []])
    expect(readMessage(body)).toBe("");
});
