// Tests the cost of missed tokens: what they cost, minus what a read from the cache would have cost.

import { describe, expect, test } from "bun:test";
import { deriveMissCost, splitMissed } from "../../src/billing/charge.ts";

const PRICES = { input: "3", cache_read: "0.3", cache_write_5m: "3.75", cache_write_1h: "6", output: "15" };

describe("the cost of missed tokens is what they cost more than a read from the cache", () => {
  test.each([
    [
      "is the price of writes minus that of reads if all were written to the cache",
      { cache_write_5m: 110_022, output: 9 },
      110_022,
      "0.3795759",
    ],
    [
      "uses the price of writes for some, and the price of input for the others",
      { input: 500, cache_write_5m: 1000 },
      1200,
      "0.00399",
    ],
    ["counts writes for an hour first", { cache_write_1h: 1000, cache_write_5m: 1000 }, 1500, "0.007425"],
    ["is nothing if none are missed", { input: 10 }, 0, "0"],
    ["counts no more tokens than the prompt has", { input: 10 }, 99, "0.000027"],
  ])("the cost of missed tokens %s", (_name, usage, missed, usd) => {
    expect(deriveMissCost({ usage, prices: PRICES, multiplier: "1" }, missed)).toBe(usd);
  });

  test("the cost of missed tokens includes the multiplier and the factor of a tier, and is rounded once", () => {
    const usage = { input: 7 };
    const prices = { ...PRICES, "factor:service_tier=flex": "0.5" };
    expect(deriveMissCost({ usage, prices, multiplier: "0.333333333333" }, 7)).toBe("0.00000315");
  });

  test("the cost of missed tokens is not known without the price of a read, and never negative", () => {
    const usage = { input: 7 };
    expect(deriveMissCost({ usage, prices: { input: "3" }, multiplier: "1" }, 7)).toBeNull();
    expect(deriveMissCost({ usage, prices: null, multiplier: "1" }, 7)).toBeNull();
    expect(deriveMissCost({ usage, prices: { input: "1", cache_read: "2" }, multiplier: "1" }, 7)).toBe("0");
  });
});

test("missed audio tokens are compared with cached audio tokens, and missed text tokens with cached text tokens", () => {
  expect(splitMissed({ input: 100, input_audio: 50, cache_read: 7 }, 120)).toEqual({
    paid: { input: 100, input_audio: 20 },
    read: { cache_read: 100, cache_read_audio: 20 },
  });
});
