import { describe, expect, test } from "bun:test";
import { parseExact, parseWithAmounts, readNumberText } from "../../src/lib/exact.ts";
import { getField } from "../../src/lib/json/json.ts";

for (const text of [
  '{"maximum":9223372036854775807}',
  "[-9223372036854775808,1,2.5]",
  "[18446744073709551615]",
  '{"a":1e400}',
  '{"a":[-1.5E+4000,1e1000]}',
  '{"a":[ 12345678901234567890.5]}',
]) {
  test(`${text} is written as it was read`, () => {
    expect(JSON.stringify(parseExact(text))).toBe(text.replace("[ ", "["));
  });
}

test("ordinary numbers are read as JavaScript numbers", () => {
  expect(parseExact('{"a":1,"b":0.1,"c":"9223372036854775807","d":1234567890123456}')).toEqual({
    a: 1,
    b: 0.1,
    c: "9223372036854775807",
    d: 1234567890123456,
  });
});

describe("an amount of an upstream's usage keeps all its digits", () => {
  test.each([
    '{"usage":{"cost":0.00007159}}',
    '{"usage":{"cost":7.159e-05}}',
    '{"usage":{"cost_in_usd_ticks":123456789012345678901}}',
    '{"usage":{"cost":{"total_cost":0.1000000000000000055511151231257827}}}',
    '{"usage":{"cost" : 1.50}}',
  ])("%s is written as it was read", (text) => {
    expect(JSON.stringify(parseWithAmounts(text))).toBe(text.replace(" : ", ":"));
  });

  test("a member named price, and a cost in quotes, are not read as amounts of an upstream's usage", () => {
    const read = parseWithAmounts('{"cost":1.50,"price":1.50,"total_cost":"1.50"}');
    expect(["cost", "price", "total_cost"].map((name) => readNumberText(getField(read, name)))).toEqual([
      "1.50",
      undefined,
      undefined,
    ]);
    expect(getField(read, "price")).toBe(1.5);
  });

  test("an object with a member rawJSON is not taken for an amount of an upstream's usage", () => {
    expect(readNumberText(getField(parseWithAmounts('{"cost":{"rawJSON":"5"}}'), "cost"))).toBeUndefined();
  });

  test("JSON that breaks off after an amount of an upstream's usage is invalid", () => {
    expect(parseWithAmounts('{"cost":1.5')).toBeUndefined();
  });
});
