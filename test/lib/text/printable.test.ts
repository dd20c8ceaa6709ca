import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { escapeLines, escapeUnprintable } from "../../../src/lib/text/printable.ts";

test.each([
  ["an escape sequence", "a\u001B[2Jb", "a\\u001b[2Jb"],
  ["a bell, a null and C1 controls", "\u0007\0\u009B", "\\u0007\\u0000\\u009b"],
  ["line breaks of every kind", "a\r\nb\u2028c\u2029", "a\\u000d\\u000ab\\u2028c\\u2029"],
  [
    "bidirectional overrides and isolates",
    "\u202Egpt\u202C\u2066x\u2069",
    "\\u202egpt\\u202c\\u2066x\\u2069",
  ],
  ["invisible characters", "gpt\u200B-5\uFEFF", "gpt\\u200b-5\\ufeff"],
  ["characters beyond 16 bits, as JSON does", "\u{E0041}", "\\udb40\\udc41"],
  ["a lone surrogate", "a\uD800", "a\\ud800"],
  ["nothing in names of other scripts and emoji", "漢字 नमस्ते e\u0301 👩‍💻", "漢字 नमस्ते e\u0301 👩‍💻"],
])("escapes %s", (_, text, escaped) => {
  expect(escapeUnprintable(text)).toBe(escaped);
});

test("keeps the line breaks of text with several lines", () => {
  expect(escapeLines("a\u001B\nb\r")).toBe("a\\u001b\nb\\u000d");
});

test("keeps the value of JSON, and leaves nothing unprintable in it", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 40 }), (value) => {
      const json = escapeUnprintable(JSON.stringify({ value }));
      expect(JSON.parse(json)).toEqual({ value });
      expect(json).not.toMatch(/(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
    }),
  );
});
