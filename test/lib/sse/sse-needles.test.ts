import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { LineScanner, readDataLine } from "../../../src/lib/sse/sse-needles.ts";

interface Seen {
  lines: string[];
  long: string[];
  plainBytes: number;
}

function scan(chunks: readonly Uint8Array[], limit = 1024): Seen {
  const seen: Seen = { lines: [], long: [], plainBytes: 0 };
  const scanner = new LineScanner({
    needles: ['"usage"', "[DONE]"],
    limit,
    onLine: (line) => seen.lines.push(line.toString()),
    openLong() {
      const pieces: Buffer[] = [];
      return {
        see: (piece) => void pieces.push(Buffer.from(piece)),
        end: () => void seen.long.push(Buffer.concat(pieces).toString()),
      };
    },
    onSample() {},
  });
  for (const chunk of chunks) scanner.see(chunk);
  return { ...seen, plainBytes: scanner.plainBytes };
}

const encode = (text: string) => new TextEncoder().encode(text);

describe("the lines that matter", () => {
  test("are found among others, with LF and with CRLF", () => {
    const text =
      'event: a\ndata: {"x":1}\n\ndata: {"usage":1}\r\n\r\ndata: plain\ndata: {"usage":2}\ndata: [DONE]\n\n';
    const { lines, plainBytes } = scan([encode(text)]);
    expect(lines).toEqual(['data: {"usage":1}\r\n', 'data: {"usage":2}\n', "data: [DONE]\n"]);
    expect(plainBytes).toBe(text.length - lines.join("").length);
  });

  test("are the same however the bytes are cut", () => {
    const line = fc.constantFrom(
      "data: x",
      'data: {"usage":1}',
      "",
      "data: [DONE]",
      'data: {"usage":"é€😀"}',
      "a".repeat(30),
    );
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 20 }),
        fc.array(fc.nat(400), { maxLength: 8 }),
        (lines, cuts) => {
          const bytes = encode(lines.map((each) => `${each}\n`).join(""));
          const at = [
            0,
            ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b),
            bytes.length,
          ];
          const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
          expect(scan(chunks)).toEqual(scan([bytes]));
          expect(scan(chunks, 24).lines).toEqual(scan([bytes], 24).lines);
        },
      ),
    );
  });

  test("a line over the limit is handed on in pieces, in one chunk or in many, and the next line is found", () => {
    const text = `data: ${"x".repeat(5000)}\ndata: {"usage":1}\n`;
    const bytes = encode(text);
    const pieces = Array.from({ length: Math.ceil(bytes.length / 100) }, (_, i) =>
      bytes.subarray(i * 100, i * 100 + 100),
    );
    expect(scan(pieces).long).toEqual([`data: ${"x".repeat(5000)}\n`]);
    expect(scan(pieces).lines).toEqual(['data: {"usage":1}\n']);
    const matters = encode(`data: {"usage":"${"x".repeat(5000)}"}\n`);
    expect(scan([matters]).long).toHaveLength(1);
    expect(scan([matters]).lines).toEqual([]);
  });

  test("a line of 50 MB is not held", () => {
    let most = 0;
    const scanner = new LineScanner({
      needles: ['"usage"'],
      limit: 1024,
      onLine() {},
      openLong: () => ({ see: (piece) => void (most = Math.max(most, piece.length)), end() {} }),
      onSample() {},
    });
    const chunk = new Uint8Array(16_384).fill(97);
    for (let sent = 0; sent < 50_000_000; sent += chunk.length) scanner.see(chunk);
    expect(scanner.peek().length).toBe(0);
    expect(most).toBe(16_384);
  });
});

test("a chunk may be overwritten as soon as it has been seen", () => {
  const lines: string[] = [];
  const scanner = new LineScanner({
    needles: ['"usage"'],
    limit: 1024,
    onLine: (line) => lines.push(line.toString()),
    openLong: () => ({ see() {}, end() {} }),
    onSample() {},
  });
  const buffer = new Uint8Array(10);
  for (const piece of ['data: {"us', 'age":12345', "6}\n       "]) {
    buffer.set(encode(piece));
    scanner.see(buffer);
  }
  expect(lines).toEqual(['data: {"usage":123456}\n']);
});

test.each([
  ["data: x\r\n", "x"],
  ["data:x\n", "x"],
  ["data:\n", ""],
  ["event: data: x\n", null],
  ["dat", null],
])("the value of %p is %p", (line, value) => {
  expect(readDataLine(Buffer.from(line))).toBe(value);
});
