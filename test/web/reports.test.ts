// The thread that keeps the overview's sums saves them also while no page is open.

import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, rmdirSync, statSync } from "node:fs";
import { sumLedger } from "../../src/billing/report/report.ts";
import { formatUsd } from "../../src/lib/money.ts";
import { Refusal } from "../../src/lib/refusal.ts";
import { createReports, type Reports } from "../../src/web/reports/reports.ts";
import { makeLedger } from "../billing/ledger/ledger-make.ts";
import { makeTempFolder, type TempFolder } from "../harness/temp.ts";

setDefaultTimeout(120_000);
const LINES = 12_000;
const STEP_MS = 60_000;

let folder: TempFolder;
let path: string;
let saved: string;
let reports: Reports;
beforeEach(() => {
  folder = makeTempFolder();
  path = folder.join("ledger.jsonl");
  saved = `${path}.hours`;
  reports = createReports(() => ({ ledgerPath: path, timezone: "UTC" }));
});
afterEach(() => {
  reports.close();
  folder.remove();
});

const fill = (lines = LINES) =>
  makeLedger(path, lines, { start: Date.now() - lines * STEP_MS, stepMs: STEP_MS });

test("a long ledger is read in the background, and its sums are saved", async () => {
  fill();
  await reports.update();
  const before = statSync(saved).ino;
  // Other users of this machine read no names and no amounts.
  expect(statSync(saved).mode & 0o777).toBe(0o600);
  const overview = await reports.overview({ period: "30d", by: "model" });
  const { total } = sumLedger(path, { by: ["model"], since: null, until: null });
  expect([overview.read, overview.total.requests, overview.total.charge_usd]).toEqual([
    1,
    LINES,
    formatUsd(total.charge),
  ]);
  await reports.update();
  expect(statSync(saved).ino).toBe(before);
});

test("reports beside an open stream have all sums", async () => {
  fill(1000);
  const stream = { id: "req_1", key: "k", client: {}, model: "m", channel: "c", since: 0, tokens: () => 0 };
  reports.observer.streamOpened(stream);
  const query = { period: "30d", by: "model" } as const;
  let overview = await reports.overview(query);
  while (overview.read < 1) overview = await reports.overview(query);
  expect(overview.total.requests).toBe(1000);
  const beside = await reports.sessions({ period: "30d", order: "newest" });
  reports.observer.streamClosed(stream.id);
  expect(await reports.sessions({ period: "30d", order: "newest" })).toEqual(beside);
});

test("a short ledger is not: the page reads it when it is opened", async () => {
  fill(100);
  await reports.update();
  expect(existsSync(saved)).toBe(false);
});

test("an update that is cut short by the gateway's end leaves nothing behind", async () => {
  fill();
  const update = reports.update();
  reports.close();
  // Anything else would be reported as a fault of the gateway.
  expect(await update.catch((error: unknown) => error)).toBeInstanceOf(Refusal);
  expect(existsSync(saved)).toBe(false);
});

test("a ledger that cannot be read is an error in words, and is read as soon as it can be", async () => {
  mkdirSync(path);
  expect(await reports.overview({ period: "30d", by: "model" }).catch(String)).toContain("no regular file");
  rmdirSync(path);
  fill(100);
  expect((await reports.overview({ period: "30d", by: "model" })).total.requests).toBe(100);
});
