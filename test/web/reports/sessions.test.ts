// The list of sessions: its order, also where it is cut.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { sumSessions } from "../../../src/billing/report/sessions.ts";
import { parseUsd } from "../../../src/lib/money.ts";
import { createZone } from "../../../src/lib/text/zone.ts";
import { type Order, ROWS } from "../../../src/web/api.ts";
import { listSessions } from "../../../src/web/reports/sessions.ts";
import { readIndex } from "../../billing/ledger/ledger-samples.ts";
import { makeLedger } from "../../billing/ledger/ledger-make.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";

const DAYS_MS = 20 * 86_400_000;
const LINES = 6000;
const now = Date.now();

let folder: TempFolder;
beforeAll(() => {
  folder = makeTempFolder();
  makeLedger(folder.join("ledger.jsonl"), LINES, { start: now - DAYS_MS, stepMs: DAYS_MS / LINES });
});
afterAll(() => folder.remove());

const list = (order: Order) =>
  listSessions(
    readIndex(folder.join("ledger.jsonl")),
    { period: "30d", order, most: ROWS, only: {} },
    { zone: createZone("UTC"), now },
  );

test("the newest ones, or the most expensive ones, are first, and the others are cut off", () => {
  const [newest, expensive] = [list("newest"), list("charge")];
  expect([newest.sessions.length, expensive.sessions.length]).toEqual([ROWS, ROWS]);
  expect([newest.isMore, expensive.isMore]).toEqual([true, true]);
  const whole = sumSessions(readIndex(folder.join("ledger.jsonl")), { since: null, until: null }).rows;
  expect(newest.sessions.map(({ session }) => session)).toEqual(
    whole.slice(0, ROWS).map(({ names }) => names[0] ?? ""),
  );
  const ends = newest.sessions.map(({ until }) => until);
  expect(ends).toEqual(ends.toSorted().toReversed());
  const charges = expensive.sessions.map(({ charge_usd: charge }) => parseUsd(charge));
  expect(charges.every((charge, index) => index === 0 || (charges[index - 1] ?? 0n) >= charge)).toBe(true);
  // No session that is only in the other list has cost more than the last one here.
  const least = charges.at(-1) ?? 0n;
  const names = new Set(expensive.sessions.map(({ session }) => session));
  const left = newest.sessions.filter(({ session }) => !names.has(session));
  expect(left.length).toBeGreaterThan(0);
  expect(left.every(({ charge_usd: charge }) => parseUsd(charge) <= least)).toBe(true);
});
