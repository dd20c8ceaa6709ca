import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  redactBody,
  redactError,
  redactFields,
  redactPieces,
  redactReading,
  redactText,
  StreamRedactor,
} from "../../../src/gateway/upstream/redact.ts";
import { type Field, Fields } from "../../../src/lib/http/fields.ts";
import { encodeWithin, ESCAPES, expectSafe, unescapeAll } from "./escapes.ts";

const PREFIX = "sk-ant-api03-";
const HIDDEN = "Ab1+cD2e/3_gH4iJ5kL6mN7=oP8qR9sT0uVwXyZ";
const SECRET = PREFIX + HIDDEN;
const REMOVED = "[credential removed]";

const channelOf = (credential: string, headers: readonly (readonly [string, string])[] = []) => ({
  credential,
  headers,
});
const CHANNEL = channelOf(SECRET);

const cleanError = (text: string, credential = SECRET): string => redactText(text, channelOf(credential));
const cleanBody = (text: string, credential = SECRET): string =>
  Buffer.from(redactBody(Buffer.from(text), channelOf(credential))).toString();

function pass(pieces: readonly (string | Uint8Array)[], channel = CHANNEL, status = 200): string[] {
  const redactor = new StreamRedactor(channel, status);
  const passed = pieces.map((piece) => redactor.pass(Buffer.from(piece)));
  return [...passed, redactor.end()].map((bytes) => Buffer.from(bytes).toString());
}

function cut(text: string, cuts: readonly number[]): string[] {
  const places = [0, ...cuts.filter((at) => at < text.length).toSorted((a, b) => a - b), text.length];
  return places.slice(1).map((end, index) => text.slice(places[index], end));
}

const VISIBLE = Array.from({ length: 0x7f - 0x21 }, (_, index) => String.fromCharCode(0x21 + index));
const ofVisible = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...VISIBLE), minLength, maxLength });
const prefixes = fc.constantFrom("", "sk-", PREFIX, "sk-proj-", "AIzaSy", "sk-or-v1-");
const escapes = fc.constantFrom(...Object.values(ESCAPES));

/** Written with one escape for all its characters, with one for some, or with another one for each. */
const carried = (secret: string) =>
  fc.oneof(
    escapes.map((escape) => Array.from(secret, escape).join("")),
    fc
      .tuple(escapes, fc.array(fc.boolean(), { minLength: secret.length, maxLength: secret.length }))
      .map(([escape, which]) =>
        Array.from(secret, (each, index) => (which[index] ? escape(each) : each)).join(""),
      ),
    fc
      .array(escapes, { minLength: secret.length, maxLength: secret.length })
      .map((all) => Array.from(secret, (each, index) => all[index]?.(each) ?? each).join("")),
    fc
      .tuple(fc.constantFrom("", "a", "ab", "user:"), fc.constantFrom("base64", "base64url"))
      .map(([before, alphabet]) => encodeWithin(secret, before, alphabet)),
  );

/** Escapes, and what looks like them, that no secret of letters, digits and few signs contains. */
const NOISE = [
  "\\n",
  '\\"',
  '\\\\\\"',
  "\\u00e9",
  "\\u0430",
  "\\u003c",
  "\\u0026\\u0026",
  "&str",
  "a & b && c",
  "100%",
  "%d",
  "%20",
  "%C3%A9",
  "&nbsp;",
  "&#8217;",
];
const ORDINARY = `${NOISE.join(" ")} `;

const surroundings = fc.constantFrom(
  "",
  " ",
  'data: {"message":"bad key ',
  '"}\n\n',
  "é: ",
  "é\\n",
  "<p>",
  "key=",
);
const carriers = fc
  .tuple(prefixes, ofVisible(16, 40))
  // A mask is of `*`, so one beside a piece may look like the secret.
  .filter(([, hidden]) => !/[\\*]/.test(hidden))
  .chain(([prefix, hidden]) =>
    fc
      .tuple(surroundings, carried(prefix + hidden), surroundings)
      .map((parts) => ({ secret: prefix + hidden, hidden, text: parts.join("") })),
  );

describe("a secret in an error", () => {
  test("is never shown, in whatever form it was written", () => {
    fc.assert(
      fc.property(carriers, ({ secret, hidden, text }) => {
        const clean = cleanError(text, secret);
        expect(clean).toContain(REMOVED);
        expectSafe(clean, hidden);
      }),
      { numRuns: 150 },
    );
  });

  test("is not shown in pieces of 12 characters or more", () => {
    fc.assert(
      fc.property(carriers, fc.nat(30), ({ hidden, secret }, from) => {
        expectSafe(cleanError(`a ${hidden.slice(from)} b ${hidden.slice(0, from)} c`, secret), hidden);
      }),
    );
  });

  test("is masked in a body too long to hold, wherever the chunks are cut", () => {
    fc.assert(
      fc.property(carriers, fc.array(fc.nat(300), { maxLength: 8 }), ({ secret, hidden, text }, cuts) => {
        const reported = pass(cut(text, cuts), channelOf(secret), 404).join("");
        expectSafe(reported, hidden);
        expect(reported).toHaveLength(text.length);
      }),
    );
  });

  test.each([
    ["whole", `bad key ${SECRET}.`, `bad key ${REMOVED}.`],
    ["twice", `${SECRET},${SECRET}`, `${REMOVED},${REMOVED}`],
    ["masked", `bad key: ${PREFIX}****************XyZ. See`, `bad key: ${PREFIX}****************XyZ. See`],
    ["masked, and its end", `bad key: ${PREFIX}************wXyZ. See`, `bad key: ${REMOVED}. See`],
    ["masked with dots", `bad key ${PREFIX}Ab1+...wXyZ`, `bad key ${REMOVED}`],
    ["masked with an ellipsis", "bad key sk-a…wXyZ!", `bad key ${REMOVED}!`],
    ["masked with an escaped ellipsis", "bad key sk-a\\u2026wXyZ!", `bad key ${REMOVED}!`],
    ["its end alone", "bad key ending in ****wXyZ", `bad key ending in ${REMOVED}`],
    ["its first twelve secret characters", "bad key Ab1+cD2e/3_g given", `bad key ${REMOVED} given`],
    ["the prefix with them", `bad key ${PREFIX}Ab1+cD2e/3_g given`, `bad key ${REMOVED} given`],
    ["a piece of its middle", "é cD2e/3_gH4iJ5kL é", `é ${REMOVED} é`],
    [
      "its public prefix",
      `keys look like ${PREFIX}... or ${PREFIX}xyz`,
      `keys look like ${PREFIX}... or ${PREFIX}xyz`,
    ],
  ])("%s", (_name, text, expected) => expect(cleanError(text)).toBe(expected));

  test("the rest of a secret that an error shows in two pieces is removed too, and one in capitals", () => {
    const credential = "cred-na-0123456789abcdef";
    const split = cleanError('{"a":"cred-na-01234","b":"56789abcdef"}', credential);
    expect(split).toBe(`{"a":"${REMOVED}","b":"${REMOVED}"}`);
    expect(cleanError("not 56789abcdef alone", credential)).toBe("not 56789abcdef alone");
    expect(cleanError(`Not ${credential.toUpperCase()}`, credential)).toBe(`Not ${REMOVED}`);
  });

  test("may contain backslashes or characters of escapes", () => {
    for (const credential of ['a"b/c+d', "a\\b\\\\cdef", "%41bcdefg%42", "&amp;abc&#1;", "\\u0041bcd"]) {
      for (const text of [credential, JSON.stringify(credential), encodeURIComponent(credential)])
        expect(cleanError(`x ${text} y`, credential)).toContain(REMOVED);
    }
  });

  test("an error that quotes no secret is passed byte for byte", () => {
    const bytes = Buffer.from(`{"error":"no ... such *** model: sk-… x &amp; \\u002b %41"}`);
    for (const credential of [SECRET, "no"]) expect(redactError(bytes, channelOf(credential))).toBe(bytes);
  });

  test("is found at any position", () => {
    const digits = (minLength: number) =>
      fc.string({ unit: fc.constantFrom("0", "1", "2", "3"), minLength, maxLength: 40 });
    fc.assert(
      fc.property(digits(0), digits(0), digits(4), (before, after, secret) => {
        expect(cleanError(before + secret + after, secret)).not.toContain(secret);
      }),
    );
  });

  test("a channel's own headers hold secrets too", () => {
    const channel = channelOf("none", [
      ["X-Team", "research-and-development"],
      ["Authorization", `Bearer ${HIDDEN}`],
    ]);
    const text = `research-and-development ${Array.from(HIDDEN, ESCAPES["JSON"]!).join("")}`;
    expect(redactText(text, channel)).toBe(`research-and-development ${REMOVED}`);
    expect(pass([HIDDEN], channel)).toEqual(["*".repeat(HIDDEN.length), ""]);
  });
});

describe("a secret in a successful body", () => {
  test("is masked in any form, wherever the chunks are cut, and nothing else changes", () => {
    fc.assert(
      fc.property(carriers, fc.array(fc.nat(300), { maxLength: 8 }), ({ secret, text }, cuts) => {
        const reported = pass(
          cut(text, cuts).map((piece) => Buffer.from(piece)),
          channelOf(secret),
        ).join("");
        expect(reported).toBe(cleanBody(text, secret));
        expect(reported).toContain("*".repeat(Math.min(secret.length, 12)));
        expect(unescapeAll(reported)).not.toContain(secret);
        expect(reported).toHaveLength(text.length);
      }),
      { numRuns: 150 },
    );
  });

  test("is masked when it comes byte by byte, and JSON stays valid", () => {
    for (const [name, escape] of Object.entries(ESCAPES)) {
      if (name.includes("short")) continue;
      const text = `{"a":"\\n${Array.from(SECRET, escape).join("")}\\n"}`;
      const reported = pass(Array.from(text)).join("");
      expect(reported).toBe(cleanBody(text));
      expect(JSON.parse(reported).a).toMatch(/^\n\*+\n$/);
    }
  });

  test("is masked wherever one of its characters is escaped and wherever the body is cut", () => {
    const secret = "sk-Ab1/cd2_eF3+gh4-ij5=kl";
    const channel = channelOf(secret);
    for (const [at, character] of Array.from(secret).entries()) {
      for (const escape of Object.values(ESCAPES)) {
        const spelled = secret.slice(0, at) + escape(character) + secret.slice(at + 1);
        const text = `${ORDINARY}${spelled}${ORDINARY}`;
        const expected = `${ORDINARY}${"*".repeat(spelled.length)}${ORDINARY}`;
        for (let end = ORDINARY.length; end <= ORDINARY.length + spelled.length; end += 1)
          if (pass([text.slice(0, end), text.slice(end)], channel).join("") !== expected)
            throw new Error(`${text} is not masked where it is cut at ${end}`);
      }
    }
  });

  test("is masked if only parts of its escapes are escaped again", () => {
    const secret = "orgYlpxLOVhorhl"; // neither it nor its base64 has an f, an F or a u
    const json = ESCAPES["JSON"] ?? String;
    for (const spelled of [
      `\\u00${json("6")}f`,
      `\\u006${json("f")}`,
      `\\u006${json("F")}`,
      "\\&#117;006f",
      `&#x6${json("f")};`,
      `&#x6f${json(";")}`,
      `%6${json("f")}`,
    ]) {
      const text = `${ORDINARY}${spelled}${secret.slice(1)} `;
      expect(cleanBody(text, secret)).toBe(`${ORDINARY}${"*".repeat(text.length - ORDINARY.length - 1)} `);
    }
  });

  test("is masked in a large chunk at any distance from escapes that matter and from those that do not", () => {
    const around = fc
      .array(fc.constantFrom(...NOISE, PREFIX, SECRET.slice(0, 30), "A", "x".repeat(300)), { maxLength: 40 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(around, carriers, around, fc.nat(2000), (before, { secret, text }, after, cutAt) => {
        const body = `${before} ${text} ${after}`;
        const expected = `${before} ${cleanBody(text, secret)} ${after}`;
        expect(cleanBody(body, secret)).toBe(expected);
        expect(pass(cut(body, [cutAt]), channelOf(secret)).join("")).toBe(expected);
      }),
      { numRuns: 80 },
    );
  });

  test("is masked if Markdown's backslashes escape its signs, but a backslash before a letter is not an escape of it", () => {
    const escaped = "Ab1\\+cD2e\\/3\\_gH4iJ5kL6mN7\\=oP8qR9sT0uVwXyZ";
    expect(cleanBody(`x ${escaped}`, HIDDEN)).toBe(`x ${"*".repeat(escaped.length)}`);
    for (const text of ["hu\\nter4242", "hunter\\u4242", "\\hunter4242"])
      expect(cleanBody(text, "hunter4242")).toBe(text.replace("hunter4242", "**********"));
  });

  const letters = (lengths: { minLength: number; maxLength: number }) =>
    fc.string({ unit: fc.constantFrom("a", "b", "\n"), ...lengths });

  test("is masked when it repeats itself, and only whole secrets are", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "b"), minLength: 16, maxLength: 20 }),
        fc.array(fc.oneof(letters({ minLength: 0, maxLength: 30 }), fc.constant(null)), { maxLength: 6 }),
        fc.array(fc.nat(200), { maxLength: 8 }),
        (secret, parts, cuts) => {
          const text = parts.map((part) => part ?? secret).join("");
          const reported = pass(cut(text, cuts), channelOf(secret)).join("");
          expect(reported).toBe(text.replaceAll(secret, "*".repeat(secret.length)));
        },
      ),
    );
  });

  test("held bytes at the end of the body go out unchanged", () => {
    expect(pass([`x${SECRET.slice(0, -1)}`])).toEqual(["x", SECRET.slice(0, -1)]);
    expect(pass(["x &am"])).toEqual(["x ", "&am"]);
  });

  test("public prefixes, sessions, pieces and ordinary words pass unchanged", () => {
    const session = `data: {"type":"x","text":"export KEY=${PREFIX}… # ${PREFIX}\\n${SECRET.slice(0, -1)} 100% &amp; a&&b \\u002B\\\\n"}\n\n`;
    for (const text of [session, 'data: {"a":1}\n\n', '[{"a":1}', ",\r\n", "é\n"]) {
      const piece = Buffer.from(text);
      expect(new StreamRedactor(CHANNEL, 200).pass(piece)).toBe(piece);
      expect(redactBody(piece, CHANNEL)).toBe(piece);
    }
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 8 }), (cuts) => {
        expect(pass(cut(session, cuts)).join("")).toBe(session);
      }),
    );
    for (const word of ["none", "ollama", "lm-studio", "not-needed"])
      expect(pass([`${word} no`, "ne"], channelOf(word))).toEqual([`${word} no`, "ne", ""]);
  });

  test("of eight characters is masked if it has a digit", () => {
    expect(cleanBody("token hunter42!", "hunter42")).toBe("token ********!");
  });

  test("never delays the end of an event", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const event = `data: ${text}${SECRET.slice(0, 5)}\n\n`;
        expect(pass([event])).toEqual([event, ""]);
      }),
    );
  });
});

test.each([SECRET, HIDDEN.slice(3, 20), SECRET.toLowerCase(), HIDDEN.toUpperCase().slice(5)])(
  "what is kept of an answer has no piece of a secret, in whichever case: %s",
  (word) => {
    const kept = Buffer.from(redactPieces(Buffer.from(`{"id":"${word}"}`), CHANNEL)).toString();
    const known = {
      parts: [],
      tariff: {},
      end: "complete",
      final: true,
      estimatedOutput: 0,
      hasText: true,
    } as const;
    const rawUsage = JSON.stringify({ service_tier: word, [word]: 1 });
    const read = redactReading({ ...known, model: word, rawUsage }, CHANNEL);
    for (const text of [kept, JSON.stringify(read)])
      expect(text.toLowerCase()).not.toContain(word.toLowerCase());
  },
);

test("a header field that contains a secret, in any form, is removed", () => {
  const clean = ["content-type", "text/plain"] as const;
  const pass = (fields: readonly Field[], channel: typeof CHANNEL, status: number): Field[] => [
    ...redactFields(Fields.of(fields), channel, status),
  ];
  const forms = [SECRET, encodeURIComponent(SECRET), encodeWithin(SECRET, "user:", "base64")];
  for (const form of forms)
    expect(pass([clean, ["openai-echo", `Bearer ${form}`]], CHANNEL, 200)).toEqual([clean]);
  const named = channelOf("sk-Ab1cD2e3gH4iJ5kL6mN7oP8");
  expect(pass([[`x-${named.credential.toLowerCase()}`, "1"]], named, 200)).toEqual([]);
  expect(pass([["x-model", HIDDEN.slice(3, 20)]], CHANNEL, 400)).toEqual([]);
  expect(pass([["x-model", "none"]], channelOf("none"), 200)).toEqual([["x-model", "none"]]);
});

describe("the work grows in proportion to the size", () => {
  const unit = 16 * 1024;
  test.each<readonly [string, string]>([
    ["the secret", `${SECRET} `],
    ["the secret, escaped", Array.from(SECRET, ESCAPES["JSON"]!).join("")],
    ["its beginning", SECRET.slice(0, 20)],
    ["its prefix", PREFIX],
    ["masks", "**x"],
    ["masks beside its end", `wXyZ**`],
    ["backslashes", "\\"],
    ["percent signs", "%2"],
    ["escapes of escapes", "%25"],
    ["ampersands", "&amp;"],
    ["numbers", "&#0"],
    ["ordinary text", "The quick brown fox "],
  ])("%s", (_name, part) => {
    const make = (size: number): Buffer => Buffer.from(part.repeat(Math.ceil(size / part.length)));
    const measure = (bytes: Buffer): number => {
      const before = process.cpuUsage();
      redactError(bytes, CHANNEL);
      redactBody(bytes, CHANNEL);
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    const [small, large] = [make(unit), make(4 * unit)];
    // Four times the size: a quadratic search would need sixteen times the work, this one needs four.
    let [least, most, ratio] = [Infinity, Infinity, Infinity];
    for (let attempt = 0; attempt < 6 && ratio >= 10; attempt += 1) {
      least = Math.min(least, measure(small));
      most = Math.min(most, measure(large));
      ratio = most / Math.max(2000, least);
    }
    expect(ratio).toBeLessThan(10);
  });
});
