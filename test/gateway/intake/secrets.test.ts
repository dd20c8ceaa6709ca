// Tests which secrets are masked, and which texts stay as they are.

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { checkConfigText } from "../../../src/config/file/load.ts";
import {
  channelSecrets,
  KnownSecrets,
  Secrets,
  StreamRedactor,
} from "../../../src/gateway/intake/secrets.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";

const HIDDEN = "Ab1+cD2e/3_gH4iJ5kL6mN7=oP8qR9sT0uVwXyZ";
const SECRET = `sk-ant-api03-${HIDDEN}`;
const OTHER = 'quotes"and\\slashes/0123';
const SECRETS = new Secrets([SECRET, OTHER]);
/** Three keys: made by `keys add`, in the config as text, and brought by a request. */
const MADE = `sk-Z2${"o1x8".repeat(10)}Q`;
const WRITTEN = 'own/words+"of%41\\owner=~0123';
const BROUGHT = "sk-team/AbCdEf.0123456789";
const CONFIG = `channels: { main: { platform: messages, base_url: "http://127.0.0.1:1", credential: ${SECRET} }, other: { platform: messages, base_url: "http://127.0.0.1:1", credential: ${JSON.stringify(OTHER)} } }
groups: { claude: { platform: messages, channels: [main] } }
keys:
  - { name: made, group: claude, secret_sha256: ${sha256Hex(MADE)} }
  - { name: written, group: claude, secret: ${JSON.stringify(WRITTEN)} }
  - { name: brought, group: claude, secret_sha256: ${sha256Hex(BROUGHT)} }
`;
const KNOWN = new KnownSecrets(checkConfigText(CONFIG, "/x/gateway.yaml", {}).catalog);
KNOWN.note(BROUGHT);

const hex = (character: string): string => character.charCodeAt(0).toString(16).padStart(2, "0");
const ESCAPES: readonly ((character: string) => string)[] = [
  (each) => each,
  (each) => `\\u00${hex(each)}`,
  (each) => `%${hex(each).toUpperCase()}`,
];

function pass(text: string, cuts: readonly number[], secrets = SECRETS, isCut = true): string {
  const bytes = Buffer.from(text);
  const redactor = new StreamRedactor(secrets);
  const places = [0, ...cuts.filter((at) => at < bytes.length).toSorted((a, b) => a - b), bytes.length];
  const pieces = places.slice(1).map((end, index) => redactor.pass(bytes.subarray(places[index], end)));
  return Buffer.concat([...pieces, redactor.end(isCut)]).toString();
}

/** A secret as it is, as JSON writes it, or with one of the escapes for each letter. */
const written = fc
  .tuple(
    fc.constantFrom(SECRET, OTHER, MADE, WRITTEN, BROUGHT),
    fc.array(fc.constantFrom(...ESCAPES), { minLength: 120, maxLength: 120 }),
    fc.nat(3),
  )
  .map(([secret, escapes, form]) => {
    const json = JSON.stringify(secret).slice(1, -1);
    const mixed = Array.from(secret, (each, at) => escapes[at]!(each)).join("");
    return [secret, json, json.replaceAll("/", "\\/"), mixed][form]!;
  });
const SIGNS = ["a", "0", ".", "...", "=", "-", " ", "é", '\\"', "\\n", "%2F", "100% ", "\\u00e9", "\\u003c"];
const WORDS = ["sk-", "disk-key=", "/task-runner/", "sk-ant-api03-", SECRET.slice(0, 30)];
const EACH_BYTE = Array.from({ length: 900 }, (_, at) => at);
const cutPlaces = fc.oneof(fc.array(fc.nat(400)), fc.constant(EACH_BYTE));
const beside = fc.array(fc.constantFrom(...SIGNS, ...WORDS)).map((parts) => parts.join(""));

describe("P189: a secret in an answer is masked, and nothing else is changed", () => {
  test("a secret in an answer is masked in every form, next to any text and across chunks, and nothing else changes", () => {
    fc.assert(
      fc.property(beside, written, beside, cutPlaces, (before, secret, after, cuts) => {
        const masked = `${before}${"*".repeat(secret.length)}${after}`;
        expect(Buffer.from(KNOWN.mask(Buffer.from(before + secret + after))).toString()).toBe(masked);
        expect(pass(before + secret + after, cuts, KNOWN, false)).toBe(masked);
      }),
      { numRuns: 1000 },
    );
  });

  test("a long secret in an answer is masked over many chunks", () => {
    const long = SECRET.repeat(20);
    expect(pass(long, EACH_BYTE, new Secrets([long]))).toBe("*".repeat(long.length));
  });

  test.each(["%", "%2", "\\"])(
    "a secret in an answer is masked even if its end, %s, looks like an escape together with the digits after it",
    (end) => {
      const secrets = new Secrets([`my-password-is-${end}`]);
      const text = `"my-password-is-${end}41","my-password-is-${end}u0041"`;
      for (const cuts of [[], EACH_BYTE]) expect(pass(text, cuts, secrets)).not.toContain("word");
    },
  );

  test("the keys in a long answer are masked in several turns of the event loop", async () => {
    const bytes = Buffer.from(`${MADE.slice(0, -1)}! ${WRITTEN}%`.repeat(50_000));
    let turns = 0;
    const other = setInterval(() => (turns += 1), 0);
    const masked = await KNOWN.maskInTurns(bytes);
    clearInterval(other);
    expect(turns).toBeGreaterThan(10);
    expect(Buffer.from(masked).equals(KNOWN.mask(bytes))).toBe(true);
    expect(Buffer.from(masked).includes(WRITTEN)).toBe(false);
  });

  test("a secret in an answer is not masked if it has fewer than 12 characters: it may be a word", () => {
    const secrets = channelSecrets({ credential: "ollama", headers: [["x-key", "secret-word"]] });
    expect(secrets.maskText("ollama, secret-word")).toBe("ollama, secret-word");
  });

  test("a secret in a channel's `headers` is masked, too", () => {
    const secrets = channelSecrets({ credential: "", headers: [["x-api-key", `Bearer ${HIDDEN}`]] });
    expect(secrets.maskText(`bad key ${HIDDEN}`)).toBe(`bad key ${"*".repeat(HIDDEN.length)}`);
  });
});

test("the redactor does not hold back an event's end, and changes only what may be a secret", () => {
  const event = Buffer.from(`data: ${SECRET.slice(0, 20)}\n\n`);
  const redactor = new StreamRedactor(SECRETS);
  expect(redactor.pass(event)).toBe(event);
  expect(Buffer.from(redactor.pass(Buffer.from("a sk-ant-"))).toString()).toBe("a ");
  expect(Buffer.from(redactor.end()).toString()).toBe("sk-ant-");
  expect(pass(`cut: ${SECRET.slice(0, 40)}`, [20])).toBe(`cut: ${"*".repeat(40)}`);
  const words = `risk-${"a".repeat(40)}`;
  expect([pass(words, [], KNOWN, false), pass(words, [], KNOWN)]).toEqual([words, `ri${"*".repeat(43)}`]);
  expect(pass(String.raw`"\ud800":{"type":"text_delta`, [9])).toEndWith(`"type":"text_delta`);
});

test("a key in lower case is found, and a key known by its hash is found after its first request", () => {
  const [late, login] = ["token-of-a-team-42", "login-0123456789"];
  const known = new KnownSecrets(
    checkConfigText(CONFIG.replace(sha256Hex(BROUGHT), sha256Hex(late)), "/x/gateway.yaml", {}).catalog,
  );
  const before = known.forRequest([late], [["authorization", `Bearer ${login}`]]);
  expect([before.holds(late), before.holds(login)]).toEqual([false, true]);
  known.note(late);
  expect([before.holds(late), known.forRequest([], null).holds(`a${late}b`)]).toEqual([true, true]);
  expect(known.forRequest([MADE], null).holds(MADE.toLowerCase())).toBe(true);
});

test("what only looks like a key is not masked, and a text that was escaped thousands of times takes little time", () => {
  expect(KNOWN.maskText("sk-of-nobody-01 %2F")).toBe("sk-of-nobody-01 %2F");
  const start = performance.now();
  expect(KNOWN.holds(`%${"25".repeat(32_000)}41`)).toBe(false);
  expect(performance.now() - start).toBeLessThan(10_000);
});

test.each([
  ["a complete secret", `bad key ${SECRET}.`, `bad key ${"*".repeat(SECRET.length)}.`],
  // In lower case, the letter U+0130 becomes two characters.
  ["12 characters of a secret", `\u0130 ${HIDDEN.slice(5, 17)}.`, `\u0130 ${"*".repeat(12)}.`],
  ["a part in lower case", `bad key ${HIDDEN.slice(5, 25).toLowerCase()}.`, `bad key ${"*".repeat(20)}.`],
  ["a part with escapes", `bad %41b1+cD2e/3_gH4.`, `bad ${"*".repeat(14)}.`],
])("%s is masked in a text for people or for the ledger", (_name, text, expected) => {
  expect(SECRETS.maskText(text)).toBe(expected);
});
