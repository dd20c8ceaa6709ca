import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readModel, readStreamFlag, replaceSpan, scanTopLevel } from "../../../src/lib/json/json-spans.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe("the model is found where a JSON parser would find it", () => {
  const cases: readonly [name: string, body: string, model: string][] = [
    ["it stands alone", `{"model":"m"}`, "m"],
    ["it stands last", `{"messages":[{"role":"user","content":"hi"}],"stream":true,"model":"m"}`, "m"],
    [
      "nested objects bear the same name before it",
      `{"a":{"model":"x"},"b":[{"model":"y"}],"model":"m"}`,
      "m",
    ],
    ["a string before it looks like a member", `{"a":"\\"model\\":\\"x\\"","model":"m"}`, "m"],
    ["a key holds an escaped letter", `{"mod\\u0065l":"m"}`, "m"],
    ["a longer key begins with it", `{"model_x":"a","modeL":"b","model":"m"}`, "m"],
    ["its value holds escapes", `{"model":"a\\/b\\u00e9\\"c"}`, `a/bé"c`],
    ["a string ends in backslashes", `{"a":"x\\\\","b":"\\\\\\\\","model":"m"}`, "m"],
    ["white space stands everywhere", ` \r\n{ \t"stream" : false ,\n"model" :\t"m" } \n`, "m"],
    ["a byte order mark stands before it", `\ufeff{"model":"m"}`, "m"],
    ["brackets stand in strings", `{"a":["}","]",{"b":"{"}],"model":"m"}`, "m"],
    [
      "every literal stands before it",
      `{"a":true,"b":false,"c":null,"d":-1.5e+9,"e":[],"f":{},"model":"m"}`,
      "m",
    ],
    ["the empty key stands before it", `{"":1,"model":"m"}`, "m"],
  ];
  test.each(cases)("the model is found when %s", (_name, body, model) => {
    const bytes = encode(body);
    const reading = readModel(bytes);
    expect(reading.kind).toBe("model");
    if (reading.kind !== "model") return;
    expect(reading.model).toBe(model);
    expect(JSON.parse(decode(bytes.subarray(reading.span.start, reading.span.end)))).toBe(model);
  });

  test("the model is found when it stands last in a body of 20 MB, full of quotes and backslashes", () => {
    const text = `say "\\" \\\\ {"model":"no"} `.repeat(400_000);
    const bytes = encode(JSON.stringify({ messages: [{ content: text }], model: "m" }));
    expect(bytes.length).toBeGreaterThan(10_000_000);
    expect(readModel(bytes)).toMatchObject({ kind: "model", model: "m" });
  });
});

describe("a body that is not a JSON object is recognised", () => {
  const broken = [
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
    "<html></html>",
    "\u0000",
  ];
  test.each(broken)("%j", (body) => {
    expect(readModel(encode(body)).kind).toBe("not_json");
  });

  test("a body cut at any byte", () => {
    const whole = encode(`{"messages":[{"role":"user","content":"a\\"b"}],"n":1.5,"model":"m"}`);
    for (let length = 0; length < whole.length; length += 1) {
      expect(readModel(whole.subarray(0, length)).kind).toBe("not_json");
    }
  });

  test("a million open brackets are no deep recursion", () => {
    expect(readModel(encode(`{"a":${"[".repeat(1_000_000)}`)).kind).toBe("not_json");
  });
});

test("a second model is reported, however its key is written", () => {
  expect(readModel(encode(`{"model":"a","x":1,"model":"b"}`))).toEqual({ kind: "duplicate", name: "model" });
  expect(readModel(encode(`{"model":"a","\\u006dodel":"b"}`))).toEqual({ kind: "duplicate", name: "model" });
});

test("a model that is not a string, an empty one and a missing one are different", () => {
  expect(readModel(encode(`{"model":1}`)).kind).toBe("not_string");
  expect(readModel(encode(`{"model":{"model":"m"}}`)).kind).toBe("not_string");
  expect(readModel(encode(`{"model":"bad \\x escape"}`)).kind).toBe("not_string");
  expect(readModel(encode(`{"model":""}`)).kind).toBe("missing");
  expect(readModel(encode(`{}`)).kind).toBe("missing");
});

test("only the literal true requests a stream", () => {
  const asks = (value: string) => readStreamFlag(encode(`{"a":{"stream":true},"stream":${value}}`));
  expect(["true", "false", "null", `"true"`, "1", "[true]"].map(asks)).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
  ]);
  expect(readStreamFlag(encode(`{"a":1}`))).toBe(false);
  expect(readStreamFlag(encode("nothing"))).toBe(false);
});

test("one scan answers for several names", () => {
  const bytes = encode(`{"stream":true,"model":"m"}`);
  const scan = scanTopLevel(bytes, ["model", "stream"]);
  expect(readModel(bytes, scan)).toMatchObject({ model: "m" });
  expect(readStreamFlag(bytes, scan)).toBe(true);
});

test("a view of a larger buffer is read at its own offset", () => {
  const large = encode(`xxxx{"model":"m"}yyyy`);
  expect(readModel(large.subarray(4, large.length - 4))).toMatchObject({
    model: "m",
    span: { start: 9, end: 12 },
  });
});

test("an alias changes the bytes of the name and no others", () => {
  const body = ` {"a" : "é\\u0000" , "model":\t"f\\u0061st" ,"b":1.0}\n`;
  const bytes = encode(body);
  const reading = readModel(bytes);
  if (reading.kind !== "model") throw new Error(reading.kind);
  expect(reading.model).toBe("fast");
  expect(decode(replaceSpan(bytes, reading.span, `q"\\é\n`))).toBe(
    body.replace(`"f\\u0061st"`, `"q\\"\\\\é\\n"`),
  );
});

describe("for any JSON", () => {
  const separators = fc.constantFrom(undefined, 1, "\t");
  const value = fc.oneof(
    fc.jsonValue(),
    fc.string({ unit: fc.constantFrom("\\", '"', "a", "{", "}", "é"), maxLength: 80 }),
  );

  test("objects give what JSON.parse gives", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), value)), value, separators, (members, model, space) => {
        const object = Object.fromEntries([
          ...members.filter(([name]) => name !== "model"),
          ["model", model],
        ]);
        const bytes = encode(JSON.stringify(object, null, space));
        const scan = scanTopLevel(bytes, ["model"]);
        if (scan.kind !== "object") throw new Error(scan.kind);
        const span = scan.spans.get("model");
        expect(JSON.parse(decode(bytes.subarray(span?.start, span?.end)))).toEqual(
          JSON.parse(JSON.stringify(model)),
        );
      }),
    );
  });

  test("a replaced model is the only difference", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), value)), fc.string({ minLength: 1 }), (members, model) => {
        const object = Object.fromEntries([...members, ["model", "old"]]);
        const bytes = encode(JSON.stringify(object));
        const reading = readModel(bytes);
        if (reading.kind !== "model") throw new Error(reading.kind);
        const changed: unknown = JSON.parse(decode(replaceSpan(bytes, reading.span, model)));
        expect(changed).toEqual({ ...JSON.parse(JSON.stringify(object)), model });
      }),
    );
  });

  test("arbitrary bytes never throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        readModel(noise);
        readModel(Buffer.concat([encode(`{"model":`), noise]));
      }),
    );
  });
});

const FIXTURES = join(import.meta.dir, "../../../../shared/fixtures");

test.skipIf(!existsSync(FIXTURES))(
  "recorded requests give the model and the stream flag that JSON.parse gives",
  () => {
    let seen = 0;
    for (const family of ["anthropic", "openai-chat", "openai-responses", "gemini"]) {
      const folder = join(FIXTURES, family);
      for (const file of readdirSync(folder).filter((name) => name.endsWith(".req.json"))) {
        const bytes = readFileSync(join(folder, file));
        const parsed: unknown = JSON.parse(bytes.toString());
        const { model, stream } = Object(parsed);
        const reading = readModel(bytes);
        expect(reading.kind === "model" ? reading.model : undefined).toBe(model);
        expect(readStreamFlag(bytes)).toBe(stream === true);
        seen += 1;
      }
    }
    expect(seen).toBeGreaterThan(100);
  },
);
