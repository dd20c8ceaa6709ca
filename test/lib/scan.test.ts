// Tests that the scan of a body's bytes finds the members that JSON.parse finds.

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { listElements, readString, replaceSpan } from "../../src/lib/json/scanner.ts";
import { hashBytes, type Lists, type Scan, scanMembers, scanSteps } from "../../src/lib/scan.ts";
import { getList } from "../../src/lib/json/json.ts";
import { runAtOnce, runInTurns } from "../../src/lib/time/next-turn.ts";
import { hasFixtures, listFixtures, readRequest } from "../harness/fixtures.ts";

const encode = (text: string): Buffer => Buffer.from(text);
const NAMES = new Set(["model", "stream", "list"]);
const WANTED = { names: NAMES, lists: new Set(["list"]), alike: new Set(["model"]) };

function scan(text: string | Uint8Array, more: object = {}): Scan<string> | null {
  const bytes = typeof text === "string" ? encode(text) : text;
  return runAtOnce(scanSteps<string>(bytes, { ...WANTED, ...more }));
}

function modelOf(text: string): string | null | undefined {
  const span = scan(text)?.get("model");
  return span && readString(encode(text), span);
}

/** Lists the elements of `list`, as JSON text. */
function listOf(text: string | Uint8Array, found = scan(text)): string[] | undefined {
  const bytes = typeof text === "string" ? encode(text) : Buffer.from(text);
  const list = found?.lists.get("list");
  return list?.starts.map((start, at) =>
    bytes.toString("utf8", start, start + (list.parts[at]?.length ?? 0)),
  );
}

describe("the model is found where a JSON parser would find it", () => {
  test.each([
    ["alone", `{"model":"m"}`, "m"],
    ["last", `{"messages":[{"role":"user","content":"hi"}],"stream":true,"model":"m"}`, "m"],
    ["after nested objects with the name", `{"a":{"model":"x"},"b":[{"model":"y"}],"model":"m"}`, "m"],
    ["after a string that looks like it", `{"a":"\\"model\\":\\"x\\"","model":"m"}`, "m"],
    ["with an escape in its name", `{"mod\\u0065l":"m"}`, "m"],
    ["after longer names", `{"model_x":"a","modeL":"b","model":"m"}`, "m"],
    ["with escapes in its value", `{"model":"a\\/b\\u00e9\\"c"}`, `a/bé"c`],
    ["in other letters", `{"model":"模型é"}`, "模型é"],
    ["after backslashes at the end of strings", `{"a":"x\\\\","b":"\\\\\\\\","model":"m"}`, "m"],
    ["between white space", ` \r\n{ \t"stream" : false ,\n"model" :\t"m" } \n`, "m"],
    ["after a byte order mark", `\ufeff{"model":"m"}`, "m"],
    ["after brackets in strings", `{"a":["}","]",{"b":"{"}],"model":"m"}`, "m"],
    ["after each literal", `{"a":true,"b":false,"c":null,"d":-1.5e+9,"e":[],"f":{},"model":"m"}`, "m"],
    ["after an empty name", `{"":1,"model":"m"}`, "m"],
  ])("the model is found %s", (_name, text, model) => {
    expect(modelOf(text)).toBe(model);
  });

  test("the model is found where a JSON parser would find it, at the end of a body of 10 MB full of quotes and backslashes", () => {
    const text = `say "\\" \\\\ {"model":"no"} `.repeat(400_000);
    expect(modelOf(JSON.stringify({ messages: [{ content: text }], model: "m" }))).toBe("m");
  });

  test("the model is found where a JSON parser would find it, in a view of a larger buffer", () => {
    const bytes = encode(`xxxx{"model":"m"}yyyy`).subarray(4, -4);
    expect(scan(bytes)?.get("model")).toEqual({ start: 9, end: 12 });
  });
});

describe("a body that is not a JSON object is recognised", () => {
  test.each([
    "",
    " ",
    "null",
    "[]",
    `"model"`,
    "model=x",
    "{",
    `{"model"`,
    `{"model":`,
    `{"model":"m"`,
    `{"model":"m",`,
    `{"model":"m",}`,
    `{"model":"m"}}`,
    `{"model":"m"}{"model":"n"}`,
    `{"model":"m"} x`,
    `{"model":"m"}\u0000`,
    `{"model" "m"}`,
    `{model:"m"}`,
    `{'model':'m'}`,
    `{"a":tru,"model":"m"}`,
    `{"a":01,"model":"m"}`,
    `{"a":,"model":"m"}`,
    `{"a":[1,"model":"m"}`,
    `{"a":"x,"model":"m"}`,
    `{"a":NaN}`,
    `{"model":"m\\"}`,
    `{"a":"\\`,
    "<html></html>",
    "\u0000",
    `{"a":${"[".repeat(1_000_000)}`,
  ])("a body that is not a JSON object is recognised: case %#", (text) => {
    expect(scan(text)).toBeNull();
  });

  test("a body that is cut at any byte is not a JSON object", () => {
    const whole = encode(`{"list":[{"content":"a\\"b"},"é\\\\"],"n":1.5,"model":"m"}`);
    for (let length = 0; length < whole.length; length += 1)
      expect(scan(whole.subarray(0, length))).toBeNull();
  });
});

test("a member whose name is repeated is not used, however the name is written", () => {
  for (const text of [`{"model":"a","x":1,"model":"b"}`, `{"model":"a","\\u006dodel":"b"}`]) {
    expect([...(scan(text)?.repeated ?? [])]).toEqual(["model"]);
    expect(scan(text)?.get("model")).toBeUndefined();
  }
});

test.each([
  [1, `{"model":"m"}`],
  [2, `{"model":"m","Model":"x"}`],
  [2, `{"MODEL":"x","model":"m"}`],
  [2, `{"model":"m","\\u004dodel":"x"}`],
  [2, `{"model":"m","ｍodel":"x"}`],
  [2, `{"model":"m"," model\\u0000y":"x"}`],
  [1, `{"model":"m","metadata":{"Model":"x"},"Models":1,"model_x":2}`],
])("%d members have a name that some parser would read as `model`: %s", (count, text) => {
  expect(scan(text)?.spellings).toBe(count);
});

test("a byte that JSON allows only in strings is noticed outside of them, at any depth", () => {
  const isForeign = (inner: string): boolean | undefined => scan(`{"a":${inner}}`)?.isForeign;
  expect([`[/*x*/]`, `[{"b":'}]`, `[[NaN]]`].map(isForeign)).toEqual([true, true, true]);
  expect([`"/* ' NaN é"`, `[-1.5E+3, null ,false]`, `{"é":"'"}`].map(isForeign)).toEqual([
    false,
    false,
    false,
  ]);
});

describe("the elements of a list are found as JSON has them", () => {
  test.each([
    [`{"list":[1,"a,]",{"b":[2,3]}, null ,[]]}`, ["1", `"a,]"`, `{"b":[2,3]}`, "null", "[]"]],
    [`{"list":[]}`, []],
    [`{"list":"text"}`, [`"text"`]],
    [`{"list":{"a":1}}`, [`{"a":1}`]],
    [`{"list":null}`, []],
    [`{"list":[1],"list":[2,3]}`, ["2", "3"]],
    // Some upstreams accept these lists. The gateway passes them on, and does not look at their elements.
    [`{"list":[1,]}`, undefined],
    [`{"list":[1 2]}`, undefined],
    [`{"list":[${"1,".repeat(10_240)}1]}`, undefined],
  ])("the elements of a list are found as JSON has them: case %#", (text, elements) => {
    expect(listOf(text)).toEqual(elements);
  });
});

const word = fc.string({
  unit: fc.constantFrom("\\", '"', "a", "{", "}", "é", "\u2028", "模"),
  maxLength: 80,
});
const value = fc.oneof(fc.jsonValue(), word, fc.array(word));
const object = fc
  .tuple(fc.array(fc.tuple(fc.oneof(fc.string(), fc.constantFrom(...NAMES)), value)), value, fc.array(value))
  .map(([members, model, list]): object =>
    Object.fromEntries([...members, ["model", model], ["list", list]]),
  );
const space = fc.constantFrom(undefined, 1, "\t");
const token = fc.oneof(
  fc.constantFrom("{", "}", "[", "]", ",", ":", '"', "\\", "\\\\", '\\"', " ", "1", "true", '"model"', '"a"'),
  fc.string({ maxLength: 4 }),
);
const noise = fc.array(token, { maxLength: 30 }).map((tokens) => `{"list":${tokens.join("")}`);

describe("a scan of any JSON finds what JSON.parse finds", () => {
  test("the members and elements are those of JSON.parse, also with escapes and repeated names", () => {
    fc.assert(
      fc.property(object, space, fc.boolean(), (made, indent, escapes) => {
        const written = JSON.stringify(made, null, indent);
        const text = escapes
          ? written.replace(/[é模]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)
          : written;
        const parsed: Record<string, unknown> = JSON.parse(text);
        const { start = 0, end = 0 } = scan(text)?.get("model") ?? {};
        expect(JSON.parse(encode(text).toString("utf8", start, end))).toEqual(parsed["model"]);
        expect(listOf(text)?.map((each): unknown => JSON.parse(each))).toEqual([...getList(parsed["list"])]);
      }),
    );
  });

  test("a scan in pieces of any size finds the same as a scan in one step, whether parts are known or not", async () => {
    const scans = fc.oneof(
      fc.tuple(object, space).map(([made, indent]) => JSON.stringify(made, null, indent)),
      noise,
    );
    await fc.assert(
      fc.asyncProperty(scans, scans, fc.integer({ min: 1, max: 50 }), async (text, before, pieceBytes) => {
        const bytes = encode(text);
        const expected = scan(text);
        const known: Lists<string>[] = [before, text].flatMap((each) => scan(each)?.lists ?? []);
        for (const more of [{}, { known }, { known, isStrict: true }]) {
          const found = await runInTurns(scanSteps<string>(bytes, { ...WANTED, ...more }, pieceBytes));
          expect(listOf(text, found)).toEqual(listOf(text, expected));
          expect([found === null, found?.get("model"), found?.repeated, found?.spellings]).toEqual([
            expected === null,
            expected?.get("model"),
            expected?.repeated,
            expected?.spellings,
          ]);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("a scan of arbitrary bytes never throws", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        scan(bytes);
        scan(Buffer.concat([encode(`{"list":`), bytes]));
      }),
    );
  });

  test("if the model is replaced, nothing else in the body changes", () => {
    fc.assert(
      fc.property(object, fc.string(), (made, name) => {
        const bytes = encode(JSON.stringify(made));
        const changed = Buffer.from(replaceSpan(bytes, scan(bytes)!.get("model")!, JSON.stringify(name)));
        expect(JSON.parse(changed.toString())).toEqual({ ...JSON.parse(bytes.toString()), model: name });
      }),
    );
  });
});

test("the parts of a list are found though white space between known parts has changed", () => {
  let found: Scan<string> | null = null;
  for (const list of ["1111, 2222", "1111, 2222,3", "1111,2222,4", "1111, 2222,5"]) {
    found = scan(`{"list":[${list}]}`, { known: found === null ? [] : [found.lists] });
    expect(listOf(`{"list":[${list}]}`, found)).toEqual(list.split(/, ?/));
  }
});

describe("the parts of an earlier body are recognised", () => {
  const part = (at: number): object => ({ at, text: "x".repeat(at * 10) });
  const parts = Array.from({ length: 20 }, (_, at) => part(at));
  const before = scan(JSON.stringify({ list: parts, model: "m" }))!;
  const known = [before.lists];
  const countKnown = (list: readonly unknown[], more: object = {}): number => {
    const text = JSON.stringify({ stream: true, list, model: "n" });
    const found = scan(text, { known, ...more });
    expect(listOf(text, found)?.map((each): unknown => JSON.parse(each))).toEqual([...list]);
    const old = new Set(before.lists.get("list")?.parts);
    return found?.lists.get("list")?.parts.filter((each) => old.has(each)).length ?? 0;
  };

  test.each([
    ["with more at the end", [...parts, 1, 2], 20],
    ["with another last one", [...parts.slice(0, -1), 1, 2], 19],
    ["with another first one", [1, ...parts.slice(1)], 19],
    ["with others in the middle", [...parts.slice(0, 5), 1, 2, ...parts.slice(7)], 18],
    ["with more in the middle", [...parts.slice(0, 5), 1, 2, ...parts.slice(5)], 20],
    ["of another conversation", [1, 2, 3], 0],
  ])("the parts of an earlier body are recognised in a list %s", (_name, list, count) => {
    expect([countKnown(list), countKnown(list, { isStrict: true })]).toEqual([count, count]);
  });

  test("a part is not recognised by its beginning alone", () => {
    const list = ["a", 1];
    const found = scan(JSON.stringify({ list }))!;
    const text = `{"list":["a"x,11]}`;
    expect(listOf(text, scan(text, { known: [found.lists] }))).toBeUndefined();
    expect(listOf(`{"list":["a",11]}`, scan(`{"list":["a",11]}`, { known: [found.lists] }))).toEqual([
      `"a"`,
      "11",
    ]);
  });
});

test("the time of a scan is in proportion to the size of the body", () => {
  const units = [
    '"a":"\\\\",',
    '"a":[],',
    '"\\"":1,',
    '"mod\\u0065l":1,',
    "{[",
    '\\\\\\\\"',
    '"list":[1,2],',
  ];
  for (const unit of [...units, "list"]) {
    const time = (count: number): number => {
      const text =
        unit === "list" ? `{"list":[${'"z",'.repeat(count)}1]}` : `{"model":"m",${unit.repeat(count)}"z":1}`;
      const bytes = encode(text);
      const start = process.cpuUsage();
      scan(bytes);
      const { user, system } = process.cpuUsage(start);
      return user + system;
    };
    const [few, many] = unit === "list" ? [2000, 8000] : [10_000, 40_000];
    time(few / 2);
    const small = Math.min(time(few), time(few), time(few));
    const large = Math.min(time(many), time(many), time(many));
    expect([unit, large < 8 * small + 20_000]).toEqual([unit, true]);
  }
});

/** Makes a part as if it were known from an earlier body. */
const knownPart = (text: string): Lists<string>[] => {
  const part = { length: text.length, hash: hashBytes(encode(text)), about: null };
  return [new Map([["list", { starts: [0], parts: [part], head: null, kept: null }]])];
};

test("a strict scan finds the members that a forged known part hides", () => {
  const hidden = '1],"model":"x","list":[2';
  const text = `{"model":"m","list":[${hidden}]}`;
  const [trusting, strict] = [false, true].map((isStrict) =>
    scan(text, { known: knownPart(hidden), isStrict }),
  );
  expect([trusting?.repeated.size, trusting?.spellings]).toEqual([0, 1]);
  expect([strict?.repeated.has("model"), strict?.spellings, listOf(text, strict)]).toEqual([true, 2, ["2"]]);
});

test("the search for a long part that is not in the body takes little time", () => {
  const element = `"${"z".repeat(800)}"`;
  const text = JSON.stringify({ list: Array.from({ length: 10_000 }, () => "z".repeat(800)) });
  const known = knownPart(`${`${element},`.repeat(5000).slice(0, -2)}x`);
  const start = process.cpuUsage();
  expect(scan(text, { known })?.lists.get("list")?.parts).toHaveLength(10_000);
  const { user, system } = process.cpuUsage(start);
  expect(user + system).toBeLessThan(500_000);
});

test.each([
  ["one text", JSON.stringify({ a: 'say "\\" '.repeat(10_000) })],
  ["many texts", JSON.stringify({ list: Array.from({ length: 5000 }, () => "text") })],
  ["many members", `{${Array.from({ length: 5000 }, (_, index) => `"m${index}":1`).join()}}`],
])("a scan of %s pauses after each piece", (_name, text) => {
  const steps = scanSteps<string>(encode(text), WANTED, 8192);
  let count = 0;
  while (steps.next().done !== true) count += 1;
  expect(count).toBeGreaterThanOrEqual(Math.floor(text.length / 16_384));
});

test("the elements of a list are found, and a value that is not a list is its own element", () => {
  const text = encode(`{"a":[1, {"b":2},"c"],"d":7}`);
  const found = scanMembers(text, ["a", "d"])!;
  const read = (name: string): string[] =>
    listElements(text, found.get(name)!).map(({ start, end }) => text.toString("utf8", start, end));
  expect([read("a"), read("d")]).toEqual([["1", `{"b":2}`, `"c"`], ["7"]]);
});

test.skipIf(!hasFixtures)("in recorded requests, the scanner finds what JSON.parse finds", () => {
  const recorded = listFixtures(({ request_file }) => request_file !== undefined);
  expect(recorded.length).toBeGreaterThan(100);
  const lists = new Set(["messages", "input", "contents", "tools", "system"]);
  for (const fixture of recorded) {
    const bytes = Buffer.from(readRequest(fixture));
    const parsed: Record<string, unknown> = JSON.parse(bytes.toString());
    const found = runAtOnce(scanSteps<string>(bytes, { names: new Set(["model"]), lists }));
    const span = found?.get("model");
    const model: unknown = span && readString(bytes, span);
    expect(model).toEqual(parsed["model"]);
    for (const [name, { starts, parts }] of found?.lists ?? []) {
      const read = starts.map((start, at): unknown =>
        JSON.parse(bytes.toString("utf8", start, start + (parts[at]?.length ?? 0))),
      );
      const expected = parsed[name] ?? [];
      expect(read).toEqual(Array.isArray(expected) ? expected : [expected]);
    }
  }
});
