// Tests the usage of a stream of Chat Completions: how it is requested, and how its chunk is removed from the answer.

import { describe, expect, test } from "bun:test";
import { askForUsage, UsageRemover } from "../../../src/dialects/formats/chat.ts";

const bytes = (text: string): Buffer => Buffer.from(text);

describe("a chat request that the gateway changes so that it asks for usage", () => {
  test.each([
    ["no options", `{"model":"m","stream":true}`, `"stream_options":{"include_usage":true},"model":"m"`],
    [
      "a byte order mark and blanks",
      `\ufeff { "model":"m"}`,
      `{"stream_options":{"include_usage":true}, "model":"m"}`,
    ],
    [
      "null",
      `{"stream_options":null,"stream":true}`,
      `{"stream_options":{"include_usage":true},"stream":true}`,
    ],
    ["false", `{"stream_options":{"include_usage":false}}`, `{"stream_options":{"include_usage":true}}`],
    [
      "another option",
      `{"stream_options" : {"include_obfuscation":false} , "a":1}`,
      `{"stream_options" : {"include_obfuscation":false,"include_usage":true} , "a":1}`,
    ],
    ["an escaped name", `{"stream\\u005foptions":{},"a":1}`, `{"include_usage":true},"a":1`],
  ])("a request with %s gets include_usage and no other change", (_name, before, after) => {
    const asking = askForUsage(bytes(before));
    expect(String(asking)).toContain(after);
    const { stream_options, ...others } = JSON.parse(String(asking).replace(/^\ufeff/, ""));
    expect(stream_options.include_usage).toBe(true);
    const { stream_options: _own, ...kept } = JSON.parse(before.replace(/^\ufeff/, ""));
    expect(others).toEqual(kept);
  });

  test.each([
    ["asks for usage already", `{"stream_options":{"include_usage":true}}`],
    ["has options that are not an object", `{"stream_options":"yes"}`],
    ["has the options twice", `{"stream_options":{},"stream_options":{}}`],
    ["is not JSON", `{"stream_options":{}`],
  ])("a request stays as it is if it %s", (_name, body) => {
    expect(askForUsage(bytes(body))).toBeNull();
  });
});

const USAGE = `{"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`;
const TEXT = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"ä \\"choices\\":[] prompt_tokens"}}],"usage":null}`;
const LAST = `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`;

/** Removes the usage from a text that comes in pieces of this size, all in the same memory, as a socket's pieces do. */
function remove(text: string, size: number, isCut = false): string {
  const remover = new UsageRemover();
  const all = bytes(text);
  let shown = "";
  const scratch = Buffer.alloc(size);
  for (let at = 0; at < all.length; at += size) {
    const length = all.copy(scratch, 0, at, Math.min(at + size, all.length));
    shown += Buffer.from(remover.pass(scratch.subarray(0, length))).toString("latin1");
    scratch.fill(0);
  }
  return bytes(shown + Buffer.from(remover.end(isCut)).toString("latin1")).toString("latin1");
}

const latin = (text: string): string => bytes(bytes(text).toString("latin1")).toString("latin1");

describe.each([
  ["LF", "\n"],
  ["CRLF", "\r\n"],
  ["CR", "\r"],
])("only the usage is removed from a stream whose lines end in %s", (_name, end) => {
  const write = (...events: readonly string[]): string => events.map((event) => event + end + end).join("");
  const around = (...extra: readonly string[]): string =>
    write(": hello", TEXT, LAST, ...extra, `event: done${end}data: [DONE]`);

  test("only the chunk with the usage is removed from a stream, however the stream is cut into pieces", () => {
    const stream = around(`data: ${USAGE}`);
    for (let size = 1; size <= stream.length; size += size < 40 ? 1 : 37)
      expect([size, remove(stream, size)]).toEqual([size, latin(around())]);
  });

  test("all usage chunks are removed from a stream, even at its beginning and if a chunk spans several lines", () => {
    const lines = `id: 7${end}data: ${USAGE.slice(0, 20)}${end}data: ${USAGE.slice(20)}`;
    const stream = write(`data: ${USAGE}`) + around(lines, `data:${USAGE}`);
    expect(remove(stream, 11)).toBe(latin(around()));
  });

  test("the gateway removes the usage chunk from a stream, even if it comes last and has no blank line", () => {
    expect(remove(write(TEXT) + `data: ${USAGE}`, 9)).toBe(latin(write(TEXT)));
    expect(remove(write(TEXT) + `data: [DONE]`, 9)).toBe(latin(write(TEXT) + "data: [DONE]"));
  });

  test.each([
    ["chunks with choices and usage", LAST],
    ["chunks without choices and usage", `data: {"choices":[],"prompt_filter_results":[{"x_tokens":1}]}`],
    ["null in place of usage", `data: {"choices":[],"usage":null,"x_tokens":1}`],
    ["no choices at all", `data: {"usage":{"prompt_tokens":3}}`],
    ["an error", `data: {"error":{"message":"no _tokens","choices":[]}}`],
    ["text that is not JSON", `data: {"choices":[],"usage":{"prompt_tokens":3}`],
  ])("the gateway removes no usage from a stream that has %s", (_name2, event) => {
    const stream = around(event);
    expect(remove(stream, 13)).toBe(latin(stream));
  });

  test("if a stream is cut inside the usage chunk, none of this chunk is shown; any other event is shown as far as it came", () => {
    const start = write(TEXT);
    for (let cut = 40; cut < USAGE.length; cut += 1)
      expect(remove(`${start}data: ${USAGE.slice(0, cut)}`, 16, true)).toBe(latin(start));
    for (let cut = 1; cut < TEXT.length; cut += 1)
      expect(remove(start + TEXT.slice(0, cut), 16, true)).toBe(latin(start + TEXT.slice(0, cut)));
  });

  test("an event too long to be the chunk with the usage is passed on at once, and the next event is examined again", () => {
    const long = `data: {"choices":[{"delta":{"content":"${"x".repeat(200_000)}"}}],"usage":null}`;
    const remover = new UsageRemover();
    const first = remover.pass(bytes(long.slice(0, 100_000)));
    expect(first.length).toBeGreaterThan(99_990);
    expect(remove(write(long, `data: ${USAGE}`, TEXT), 1000)).toBe(latin(write(long, TEXT)));
  });
});

test("the time for an event that comes in tiny pieces is linear in the event's length", () => {
  const remover = new UsageRemover();
  const piece = bytes("x");
  const began = process.cpuUsage();
  for (let at = 0; at < 200_000; at += 1) remover.pass(piece);
  expect(remover.end(true).length).toBeLessThan(4);
  expect(process.cpuUsage(began).user).toBeLessThan(10_000_000);
});
