// The program prints of ledgers of 0.1.0, 0.1.1 and 0.2.0 what 0.2.0 printed, but for the differences in wanted.ts.

import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../cli/driving.ts";
import { Comparison } from "./compare.ts";
import { listStored } from "./ledgers.ts";
import { printAll, readSnapshot } from "./snapshots.ts";
import { Verdict } from "./wanted.ts";

describe("commands print of earlier versions' ledgers what 0.2.0 printed, except for wanted differences", () => {
  test.each([...listStored()])("each report of the ledger %s prints what 0.2.0 printed", async (name) => {
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
