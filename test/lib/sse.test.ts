import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseCut } from "../../src/lib/json/cut-json.ts";
import { findMissingEnd, openSseParser, type SseEvent } from "../../src/lib/sse.ts";
import { cutAt, cuts, readByStandard, streams } from "./streams.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

function parse(...chunks: readonly Uint8Array[]): SseEvent[] {
  const parser = openSseParser();
  return chunks.flatMap((chunk) => parser.push(chunk));
}

describe("the parser of event streams", () => {
  test("the parser of event streams gives the same events as the standard's algorithm, however the stream is split", () => {
    fc.assert(
      fc.property(streams, cuts, (text, offsets) => {
        expect(parse(...cutAt(text, offsets))).toEqual(readByStandard(text));
      }),
      { numRuns: 1000 },
    );
  });

  test("the parser of event streams reads the name and the data, and ignores other fields and comments", () => {
    expect(parse(encode(": hi\nid: 1\nevent: a\ndata: x\nretry: 5\n\ndata:y\n\nevent: lost\n\n"))).toEqual([
      { name: "a", data: "x" },
      { name: "", data: "y" },
    ]);
  });

  test("the parser of event streams gives an event as soon as its last CR has arrived, and ignores the LF that follows", () => {
    const parser = openSseParser();
    expect(parser.push(encode("data: a\r\n\r"))).toEqual([{ name: "", data: "a" }]);
    expect(parser.push(encode("\ndata: b\r\r"))).toEqual([{ name: "", data: "b" }]);
  });

  test("the parser of event streams gives the last event at the stream's end, even without a closing blank line", () => {
    const parser = openSseParser();
    expect(parser.push(encode("data: a\n\ndata: b"))).toEqual([{ name: "", data: "a" }]);
    expect(parser.end()).toEqual([{ name: "", data: "b" }]);
  });

  test("the parser of event streams refuses an event of more than 32 MB", () => {
    const parser = openSseParser();
    const piece = new Uint8Array(8 * 1024 * 1024).fill(0x61);
    expect(() => Array.from({ length: 5 }, () => parser.push(piece))).toThrow("an event of more than");
  });
});

test("findMissingEnd returns what must follow a cut stream to end its last event, even for a client that knows only CRLF", () => {
  const added = ["", "x\r\n\r\n", "x\r\n\r", "x\r\n", "x\r", "x"].map((text) =>
    findMissingEnd(text, "\r\n\r\n"),
  );
  expect(added).toEqual(["", "", "\n", "\r\n\r\n", "\r\n\r\n", "\r\n\r\n"]);
});

test("JSON that was cut anywhere is read up to the cut", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(parseCut(text)).toMatchObject({ value: JSON.parse(text), depth: 0 });
      for (let end = 0; end < text.length; end += 1) parseCut(text.slice(0, end));
    }),
  );
  const text = '{"a": [1, {"b": "x\\"y\\u00e9", "c": tru';
  const ends: readonly (readonly [number, unknown])[] = [
    [text.length, { a: [1, { b: 'x"y\u00e9' }] }],
    [text.indexOf('"c"') + 2, { a: [1, { b: 'x"y\u00e9' }] }],
    [text.indexOf("00e9") + 2, { a: [1, { b: 'x"y' }] }],
    [text.indexOf('\\"') + 1, { a: [1, { b: "x" }] }],
    [text.indexOf(", {"), { a: [] }],
    [3, {}],
  ];
  for (const [end, value] of ends) expect([end, parseCut(text.slice(0, end)).value]).toEqual([end, value]);
});
