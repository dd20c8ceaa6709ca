// The colours of names, in a browser's storage that is only a map.

import { afterAll, beforeEach, expect, test } from "bun:test";
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
