import { describe, expect, test } from "bun:test";
import {
  type BodyStart,
  type FirstEvent,
  readBodyStart,
  readFirstEvent,
  readStreamHead,
} from "../../../src/gateway/upstream/stream-head.ts";
import { UpstreamFault, type UpstreamResponse } from "../../../src/lib/http1/types.ts";
import { type Chunks, ScriptedResponse } from "../scripted.ts";

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

const CUT = new UpstreamFault("cut", "closed", true);
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
const FIRST = 'event: message_start\ndata: {"type":"message_start","message":{}}\n\n';

describe("the beginning of a stream is held until its first event is known", () => {
  test.each<{ title: string; chunks: Chunks; first: FirstEvent; readBefore: number }>([
    { title: "a real event", chunks: [FIRST, "more"], first: "good", readBefore: 1 },
    {
      title: "a real event in pieces",
      chunks: [...FIRST.split(""), "more"],
      first: "good",
      readBefore: FIRST.length,
    },
    { title: "a real event after a ping", chunks: [PING, FIRST, "more"], first: "good", readBefore: 2 },
    {
      title: "an error event",
      chunks: [OVERLOADED],
      first: { status: 529, message: "Overloaded" },
      readBefore: 1,
    },
    {
      title: "an error event after a ping",
      chunks: [PING + OVERLOADED],
      first: { status: 529, message: "Overloaded" },
      readBefore: 1,
    },
    { title: "only a ping", chunks: [PING], first: "open", readBefore: 2 },
    { title: "nothing", chunks: [], first: "open", readBefore: 1 },
    { title: "a fault", chunks: [CUT], first: "open", readBefore: 1 },
    { title: "a ping and a fault", chunks: [PING, CUT], first: "open", readBefore: 2 },
    {
      title: "a comment without end",
      chunks: [`: ${"x".repeat(300_000)}\n`, "more"],
      first: "open",
      readBefore: 1,
    },
  ])("$title", async ({ chunks, first, readBefore }) => {
    const source = new ScriptedResponse({ chunks });
    let reads = 0;
    const read = source.read.bind(source);
    source.read = () => ((reads += 1), read());
    const head = await readStreamHead(source);
    expect([head.first, reads]).toEqual([first, readBefore]);
    expect(await readAll(head.response)).toEqual(await readAll(new ScriptedResponse({ chunks })));
  });
});

test.each<[start: BodyStart, title: string, chunks: Chunks, reads: number]>([
  ["response", "an object", ['{"a":1}', "more"], 1],
  ["response", "a list after blanks and a byte order mark", [" \r\n", "\ufeff", "\n[", "more"], 3],
  ["response", "an event in pieces", ["d", "at", "a: {}", "more"], 3],
  ["response", "a comment", [": hello\n", "more"], 1],
  ["foreign", "a page", ["\n<!doctype html>", "more"], 1],
  ["foreign", "a text that begins like a field", ["e", "rror code: 1020", "more"], 2],
  ["empty", "nothing", [], 1],
  ["empty", "blanks", [" ", "\n"], 3],
  ["unknown", "a fault", [CUT], 1],
  ["unknown", "a fault after blanks", [" ", CUT], 2],
  ["unknown", "many blanks", [" ".repeat(70_000), "{}", "more"], 1],
])("a body is judged as %s by its beginning: %s", async (start, _title, chunks, reads) => {
  const source = new ScriptedResponse({ chunks });
  let count = 0;
  const read = source.read.bind(source);
  source.read = () => ((count += 1), read());
  const judged = await readBodyStart(source);
  expect([judged.start, count]).toEqual([start, reads]);
  expect(await readAll(judged.response)).toEqual(await readAll(new ScriptedResponse({ chunks })));
});

/** All bytes of a response, and the kind of the fault that ended it. */
async function readAll(response: UpstreamResponse): Promise<[text: string, fault: string | null]> {
  let text = "";
  try {
    for (let chunk = await response.read(); chunk !== null; chunk = await response.read())
      text += Buffer.from(chunk);
    return [text, null];
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    return [text, fault.kind];
  }
}
