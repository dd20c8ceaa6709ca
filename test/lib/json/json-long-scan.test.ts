import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { scanLongTopLevel } from "../../../src/lib/json/json-long-scan.ts";
import { scanTopLevel } from "../../../src/lib/json/json-spans.ts";

const NAMES = ["model", "stream"];

const part = fc.oneof(
  fc.constantFrom("{", "}", "[", "]", ",", ":", '"', "\\", "\\\\", '\\"', " ", "1", "true", '"model"', '"a"'),
  fc.string({ maxLength: 4 }),
);
const word = fc.string({ unit: fc.constantFrom("\\", '"', "a", "{", "}", "é"), maxLength: 40 });
const value = fc.oneof(fc.jsonValue(), word, fc.array(word));
const whole = fc
  .tuple(fc.array(fc.tuple(fc.oneof(fc.string(), fc.constantFrom(...NAMES)), value)), value)
  .map(([members, model]) => JSON.stringify(Object.fromEntries([...members, ["model", model]])));
const noise = fc.array(part, { maxLength: 30 }).map((parts) => `{"messages":${parts.join("")}`);

test("a search in pieces of any size finds what one step finds", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(whole, noise), fc.integer({ min: 1, max: 50 }), async (text, pieceBytes) => {
      const bytes = Buffer.from(text);
      expect(await scanLongTopLevel(bytes, NAMES, pieceBytes)).toEqual(scanTopLevel(bytes, NAMES));
    }),
    { numRuns: 300 },
  );
});

test("a further search of a long body passes over its long values", async () => {
  const messages = Array.from({ length: 400_000 }, () => 'say "text"');
  const bytes = Buffer.from(JSON.stringify({ model: "m", messages, metadata: {} }));
  const expected = scanTopLevel(bytes, ["metadata"]);
  await scanLongTopLevel(bytes, NAMES);
  // What is in the value is not looked at again.
  bytes.fill("]", 100, bytes.indexOf("]"));
  expect(scanTopLevel(bytes, ["metadata"])).toEqual(expected);
  expect(expected.kind).toBe("object");
});

test.each([
  ["one text", JSON.stringify({ messages: 'say "\\" '.repeat(50) })],
  ["many texts", JSON.stringify({ messages: Array.from({ length: 50 }, () => "text") })],
  ["many members", `{${Array.from({ length: 50 }, (_, index) => `"m${index}":1`).join()}}`],
])("the event loop turns between two pieces of %s", async (_name, text) => {
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    pending = setImmediate(turn);
  };
  let pending = setImmediate(turn);
  await scanLongTopLevel(Buffer.from(text), NAMES, 10);
  clearImmediate(pending);
  expect(turns).toBeGreaterThan(text.length / 10 - 3);
});
