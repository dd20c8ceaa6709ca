// The thread that owns the index keeps it up to date, and answers the page.

import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { openIndex } from "../../src/billing/index/open.ts";
import { sumLedger } from "../../src/billing/report/report.ts";
import { getErrorMessage } from "../../src/lib/errors.ts";
import { formatUsd } from "../../src/lib/money.ts";
import { Refusal } from "../../src/lib/refusal.ts";
import { isWorthFollowing, Reports } from "../../src/web/reports/reports.ts";
import { makeLedger } from "../billing/ledger/ledger-make.ts";
import { damageIndex, makeIndex, readIndex } from "../billing/ledger/ledger-samples.ts";
import { makeTempFolder, type TempFolder } from "../harness/temp.ts";

setDefaultTimeout(120_000);
const STEP_MS = 60_000;

let folder: TempFolder;
let path: string;
let reports: Reports;
const notes: string[] = [];
beforeEach(() => {
  folder = makeTempFolder();
  path = folder.join("ledger.jsonl");
  notes.length = 0;
  reports = new Reports(
    () => ({ ledgerPath: path, timezone: "UTC" }),
    (text) => notes.push(text),
  );
});
afterEach(() => {
  reports.close();
  folder.remove();
});

const fill = (lines: number) =>
  makeLedger(path, lines, { start: Date.now() - lines * STEP_MS, stepMs: STEP_MS });

test("the overview has the sums of every line, and the index is on the disk for the next command", async () => {
  fill(3000);
  await reports.ask("follow", null);
  const overview = await reports.ask("overview", { period: "30d", by: "model", show: "cost", only: {} });
  const { total } = sumLedger(readIndex(path), { by: ["model"], since: null, until: null });
  expect([overview.read, overview.total.requests, overview.total.charge_usd]).toEqual([
    1,
    3000,
    formatUsd(total.charge),
  ]);
  expect(statSync(`${path}.index`).mode & 0o777).toBe(0o600);
  const complaints: string[] = [];
  using index = openIndex(path, (text) => complaints.push(text));
  expect([index.parts.length, index.progress.lines, complaints, notes]).toEqual([1, 3000, [], []]);
});

test("lines that are written while the thread runs are in its next answer", async () => {
  fill(200);
  const lines = readFileSync(path, "utf8").split("\n");
  writeFileSync(path, `${lines.slice(0, 120).join("\n")}\n`);
  const count = async () =>
    (await reports.ask("overview", { period: "30d", by: "key", show: "cost", only: {} })).total.requests;
  expect(await count()).toBe(120);
  writeFileSync(path, `${lines.slice(120, 200).join("\n")}\n`, { flag: "a" });
  expect(await count()).toBe(200);
});

test("an index with a damaged page is made again after the question that found it", async () => {
  fill(200);
  makeIndex(path);
  damageIndex(path);
  const count = async () =>
    (await reports.ask("overview", { period: "30d", by: "key", show: "cost", only: {} })).total.requests;
  expect(await count().catch(getErrorMessage)).toContain("is damaged");
  expect(await count()).toBe(200);
});

test("a question that the gateway's end cuts short is refused in words", async () => {
  fill(2000);
  const answer = reports.ask("follow", null);
  reports.close();
  // Anything else would be reported as a fault of the gateway.
  expect(await answer.catch((error: unknown) => error)).toBeInstanceOf(Refusal);
});

test("a ledger that cannot be read is an error in words, and is read as soon as it can be", async () => {
  mkdirSync(path);
  expect(
    await reports.ask("overview", { period: "30d", by: "model", show: "cost", only: {} }).catch(String),
  ).toContain("not a regular file");
  rmdirSync(path);
  fill(100);
  expect(
    (await reports.ask("overview", { period: "30d", by: "model", show: "cost", only: {} })).total.requests,
  ).toBe(100);
});

test("an index that cannot be written is kept in memory, and the log says so once", async () => {
  fill(100);
  mkdirSync(`${path}.index`);
  const query = { period: "30d", by: "model", show: "cost", only: {} } as const;
  let overview = await reports.ask("overview", query);
  while (overview.read < 1 || overview.total.requests === 0) overview = await reports.ask("overview", query);
  expect(overview.total.requests).toBe(100);
  await reports.ask("follow", null);
  expect(notes).toHaveLength(1);
  expect(notes[0]).toContain("is not a regular file");
  expect(existsSync(`${path}.index-wal`)).toBe(false);
});

test.each([
  ["a few lines wait for a question", 0, 900_000, 900_000, false],
  ["many lines are read at a lull", 5_000_000, 5_000_000, 3_000_000, true],
  ["many lines are read beside a few requests", 5_000_000, 5_200_000, 3_000_000, true],
  ["many lines wait while more of them come fast", 5_000_000, 5_300_000, 3_000_000, false],
  ["a file that was rotated is read", 200, 300, 3_000_000, true],
])("the index follows its ledger: %s", (_, before, seen, followed, expected) => {
  expect(isWorthFollowing({ before, seen, followed })).toBe(expected);
});
