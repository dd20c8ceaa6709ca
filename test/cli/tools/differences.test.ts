import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DIFFERENCE_TABLE, formatDifferences } from "../../e2e/real-clis/compare.ts";
import { DIFFERENCES } from "../../e2e/real-clis/differences.ts";

test("docs/tools.md lists the differences that the comparison of the real tools allows", () => {
  const text = readFileSync(join(import.meta.dir, "../../../docs/tools.md"), "utf8");
  expect(DIFFERENCE_TABLE.exec(text)?.[0]).toBe(formatDifferences(DIFFERENCES));
});
