import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { isObject } from "../../../src/lib/json/json.ts";
import { JsonPicker, PickedSize, type Shape } from "../../../src/lib/json/json-pick-stream.ts";

const SHAPE = { a: true, b: { c: true, d: [{ e: true }] }, list: [{ a: true }], x: "size" } as const;

function sift(
  chunks: readonly Buffer[],
  shape: Readonly<Record<string, Shape>> = SHAPE,
): { picked: unknown[]; sieve: JsonPicker } {
  const picked: unknown[] = [];
  const sieve = new JsonPicker(shape, (value) => picked.push(value));
  for (const chunk of chunks) sieve.see(chunk);
  return { picked, sieve };
}

/** What should be picked of a value, by the shape's own definition. */
function pick(value: unknown, shape: Shape): unknown {
  if (shape === true) return value;
  if (shape === "size") {
    if (typeof value === "string") return new PickedSize(Buffer.byteLength(JSON.stringify(value)) - 2);
    // Of a container, it depends on the spaces in it.
    return typeof value === "object" && value !== null ? expect.any(PickedSize) : undefined;
  }
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return undefined;
    return value.map((each) => pick(each, shape[0])).filter((each) => each !== undefined);
  }
  if (!isObject(value)) return undefined;
  const members = Object.entries(shape).flatMap(([name, inner]) => {
    const picked = Object.hasOwn(value, name) ? pick(value[name], inner) : undefined;
    return picked === undefined ? [] : [[name, picked]];
  });
  return Object.fromEntries(members);
}

const member = fc.constantFrom("a", "b", "c", "d", "e", "list", "x", 'q"uote', "back\\slash", "é");
const { value: json } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom("\\", '"', "{", "}", ",", "é", "\n") }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
    ),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(member, tie("value"), { maxKeys: 5 }),
  ),
}));
const document = fc.dictionary(member, json, { maxKeys: 6 });

describe("members picked from JSON that passes", () => {
  test("follows its shape, whatever the document and however it is cut", () => {
    fc.assert(
      fc.property(document, fc.boolean(), fc.array(fc.nat(300), { maxLength: 6 }), (value, spaced, cuts) => {
        const bytes = Buffer.from(JSON.stringify(value, null, spaced ? 2 : 0));
        const at = [
          0,
          ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b),
          bytes.length,
        ];
        const { picked, sieve } = sift(at.slice(1).map((end, index) => bytes.subarray(at[index], end)));
        expect(sieve.ended).toBe(true);
        expect(picked).toEqual([pick(JSON.parse(JSON.stringify(value)), SHAPE)]);
      }),
      { numRuns: 300 },
    );
  });

  test("is the same when it arrives byte by byte", () => {
    const bytes = Buffer.from(
      '{"a": "x\\\\\\"y", "b":{"c":-1.5e3,"d":[{"e":"\\u00e9"},{"f":1},7]} ,"list":[]}',
    );
    const { picked } = sift(Array.from(bytes, (byte) => Buffer.from([byte])));
    expect(picked).toEqual([{ a: 'x\\"y', b: { c: -1500, d: [{ e: "é" }, {}] }, list: [] }]);
  });

  test("the elements of a list at the top are documents", () => {
    const { picked, sieve } = sift([Buffer.from('[{"a":1}\n,\r\n{"a":{"n":[2]}}')]);
    expect(picked).toEqual([{ a: 1 }, { a: { n: [2] } }]);
    expect([sieve.listed, sieve.ended]).toEqual([true, false]);
    sieve.see(Buffer.from("]"));
    expect(sieve.ended).toBe(true);
  });

  test("is available from a document that was cut", () => {
    const { picked, sieve } = sift([Buffer.from('{"a":1,"b":{"c":{"deep":true},"d":[{"e":1},{"e":2')]);
    expect(picked).toEqual([]);
    expect(sieve.peek()).toEqual({ a: 1, b: { c: { deep: true }, d: [{ e: 1 }, {}] } });
  });

  test("leaves out a value that is too long, and keeps what follows", () => {
    const { picked } = sift([Buffer.from(JSON.stringify({ a: "x".repeat(100_000), b: { c: 1 } }))]);
    expect(picked).toEqual([{ b: { c: 1 } }]);
  });

  test("a picked text or container is its size alone, if only that is wanted", () => {
    const shape = { text: "size", list: [{ text: "size" }], name: true } as const;
    const long = "x".repeat(200_000);
    const document = { text: long, list: [{ text: "" }, { text: 5 }, { text: { text: "a" } }], name: "n" };
    const sizeOf = (text: string) => new PickedSize(text.length);
    const list = [{ text: sizeOf("") }, {}, { text: sizeOf('{"text":"a"}') }];
    const picked = { text: sizeOf(long), list, name: "n" };
    const bytes = Buffer.from(JSON.stringify(document));
    for (const piece of [1, 1000, bytes.length]) {
      const count = Math.ceil(bytes.length / piece);
      const pieces = Array.from({ length: count }, (_, at) => bytes.subarray(at * piece, (at + 1) * piece));
      expect(sift(pieces, shape).picked).toEqual([picked]);
    }
  });

  test("is something or nothing for bytes that are not JSON, but never an error", () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom("{", "}", "[", "]", '"', ",", ":", "a", "1", "\\", " "),
          maxLength: 60,
        }),
        (text) => {
          sift([Buffer.from(text)]);
        },
      ),
    );
  });
});
