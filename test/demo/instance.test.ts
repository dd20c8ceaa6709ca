import { expect, test } from "bun:test";
import { makeInstance } from "../../src/demo/instance.ts";

const CASES: [says: string, schema: unknown, expected: unknown][] = [
  ["a constant is itself", { const: 7 }, 7],
  ["the first of an enum counts", { enum: ["b", "a"] }, "b"],
  ["numbers keep to their bounds", { type: "integer", minimum: 10, maximum: 20, multipleOf: 4 }, 12],
  ["strings keep to their lengths", { type: "string", minLength: 12, maxLength: 12 }, "demo answer."],
  ["formats are honoured", { type: "string", format: "date" }, "2026-11-20"],
  ["nullable types are filled", { type: ["string", "null"] }, "demo answer"],
  [
    "the first of alternatives that is not null counts",
    { anyOf: [{ type: "null" }, { type: "boolean" }] },
    true,
  ],
  [
    "all parts count",
    { allOf: [{ type: "object", properties: { a: { const: 1 } } }, { properties: { b: { const: 2 } } }] },
    { a: 1, b: 2 },
  ],
  ["upper-case types are understood", { type: "OBJECT", properties: { n: { type: "INTEGER" } } }, { n: 1 }],
  ["arrays have as many items as they need", { type: "array", minItems: 2, items: { const: 0 } }, [0, 0]],
  ["references are followed", { $ref: "#/$defs/x", $defs: { x: { const: "found" } } }, "found"],
  ["a missing schema is null", undefined, null],
];

test.each(CASES)("%s", (_, schema, expected) => {
  expect(makeInstance(schema)).toEqual(expected);
});

test("a recursive schema ends", () => {
  const node = {
    type: "object",
    properties: { next: { $ref: "#" }, name: { type: "string" } },
    required: ["name"],
  };
  expect(JSON.stringify(makeInstance(node)).length).toBeLessThan(500);
  const hopeless = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] };
  expect(JSON.stringify(makeInstance(hopeless)).length).toBeLessThan(500);
});
