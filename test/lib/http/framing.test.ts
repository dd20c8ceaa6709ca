import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { openDecoder, readBodyLength, staysOpen, type BodyDecoder } from "../../../src/lib/http/framing.ts";
import { type Field, Fields, Malformed } from "../../../src/lib/http/fields.ts";

/** Feeds `wire`, cut at the offsets, as a socket would: each piece a buffer of its own. */
function decode(decoder: BodyDecoder, wire: Buffer, cuts: readonly number[]): { body: Buffer; rest: Buffer } {
  const offsets = [...new Set([0, ...cuts.map((cut) => cut % (wire.length + 1)), wire.length])].toSorted(
    (a, b) => a - b,
  );
  const out: Buffer[] = [];
  for (const [index, offset] of offsets.entries()) {
    const piece = Buffer.from(wire.subarray(offset, offsets[index + 1] ?? wire.length));
    const came = decoder.decode(piece, 0);
    if (came !== null) out.push(Buffer.from(came));
    if (decoder.done) {
      const rest = Buffer.concat([piece.subarray(decoder.consumed), wire.subarray(offset + piece.length)]);
      return { body: Buffer.concat(out), rest };
    }
  }
  return { body: Buffer.concat(out), rest: Buffer.alloc(0) };
}

const cuts = fc.array(fc.nat(), { maxLength: 30 });
const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 12 });
/** What may be between a chunk's size and its line's end. */
const EXTENSIONS = [';x="y"', "", " ", "\t", " ;x"] as const;

function encodeChunks(parts: readonly Uint8Array[], trailer = ""): Buffer {
  const lines = parts.map((part, index) => {
    const size = part.length.toString(16) + (EXTENSIONS[index % EXTENSIONS.length] ?? "");
    return Buffer.concat([Buffer.from(`${size}\r\n`), part, CRLF]);
  });
  return Buffer.concat([...lines, Buffer.from(`0\r\n${trailer}\r\n`)]);
}
const CRLF = Buffer.from("\r\n");
const NEXT = Buffer.from("GET /next HTTP/1.1\r\n");

describe("a chunked body", () => {
  test("is the same wherever it is cut, and it ends where the next message starts", () => {
    fc.assert(
      fc.property(
        chunks,
        cuts,
        fc.constantFrom("", "x-a: b\r\n", "x-a: b\r\nc: d\r\n"),
        (parts, at, trailer) => {
          const wire = Buffer.concat([encodeChunks(parts, trailer), NEXT]);
          const { body, rest } = decode(openDecoder("chunked"), wire, at);
          expect(body).toEqual(Buffer.concat(parts));
          expect(rest).toEqual(NEXT);
        },
      ),
    );
  });

  test("is whole at its last byte and not before, at every offset", () => {
    const wire = encodeChunks([Buffer.from("hello"), Buffer.from("world")], "a: b\r\n");
    for (let end = 0; end <= wire.length; end++) {
      const decoder = openDecoder("chunked");
      decoder.decode(Buffer.from(wire.subarray(0, end)), 0);
      expect([end, decoder.done, decoder.finish()]).toEqual([end, end === wire.length, end === wire.length]);
    }
  });

  test("of many chunks in one packet is one view, also after other bytes", () => {
    const parts = Array.from({ length: 50 }, (_, index) => Buffer.from(`event ${index}\n\n`));
    const wire = Buffer.concat([Buffer.from("HEAD"), encodeChunks(parts), NEXT]);
    const decoder = openDecoder("chunked");
    expect(decoder.decode(wire, 4)?.toString()).toBe(Buffer.concat(parts).toString());
    expect(wire.subarray(decoder.consumed)).toEqual(NEXT);
  });

  test("has a size in hexadecimal digits, large or small, and in nothing else", () => {
    const sizes = new Map(
      Array.from("0123456789abcdefABCDEF", (digit) => [digit.charCodeAt(0), Number.parseInt(digit, 16)]),
    );
    for (let byte = 0; byte < 256; byte += 1) {
      const head = Buffer.from([0x31, byte, 0x0d, 0x0a]);
      const wire = Buffer.concat([head, Buffer.alloc(64, "x")]);
      const size = sizes.get(byte);
      const isBlank = byte === 0x3b || byte === 0x20 || byte === 0x09;
      if (byte === 0x0d) continue; // the end of the size: what follows it is tested below
      if (size !== undefined || isBlank) {
        const body = Buffer.concat([head, Buffer.alloc(isBlank ? 1 : 16 + (size ?? 0), "x")]);
        expect(openDecoder("chunked").decode(body, 0)).toHaveLength(body.length - head.length);
      } else expect(() => openDecoder("chunked").decode(wire, 0)).toThrow(Malformed);
    }
  });

  test("has a size of up to twelve digits", () => {
    const decoder = openDecoder("chunked");
    expect(decoder.decode(Buffer.from("0000000000ff\r\nxyz"), 0)?.toString()).toBe("xyz");
    expect(() => openDecoder("chunked").decode(Buffer.from("00000000000ff"), 0)).toThrow(Malformed);
  });

  test.each([
    ["no size", "\r\nabc"],
    ["a CR alone after its size", "5\rxhello\r\n0\r\n\r\n"],
    ["a CR alone after its payload", "5\r\nhello\rx0\r\n\r\n"],
    ["a NUL in an extension", "5;a\0b\r\nhello\r\n"],
    ["a NUL in the trailers", "0\r\na: \0\r\n\r\n"],
    ["a size that is not hex", "xyz\r\n"],
    ["a negative size", "-1\r\n"],
    ["a size with a prefix", "0x5\r\n"],
    ["a size too large to be exact", "fffffffffffff\r\n"],
    ["a bare LF after the size", "5\nhello\r\n"],
    ["a bare LF in an extension", "5;a\nb\r\nhello\r\n"],
    ["a CR alone in an extension", "5;a\rb\r\nhello\r\n"],
    ["more bytes than its size", "5\r\nhelloo\r\n"],
    ["a bare LF after the payload", "5\r\nhello\n"],
    ["a bare LF in the trailers", "0\r\na: b\n\r\n"],
    ["a CR without its LF at the end", "0\r\n\rx"],
    ["extensions without end", `5;${"a".repeat(20_000)}`],
    ["trailers without end", `0\r\n${"a: b\r\n".repeat(5_000)}`],
  ])("with %s is refused, whole and byte by byte", (_, wire) => {
    expect(() => openDecoder("chunked").decode(Buffer.from(wire), 0)).toThrow(Malformed);
    const decoder = openDecoder("chunked");
    expect(() => {
      for (const byte of Buffer.from(wire)) decoder.decode(Buffer.from([byte]), 0);
    }).toThrow(Malformed);
  });
});

describe("a body of known length", () => {
  test("ends at its length, wherever it is cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (bytes, at) => {
        const wire = Buffer.concat([bytes, NEXT]);
        const { body, rest } = decode(openDecoder(bytes.length), wire, at);
        expect(body).toEqual(Buffer.from(bytes));
        expect(rest).toEqual(NEXT);
      }),
    );
  });

  test("begins after the head in the same packet, whole or in part", () => {
    const whole = openDecoder(5);
    expect(whole.decode(Buffer.from("HEADhelloNEXT"), 4)?.toString()).toBe("hello");
    expect([whole.done, whole.consumed]).toEqual([true, 9]);
    const part = openDecoder(9);
    expect(part.decode(Buffer.from("HEADhello"), 4)?.toString()).toBe("hello");
    expect([part.done, part.finish(), part.consumed]).toEqual([false, false, 9]);
    expect(part.decode(Buffer.from("HEAD"), 4)).toBeNull();
    expect(part.decode(Buffer.from("abcdef"), 0)?.toString()).toBe("abcd");
    expect([part.done, part.consumed]).toEqual([true, 4]);
  });

  test("is not whole one byte before its end", () => {
    const decoder = openDecoder(3);
    decoder.decode(Buffer.from("ab"), 0);
    expect([decoder.done, decoder.finish()]).toEqual([false, false]);
  });
});

test("a body without a length ends with the connection", () => {
  const decoder = openDecoder("unknown");
  expect(decoder.decode(Buffer.from("xab"), 1)?.toString()).toBe("ab");
  expect(decoder.consumed).toBe(3);
  expect(decoder.decode(Buffer.from("x"), 1)).toBeNull();
  expect([decoder.done, decoder.finish(), decoder.done]).toEqual([false, true, true]);
});

describe("a body's length", () => {
  const length = (value: string): Field => ["content-length", value];
  const coding = (value: string): Field => ["transfer-encoding", value];

  test.each([
    [[], "unknown" as const],
    [[length("0")], 0],
    [[length("007")], 7],
    [[length("123456789012345")], 123_456_789_012_345],
    [[coding("chunked")], "chunked" as const],
    [[coding("Chunked")], "chunked" as const],
  ])("is read from %j", (fields, expected) => {
    expect(readBodyLength(Fields.of(fields), 1)).toBe(expected);
  });

  test.each([
    [[length("5"), length("5")]],
    [[length("5"), length("6")]],
    [[length("5, 5")]],
    [[length("5 5")]],
    [[length("+5")]],
    [[length("-5")]],
    [[length("5.0")]],
    [[length("0x5")]],
    [[length("5e1")]],
    [[length("")]],
    [[length("1234567890123456")]],
    [[length("\u00b25")]],
    [[length("5"), coding("chunked")]],
    [[coding("chunked"), length("5")]],
    [[coding("chunked"), coding("chunked")]],
    [[coding("chunked, chunked")]],
    [[coding("gzip, chunked")]],
    [[coding("chunked;q=1")]],
    [[coding("xchunked")]],
    [[coding("identity")]],
    [[coding("")]],
  ])("is refused in %j", (fields) => {
    expect(() => readBodyLength(Fields.of(fields), 1)).toThrow(Malformed);
  });

  test("in chunks is refused in HTTP/1.0", () => {
    expect(() => readBodyLength(Fields.of([coding("chunked")]), 0)).toThrow(Malformed);
  });

  test("does not decide about the connection, which closes if any field says so and after HTTP/1.0", () => {
    expect(staysOpen(new Fields(), 1)).toBe(true);
    expect(staysOpen(new Fields(), 0)).toBe(false);
    expect(
      staysOpen(
        Fields.of([
          ["connection", "keep-alive"],
          ["connection", "close"],
        ]),
        1,
      ),
    ).toBe(false);
  });
});
