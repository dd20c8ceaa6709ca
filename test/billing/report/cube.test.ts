// The sums of the console's overview are those of `gateway usage`, however the ledger is read: backwards in parts, while
// it grows, and after a rotation.

import { afterEach, beforeEach, expect, test } from "bun:test";
import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { LedgerCube } from "../../../src/billing/report/cube.ts";
import { addTotals, openTotals, sumLedger, type Totals } from "../../../src/billing/report/report.ts";
import { addUsd, formatUsd, type Usd, ZERO_USD } from "../../../src/lib/money.ts";
import { createZone } from "../../../src/lib/text/zone.ts";
import { makeLedger } from "../ledger/ledger-make.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";

const NOW = Date.parse("2026-11-22T12:00:00Z");
const DAY_MS = 86_400_000;
const LINES = 12_000;
const ZONE = createZone("Asia/Kolkata");

let folder: TempFolder;
let path: string;
beforeEach(() => {
  folder = makeTempFolder();
  path = folder.join("ledger.jsonl");
});
afterEach(() => folder.remove());

function fill(days: number): void {
  makeLedger(path, LINES, { start: NOW - days * DAY_MS, stepMs: (days * DAY_MS) / LINES });
}

const openCube = () => new LedgerCube(path, ZONE, () => NOW);

/** Charges by name, of a whole cube. */
function sumBy(
  cube: LedgerCube,
  dimension: "model" | "tool" | "label" | "key" | "group" | "channel",
): object {
  const sums = new Map<string, { charge: Usd; requests: number }>();
  for (const cell of cube.cells("")) {
    for (const [name, { charge, requests }] of cell.by[dimension]) {
      const known = sums.get(name) ?? { charge: ZERO_USD, requests: 0 };
      sums.set(name, { charge: addUsd(known.charge, charge), requests: known.requests + requests });
    }
  }
  return Object.fromEntries(
    [...sums].map(([name, { charge, requests }]) => [name, `${formatUsd(charge)} ${requests}`]),
  );
}

function total(cube: LedgerCube): Totals {
  const sum = openTotals();
  for (const { totals } of cube.cells("")) addTotals(sum, totals);
  return sum;
}

function listCells(cube: LedgerCube) {
  return [...cube.cells("")]
    .map(({ name, totals }) => [name, totals.requests] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

const ALL = { by: ["model"], since: null, until: null } as const;

test.each(["model", "tool", "label", "key", "group", "channel"] as const)(
  "sums by %s are those of usage",
  (by) => {
    fill(20);
    const cube = openCube();
    cube.advance(60_000);
    const usage = sumLedger(path, { ...ALL, by: [by], zone: ZONE }).rows;
    const wanted = usage.map(({ names, totals }) => [
      names[0] ?? "",
      `${formatUsd(totals.charge)} ${totals.requests}`,
    ]);
    expect(sumBy(cube, by)).toEqual(Object.fromEntries(wanted));
    expect(total(cube).usage).toEqual(sumLedger(path, ALL).total.usage);
    expect(cube.read).toBe(1);
    cube.close();
  },
);

test("hours of today and yesterday, and days before them, are those of the time zone", () => {
  fill(4);
  const cube = openCube();
  cube.advance(60_000);
  const list = (by: "hour" | "day", isWanted: (name: string) => boolean) =>
    sumLedger(path, { ...ALL, by: [by], zone: ZONE }).rows.flatMap(({ names, totals }) =>
      isWanted(names[0] ?? "") ? [[names[0] ?? "", totals.requests] as const] : [],
    );
  const wanted = [
    ...list("day", (name) => name < "2026-11-21"),
    ...list("hour", (name) => name >= "2026-11-21"),
  ];
  expect(wanted.length).toBeGreaterThan(24);
  expect(listCells(cube)).toEqual(wanted);
  cube.close();
});

test("the newest requests are there after the first part, and every part adds to it", () => {
  fill(20);
  const cube = openCube();
  cube.advance(0);
  const parts = [total(cube).requests];
  expect(cube.read).toBeLessThan(1);
  const newest = [...cube.cells("")]
    .map(({ name }) => name)
    .toSorted()
    .at(-1);
  expect(newest?.slice(0, 10)).toBe("2026-11-22");
  while (cube.read < 1) {
    cube.advance(1);
    parts.push(total(cube).requests);
  }
  expect(parts.length).toBeGreaterThan(2);
  expect(parts).toEqual(parts.toSorted((a, b) => a - b));
  expect(parts.at(-1)).toBe(LINES);
  cube.close();
});

test("what is older than thirty days is not read", () => {
  fill(300);
  const cube = openCube();
  cube.advance(60_000);
  expect(cube.read).toBe(1);
  expect(total(cube).requests).toBeLessThan(LINES);
  const since = new Date(NOW - 29 * DAY_MS).toISOString();
  const recent = sumLedger(path, { ...ALL, since }).total;
  const [from = ""] = [...cube.cells("2026-10-24")].map(({ name }) => name).toSorted();
  expect(from.slice(0, 10)).toBe("2026-10-24");
  expect(total(cube).requests).toBeGreaterThanOrEqual(recent.requests);
  cube.close();
});

test("lines that are written later are added, a torn one when it is whole", () => {
  fill(5);
  const text = readFileSync(path, "utf8");
  const lines = text.trimEnd().split("\n");
  writeFileSync(path, `${lines.slice(0, 100).join("\n")}\n`);
  const cube = openCube();
  cube.advance(60_000);
  expect(total(cube).requests).toBe(100);
  const [next = "", after = ""] = lines.slice(100);
  appendFileSync(path, `${next}\n${after.slice(0, 50)}`);
  cube.advance(0);
  expect(total(cube).requests).toBe(101);
  appendFileSync(path, `${after.slice(50)}\n`);
  cube.advance(0);
  expect(total(cube).requests).toBe(102);
  cube.close();
});

test("a rotation loses nothing and counts nothing twice", () => {
  fill(5);
  const cube = openCube();
  cube.advance(60_000);
  const [first = ""] = readFileSync(path, "utf8").split("\n");
  renameSync(path, folder.join("ledger-2026-11.jsonl"));
  writeFileSync(path, `${first}\n`);
  cube.advance(60_000);
  expect(total(cube).requests).toBe(LINES + 1);
  cube.close();
});

test("a ledger that does not exist yet is empty until it does", () => {
  const cube = openCube();
  cube.advance(0);
  expect([cube.read, total(cube).requests]).toEqual([1, 0]);
  fill(1);
  cube.advance(60_000);
  expect(total(cube).requests).toBe(LINES);
  cube.close();
});
