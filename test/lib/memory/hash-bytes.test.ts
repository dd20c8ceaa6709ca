// The hash of a part of some bytes depends on the part and on nothing else.

import { describe, expect, test } from "bun:test";
import { hashBytes } from "../../../src/lib/memory/hash-bytes.ts";

const LENGTHS = [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 100, 159, 160, 161, 1000];
const makeText = (length: number): string =>
  Array.from({ length }, (_, at) => String.fromCharCode(0x61 + ((at * 7) % 26))).join("");

describe.each(LENGTHS)("a part of %d bytes", (length) => {
  const bytes = Buffer.from(makeText(length));

  test("has the same hash wherever it is", () => {
    const hash = hashBytes(bytes, 0, length);
    for (const before of [1, 2, 3, 5, 8]) {
      const longer = Buffer.concat([Buffer.alloc(before, 0xff), bytes, Buffer.alloc(9, 0xee)]);
      expect(hashBytes(longer, before, before + length)).toBe(hash);
    }
    expect(Number.isSafeInteger(hash) || length > 160).toBe(true);
  });

  test("has another hash after each change of a byte, and with another length", () => {
    const hashes = new Set([hashBytes(bytes, 0, length)]);
    for (let at = 0; at < length; at += 1)
      for (const bit of [1, 0x80]) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ bit;
        hashes.add(hashBytes(changed, 0, length));
      }
    hashes.add(hashBytes(Buffer.concat([bytes, Buffer.alloc(1)]), 0, length + 1));
    expect(hashes.size).toBe(2 * length + 2);
  });
});

test("two changes do not cancel out", () => {
  const hashes = new Set<number>();
  const pairs = Array.from({ length: 200 }, (_, at) => at);
  for (const a of pairs)
    for (const b of pairs) hashes.add(hashBytes(Buffer.from(`${a} of the tests and ${b} more`), 0, 24));
  expect(hashes.size).toBeGreaterThan(39_000);
});
