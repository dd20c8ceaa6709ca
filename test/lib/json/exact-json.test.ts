import { expect, test } from "bun:test";
import { parseExactJson } from "../../../src/lib/json/exact-json.ts";

for (const text of [
  '{"maximum":9223372036854775807}',
  "[-9223372036854775808,1,2.5]",
  "[18446744073709551615]",
  '{"a":1e400}',
  '{"a":[ 12345678901234567890.5]}',
]) {
  test(`${text} is written as it was read`, () => {
    expect(JSON.stringify(parseExactJson(text))).toBe(text.replace("[ ", "["));
  });
}

test("other numbers are plain numbers", () => {
  expect(parseExactJson('{"a":1,"b":0.1,"c":"9223372036854775807","d":1234567890123456}')).toEqual({
    a: 1,
    b: 0.1,
    c: "9223372036854775807",
    d: 1234567890123456,
  });
});
