// The files of an open ledger: none is closed while it is brought to the disk, and none stays open that is not needed.

import { describe, expect, test } from "bun:test";
import { fstatSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { AppendFile } from "../../../src/billing/ledger/append-file.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { bill, filesOf, newLedgerPath, optionsFor } from "./ledger-samples.ts";

const MAX_DESCRIPTORS = 4096;

/** How many descriptors of this process belong to the file. */
function countOpen(path: string): number {
  const { dev, ino } = statSync(path);
  let count = 0;
  for (let fd = 0; fd < MAX_DESCRIPTORS; fd += 1) {
    try {
      const stats = fstatSync(fd);
      if (stats.dev === dev && stats.ino === ino) count += 1;
    } catch {
      // It is not open.
    }
  }
  return count;
}

describe("a file of the ledger", () => {
  test("that is closed while it is brought to the disk keeps its descriptor until that is done", async () => {
    const path = newLedgerPath();
    const file = AppendFile.open(path, true);
    file.write(["a line"]);
    const syncs = [file.sync(), file.sync()];
    file.close();
    expect(countOpen(path)).toBe(1);
    await Promise.all(syncs);
    expect(countOpen(path)).toBe(0);
  });

  test("that was rotated is closed", async () => {
    const path = newLedgerPath();
    const ledger = openLedger(optionsFor(path, { rotate: { bytes: 2000, monthly: false } }));
    for (let number = 0; number < 12; number += 1) await bill(ledger, `req_${number}`);
    await new Promise<void>((resolve) => setImmediate(resolve));
    const rotated = filesOf(path).filter((file) => file !== path);
    expect(rotated.length).toBeGreaterThan(2);
    expect(rotated.map(countOpen)).toEqual(rotated.map(() => 0));
    expect(countOpen(path)).toBe(1);
    await ledger.close();
    expect(countOpen(path)).toBe(0);
  });
});

test("bytes that may not be on the disk are written there once more, and nothing is added to the file", () => {
  const path = newLedgerPath();
  const long = "x".repeat(9000);
  for (const syncedBytes of [null, 4000]) {
    writeFileSync(path, `${long}\n`);
    utimesSync(path, 1, 1);
    const file = AppendFile.open(path, true, syncedBytes);
    file.syncNow();
    expect(statSync(path).mtimeMs === 1000).toBe(syncedBytes === null);
    file.write(["a line"]);
    file.syncNow();
    file.close();
    expect(readFileSync(path, "utf8")).toBe(`${long}\na line\n`);
  }
});

test("with `sync: always`, the lines are brought to the disk, and not only the journal", async () => {
  const path = newLedgerPath();
  const synced = new Set<number>();
  const syncFile = async (file: AppendFile): Promise<void> => void synced.add(file.size);
  const ledger = openLedger(optionsFor(path, { sync: "always", syncFile }));
  await bill(ledger, "req_1");
  await ledger.close();
  expect(synced).toContain(statSync(path).size);
});
