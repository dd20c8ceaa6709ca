// Tests how large each folder of src is. CONTRIBUTING.md says when a number may change.

import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** The most lines of TypeScript that each folder may have, in hundreds. */
const MOST: Readonly<Record<string, number>> = {
  "src/lib": 47,
  "src/config": 29,
  "src/billing": 95,
  "src/dialects": 40,
  "src/bridges": 62,
  "src/recording": 5,
  "src/gateway": 95,
  "src/web": 52,
  "src/cli src/commands": 115,
  "src/demo": 6,
  src: 544,
  test: 622,
};

function countLines(folder: string): number {
  const files = [...new Glob("**/*.{ts,tsx}").scanSync({ cwd: join(ROOT, folder), dot: true })];
  expect([folder, files.length > 0]).toEqual([folder, true]);
  const texts = files.map((file) => readFileSync(join(ROOT, folder, file), "utf8"));
  return texts.reduce((sum, text) => sum + text.split("\n").length - 1, 0);
}

test.each(Object.entries(MOST))("%s has at most %d hundred lines", (folders, most) => {
  const lines = folders.split(" ").reduce((sum, folder) => sum + countLines(folder), 0);
  expect(Math.ceil(lines / 100)).toBeLessThanOrEqual(most);
});

test("each folder of src has a limit of lines", () => {
  const rooms = [...new Glob("*").scanSync({ cwd: join(ROOT, "src"), onlyFiles: false })]
    .filter((name) => !name.includes("."))
    .map((name) => `src/${name}`);
  const named = Object.keys(MOST).flatMap((folders) => folders.split(" "));
  expect(rooms.filter((room) => !named.includes(room))).toEqual([]);
});
