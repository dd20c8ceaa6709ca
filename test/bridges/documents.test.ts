// The tables in docs/bridges.md are those of the code.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fillTables } from "../../.ci/bridge-tables.ts";

test("docs/bridges.md has the tables that `npm run tables` writes from the code", () => {
  const document = readFileSync(new URL("../../docs/bridges.md", import.meta.url), "utf8");
  expect(document).toBe(fillTables(document));
});
