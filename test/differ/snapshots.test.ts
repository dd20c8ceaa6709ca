// The program prints of ledgers of 0.1.0, 0.1.1 and 0.2.0 what 0.2.0 printed, but for the differences in wanted.ts.

import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { makeTempFolder } from "../harness/temp.ts";
import { PROGRAM } from "../harness/program.ts";
import { Comparison } from "./compare.ts";
import { listStored } from "./ledgers.ts";
import { printAll, readSnapshot } from "./snapshots.ts";
import { settle } from "./wanted.ts";

describe("ledgers of earlier versions", () => {
  test.each([...listStored()])("each report of the ledger %s is the one of 0.2.0", async (name) => {
    const folder = makeTempFolder();
    const printed = await printAll(PROGRAM, name, folder.join("."));
    const comparison = new Comparison(new Map(), new Map());
    const snapshot = readSnapshot(name);
    expect([...printed.keys()]).toEqual([...snapshot.keys()]);
    for (const [command, { status, document }] of snapshot) {
      const now = printed.get(command);
      comparison.text(`ledgers/${name}/${command}/status`, String(status), String(now?.status));
      comparison.json(`ledgers/${name}/${command}`, document, now?.document);
    }
    const { unexpected, report } = settle(comparison.differences, false);
    expect(unexpected, report).toBe(0);
    rmSync(folder.join("."), { recursive: true });
  });
});
