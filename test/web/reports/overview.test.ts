// The page's overview has the sums of `gateway usage`, for each period and each way to stack them.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { encodeLine, GENESIS, hashLine } from "../../../src/billing/ledger/line.ts";
import type { LedgerIndex } from "../../../src/billing/index/ledger-index.ts";
import { sumLedger } from "../../../src/billing/report/report.ts";
import { addUsd, formatUsd, parseUsd, ZERO_USD } from "../../../src/lib/money.ts";
import { createZone } from "../../../src/lib/text/zone.ts";
import { STACKS } from "../../../src/web/api.ts";
import { sumOverview } from "../../../src/web/reports/overview.ts";
import { draftOf, readIndex } from "../../billing/ledger/ledger-samples.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";

const ZONE = createZone("Asia/Kolkata");
/** 17:30 there. */
const NOW = Date.parse("2026-11-22T12:00:00Z");
const CLOCK = { zone: ZONE, now: NOW };
const HOUR_MS = 3_600_000;
/** The local days on which the periods begin, at 18:30 UTC of the day before. */
const STARTS = { today: "2026-11-21", "7d": "2026-11-15", "30d": "2026-10-23" };
const PERIODS = ["today", "7d", "30d"] as const;
const ALL = { only: {}, show: "cost" } as const;
const startOf = (period: keyof typeof STARTS): number => Date.parse(`${STARTS[period]}T18:30:00Z`);

let folder: TempFolder;
let path: string;
let index: LedgerIndex;
beforeEach(() => {
  folder = makeTempFolder();
  path = folder.join("ledger.jsonl");
});
afterEach(() => {
  index[Symbol.dispose]();
  folder.remove();
});

interface Sample {
  readonly at: number;
  readonly model?: string;
  readonly basis?: "unpriced" | "unknown";
  readonly paid_by?: "plan";
}

function read(samples: readonly Sample[]): void {
  let prev = GENESIS;
  const lines = samples
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, model = "m", basis, paid_by }, index) => {
      const time = new Date(at).toISOString();
      const unpriced = basis === undefined ? {} : { basis, official_usd: null, charge_usd: null };
      const more = paid_by === undefined ? unpriced : { paid_by, official_usd: "2.5", charge_usd: "0" };
      const line = encodeLine(
        draftOf(`req_${index}`, { time, model, key: `key-${index % 3}`, ...more }),
        prev,
      );
      prev = hashLine(line);
      return `${line}\n`;
    });
  writeFileSync(path, lines.join(""));
  index = readIndex(path);
}

const sum = (amounts: readonly string[]): string =>
  formatUsd(amounts.reduce((total, amount) => addUsd(total, parseUsd(amount)), ZERO_USD));

describe("of requests at the edges of each period", () => {
  beforeEach(() => {
    const edges = PERIODS.flatMap((period) => [
      startOf(period) - 1,
      startOf(period),
      startOf(period) + HOUR_MS,
    ]);
    read([...edges, NOW].map((at) => ({ at })));
  });

  test.each(PERIODS)("%s begins at local midnight, and all sums agree with usage", (period) => {
    const since = new Date(startOf(period)).toISOString();
    const usage = sumLedger(index, { by: ["model"], since, until: null, zone: ZONE }).total;
    for (const by of STACKS) {
      const overview = sumOverview(index, { ...ALL, period, by }, CLOCK);
      expect(overview.total).toMatchObject({ requests: usage.requests, charge_usd: formatUsd(usage.charge) });
      expect(overview.sums.charge_usd).toBe(formatUsd(usage.charge));
      expect(sum(overview.series.map((each) => each.total))).toBe(formatUsd(usage.charge));
      expect(sum(overview.series.flatMap((each) => each.values.map((value) => value ?? "0")))).toBe(
        formatUsd(usage.charge),
      );
    }
  });

  test("its spans are hours of today, or days", () => {
    const spansOf = (period: (typeof PERIODS)[number]) =>
      sumOverview(index, { ...ALL, period, by: "model" }, CLOCK).spans;
    expect([spansOf("today").length, spansOf("today")[0], spansOf("today").at(-1)]).toEqual([
      24,
      "2026-11-22 00:00",
      "2026-11-22 23:00",
    ]);
    expect([spansOf("7d").length, spansOf("7d")[0], spansOf("7d").at(-1)]).toEqual([
      7,
      "2026-11-16",
      "2026-11-22",
    ]);
    expect([spansOf("30d").length, spansOf("30d")[0]]).toEqual([30, "2026-10-24"]);
  });
});

test("what a plan paid is beside what was charged, and not in it", () => {
  read([{ at: NOW }, { at: NOW, paid_by: "plan" }, { at: NOW, paid_by: "plan" }]);
  const { total, sums } = sumOverview(index, { ...ALL, period: "today", by: "model" }, CLOCK);
  expect([total.paid_by_plan_usd, sums.requests]).toEqual(["5", 3]);
  expect(total.charge_usd).toBe(sums.charge_usd);
  expect(Number(total.charge_usd)).toBeLessThan(1);
});

test("names that are too many are counted together, with their requests and charges", () => {
  // Model k has k requests.
  read(
    Array.from({ length: 9 }, (_, index) => index + 1).flatMap((count) =>
      Array.from({ length: count }, () => ({ at: NOW, model: `model-${count}` })),
    ),
  );
  const query = { ...ALL, period: "today", by: "model" } as const;
  const requests = sumOverview(index, { ...query, show: "requests" }, CLOCK).series;
  expect(requests.map(({ name, total: count }) => [name, count])).toEqual([
    ["model-9", "9"],
    ["model-8", "8"],
    ["model-7", "7"],
    ["model-6", "6"],
    ["model-5", "5"],
    ["model-4", "4"],
    ["others", "6"],
  ]);
  const { series, total } = sumOverview(index, query, CLOCK);
  expect(sum(series.map((each) => each.total))).toBe(total.charge_usd);
  expect(sum(series.at(-1)?.values.map((value) => value ?? "0") ?? [])).toBe(series.at(-1)?.total ?? "");
});

test("a model of which no request has a price is not one that costs nothing", () => {
  const unpriced = { at: NOW, basis: "unpriced" } as const;
  const unknown = { at: NOW, basis: "unknown" } as const;
  read([
    { ...unpriced, model: "house" },
    { ...unknown, model: "house" },
    { at: NOW, model: "half" },
    { ...unpriced, model: "half" },
    { ...unknown, model: "lost" },
  ]);
  const { series } = sumOverview(index, { ...ALL, period: "today", by: "model" }, CLOCK);
  expect(series.map((each) => [each.name, each.unpriced])).toEqual([
    ["half", false],
    ["house", true],
    ["lost", false],
  ]);
});
