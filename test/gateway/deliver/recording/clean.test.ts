import { expect, test } from "bun:test";

import { array, assert, constantFrom, integer, property, stringMatching, tuple } from "fast-check";

import { Cleaner } from "../../../../src/gateway/deliver/recording/clean.ts";
import { sha256Hex } from "../../../../src/lib/secret.ts";

const KEYS = stringMatching(/^[A-Za-z0-9_-]{8,40}$/);
/** What can stand before a word: between two of them, or an escape of JSON, escaped again or not. */
const STARTS = constantFrom(" ", '"', "=", "\\n", "\\\\n", '\\"', "\\\\\\t", ",");

test("a key of which only its hash is known is masked in a recording, and no word beside it", () => {
  assert(
    property(KEYS, array(tuple(STARTS, integer({ min: -1, max: 39 })), { maxLength: 30 }), (key, words) => {
      const cleaner = new Cleaner({ credentials: [], keys: new Set([sha256Hex(key)]) });
      // Each word is the key, or like it but for one character.
      const spelled = words.map(([start, at]) => start + (at < 0 ? key : changeOne(key, at % key.length)));
      const text = `{${spelled.join("")} `;
      const clean = spelled.map((word, index) =>
        (words[index]?.[1] ?? 0) < 0 ? word.replace(key, mask) : word,
      );
      for (const _ of [1, 2])
        expect(Buffer.from(cleaner.cleanBytes(Buffer.from(text), [])).toString()).toBe(`{${clean.join("")} `);
    }),
  );
});

function changeOne(key: string, at: number): string {
  return `${key.slice(0, at)}${key[at] === "Q" ? "R" : "Q"}${key.slice(at + 1)}`;
}

function mask(word: string): string {
  return "*".repeat(word.length);
}
