// The parameter `key` of a query: found however it is escaped, and removed without touching any other byte.

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { dropKey, readKeyParameter } from "../../src/dialects/path.ts";

const name = fc.constantFrom(
  "key",
  "k%65y",
  "%6bey",
  "%6Bey",
  "%6b%65%79",
  "Key",
  "keys",
  "a",
  "",
  "%6",
  "k%45y",
  "?key",
  "key%20",
);
const parts = fc.array(
  fc.oneof(
    name,
    fc.tuple(name, fc.constantFrom("", "v", "a+b%20c", "?key=1", "key", "%")).map((pair) => pair.join("=")),
  ),
  { maxLength: 6 },
);

function isKey(part: string): boolean {
  try {
    return decodeURIComponent(part.split("=")[0] ?? "") === "key";
  } catch {
    return false;
  }
}

describe("the key in a query", () => {
  test("is removed, and every other byte stays", () => {
    fc.assert(
      fc.property(parts, (list) => {
        const kept = list.filter((part) => !isKey(part));
        const query = `?${list.join("&")}`;
        const wanted = kept.length === list.length ? query : kept.length === 0 ? "" : `?${kept.join("&")}`;
        expect(dropKey(query)).toBe(wanted);
      }),
      { numRuns: 500 },
    );
  });

  test("is read as a browser would read it", () => {
    fc.assert(
      fc.property(parts, (list) => {
        const query = `?${list.join("&")}`;
        expect(readKeyParameter(query)).toBe(new URLSearchParams(query).get("key"));
      }),
      { numRuns: 500 },
    );
  });
});
