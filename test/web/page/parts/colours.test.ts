// The colours of names.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { OTHERS } from "../../../../src/web/api.ts";
import { colourNames } from "../../../../src/web/page/parts/colours.ts";

test("names that are shown together have colours of their own, a name keeps its colour, and small names are grey", () => {
  const names = Array.from({ length: 10 }, (_, index) => `model-${index}`);
  expect(new Set(colourNames(names)).size).toBe(10);
  expect(colourNames(["model-3", "other"]).slice(0, 1)).toEqual([...colourNames(["model-3"])]);
  expect(colourNames([OTHERS])).toEqual(["var(--c-others)"]);
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
  const ratios = [...Array(10).keys(), "-others"].map((each) => {
    const own = measureLight(colours.get(`c${each}`) ?? "");
    return [each, (Math.max(own, paper) + 0.05) / (Math.min(own, paper) + 0.05)] as const;
  });
  expect(ratios.filter(([, ratio]) => !(ratio >= 3))).toEqual([]);
});
