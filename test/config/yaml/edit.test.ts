import { describe, expect, test } from "bun:test";
import { applyEdits, type Edit } from "../../../src/config/yaml/edit.ts";

const item = { name: "ci", group: "codex" };
const add: Edit = { kind: "append", path: ["keys"], values: [item] };
const disable = (index: number): Edit => ({ kind: "set", path: ["keys", index, "disabled"], value: "true" });
const remove = (index: number): Edit => ({ kind: "remove", path: ["keys", index] });
const lift = (index: number): Edit => ({ kind: "remove", path: ["keys", index, "disabled"] });

interface Case {
  readonly name: string;
  readonly edit: Edit;
  readonly before: string;
  readonly after: string;
}

const CASES: Case[] = [
  {
    name: "a key is added after the last one, before the comment that follows it",
    edit: add,
    before: "# top\nkeys:   # mine\n  - { name: a }   # first\n  # - { name: old }\n\nprices: {}\n",
    after:
      "# top\nkeys:   # mine\n  - { name: a }   # first\n  - { name: ci, group: codex }\n  # - { name: old }\n\nprices: {}\n",
  },
  {
    name: "a key is added in the block style of the last one",
    edit: add,
    before: "keys:\n- name: a\n  group: x # why\n  limits:\n    usd_per_day: 5\n# end\n",
    after:
      "keys:\n- name: a\n  group: x # why\n  limits:\n    usd_per_day: 5\n- name: ci\n  group: codex\n# end\n",
  },
  {
    name: "a key is added to a file without a last newline",
    edit: add,
    before: "keys:\n  - { name: a }",
    after: "keys:\n  - { name: a }\n  - { name: ci, group: codex }",
  },
  {
    name: "a key is added to an empty section, before its comments",
    edit: add,
    before: "keys: # none yet\n  # - { name: a }\nplans: {}\n",
    after: "keys: # none yet\n  - { name: ci, group: codex }\n  # - { name: a }\nplans: {}\n",
  },
  {
    name: "a key is added to an empty list",
    edit: add,
    before: "keys: [] # none yet\nplans: {}\n",
    after: "keys: # none yet\n  - { name: ci, group: codex }\nplans: {}\n",
  },
  {
    name: "a key is added where null is written out",
    edit: add,
    before: "keys: ~ # none yet\nplans: {}\n",
    after: "keys: # none yet\n  - { name: ci, group: codex }\nplans: {}\n",
  },
  {
    name: "a key is added to a file without the section",
    edit: add,
    before: "groups: {}\n# end",
    after: "groups: {}\n# end\nkeys:\n  - { name: ci, group: codex }\n",
  },
  {
    name: "a key is added to a list on one line",
    edit: add,
    before: "keys: [{ name: a }, { name: b }] # two\n",
    after: "keys: [{ name: a }, { name: b }, { name: ci, group: codex }] # two\n",
  },
  {
    name: "a key is added to a bracketed list over many lines",
    edit: add,
    before: "keys: [\n  { name: a }, # one\n  { name: b }, # two\n]\n",
    after: "keys: [\n  { name: a }, # one\n  { name: b }, # two\n  { name: ci, group: codex },\n]\n",
  },
  {
    name: "a key is added to a flow list over lines that ends without a comma",
    edit: add,
    before: "keys: [\n  { name: a }, # one\n  { name: b } # two, or more\n]\n",
    after: "keys: [\n  { name: a }, # one\n  { name: b }, # two, or more\n  { name: ci, group: codex }\n]\n",
  },
  {
    name: "a key is added to a flow list whose last line closes it",
    edit: add,
    before: "keys: [\n  { name: a },\n  { name: b }] # two\n",
    after: "keys: [\n  { name: a },\n  { name: b },\n  { name: ci, group: codex }] # two\n",
  },
  {
    name: "a file with Windows line ends gets a Windows line",
    edit: add,
    before: "keys:\r\n  - { name: a } # x\r\nprices: {}\r\n",
    after: "keys:\r\n  - { name: a } # x\r\n  - { name: ci, group: codex }\r\nprices: {}\r\n",
  },
  {
    name: "a file that begins with a byte order mark",
    edit: add,
    before: "\uFEFFkeys:\n  - { name: a }\n",
    after: "\uFEFFkeys:\n  - { name: a }\n  - { name: ci, group: codex }\n",
  },
  {
    name: "a key is added after one that contains a block of text",
    edit: add,
    before: "keys:\n  - name: a\n    note: |\n      one\n      two\n\n# end\n",
    after: "keys:\n  - name: a\n    note: |\n      one\n      two\n  - name: ci\n    group: codex\n\n# end\n",
  },
  {
    name: "a name that YAML reads as null is quoted",
    edit: { kind: "append", path: ["keys"], values: [{ name: "null" }] },
    before: "keys:\n  - { name: a }\n",
    after: 'keys:\n  - { name: a }\n  - { name: "null" }\n',
  },
  {
    name: "a setting is added to a flow map",
    edit: disable(0),
    before: "keys:\n  - { name: a, group: g } # first\n  - { name: b }\n",
    after: "keys:\n  - { name: a, group: g, disabled: true } # first\n  - { name: b }\n",
  },
  {
    name: "a setting is added to a block map",
    edit: disable(0),
    before: "keys:\n  - name: a # it\n    limits:\n      usd_total: 1\n  - name: b\n",
    after: "keys:\n  - name: a # it\n    disabled: true\n    limits:\n      usd_total: 1\n  - name: b\n",
  },
  {
    name: "an existing setting is replaced and keeps its comment",
    edit: disable(0),
    before: "keys:\n  - name: a\n    disabled:   false # for now\n",
    after: "keys:\n  - name: a\n    disabled:   true # for now\n",
  },
  {
    name: "a setting without a value gets one",
    edit: disable(0),
    before: "keys:\n  - name: a\n    disabled: # tbd\n",
    after: "keys:\n  - name: a\n    disabled: true # tbd\n",
  },
  {
    name: "a setting is removed from the middle of a flow map",
    edit: lift(0),
    before: "keys:\n  - { name: a, disabled: true, group: g }\n",
    after: "keys:\n  - { name: a, group: g }\n",
  },
  {
    name: "a setting is removed from the end of a flow map",
    edit: lift(0),
    before: "keys:\n  - { name: a, disabled: true }\n",
    after: "keys:\n  - { name: a }\n",
  },
  {
    name: "a setting is removed from a block map with its line",
    edit: lift(0),
    before: "keys:\n  - name: a\n    disabled: true # why\n    # about group\n    group: g\n",
    after: "keys:\n  - name: a\n    # about group\n    group: g\n",
  },
  {
    name: "a setting is removed from the line of the dash",
    edit: lift(0),
    before: "keys:\n  - disabled: true\n    name: a\n  - name: b\n",
    after: "keys:\n  - name: a\n  - name: b\n",
  },
  {
    name: "a key is removed with its line and nothing else",
    edit: remove(1),
    before: "keys:\n  # one\n  - { name: a }\n  # two\n  - { name: b } # bye\n  # three\n  - { name: c }\n",
    after: "keys:\n  # one\n  - { name: a }\n  # two\n  # three\n  - { name: c }\n",
  },
  {
    name: "the only key is removed",
    edit: remove(0),
    before: "keys:\n  - name: a\n    group: g\nplans: {}\n",
    after: "keys:\nplans: {}\n",
  },
  {
    name: "the last key of a list on one line is removed",
    edit: remove(1),
    before: "keys: [{ name: a }, { name: b }]\n",
    after: "keys: [{ name: a }]\n",
  },
  {
    name: "a key is removed from a bracketed list over many lines; the others keep their comments",
    edit: remove(1),
    before: "keys: [\n  { name: a }, # one\n  { name: b }\n]\n",
    after: "keys: [\n  { name: a }, # one\n  \n]\n",
  },
  {
    name: "a plan's flag in a flow map",
    edit: { kind: "set", path: ["plans", "max", "active"], value: "true" },
    before: "plans:\n  max: { groups: [a], active: false, until: 2027-01-31 } # mine\n",
    after: "plans:\n  max: { groups: [a], active: true, until: 2027-01-31 } # mine\n",
  },
  ...["${A}", "Hello, world"].map((value) => ({
    name: `${value} is quoted in a flow map`,
    edit: { kind: "set", path: ["channels", "a"], value } as const,
    before: "channels: { a: x }\n",
    after: `channels: { a: "${value}" }\n`,
  })),
  {
    name: "a map that refers to the environment",
    edit: disable(0),
    before: "keys:\n  - { name: a, secret: ${A:-sk-1} }\n  - { name: b, secret: ${B} }\n",
    after: "keys:\n  - { name: a, secret: ${A:-sk-1}, disabled: true }\n  - { name: b, secret: ${B} }\n",
  },
  {
    name: "two keys at once, in the block style",
    edit: { kind: "append", path: ["keys"], values: [item, { name: "cd", group: "g" }] },
    before: "keys:\n- name: a\n  group: x # why\n",
    after: "keys:\n- name: a\n  group: x # why\n- name: ci\n  group: codex\n- name: cd\n  group: g\n",
  },
  {
    name: "two keys at once, on one line",
    edit: { kind: "append", path: ["keys"], values: [item, { name: "cd", group: "g" }] },
    before: "keys: [{ name: a }]\n",
    after: "keys: [{ name: a }, { name: ci, group: codex }, { name: cd, group: g }]\n",
  },
  {
    name: "a key is added to an empty list of a JSON file",
    edit: add,
    before: '{"groups":   {}, "keys":   []}\n',
    after: '{"groups":   {}, "keys":   [{ name: ci, group: codex }]}\n',
  },
  {
    name: "a key is added to a JSON file without the section",
    edit: add,
    before: '{"groups":   {}}\n',
    after: '{"groups":   {}, keys: [{ name: ci, group: codex }]}\n',
  },
  {
    name: "a setting is added to an empty map",
    edit: { kind: "set", path: ["plans", "max", "active"], value: "true" },
    before: "plans:\n  max:   {} # mine\n",
    after: "plans:\n  max:   { active: true } # mine\n",
  },
  {
    name: "a setting is added before one of several lines",
    edit: { kind: "set", path: ["plans", "max", "active"], value: "true" },
    before: "plans:\n  max:\n    groups:\n      -   a # only\n",
    after: "plans:\n  max:\n    active: true\n    groups:\n      -   a # only\n",
  },
  {
    name: "a setting is added before one of several lines, in a file with Windows line ends",
    edit: { kind: "set", path: ["plans", "max", "active"], value: "true" },
    before: "plans:\r\n  max:\r\n    groups:\r\n      -   a # only\r\n",
    after: "plans:\r\n  max:\r\n    active: true\r\n    groups:\r\n      -   a # only\r\n",
  },
  {
    name: "two keys at once, to an empty list",
    edit: { kind: "append", path: ["keys"], values: [item, { name: "cd", group: "g" }] },
    before: "keys:   []",
    after: "keys:\n  - { name: ci, group: codex }\n  - { name: cd, group: g }",
  },
  {
    name: "a key after one with a dash in its name is removed",
    edit: remove(1),
    before: "keys:\n  -   { name: a-b } # A\n  -   { name: c-d } # C\n",
    after: "keys:\n  -   { name: a-b } # A\n",
  },
  {
    name: "a list gets and loses entries, and the comments of the others stay",
    edit: { kind: "set", path: ["models"], value: ["a", "d", "e", "f"] },
    before: "models:\n  # all\n  - a # cheap\n  # slow\n  - b # or c?\n  - d # new\nkeys: []\n",
    after: "models:\n  # all\n  - a # cheap\n  # slow\n  - d # new\n  - e\n  - f\nkeys: []\n",
  },
  {
    name: "a list loses every entry and gets others, and the comments above them stay",
    edit: { kind: "set", path: ["models"], value: ["c"] },
    before: "models:\n  # all\n  - a # cheap\n  - b\nkeys: []\n",
    after: "models:\n  # all\n  - c\nkeys: []\n",
  },
  {
    name: "a bracketed list over many lines keeps the comments of its entries",
    edit: { kind: "set", path: ["models"], value: ["a", "c"] },
    before: "models: [\n  a, # cheap\n  b, # slow\n]\nkeys: []\n",
    after: "models: [\n  a, # cheap\n  # slow\n  c,\n]\nkeys: []\n",
  },
  {
    name: "the last entry of a section is removed, and all comments stay",
    edit: { kind: "remove", path: ["plans", "max"] },
    before: "plans: # mine\n  # the big one\n  max: { groups:   [g] } # until May\n  # end\nkeys: []\n",
    after: "plans: # mine\n  # the big one\n  # end\nkeys: []\n",
  },
  {
    name: "the last setting of the last entry of a section is removed with the entry",
    edit: { kind: "remove", path: ["prices", "m", "input"] },
    before: "prices:\n  # one\n  m:\n    input: '3'\nkeys: []\n",
    after: "prices:\n  # one\nkeys: []\n",
  },
  {
    name: "a section whose entries are gone gets one again",
    edit: { kind: "set", path: ["plans", "max"], value: { groups: ["g"] } },
    before: "plans: # mine\n  # the big one\nkeys: []\n",
    after: "plans: { max: { groups: [ g ] } } # mine\n  # the big one\nkeys: []\n",
  },
  {
    name: "a JSON file",
    edit: disable(0),
    before: '{\n  "keys": [\n    { "name": "a" }\n  ]\n}\n',
    after: '{\n  "keys": [\n    { "name": "a", disabled: true }\n  ]\n}\n',
  },
];

/** Adds spacing that no YAML library would keep. Without this spacing, a library would give small files back unchanged. */
function writeOddly(text: string): string {
  const [, mark = "", rest = ""] = /^(\uFEFF?)(.*)$/s.exec(text) ?? [];
  const eol = rest.includes("\r\n") ? "\r\n" : "\n";
  return rest.startsWith("{") ? `${text}   #odd${eol}` : `${mark}vendor:    goog   #odd${eol}${rest}`;
}

describe("P18: an edit changes its own lines and leaves every other byte", () => {
  const cases = CASES.map((each) => [each.name, each] as const);
  test.each(cases)("an edit changes its own lines alone: %s", (_, { edit, before, after }) => {
    expect(applyEdits(before, [edit])).toBe(after);
    expect(applyEdits(writeOddly(before), [edit])).toBe(writeOddly(after));
  });
});

describe("several edits at once give the same as one after the other", () => {
  const texts = [
    "keys:\n  # a\n  - { name: a } # A\n  - { name: b, disabled: true }\n  # c\n  - { name: c } # C\n  - { name: d }\n",
    "keys:\n- name: a # A\n  disabled: true\n\n# b\n- name: b\n  disabled: true\n- name: c\n- name: d\n# end\n",
    "keys: [{ name: a }, { name: b, disabled: true }, { name: c }, { name: d }] # all\n",
    "keys: [\n  { name: a }, # A\n  { name: b, disabled: true }, # B\n  { name: c },\n  { name: d },\n]\n",
  ];
  const batches: ReadonlyArray<readonly Edit[]> = [
    [remove(3), remove(1)],
    [remove(2), remove(1), remove(0)],
    [remove(3), remove(2), remove(1), remove(0)],
    [disable(0), disable(2), lift(1)],
    [{ kind: "set", path: ["keys", 0, "group"], value: "g" }, disable(0), lift(1)],
    [remove(0), add],
  ];
  test.each(texts)("several edits at once do the same as one after the other: %j", (text) => {
    for (const edits of batches)
      expect(applyEdits(text, edits)).toBe(
        edits.reduce((changed, edit) => applyEdits(changed, [edit]), text),
      );
  });
});

test("a thousand keys are disabled at once, without reading the file a thousand times", () => {
  const places = Array.from({ length: 1000 }, (_, index) => index);
  const text = `keys:\n${places.map((index) => `  - { name: k${index} }\n`).join("")}`;
  expect(applyEdits(text, places.map(disable)).split("disabled: true")).toHaveLength(1001);
});

describe("a style that cannot be edited in place is written anew or refused", () => {
  test("entries of a list that change places are written anew, and the comments above them stay", () => {
    const before = "models:\n  # all\n  - a # cheap\n  # slow\n  - b # or c?\n  - d\n";
    const after = "models:\n  # all\n  # slow\n  - b\n  - a\n  - e\n";
    expect(applyEdits(before, [{ kind: "set", path: ["models"], value: ["b", "a", "e"] }])).toBe(after);
  });

  test("a list behind an anchor is refused", () => {
    const before = "# top\nbase: &all\n  # inner\n  - { name: a }\nkeys: *all\n";
    expect(() => applyEdits(before, [add])).toThrow("too unusual");
  });

  test("an anchor that other entries refer to is not removed", () => {
    const before = "keys:\n  - { name: a, limits: &few { usd_per_day: 5 } }\n  - { name: b, limits: *few }\n";
    expect(() => applyEdits(before, [remove(0)])).toThrow("too unusual");
    expect(() => applyEdits(before, [remove(0), add])).toThrow("too unusual");
  });
});
