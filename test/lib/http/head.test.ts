import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { Fields, Malformed, writeFields } from "../../../src/lib/http/fields.ts";
import { findHeadEnd, hasToken, parseResponse, writeRequestLine } from "../../../src/lib/http/head.ts";

const TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
const name = fc
  .string({ unit: fc.constantFrom(...TOKEN.split("")), minLength: 1, maxLength: 20 })
  .filter((text) => !["connection", "keep-alive", "content-length", "transfer-encoding"].includes(text));
const value = fc
  .array(fc.oneof(fc.constant(9), fc.integer({ min: 32, max: 126 }), fc.integer({ min: 128, max: 255 })))
  .map((codes) => String.fromCharCode(...codes).replaceAll(/^[ \t]+|[ \t]+$/g, ""));

/** The last line has no line end here. */
const bytesOf = (head: string): Buffer => Buffer.from(`${head}\r\n`, "latin1");
const readResponse = (head: string) => parseResponse(bytesOf(head), 0, head.length + 2);

describe("a head", () => {
  test("is read as it was written", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value)), (fields) => {
        const answer = readResponse(`HTTP/1.1 529 \r\n${Fields.of(fields).text}`.slice(0, -2));
        expect(answer).toMatchObject({ status: 529, minor: 1 });
        expect([...answer.fields]).toEqual(fields);
      }),
    );
  });

  test("has lower-case names, trimmed values, its order and its repeats", () => {
    const { fields } = readResponse("HTTP/1.1 200 OK\r\nHOST:h\r\nX-A: \t 1 \t\r\nx-b:\r\nx-a:2");
    expect([...fields]).toEqual([
      ["host", "h"],
      ["x-a", "1"],
      ["x-b", ""],
      ["x-a", "2"],
    ]);
    expect(fields.get("x-a")).toBe("1");
    expect(fields.get("x-c")).toBeUndefined();
  });

  test.each([
    ["no colon", "x"],
    ["no name", ": x"],
    ["a space before the colon", "x : y"],
    ["a tab before the colon", "x\t: y"],
    ["a folded line", "x: y\r\n z: a"],
    ["a line folded by a tab", "x: y\r\n\tz"],
    ["a bare LF", "x: y\nz: a"],
    ["a bare CR", "x: y\rz: a"],
    ["a CR at its end", "x: y\r"],
    ["a NUL", "x: y\0z"],
    ["a DEL", "x: y\u007f"],
    ["an escape character", "x: \u001b[31m"],
    ["a name above ASCII", "\u00e9: y"],
    ["a name in parentheses", "(x): y"],
  ])("with a field that has %s is refused", (_, line) => {
    expect(() => readResponse(`HTTP/1.1 200 OK\r\n${line}`)).toThrow(Malformed);
  });

  test.each([
    ["HTTP/1.1 200 OK", 200],
    ["HTTP/1.1 200 ", 200],
    ["HTTP/1.1 200", 200],
    ["HTTP/1.0 404 N\u00f3", 404],
    ["HTTP/1.1 999 x", 999],
  ])("of an answer may be %s", (line, status) => {
    expect(readResponse(line).status).toBe(status);
  });

  test.each([
    "HTTP/1.1 20 OK",
    "HTTP/1.1 2000 OK",
    "HTTP/1.1 099 x",
    "HTTP/1.1  200",
    "HTTP/1.1 2e2 OK",
    "HTTP/1.1 +20 OK",
    "HTTP/1.1 200OK",
    "HTTP/2 200 OK",
    "HTTP/2.0 200 OK",
    "HTTP/1.2 200 OK",
    "http/1.1 200 OK",
    "HTTP/1.1 200 \0",
    "SSH-2.0-OpenSSH",
    "",
  ])("of an answer may not be %j", (line) => {
    expect(() => readResponse(line)).toThrow(Malformed);
  });
});

describe("writing", () => {
  test.each(["a\rb", "a\nb", "a\r\nx: y", "a\0b", "\u010a", "\u{1f600}", "a\u007f"])(
    "refuses the value %j",
    (bad) => {
      expect(() => writeFields([["x", bad]])).toThrow(Malformed);
    },
  );

  test.each(["", "a b", "a:", "a\r\nb", "\u00e9", "\u212a"])("refuses the name %j", (bad) => {
    expect(() => writeFields([[bad, "x"]])).toThrow(Malformed);
  });

  test.each([
    ["GET", "/a b"],
    ["GET", "/a\r\nx: y"],
    ["GET", "a"],
    ["GET", "/\u010a"],
    ["G T", "/"],
    ["get", "/"],
    ["GET", "http://h/\n"],
  ])("refuses the request line %j %j", (method, target) => {
    expect(() => writeRequestLine(method, target)).toThrow(Malformed);
  });
});

test.each([
  [undefined, false],
  ["close", true],
  ["Close", true],
  ["keep-alive, CLOSE", true],
  ["closed", false],
  ["not-close", false],
  ["keep-alive, upgrade", false],
  ["a,close", true],
])("a connection field %j closes: %p", (value, closes) => {
  expect(hasToken(value, "close")).toBe(closes);
});

test.each([
  ["a: b\r\n\r\nrest", 0, 8],
  ["a: b\r\n\r\nc: d\r\n\r\n", 8, 16],
  ["\r\n\r\n", 0, 4],
  ["a: b\r\n", 0, -1],
  ["a: b\n\nrest", 0, -1],
])("the head in %j from %d on ends at %d", (text, from, end) => {
  expect(findHeadEnd(Buffer.from(text), from)).toBe(end);
});
