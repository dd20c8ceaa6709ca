// The colours of names, in a browser's storage that is only a map.

import { afterAll, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { OTHERS } from "../../../../src/web/api.ts";
import { colourNames } from "../../../../src/web/page/parts/colours.ts";

const before = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
let stored = new Map<string, string>();
beforeEach(() => {
  stored = new Map();
  const storage = {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, text: string) => void stored.set(name, text),
  };
  Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true });
});
afterAll(() => {
  if (before === undefined) Reflect.deleteProperty(globalThis, "localStorage");
  else Object.defineProperty(globalThis, "localStorage", before);
});

const name = (index: number): string => `model-${index}`;
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => name(index));

test("the first eighteen names have colours of their own, and keep them whatever else is shown", () => {
  const all = names(18);
  const colours = all.map((each) => colourNames("model", [each])[0]);
  expect(new Set(colours).size).toBe(18);
  expect(colourNames("model", all.toReversed())).toEqual(colours.toReversed().map(String));
});

test("the eighth name that is shown for the first time is not like one beside it", () => {
  for (const each of names(18)) colourNames("model", [each]);
  const shown = ["new-1", name(0), "new-2", name(1), name(2), "new-3", OTHERS];
  expect(new Set(colourNames("model", shown)).size).toBe(7);
});

test("a key's colour is not taken from a model's, and small names together are grey", () => {
  expect(colourNames("key", ["laptop"])).toEqual(colourNames("model", ["claude"]));
  expect(colourNames("key", [OTHERS])).toEqual(["var(--c-others)"]);
});

test("colours that another program has stored are given anew", () => {
  stored.set("gateway-colours-of-model", '{"a":1}');
  expect(colourNames("model", ["a"])).toEqual(["var(--c0)"]);
  stored.set("gateway-colours-of-model", '[["a",5],["b"],7,["c","x"]]');
  expect(colourNames("model", ["a", "b"])).toEqual(["var(--c5)", "var(--c0)"]);
});

/** Relative luminance, as WCAG 2 defines it. */
function measureLight(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test.each(["light", "dark"])("every colour of a chart stands out from the paper by 3:1, %s", (scheme) => {
  const style = readFileSync(`${import.meta.dir}/../../../../src/web/page/style/base.css`, "utf8");
  const [light = "", dark = ""] = style.split("@media (prefers-color-scheme: dark)");
  const colours = new Map(
    Array.from(
      (scheme === "light" ? light : dark).matchAll(/--([\w-]+): (#[0-9a-f]{6});/g),
      ([, each, value]) => [each ?? "", value ?? ""],
    ),
  );
  const paper = measureLight(colours.get("paper") ?? "");
  const ratios = [...Array(18).keys(), "-others"].map((each) => {
    const own = measureLight(colours.get(`c${each}`) ?? "");
    return [each, (Math.max(own, paper) + 0.05) / (Math.min(own, paper) + 0.05)] as const;
  });
  expect(ratios.filter(([, ratio]) => !(ratio >= 3))).toEqual([]);
});
