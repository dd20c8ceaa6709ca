// Keys that are read without the YAML parser mean the same, and are at the same places, as with it.

import { describe, expect, test } from "bun:test";
import { applyEdits } from "../../../src/config/yaml/edit.ts";
import { parseSource } from "../../../src/config/yaml/source.ts";

const HASH = "0123456789abcdef".repeat(4);
const key = (name: string, more = "") =>
  `  - { name: ${name}, group: g, secret_sha256: ${HASH}, created: 2026-11-20T10:00:00Z${more} }`;
const plainKeys = (count: number) => Array.from({ length: count }, (_, index) => key(`k${index}`));

const FILES: ReadonlyArray<readonly [what: string, text: string]> = [
  ["plain keys", `a: 1\nkeys:\n${plainKeys(4).join("\n")}\ngroups: { g: x }\n`],
  [
    "a heading and keys with comments",
    `keys: # mine\n${key("a")} # x\n${key("b")}\n  # between\n${key("c")}\n`,
  ],
  [
    "keys of other forms",
    `keys:\n${plainKeys(3).join("\n")}\n  - name: block\n    group: g\n${key("z")}\nb: 2\n`,
  ],
  ["line ends of Windows", `keys:\r\n${plainKeys(3).join("\r\n")}\r\nb: 2\r\n`],
  ["null and quotes", `keys:\n${key("a")}\n${key("b")}\n${key("c", ", expires: null")}\n${key('"d"')}\n`],
  ["a name twice", `keys:\n${key("a")}\n${key("b", ", name: c")}\n${key("d")}\n`],
  ["another indentation", `keys:\n${key("a")}\n${key("b")}\n  ${key("c")}\n`],
  ["a heading inside a quoted text", `{ x: "1\nkeys:\n${key("a")}\n${key("b")}\n${key("c")}\n" }\n`],
  ["no last newline", `keys:\n${plainKeys(3).join("\n")}`],
  ["a fault behind them", `keys:\n${plainKeys(3).join("\n")}\nb: [1\n`],
];

const PATHS = [
  ["keys"],
  ...[0, 1, 2, 3, 4, 9].flatMap((index) => [
    ["keys", index],
    ["keys", index, "group"],
    ["keys", index, "created"],
    ["keys", index, "nothing"],
  ]),
  ["groups", "g"],
  ["b"],
];

describe("a file with many keys", () => {
  test.each(FILES)("many keys with %s are read as the YAML parser reads them", (_, text) => {
    const fast = parseSource(text);
    const whole = parseSource(text, false);
    expect(fast.tree).toEqual(whole.tree);
    expect([fast.problems, fast.readable]).toEqual([whole.problems, whole.readable]);
    for (const path of PATHS) {
      for (const part of ["key", "value"] as const)
        expect({ path, part, place: fast.locate(path, part) }).toEqual({
          path,
          part,
          place: whole.locate(path, part),
        });
    }
  });

  test("a file with many keys gets a new one after the last, and no other byte changes", () => {
    const keys = plainKeys(400).join("\n");
    const text = `# mine\nkeys: # all\n${keys} # last\n\ngroups: { g: x } # g\n`;
    const after = applyEdits(text, [
      { kind: "append", path: ["keys"], values: [{ name: "new", group: "g" }] },
    ]);
    expect(after).toBe(
      `# mine\nkeys: # all\n${keys} # last\n  - { name: new, group: g }\n\ngroups: { g: x } # g\n`,
    );
  });

  test("a file with many keys is read in less work than the YAML parser needs for half as many", () => {
    const text = (count: number) => `keys:\n${plainKeys(count).join("\n")}\n`;
    const measure = (source: string, isFast: boolean): number => {
      const start = process.cpuUsage();
      parseSource(source, isFast);
      const { user, system } = process.cpuUsage(start);
      return user + system;
    };
    const shortest = [Infinity, Infinity] as [number, number];
    for (let attempt = 0; attempt < 10 && shortest[0] >= shortest[1]; attempt += 1) {
      shortest[0] = Math.min(shortest[0], measure(text(4000), true));
      shortest[1] = Math.min(shortest[1], measure(text(2000), false));
    }
    expect(shortest[0]).toBeLessThan(shortest[1]);
  });
});
