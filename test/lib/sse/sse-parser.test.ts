import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { GatewayError } from "../../../src/lib/errors.ts";
import { openSseSplitter, type SseEvent } from "../../../src/lib/sse/sse-parser.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

function split(...pieces: Uint8Array[]): SseEvent[] {
  const splitter = openSseSplitter();
  return pieces.flatMap((piece) => splitter.push(piece));
}

describe("server-sent events", () => {
  test("have a name and data; other fields and comments say nothing", () => {
    expect(split(encode(": hi\nid: 1\nevent: a\ndata: x\nretry: 5\n\ndata:y\n\nevent: lost\n\n"))).toEqual([
      { name: "a", data: "x" },
      { name: "", data: "y" },
    ]);
  });

  test("join their data lines", () => {
    expect(split(encode("data: a\ndata: b\ndata:\n\n"))).toEqual([{ name: "", data: "a\nb\n" }]);
  });

  test("end in LF or CRLF, and may start with a byte order mark", () => {
    expect(split(encode("\ufeffdata: a\r\n\r\ndata: b\r\n\n"))).toEqual([
      { name: "", data: "a" },
      { name: "", data: "b" },
    ]);
  });

  test("are the same however their bytes are cut", () => {
    const texts = fc.array(fc.string({ unit: "binary" }).map((text) => text.replaceAll(/[\r\n]/g, "")));
    fc.assert(
      fc.property(texts, fc.array(fc.nat(200)), (datas, cuts) => {
        const bytes = encode(datas.map((data) => `event: e\r\ndata: ${data}\r\n\r\n`).join(""));
        const offsets = [
          0,
          ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b),
          bytes.length,
        ];
        const pieces = offsets.slice(1).map((offset, index) => bytes.subarray(offsets[index], offset));
        expect(split(...pieces)).toEqual(split(bytes));
        expect(split(bytes)).toHaveLength(datas.length);
      }),
    );
  });

  test("without their closing blank line come at the end", () => {
    const splitter = openSseSplitter();
    expect(splitter.push(encode("data: a\n\ndata: b"))).toEqual([{ name: "", data: "a" }]);
    expect(splitter.end()).toEqual([{ name: "", data: "b" }]);
    expect(splitter.end()).toEqual([]);
  });

  test("may be as long as the limit, in one line or many, and no longer", () => {
    const splitter = openSseSplitter(100);
    for (let count = 0; count < 50; count += 1) splitter.push(encode(`data: ${"x".repeat(50)}\n\n`));
    expect(() => {
      for (let count = 0; count < 30; count += 1) splitter.push(encode("xxxxx"));
    }).toThrow(GatewayError);
    const lines = openSseSplitter(100);
    expect(() => {
      for (let count = 0; count < 30; count += 1) lines.push(encode("data: x\n"));
    }).toThrow(GatewayError);
  });
});
