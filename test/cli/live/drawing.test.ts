// What the live views are made of, without a terminal.

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { appendBars, drawBar } from "../../../src/cli/money/usage/bars.ts";
import { alignText, cutText, measure, wrapWords } from "../../../src/cli/terminal/text.ts";
import { createTraffic } from "../../../src/lib/traffic.ts";

const anyText = fc.string({ unit: "grapheme", maxLength: 40 });

describe("text", () => {
  test("is never wider than its room, and cut only if necessary", () => {
    fc.assert(
      fc.property(anyText, fc.nat(40), (text, room) => {
        const cut = cutText(text, room);
        expect(measure(cut)).toBeLessThanOrEqual(room);
        if (measure(text) <= room) expect(cut).toBe(text);
      }),
    );
  });

  test("is aligned to exactly its room", () => {
    expect(alignText("漢字", 6, "right")).toBe("  漢字");
    expect(alignText("漢字漢字", 6)).toBe("漢字… ");
  });

  test("breaks between words, keeps commands whole, and indents what continues a line", () => {
    expect(wrapWords("There is no key. Create one with `gateway keys add`, then repeat.", 30)).toEqual([
      "There is no key. Create one",
      "with `gateway keys add`, then",
      "repeat.",
    ]);
    expect(wrapWords("  sum   1 × $2 = $2 (the group's multiplier)", 24, 4)).toEqual([
      "  sum   1 × $2 = $2 (the",
      "      group's",
      "      multiplier)",
    ]);
    expect(wrapWords("sha256 0123456789abcdef end", 12)).toEqual(["sha256 0123456789abcdef", "end"]);
  });

  test("broken into lines loses and changes no word", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 40 }), (text, room) => {
        const words = (part: string): string[] => part.split(" ").filter((word) => word !== "");
        expect(wrapWords(text, room).flatMap(words)).toEqual(words(text));
      }),
    );
  });
});

test("a bar is as long as its share, to an eighth of a cell", () => {
  expect(drawBar(8n, 8n, 4)).toBe("████");
  expect(drawBar(3n, 8n, 4)).toBe("█▌");
  expect(drawBar(1n, 32n, 4)).toBe("▏");
  expect(drawBar(1n, 1_000n, 4)).toBe("");
  expect([drawBar(0n, 8n, 4), drawBar(1n, 0n, 4), drawBar(1n, 1n, -3)]).toEqual(["", "", ""]);
});

test("bars use the cells that the lines leave, and none where there is no room for them", () => {
  expect(appendBars(["a  1", "long  2", "total 3"], [1n, 2n], 19)).toEqual([
    "a  1     █████",
    "long  2  ██████████",
    "total 3",
  ]);
  expect(appendBars(["long  2"], [2n], 200)[0]).toBe(`long  2  ${"█".repeat(191)}`);
  expect(appendBars(["long  2"], [2n], 10)).toEqual(["long  2"]);
});

describe("tokens a second", () => {
  test("are those of the last seconds, including streams that have ended", () => {
    const traffic = createTraffic();
    traffic.see([{ id: "a", tokens: 100 }], 0);
    expect(traffic.tokensPerSecond()).toBe(0);
    traffic.see([{ id: "a", tokens: 150 }], 1000);
    expect(traffic.tokensPerSecond()).toBe(50);
    traffic.end({ id: "a", tokens: 200 });
    traffic.see([], 2000);
    expect(traffic.tokensPerSecond()).toBe(50);
    for (const now of [3000, 4000, 5000]) traffic.see([], now);
    expect(traffic.tokensPerSecond()).toBe(0);
  });

  test("never fall below nothing when an estimate is corrected", () => {
    const traffic = createTraffic();
    traffic.see([{ id: "a", tokens: 100 }], 0);
    traffic.see([{ id: "a", tokens: 60 }], 1000);
    traffic.see([{ id: "a", tokens: 110 }], 2000);
    expect(traffic.tokensPerSecond()).toBe(5);
  });
});
