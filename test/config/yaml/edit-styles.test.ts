import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { applyEdits, type Edit } from "../../../src/config/yaml/edit.ts";
import { parseYaml, readTree } from "../../../src/config/yaml/source.ts";
import { getField, getList } from "../../../src/lib/json/json.ts";

// The files have the many styles in which people write. Each comment and each line of a file is unique, so that a lost or
// moved one is noticed.

interface Item {
  readonly block: boolean;
  readonly quoted: boolean;
  readonly disabled: boolean;
  readonly limits: boolean;
  readonly before: boolean;
  readonly behind: boolean;
}

const item: fc.Arbitrary<Item> = fc.record({
  block: fc.boolean(),
  quoted: fc.boolean(),
  disabled: fc.boolean(),
  limits: fc.boolean(),
  before: fc.boolean(),
  behind: fc.boolean(),
});

const file = fc.record({
  items: fc.array(item, { maxLength: 5 }),
  indent: fc.constantFrom("", "  ", "    "),
  eol: fc.constantFrom("\n", "\r\n"),
  blank: fc.boolean(),
  after: fc.boolean(),
  end: fc.boolean(),
});

function writeItem(index: number, each: Item, margin: string): string[] {
  const comment = each.behind ? `   # behind ${index}` : "";
  const above = each.before ? [`${margin}# before ${index}`] : [];
  const name = each.quoted ? `"k${index}"` : `k${index}`;
  const pairs = [`name: ${name}`, `group: g${index}`];
  if (each.disabled) pairs.push("disabled: true");
  if (!each.block) {
    const limits = each.limits ? [`limits: { usd_total: ${index} }`] : [];
    return [...above, `${margin}-  { ${[...pairs, ...limits].join(", ")} }${comment}`];
  }
  const limits = each.limits ? [`limits: # of ${index}`, `  usd_total: ${index}`] : [];
  const [first = "", ...rest] = [...pairs, ...limits];
  return [...above, `${margin}- ${first}${comment}`, ...rest.map((line) => `${margin}  ${line}`)];
}

function writeFile({
  items,
  indent,
  eol,
  blank,
  after,
  end,
}: Parameters<Parameters<typeof file.map>[0]>[0]): string {
  const lines = ["# top", "vendor:    goog # odd", "keys: # all"];
  for (const [index, each] of items.entries()) {
    lines.push(...writeItem(index, each, indent));
    if (blank) lines.push("");
  }
  if (after) lines.push("# after", "plans: {}");
  return lines.join(eol) + (end ? eol : "");
}

const names = (text: string) =>
  getList(getField(readTree(parseYaml(text)), "keys")).map((key) => getField(key, "name"));

test("adding a key to a file of any style only adds lines", () => {
  fc.assert(
    fc.property(file, (made) => {
      const text = writeFile(made);
      const edit: Edit = { kind: "append", path: ["keys"], values: [{ name: "new", group: "g" }] };
      const edited = applyEdits(text, [edit]);
      expect(names(edited)).toEqual([...names(text), "new"]);
      const added = edited.split(made.eol).filter((line) => /name: new|^ *group: g$/.test(line));
      expect(edited.split(made.eol).filter((line) => !added.includes(line))).toEqual(text.split(made.eol));
    }),
    { numRuns: 120 },
  );
});

test("a setting is written and taken away again, and the file is as it was", () => {
  fc.assert(
    fc.property(file, fc.nat(4), (made, chosen) => {
      const text = writeFile(made);
      if (made.items.length === 0) return;
      const index = chosen % made.items.length;
      const path = ["keys", index, "expires"];
      const set = applyEdits(text, [{ kind: "set", path, value: "2099-01-01" }]);
      expect(set.split(made.eol).length - text.split(made.eol).length).toBeLessThanOrEqual(1);
      expect(applyEdits(set, [{ kind: "set", path, value: "2099-01-01" }])).toBe(set);
      expect(applyEdits(set, [{ kind: "remove", path }])).toBe(text);
    }),
    { numRuns: 120 },
  );
});

test("removing a key removes only its own lines", () => {
  fc.assert(
    fc.property(file, fc.nat(4), (made, chosen) => {
      const text = writeFile(made);
      if (made.items.length === 0) return;
      const index = chosen % made.items.length;
      const edited = applyEdits(text, [{ kind: "remove", path: ["keys", index] }]);
      expect(names(edited)).toEqual(names(text).toSpliced(index, 1));
      const each = made.items[index];
      const own = each === undefined ? [] : writeItem(index, { ...each, before: false }, made.indent);
      const lines = text.split(made.eol);
      expect(edited.split(made.eol)).toEqual(lines.toSpliced(lines.indexOf(own[0] ?? ""), own.length));
    }),
    { numRuns: 120 },
  );
});
