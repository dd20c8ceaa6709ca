import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { SseScanner, readDataLine } from "../../../src/lib/sse/sse-needles.ts";
import { cutAt, cuts, readByStandard, streams } from "./streams.ts";

interface Seen {
  lines: string[];
  long: string[];
  samples: string;
  plainBytes: number;
}

function scan(chunks: readonly Uint8Array[], limit = 1024): Seen {
  const seen: Seen = { lines: [], long: [], samples: "", plainBytes: 0 };
  const scanner = new SseScanner({
    needles: ['"usage"', "[DONE]"],
    limit,
    onEvent: (line) => seen.lines.push(line.toString()),
    openLong() {
      const pieces: Buffer[] = [];
      return {
        see: (piece) => void pieces.push(Buffer.from(piece)),
        end: () => void seen.long.push(Buffer.concat(pieces).toString()),
      };
    },
    onSample(events) {
      seen.samples += events.toString();
      return true;
    },
  });
  for (const chunk of chunks) scanner.see(chunk);
  return { ...seen, plainBytes: scanner.plainBytes };
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("the scanner of event streams", () => {
  test("finds the events that contain a needle, with every kind of line end", () => {
    const text =
      'event: a\ndata: {"x":1}\n\ndata: {"usage":1}\r\n\r\ndata: plain\n\nevent: b\rdata: {"usage":2}\r\rdata: [DONE]\n\n';
    const { lines, samples, plainBytes } = scan([encode(text)]);
    expect(lines).toEqual(['data: {"usage":1}', 'data: {"usage":2}', "data: [DONE]"]);
    expect(samples).toBe('event: a\ndata: {"x":1}\n\ndata: plain\n\n');
    expect(plainBytes).toBe(samples.length);
  });

  test("gives the data of the standard for every such event, wherever the stream is cut", () => {
    fc.assert(
      fc.property(streams, cuts, (text, offsets) => {
        const { lines } = scan(cutAt(text, offsets));
        const wanted = readByStandard(text).filter(({ data }) => data.includes('"usage"'));
        expect(lines.map(readDataLine)).toEqual(wanted.map(({ data }) => data.trimEnd()));
      }),
      { numRuns: 1000 },
    );
  });

  test("passes on the same events and samples, wherever the stream is cut", () => {
    fc.assert(
      fc.property(streams, cuts, (stream, offsets) => {
        // A blank line too many at the end is in the sample only if it comes with it.
        const text = stream.replace(/(?:\r\n|\r|\n){3,}$/, "\n\n");
        const chunks = cutAt(text, offsets);
        expect(scan(chunks)).toEqual(scan([encode(text)]));
        expect(scan(chunks, 24).lines).toEqual(scan([encode(text)], 24).lines);
      }),
    );
  });

  test("reads several data lines as one value", () => {
    expect(scan([encode('data: {"usage":\nevent: x\ndata:  {"a":1}}\n\n')]).lines.map(readDataLine)).toEqual([
      '{"usage":\n {"a":1}}',
    ]);
  });

  test("passes on an event over the limit in pieces, and finds the next one", () => {
    const long = `data: ${"x".repeat(5000)}\n\n`;
    const bytes = encode(`${long}data: {"usage":1}\n\n`);
    const pieces = Array.from({ length: Math.ceil(bytes.length / 100) }, (_, i) =>
      bytes.subarray(i * 100, i * 100 + 100),
    );
    expect(scan(pieces).long).toEqual([long]);
    expect(scan(pieces).lines).toEqual(['data: {"usage":1}']);
    const matters = encode(`data: {"usage":"${"x".repeat(5000)}"}\n\n`);
    expect(scan([matters]).long).toHaveLength(1);
    expect(scan([matters]).lines).toEqual([]);
  });

  test("passes on events that are too long for a sample, and samples the others", () => {
    const long = `data: ${"x".repeat(40_000)}\n\n`;
    const stream = `${long.repeat(20)}data: y\n\n`;
    const seen = scan([encode(stream)], 64 * 1024);
    expect(seen.long).toEqual(Array.from({ length: 20 }, () => long));
    expect(seen.samples).toBe("data: y\n\n");
    expect(seen.plainBytes).toBe(seen.samples.length);
  });

  test("does not hold an event of 50 MB", () => {
    let longest = 0;
    const scanner = new SseScanner({
      needles: ['"usage"'],
      limit: 1024,
      onEvent() {},
      openLong: () => ({ see: (piece) => void (longest = Math.max(longest, piece.length)), end() {} }),
      onSample: () => true,
    });
    const chunk = new Uint8Array(16_384).fill(97);
    for (let sent = 0; sent < 50_000_000; sent += chunk.length) scanner.see(chunk);
    expect(scanner.peek().length).toBe(0);
    expect(longest).toBe(16_384);
  });

  test("shows the event that has not ended", () => {
    const scanner = new SseScanner({
      needles: [],
      limit: 1024,
      onEvent() {},
      openLong: () => ({ see() {}, end() {} }),
      onSample: () => true,
    });
    scanner.see(encode('data: x\n\nevent: y\ndata: {"a":'));
    scanner.see(encode("1}\n"));
    expect(scanner.peek().toString()).toBe('data: {"a":1}');
    scanner.see(encode('\n{\n  "error": {\n'));
    expect(scanner.peek().toString()).toBe('{"error": {');
  });

  test("keeps no reference to a chunk", () => {
    const lines: string[] = [];
    const scanner = new SseScanner({
      needles: ['"usage"'],
      limit: 1024,
      onEvent: (line) => lines.push(line.toString()),
      openLong: () => ({ see() {}, end() {} }),
      onSample: () => true,
    });
    const buffer = new Uint8Array(10);
    for (const piece of ['data: {"us', 'age":12345', "6}\n\n      "]) {
      buffer.set(encode(piece));
      scanner.see(buffer);
    }
    expect(lines).toEqual(['data: {"usage":123456}']);
  });
});

test.each([
  ["data: x\r\n", "x"],
  ["data:x\n", "x"],
  ["data:\n", ""],
  ["event: data: x\n", null],
  ["dat", null],
])("the value of %j is %j", (line, value) => {
  expect(readDataLine(line)).toBe(value);
});
