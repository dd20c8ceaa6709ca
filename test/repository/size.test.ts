// How large the project may be. What is added replaces something, or the commit that raises a budget says why not.

import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Lines of text. Prices are data, and do not count. */
const BUDGETS = { src: 82_483, test: 97_000 };

function countLines(folder: string): number {
  const files = [...new Glob("**/*").scanSync({ cwd: join(ROOT, folder), dot: true })].filter(
    (file) => !/prices[\\/](?:book\.jsonl|overlay\.json)$/.test(file),
  );
  return files.reduce((sum, file) => {
    const text = readFileSync(join(ROOT, folder, file), "utf8");
    return text.includes("\0") ? sum : sum + text.split("\n").length - 1;
  }, 0);
}

test.each(Object.entries(BUDGETS))("%s has no more lines than its budget allows: %d", (folder, budget) => {
  const lines = countLines(folder);
  expect(lines).toBeGreaterThan(budget / 2);
  expect(lines).toBeLessThanOrEqual(budget);
});
