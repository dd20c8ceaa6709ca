import { expect, test } from "bun:test";
import { Beginning, type Verdict } from "../../../src/gateway/send/beginning.ts";

const event = (data: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

const OVERLOADED = event(
  { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
  "error",
);
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
const FIRST = 'event: message_start\ndata: {"type":"message_start","message":{}}\n\n';

/** What is said of a body that comes in these chunks, and after how many. */
function judge(
  beginning: Beginning,
  chunks: readonly string[],
  hasEnded: boolean,
): [verdict: Verdict, chunks: number] {
  for (const [index, chunk] of chunks.entries()) {
    const verdict = beginning.add(Buffer.from(chunk));
    if (verdict !== null) return [verdict, index + 1];
  }
  return [beginning.conclude(hasEnded), chunks.length + 1];
}

const GOOD: Verdict = { kind: "good" };
const ERROR: Verdict = { kind: "error", status: 529, message: "Overloaded" };

test.each<[title: string, chunks: readonly string[], verdict: Verdict, taken: number]>([
  ["a real event", [FIRST, "more"], GOOD, 1],
  ["a real event in pieces", [...FIRST.split(""), "more"], GOOD, FIRST.length],
  ["a real event after a ping", [PING, FIRST, "more"], GOOD, 2],
  ["an error event", [OVERLOADED], ERROR, 1],
  ["an error of the request", [event({ error: { code: 400, status: "INVALID_ARGUMENT" } }), "more"], GOOD, 1],
  ["an error event after a ping", [PING + OVERLOADED], ERROR, 1],
  ["only a ping", [PING], GOOD, 2],
  ["a comment without end", [`: ${"x".repeat(300_000)}\n`, "more"], GOOD, 1],
  ["a page", ["<html>\n", "</html>\n"], { kind: "foreign" }, 1],
  ["nothing", [], { kind: "empty" }, 1],
])("a stream is held until its first event is known: %s", (_, chunks, verdict, taken) => {
  expect(judge(new Beginning("stream"), chunks, true)).toEqual([verdict, taken]);
});

test.each<[verdict: Verdict["kind"], title: string, chunks: readonly string[], taken: number]>([
  ["good", "an object", ['{"a":1}', "more"], 1],
  ["good", "a list after blanks and a byte order mark", [" \r\n", "\ufeff", "\n[", "more"], 3],
  ["good", "an event in pieces", ["d", "at", "a: {}", "more"], 3],
  ["good", "a comment", [": hello\n", "more"], 1],
  ["foreign", "a page", ["\n<!doctype html>", "more"], 1],
  ["foreign", "a text that begins like a field", ["e", "rror code: 1020", "more"], 2],
  ["empty", "nothing", [], 1],
  ["empty", "blanks", [" ", "\n"], 3],
  ["good", "an object after many blanks", [...Array.from({ length: 150 }, () => " "), "{}", "more"], 151],
  ["good", "many blanks", [" ".repeat(70_000), "{}", "more"], 1],
])("a body is judged as %s by its beginning: %s", (kind, _title, chunks, taken) => {
  const [verdict, count] = judge(new Beginning("any"), chunks, true);
  expect([verdict.kind, count]).toEqual([kind, taken]);
});

test.each([
  ["nothing", []],
  ["blanks", [" "]],
])("a body that fails after %s is not known to be foreign", (_, chunks) => {
  expect(judge(new Beginning("any"), chunks, false)[0]).toEqual(GOOD);
  expect(judge(new Beginning("stream"), chunks, false)[0]).toEqual(GOOD);
});
