// Which secrets are found, and which texts stay.

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { channelSecrets, Secrets, StreamRedactor } from "../../../src/gateway/intake/secrets.ts";

const HIDDEN = "Ab1+cD2e/3_gH4iJ5kL6mN7=oP8qR9sT0uVwXyZ";
const SECRET = `sk-ant-api03-${HIDDEN}`;
const OTHER = 'quotes"and\\slashes/0123';
const SECRETS = new Secrets([SECRET, OTHER]);

const hex = (character: string): string => character.charCodeAt(0).toString(16).padStart(2, "0");
const ESCAPES: readonly ((character: string) => string)[] = [
  (each) => each,
  (each) => `\\u00${hex(each)}`,
  (each) => `%${hex(each).toUpperCase()}`,
];

/** Each character as it is or with one kind of escape. */
const written = fc
  .tuple(
    fc.constantFrom(SECRET, OTHER),
    fc.constantFrom(...ESCAPES),
    fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
  )
  .map(([secret, escape, which]) => Array.from(secret, (c, at) => (which[at] ? escape(c) : c)).join(""));
const carried = fc.oneof(
  written,
  fc.constantFrom(
    JSON.stringify(OTHER).slice(1, -1),
    JSON.stringify(OTHER).slice(1, -1).replaceAll("/", "\\/"),
    encodeURIComponent(SECRET),
  ),
);
const around = fc
  .array(
    fc.constantFrom(
      "\\n",
      "\\u00e9",
      "\\u003c",
      "100% ",
      "%20",
      "sk-ant-api03-",
      SECRET.slice(0, 30),
      " ",
      "é",
    ),
  )
  .map((parts) => `${parts.join("")} `);

const mask = (text: string): string => Buffer.from(SECRETS.mask(Buffer.from(text))).toString();

function pass(text: string, cuts: readonly number[]): string {
  const bytes = Buffer.from(text);
  const redactor = new StreamRedactor(SECRETS);
  const places = [0, ...cuts.filter((at) => at < bytes.length).toSorted((a, b) => a - b), bytes.length];
  const pieces = places.slice(1).map((end, index) => redactor.pass(bytes.subarray(places[index], end)));
  return Buffer.concat([...pieces, redactor.end()]).toString();
}

describe("P189: a secret in an answer", () => {
  test("a secret in an answer is masked however it is written and wherever the chunks are cut, and nothing else changes", () => {
    fc.assert(
      fc.property(around, carried, around, fc.array(fc.nat(500)), (before, secret, after, cuts) => {
        const expected = `${before}${"*".repeat(secret.length)} ${after}`;
        expect(mask(`${before}${secret} ${after}`)).toBe(expected);
        expect(pass(`${before}${secret} ${after}`, cuts)).toBe(expected);
      }),
      { numRuns: 300 },
    );
  });

  test("a secret in an answer is masked byte by byte", () => {
    for (const escape of ESCAPES) {
      const text = Array.from(SECRET, escape).join("");
      const cuts = Array.from({ length: text.length }, (_, at) => at);
      expect(pass(`${text}!`, cuts)).toBe(`${"*".repeat(text.length)}!`);
    }
  });

  test("a secret in an answer of less than 12 characters is a word", () => {
    const secrets = channelSecrets({ credential: "ollama", headers: [["x-key", "secret-word"]] });
    expect(secrets.maskText("ollama, secret-word")).toBe("ollama, secret-word");
  });

  test("a secret in an answer may also be in a channel's own header", () => {
    const secrets = channelSecrets({ credential: "", headers: [["x-api-key", `Bearer ${HIDDEN}`]] });
    expect(secrets.maskText(`bad key ${HIDDEN}`)).toBe(`bad key ${"*".repeat(HIDDEN.length)}`);
  });
});

test("the end of an event is never held, and what is not a secret goes out as it came", () => {
  const event = Buffer.from(`data: ${SECRET.slice(0, 20)}\n\n`);
  const redactor = new StreamRedactor(SECRETS);
  expect(redactor.pass(event)).toBe(event);
  expect(Buffer.from(redactor.pass(Buffer.from("a sk-ant-"))).toString()).toBe("a ");
  expect(Buffer.from(redactor.end()).toString()).toBe("sk-ant-");
  expect(pass(`cut: ${SECRET.slice(0, 40)}`, [20])).toBe(`cut: ${"*".repeat(40)}`);
  expect(pass(String.raw`"\ud800":{"type":"text_delta`, [9])).toEndWith(`"type":"text_delta`);
});

test.each([
  ["the whole secret", `bad key ${SECRET}.`, `bad key ${"*".repeat(SECRET.length)}.`],
  // The first letter is two in lower case.
  ["12 characters of it", `\u0130 ${HIDDEN.slice(5, 17)}.`, `\u0130 ${"*".repeat(12)}.`],
  ["a part in lower case", `bad key ${HIDDEN.slice(5, 25).toLowerCase()}.`, `bad key ${"*".repeat(20)}.`],
  ["a part with escapes", `bad %41b1+cD2e/3_gH4.`, `bad ${"*".repeat(14)}.`],
])("a text for people or the ledger loses %s", (_name, text, expected) => {
  expect(SECRETS.maskText(text)).toBe(expected);
});
