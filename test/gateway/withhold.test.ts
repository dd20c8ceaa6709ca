import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { withhold, withholdFields, Withholding } from "../../src/gateway/withhold.ts";
const SECRET = "sk-ant-0123456789abcdef";
const CHANNEL = { credential: SECRET };
const STARS = "*".repeat(SECRET.length);

function passAll(pieces: readonly string[], channel = CHANNEL): string[] {
  const withholding = new Withholding(channel);
  const passed = pieces.map((piece) => withholding.pass(Buffer.from(piece)));
  return [...passed, withholding.end()].map((bytes) => Buffer.from(bytes).toString());
}

describe("a credential that an answer repeats", () => {
  test("is masked, and the answer is as long as it was", () => {
    expect(passAll([`x${SECRET}${SECRET}y`])).toEqual([`x${STARS}${STARS}y`, ""]);
    expect(Buffer.from(withhold(Buffer.from(`é${SECRET}`), CHANNEL)).toString()).toBe(`é${STARS}`);
  });

  test("is masked where it comes in several pieces", () => {
    expect(passAll(["data: sk-a", "nt-0123", "456789abcdef!\n"])).toEqual(["data: ", "", `${STARS}!\n`, ""]);
  });

  test("is not told where it breaks off", () => {
    expect(passAll([`x${SECRET.slice(0, -1)}`])).toEqual(["x", "*".repeat(SECRET.length - 1)]);
    expect(passAll(["x sk-ant"])).toEqual(["x ", "sk-ant"]);
  });

  const letters = (lengths: { minLength: number; maxLength: number }) =>
    fc.string({ unit: fc.constantFrom("a", "b", "\n"), ...lengths });

  test("never comes out, whatever it is and wherever the pieces are cut", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "b"), minLength: 16, maxLength: 20 }),
        fc.array(fc.oneof(letters({ minLength: 0, maxLength: 30 }), fc.constant(null)), { maxLength: 6 }),
        fc.array(fc.nat(200), { maxLength: 8 }),
        (secret, parts, cuts) => {
          const text = parts.map((part) => part ?? secret).join("");
          const places = [0, ...cuts.filter((at) => at < text.length).toSorted((a, b) => a - b), text.length];
          const pieces = places.slice(1).map((end, index) => text.slice(places[index], end));
          const told = passAll(pieces, { credential: secret }).join("");
          expect(told).not.toContain(secret);
          const whole = text.replaceAll(secret, "*".repeat(secret.length));
          // All the same, but for a beginning of it that nothing follows.
          const end = /\**$/.exec(told)?.index ?? 0;
          expect(told.slice(0, end)).toBe(whole.slice(0, end));
          expect(told).toHaveLength(whole.length);
        },
      ),
    );
  });
});

test("what does not repeat it passes as it came, at once", () => {
  for (const text of ['data: {"a":1}\n\n', '[{"a":1}', ",\r\n", "data: sk-ant-0123456789abcdeX", "é\n"]) {
    const piece = Buffer.from(text);
    expect(new Withholding(CHANNEL).pass(piece)).toBe(piece);
    expect(withhold(piece, CHANNEL)).toBe(piece);
  }
});

test("the end of an event is never kept waiting", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const event = `data: ${text}${SECRET.slice(0, 5)}\n\n`;
      expect(passAll([event])).toEqual([event, ""]);
    }),
  );
});

test("a credential of nothing but asterisks has nothing to mask, nor to wait for", () => {
  const channel = { credential: "*".repeat(16) };
  expect(passAll([`a${"*".repeat(40)}b\n`], channel)).toEqual([`a${"*".repeat(40)}b\n`, ""]);
});

test("a word that stands in for no credential is left alone", () => {
  const channel = { credential: "none" };
  expect(passAll(["none no", "ne"], channel)).toEqual(["none no", "ne", ""]);
  expect(withholdFields([["x-model", "none"]], channel)).toEqual([["x-model", "none"]]);
});

test("a header field that repeats it does not cross", () => {
  const clean = ["content-type", "text/plain"] as const;
  expect(withholdFields([clean, ["openai-echo", `Bearer ${SECRET}`]], CHANNEL)).toEqual([clean]);
});
