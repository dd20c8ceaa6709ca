import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { GatewayError } from "../../../src/lib/errors.ts";
import {
  endsWithWholeEvent,
  findMissingEnd,
  openSseParser,
  type SseEvent,
} from "../../../src/lib/sse/sse-parser.ts";
import { cutAt, cuts, readByStandard, streams } from "./streams.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

function parse(...chunks: readonly Uint8Array[]): SseEvent[] {
  const parser = openSseParser();
  return chunks.flatMap((chunk) => parser.push(chunk));
}

describe("the parser of event streams", () => {
  test("gives the events of the standard, wherever the stream is cut", () => {
    fc.assert(
      fc.property(streams, cuts, (text, offsets) => {
        expect(parse(...cutAt(text, offsets))).toEqual(readByStandard(text));
      }),
      { numRuns: 1000 },
    );
  });

  test("reads the name and the data, and ignores other fields and comments", () => {
    expect(parse(encode(": hi\nid: 1\nevent: a\ndata: x\nretry: 5\n\ndata:y\n\nevent: lost\n\n"))).toEqual([
      { name: "a", data: "x" },
      { name: "", data: "y" },
    ]);
  });

  test("joins several data lines with line feeds", () => {
    expect(parse(encode("data: a\ndata: b\ndata:\n\n"))).toEqual([{ name: "", data: "a\nb\n" }]);
  });

  test.each(["\n", "\r", "\r\n"])("accepts %j as the end of a line", (end) => {
    expect(parse(encode(`data: a${end}data: b${end}${end}`))).toEqual([{ name: "", data: "a\nb" }]);
  });

  test("gives an event as soon as its last CR has arrived, and ignores the LF that follows", () => {
    const parser = openSseParser();
    expect(parser.push(encode("data: a\r\n\r"))).toEqual([{ name: "", data: "a" }]);
    expect(parser.push(encode("\ndata: b\r\r"))).toEqual([{ name: "", data: "b" }]);
  });

  test("gives an event without its closing blank line at the end", () => {
    const parser = openSseParser();
    expect(parser.push(encode("data: a\n\ndata: b"))).toEqual([{ name: "", data: "a" }]);
    expect(parser.end()).toEqual([{ name: "", data: "b" }]);
    expect(parser.end()).toEqual([]);
  });

  test("accepts an event up to its size limit, on one line or many, and no larger one", () => {
    const parser = openSseParser(100);
    for (let count = 0; count < 50; count += 1) parser.push(encode(`data: ${"x".repeat(50)}\n\n`));
    for (const piece of ["xxxxx", "data: x\n", ": comment\r", "data: x\r\n"]) {
      const small = openSseParser(100);
      expect(() => {
        for (let count = 0; count < 30; count += 1) small.push(encode(piece));
      }).toThrow(GatewayError);
    }
  });
});

test("another event can follow exactly after a blank line", () => {
  for (const text of ["", "data: x\n\n", "data: x\r\n\r\n", "data: x\r\r", "data: x\r\n\n", "data: x\n\r"])
    expect([text, endsWithWholeEvent(text)]).toEqual([text, true]);
  for (const text of ["data: x", "data: x\n", "data: x\r\n", "data: x\r", "\n\ndata: x\n"])
    expect([text, endsWithWholeEvent(text)]).toEqual([text, false]);
});

test("a last event becomes whole for every client, also for those that know CRLF only", () => {
  const added = ["", "x\r\n\r\n", "x\r\n\r", "x\r\n", "x\r", "x"].map((text) =>
    findMissingEnd(text, "\r\n\r\n"),
  );
  expect(added).toEqual(["", "", "\n", "\r\n\r\n", "\r\n\r\n", "\r\n\r\n"]);
});
