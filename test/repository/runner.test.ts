// Tests `npm test` itself.

import { expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

test("npm test fails if a test ends the process before the others have run", () => {
  const command = [process.execPath, join(ROOT, ".ci/test.ts"), "--fast", "./test/harness/ends.ts"];
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: ROOT, stderr: "pipe" });
  expect(stderr.toString()).toContain("before the end");
  expect(stderr.toString()).toContain("The tests ended without totals");
  expect(exitCode).toBe(1);
});
