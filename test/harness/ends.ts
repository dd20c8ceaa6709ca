// A test file that ends its process with 0, as a command that calls `process.exit` would. runner.test.ts runs it.

import { test } from "bun:test";

test("before the end", () => {});
test("the end", () => process.exit(0));
test("never runs", () => {
  throw new Error("it ran");
});
