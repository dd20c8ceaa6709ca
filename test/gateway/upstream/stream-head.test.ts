import { describe, expect, test } from "bun:test";
import { type BodyStart, readBodyStart, readStreamHead } from "../../../src/gateway/upstream/stream-head.ts";
import type { FirstEvent } from "../../../src/dialects/first-event.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { UpstreamFault, type UpstreamResponse } from "../../../src/lib/http1/types.ts";
import { type Chunks, ScriptedResponse } from "../scripted.ts";

const event = (data: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

const OVERLOADED = event(
  { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  "error",
);
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
      title: "an error of the request",
      chunks: [event({ error: { code: 400, status: "INVALID_ARGUMENT" } }), "more"],
      first: "good",
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
    const head = await readStreamHead(source, messages);
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
  ["response", "an object after many blanks", [...Array.from({ length: 150 }, () => " "), "{}", "more"], 151],
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
