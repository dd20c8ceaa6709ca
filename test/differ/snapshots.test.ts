// For the stored ledgers, commands must print what 0.2.0 printed, except for the differences in wanted.ts.

import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../cli/driving.ts";
import { Comparison } from "./compare.ts";
import { listStored } from "./ledgers.ts";
import { printAll, readSnapshot } from "./snapshots.ts";
import { Verdict } from "./wanted.ts";

describe("for earlier ledgers, commands print what 0.2.0 printed, except for wanted differences", () => {
  test.each([...listStored()])("for the ledger %s, commands print what 0.2.0 printed", async (name) => {
    const folder = mkdtempSync(join(tmpdir(), "gateway-snapshots-"));
    const printed = await printAll((words, copy) => run({ folder: copy }, ...words), name, folder);
    const comparison = new Comparison(new Map(), new Map());
    const snapshot = readSnapshot(name);
    expect([...printed.keys()]).toEqual([...snapshot.keys()]);
    for (const [command, { status, document }] of snapshot) {
      const now = printed.get(command);
      comparison.text(`ledgers/${name}/${command}/status`, String(status), String(now?.status));
      comparison.json(`ledgers/${name}/${command}`, document, now?.document);
    }
    expect(new Verdict().add(comparison.differences)).toBe("");
    rmSync(folder, { recursive: true });
  });
});
