import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  addDecimals,
  addUsd,
  formatDecimal,
  formatUsd,
  multiplyDecimals,
  parseDecimal,
  parseNumber,
  parseUsd,
  roundDecimal,
  subtractDecimals,
  subtractUsd,
  ZERO_USD,
} from "../../src/lib/money.ts";

const decimals = fc
  .tuple(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.integer({ min: 0, max: 24 }))
  .map(([units, scale]) => ({ units, scale }));

describe("a decimal is exact, and rounds half away from zero", () => {
  test.each([
    ["0", "0"],
    ["0.0", "0"],
    ["-0", "0"],
    ["007.50", "7.5"],
    ["0.011106", "0.011106"],
    ["1000000", "1000000"],
    ["-1.10", "-1.1"],
    ["10", "10"],
    ["9007199254740993", "9007199254740993"],
    ["9.007199254740993", "9.007199254740993"],
    ["1".repeat(64), "1".repeat(64)],
    ["0.000000000000000000000001", "0.000000000000000000000001"],
  ])("%s is written as %s", (text, written) => {
    expect(formatDecimal(parseDecimal(text))).toBe(written);
  });

  test.each([..."|1e3|1.|.5|+1| 1|1 |0x1|NaN|Infinity|1_000|1,5|--1".split("|"), "1".repeat(65)])(
    "%p is not a decimal",
    (text) => {
      expect(() => parseDecimal(text)).toThrow(RangeError);
    },
  );

  test.each([
    ["0.5", 0, "1"],
    ["-0.5", 0, "-1"],
    ["0.4999", 0, "0"],
    ["0.0000000000005", 12, "0.000000000001"],
    ["0.00000000000049", 12, "0"],
    ["-0.0000000000005", 12, "-0.000000000001"],
    ["1.25", 4, "1.25"],
  ])("%s rounded half away from zero at %d places is %s", (text, places, rounded) => {
    expect(formatDecimal(roundDecimal(parseDecimal(text), places))).toBe(rounded);
  });

  test("a decimal is read back as it was written", () => {
    fc.assert(
      fc.property(decimals, (value) => {
        expect(subtractDecimals(parseDecimal(formatDecimal(value)), value).units).toBe(0n);
      }),
    );
  });

  test("decimals are added and multiplied as exactly as fractions", () => {
    fc.assert(
      fc.property(decimals, decimals, (a, b) => {
        const [unit, other] = [10n ** BigInt(a.scale), 10n ** BigInt(b.scale)];
        const sum = addDecimals(a, b);
        expect(sum.units * unit * other).toBe((a.units * other + b.units * unit) * 10n ** BigInt(sum.scale));
        const product = multiplyDecimals(a, b);
        expect(product.units * unit * other).toBe(a.units * b.units * 10n ** BigInt(product.scale));
      }),
    );
  });
});

describe("an amount of dollars is exact", () => {
  test("a sum of a million times 0.000651 is exact, where floats drift", () => {
    let sum = ZERO_USD;
    const one = parseUsd("0.000651");
    for (let i = 0; i < 1_000_000; i += 1) sum = addUsd(sum, one);
    expect(formatUsd(sum)).toBe("651");
  });

  test("an amount of dollars has up to twelve decimals, can be compared, and can be below zero", () => {
    expect(formatUsd(parseUsd("0.000000000001"))).toBe("0.000000000001");
    expect(parseUsd("0.1") < parseUsd("0.10000000001")).toBe(true);
    expect(formatUsd(subtractUsd(parseUsd("1"), parseUsd("2.5")))).toBe("-1.5");
  });
});

describe("a number in JSON is read as an exact amount", () => {
  test.each([
    ["0.00007159", 0, "0.00007159"],
    ["7.159e-05", 0, "0.00007159"],
    ["0", 0, "0"],
    ["1.50E2", 0, "150"],
    ["3546500", 10, "0.00035465"],
    ["160708500", 10, "0.01607085"],
    ["0.1000000000000000055511151231", 0, "0.1000000000000000055511151231"],
    ["9".repeat(30), 0, "9".repeat(30)],
  ])("%s, divided by 10^%d, is %s", (text, places, written) => {
    const read = parseNumber(text, places);
    expect(read && formatDecimal(read)).toBe(written);
  });

  test.each([..."|-1|-0|+1|1.|.5|1,5|0x1|Infinity|1e400|1e-31|1e31".split("|"), "9".repeat(31)])(
    "%p is not an amount",
    (text) => {
      expect(parseNumber(text)).toBeNull();
    },
  );

  test("a number is not an amount if it has more than 30 digits once it is divided by a power of ten", () => {
    expect(parseNumber(`0.${"1".repeat(29)}`, 10)).toBeNull();
  });
});
