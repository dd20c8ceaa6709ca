// What caches with another lifetime would have cost, counted by hand.

import { describe, expect, test } from "bun:test";

import { encodeLine, GENESIS, type LineDraft } from "../../../src/billing/ledger/line.ts";
import { readRow } from "../../../src/billing/ledger/row.ts";
import { ANY_SELLER, loadPriceBook } from "../../../src/billing/prices.ts";
import { compareLifetimes, findBetter } from "../../../src/billing/report/lifetimes.ts";
import { formatUsd } from "../../../src/lib/money.ts";
import { draftOf } from "../ledger/ledger-samples.ts";

const PRICES = {
  book: loadPriceBook(),
  overrides: new Map(),
  sellerOf: () => ANY_SELLER,
  readCalls: () => [],
};
const START = Date.parse("2026-11-20T10:00:00.000Z");

/** $3 a million for input, 0.30 for a read, 3.75 and 6 for writes. */
const MODEL = "claude-sonnet-4-5";

let made = 0;
const turn = (minute: number, usage: Record<string, number>, more: Partial<LineDraft> = {}): LineDraft => {
  const time = new Date(START + minute * 60_000).toISOString();
  const client = { tool: "claude-code", session: "s1", label: "project" };
  return draftOf(`req_${(made += 1)}`, { model: MODEL, upstream_model: MODEL, time, usage, client, ...more });
};

const lapse = (missed: number): Partial<LineDraft> => ({
  cache: { missed, usd: "0", because: "lifetime_passed" },
});

function compare(drafts: readonly LineDraft[]) {
  const rows = drafts.flatMap((draft) => readRow(encodeLine(draft, GENESIS)) ?? []);
  return compareLifetimes(rows, PRICES);
}

/** The amounts of the only row. */
function amounts(drafts: readonly LineDraft[]): Record<string, unknown> {
  const [row, ...others] = compare(drafts);
  expect(others).toEqual([]);
  const { requests, asItWas, five_minutes, one_hour } = row?.totals ?? expect.unreachable();
  const [as_it_was, short, long] = [asItWas, five_minutes, one_hour].map(formatUsd);
  return { requests, as_it_was, five_minutes: short, one_hour: long };
}

/** A prompt of 100,000 tokens, a turn after two minutes, and one after ten, when five minutes have passed. */
const PAUSE = [
  turn(0, { cache_write_5m: 100_000 }),
  turn(2, { cache_read: 100_000, cache_write_5m: 1000 }),
  turn(12, { cache_write_5m: 102_000 }, lapse(101_000)),
];

describe("compareLifetimes", () => {
  test("counts what a lapse costs, and what an hour costs", () => {
    const [row] = compare(PAUSE);
    expect(row).toMatchObject({ tool: "claude-code", label: "project", had: "five_minutes" });
    expect(amounts(PAUSE)).toEqual({
      requests: 3,
      // 0.375 + 0.03 + 0.00375 + 0.3825
      as_it_was: "0.79125",
      five_minutes: "0.79125",
      // 0.6 + 0.03 + 0.006 + 0.0303 + 0.006
      one_hour: "0.6723",
    });
    expect(findBetter(row ?? expect.unreachable())).toMatchObject({
      name: "one_hour",
      saved: 118_950_000_000n,
    });
  });

  test("finds that five minutes were enough where every pause was short", () => {
    const rows = compare([
      turn(0, { cache_write_1h: 100_000 }),
      turn(2, { cache_read: 100_000, cache_write_1h: 1000 }),
    ]);
    // 0.6 + 0.03 + 0.006 against 0.375 + 0.03 + 0.00375
    expect(findBetter(rows[0] ?? expect.unreachable())).toMatchObject({
      name: "five_minutes",
      saved: 227_250_000_000n,
    });
  });

  test("writes the prompt again where an hour's cache survived a pause that five minutes would not", () => {
    const turns = [
      turn(0, { cache_write_1h: 100_000 }),
      turn(20, { cache_read: 100_000, cache_write_1h: 1000 }),
    ];
    // 0.375 + 101,000 × 3.75
    expect(amounts(turns)).toMatchObject({ as_it_was: "0.636", one_hour: "0.636", five_minutes: "0.75375" });
  });

  test("leaves what another change of the prompt cost as it was", () => {
    const changed = { cache: { missed: 90_000, usd: "0", because: "tools_changed" } } as const;
    const { as_it_was, five_minutes, one_hour } = amounts([
      turn(0, { cache_write_5m: 100_000 }),
      turn(1, { cache_read: 10_000, cache_write_5m: 91_000 }, changed),
    ]);
    expect(five_minutes).toBe(as_it_was);
    // 191,000 × 6 + 10,000 × 0.3
    expect(one_hour).toBe("1.149");
  });

  test("keeps agents and sessions apart", () => {
    const other = { client: { tool: "claude-code", session: "s2", label: "project" } };
    const agent = { client: { tool: "claude-code", session: "s1", agent: "a1", label: "project" } };
    const { as_it_was, five_minutes } = amounts([
      turn(0, { cache_write_5m: 1000 }),
      turn(10, { cache_write_5m: 1000 }, other),
      turn(20, { cache_write_5m: 1000 }, agent),
    ]);
    expect(five_minutes).toBe(as_it_was);
  });

  test("leaves out what has no price, what a plan paid, and other providers' caches", () => {
    const rows = compare([
      turn(0, { cache_write_5m: 1000 }, { model: "no-such-model", upstream_model: "no-such-model" }),
      turn(0, { cache_write_5m: 1000 }, { paid_by: "plan", multiplier: "0", limit_usd: "1" }),
      turn(0, { cache_read: 1000, cache_write: 500 }),
    ]);
    expect(rows).toEqual([]);
  });
});
