// How much code one request runs. Cold code is what a lone request pays for (docs/decisions/0008-cold-requests.md), so the
// count must not grow unseen. It is exact: the lines that each of ten more requests runs. What a timer runs beside them does not count.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeTempFolder } from "../../harness/temp.ts";

/** The lines of src that a short JSON request runs. What raises this says why in its commit. */
const MAX_LINES = 2850;

const PROGRAM = join(import.meta.dir, "request-path-requests.ts");
const ON_PATH = /src[\\/](?:lib|billing|dialects|gateway)[\\/]/;

/** How often each line has run, by file and number. */
function countRuns(requests: number): Map<string, number> {
  using folder = makeTempFolder();
  const flags = [
    "--timeout=600000",
    "--coverage",
    "--coverage-reporter=lcov",
    `--coverage-dir=${folder.path}`,
  ];
  const command = [process.execPath, "test", ...flags, PROGRAM];
  const env = { ...process.env, REQUESTS: String(requests) };
  const ran = Bun.spawnSync(command, { env, cwd: join(import.meta.dir, "../../..") });
  expect([ran.exitCode, ran.stderr.toString().includes("1 pass")]).toEqual([0, true]);
  const runs = new Map<string, number>();
  let file = "";
  for (const line of readFileSync(folder.join("lcov.info"), "utf8").split("\n")) {
    if (line.startsWith("SF:")) file = line.slice(3);
    const [, number, count] = /^DA:(\d+),(\d+)/.exec(line) ?? [];
    if (number !== undefined && ON_PATH.test(file)) runs.set(`${file}:${number}`, Number(count));
  }
  return runs;
}

test("a request runs no more lines of code than it is allowed", () => {
  const before = countRuns(2);
  const lines = [...countRuns(12)].filter(([line, count]) => count >= (before.get(line) ?? 0) + 10);
  expect(lines.length).toBeGreaterThan(1000);
  expect(lines.length).toBeLessThanOrEqual(MAX_LINES);
});
