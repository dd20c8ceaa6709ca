// `usage --as`, `--without-cache` and `--tier` against fractions: an oracle that shares no code with the program.

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";

import { array, assert, constantFrom, integer, option, property, record } from "fast-check";

import {
  encodeCorrection,
  encodeLine,
  GENESIS,
  hashLine,
  type LineDraft,
} from "../../../src/billing/ledger/line.ts";
import type { Price, PriceBook, Rates, Seller } from "../../../src/billing/prices.ts";
import { dropCache } from "../../../src/billing/miss.ts";
import type { Change, CurrentPrices } from "../../../src/billing/report/line-charge.ts";
import { compareLedger, describeComparison, type WhatIfReport } from "../../../src/billing/report/what-if.ts";
import { readCalls } from "../../../src/dialects/meters/messages.ts";
import { draftOf, newLedgerPath } from "../ledger/ledger-samples.ts";

const RATES = { input: "3", cache_read: "0.3", cache_write_5m: "3.75", cache_write_1h: "6", output: "15" };
const LARGE = { input: "6", cache_read: "0.6", cache_write_5m: "7.5", cache_write_1h: "12", output: "22.5" };

/** Each has its own gaps: `small` knows no cache writes of an hour, and has a price for long prompts. */
const MODELS: Readonly<Record<string, Omit<Price, "source">>> = {
  large: {
    rates: { ...RATES, web_search_per_1k: "10" },
    tiers: [],
    factors: { "service_tier=flex": "0.5", "speed=fast": "2.5" },
  },
  small: {
    rates: { input: "0.07", cache_read: "0.007", cache_write_5m: "0.0875", output: "0.333" },
    tiers: [
      { over: 50_000, rates: { input: "0.14", cache_read: "0.014", cache_write_5m: "0.175", output: "0.5" } },
    ],
    factors: { "service_tier=flex": "0.5" },
  },
  whole: { rates: { ...LARGE, cache_write: "6", web_search_per_1k: "0" }, tiers: [], factors: {} },
};

const makeBook = (): PriceBook => {
  const models = new Map(
    Object.entries(MODELS).map(([id, price]) => [
      id,
      {
        provider: "anthropic",
        ids: [id],
        source: "test",
        context: null,
        periods: [
          {
            from: Number.NEGATIVE_INFINITY,
            until: Number.POSITIVE_INFINITY,
            hours: null,
            weekend: null,
            price,
          },
        ],
      },
    ]),
  );
  return {
    date: "test",
    label: "book test",
    providers: ["anthropic"],
    fallbacksOf: () => [],
    find: (provider, id) => (provider === "anthropic" ? (models.get(id) ?? null) : null),
    listModels: () => [...models.values()],
  };
};

const PRICES: CurrentPrices = {
  book: makeBook(),
  overrides: new Map(),
  sellerOf: () => undefined,
  readCalls,
};
const NO_CHANGE: Change = { model: null, recount: null, tier: null };
const ALL = { by: ["key"], since: null, until: null } as const;

function write(
  drafts: readonly LineDraft[],
  corrections: readonly Parameters<typeof encodeCorrection>[0][] = [],
) {
  const path = newLedgerPath();
  let prev = GENESIS;
  let bytes = "";
  const add = (text: string): void => {
    prev = hashLine(text);
    bytes += `${text}\n`;
  };
  for (const draft of drafts) add(encodeLine(draft, prev));
  for (const draft of corrections) add(encodeCorrection(draft, prev));
  writeFileSync(path, bytes);
  return path;
}

const compare = (path: string, change: Partial<Change>, prices: Partial<CurrentPrices> = {}): WhatIfReport =>
  compareLedger(path, ALL, { ...PRICES, ...prices, change: { ...NO_CHANGE, ...change } });

const totalOf = (report: WhatIfReport) => describeComparison(report.total);

// The oracle: fractions of whole numbers.

interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

const fraction = (text: string): Fraction => {
  const [whole = "", places = ""] = text.split(".");
  return { over: BigInt(whole + places), under: 10n ** BigInt(places.length) };
};
const times = (a: Fraction, b: Fraction): Fraction => ({ over: a.over * b.over, under: a.under * b.under });
const plus = (a: Fraction, b: Fraction): Fraction => ({
  over: a.over * b.under + b.over * a.under,
  under: a.under * b.under,
});
const NONE: Fraction = { over: 0n, under: 1n };
const PICO = 10n ** 12n;
/** Half away from zero, as whole pico-dollars. Nothing here is negative. */
const round = ({ over, under }: Fraction): bigint => (2n * over * PICO + under) / (2n * under);

const write12 = (pico: bigint): string => `${pico / PICO}.${String(pico % PICO).padStart(12, "0")}`;

const CACHED = ["cache_read", "cache_write_5m", "cache_write_1h"];
type Counts = Readonly<Record<string, number>>;

interface Request {
  readonly usage: Counts;
  readonly model: string;
  readonly tier: string | null;
  readonly multiplier: string;
}

function readTier(request: Request, change: Change): string | null {
  const tier = change.tier ?? request.tier;
  return tier === "standard" ? null : tier;
}

function changeUsage({ usage }: Request, { recount }: Change): Counts {
  const changed: Record<string, number> = {};
  for (const [kind, used] of Object.entries(usage)) {
    const as = recount !== null && CACHED.includes(kind) ? "input" : kind;
    changed[as] = (changed[as] ?? 0) + used;
  }
  return changed;
}

const CALLS = "web_search";

/** Null: there is no price for one of the kinds. */
function sumExactly(usage: Counts, rates: Rates): Fraction | null {
  let sum = NONE;
  for (const [kind, used] of Object.entries(usage).filter(([, each]) => each > 0)) {
    const rate = rates[kind === CALLS ? "web_search_per_1k" : kind];
    if (rate === undefined) return null;
    const under = kind === CALLS ? 1_000n : 1_000_000n;
    sum = plus(sum, times(fraction(rate), { over: BigInt(used), under }));
  }
  return sum;
}

/** Null: there is no price for something. */
function priceExactly(request: Request, change: Change): Fraction | null {
  const { rates, tiers, factors } = MODELS[change.model ?? request.model]!;
  const { [CALLS]: searches = 0, ...used } = changeUsage(request, change);
  const prompt = ["input", ...CACHED].reduce((sum, kind) => sum + (used[kind] ?? 0), 0);
  const own: Rates = tiers.find(({ over }) => prompt > over)?.rates ?? rates;
  const tier = readTier(request, change);
  const factor = tier === null ? "1" : (factors[`service_tier=${tier}`] ?? factors[`speed=${tier}`]);
  const [tokens, calls] = [sumExactly(used, own), sumExactly({ [CALLS]: searches }, own)];
  if (tokens === null || calls === null || factor === undefined) return null;
  return plus(times(tokens, fraction(factor)), calls);
}

const count = integer({ min: 0, max: 40_000 });
const requests = array(
  record({
    usage: record({
      input: count,
      cache_read: option(count, { nil: 0 }),
      cache_write_5m: option(count, { nil: 0 }),
      cache_write_1h: option(count, { nil: 0, freq: 1 }),
      output: count,
      web_search: option(integer({ min: 0, max: 9 }), { nil: 0, freq: 1 }),
    }),
    model: constantFrom("large", "small", "whole"),
    tier: constantFrom(null, null, "flex", "fast"),
    multiplier: constantFrom("1", "0.8", "0.333333333333", "1.25"),
  }),
  { minLength: 1, maxLength: 12 },
);
const changes = record({
  model: constantFrom(null, "large", "small", "whole"),
  recount: constantFrom(null, dropCache),
  tier: constantFrom(null, "standard", "flex", "fast", "no-such-tier"),
});

/** As the gateway records it: the upstream's own usage says as what it was served. */
const recordRequest = (request: Request, index: number): LineDraft => {
  const official = priceExactly(request, NO_CHANGE);
  const charge = official && times(official, fraction(request.multiplier));
  return draftOf(`req_${index}`, {
    model: request.model,
    upstream_model: request.model,
    usage: request.usage,
    raw_usage: JSON.stringify(request.tier === "fast" ? { speed: "fast" } : { service_tier: request.tier }),
    basis: official === null ? "unpriced" : "exact",
    prices: official && {},
    multiplier: request.multiplier,
    official_usd: official && write12(round(official)),
    charge_usd: charge && write12(round(charge)),
  });
};

test("any usage at any other prices costs what fractions say, and what has no price is counted apart", () => {
  let apart = 0;
  assert(
    property(requests, changes, (all, change) => {
      const report = compare(write(all.map(recordRequest)), change);
      let compared = 0;
      let paid = 0n;
      let charge = 0n;
      let exact = NONE;
      for (const request of all) {
        const [own, other] = [priceExactly(request, NO_CHANGE), priceExactly(request, change)];
        if (other === null || own === null) continue;
        compared += 1;
        paid += round(times(own, fraction(request.multiplier)));
        exact = plus(exact, other);
        charge += round(times(other, fraction(request.multiplier)));
      }
      const total = totalOf(report);
      expect(total).toMatchObject({ requests: all.length, compared });
      expect(round(fraction(String(total["as_charge_usd"])))).toBe(charge);
      expect(round(fraction(String(total["charge_usd"])))).toBe(paid);
      const official = fraction(String(total["as_official_usd"]));
      expect(official.over * exact.under).toBe(exact.over * official.under);
      const left = report.leftOut.reduce((sum, each) => sum + each.requests, 0);
      expect(left).toBe(all.length - compared);
      apart += left;
    }),
    { numRuns: 500, seed: 17 },
  );
  expect(apart).toBeGreaterThan(100);
});

describe("a comparison", () => {
  test("says which requests it leaves out and why", () => {
    const path = write([
      draftOf("1", { upstream_model: "large", usage: { input: 10, cache_write_1h: 5, output: 1 } }),
      draftOf("2", { upstream_model: "large", usage: { input: 10, output: 1 } }),
      draftOf("3", { model: "dear", basis: "unpriced", prices: null, official_usd: null, charge_usd: null }),
      draftOf("4", {
        model: "gone",
        basis: "unknown",
        usage: {},
        prices: null,
        official_usd: null,
        charge_usd: null,
      }),
      draftOf("5", { model: "later", usage: { input: 1, holograms: 2 } }),
    ]);
    const { leftOut, total } = compare(path, { model: "small" });
    expect([total.requests, total.compared]).toEqual([5, 1]);
    expect(leftOut.map(({ model, because }) => `${model}: ${because}`).toSorted()).toEqual([
      "claude-sonnet-4-5: no price for cache_write_1h of small",
      "dear: what it cost is not known",
      "gone: its usage is not known",
      "later: its usage has a kind that this version does not know",
    ]);
    // What was charged for those is not in the amount that the other is compared with.
    expect(totalOf(compare(path, { model: "small" }))).toMatchObject({ charge_usd: "0.011106" });
  });

  test("counts a corrected request as it was corrected", () => {
    const draft = draftOf("1", {
      basis: "unpriced",
      prices: null,
      official_usd: null,
      charge_usd: null,
      usage: { input: 1_000_000 },
    });
    const { key, group, platform, channel, model, usage } = draft;
    const correction = {
      id: "cor_1",
      time: "2026-12-01T00:00:00.000Z",
      corrects: "1",
      request_time: draft.time,
      key,
      group,
      platform,
      channel,
      model,
      usage,
      prices: { input: "7" },
      price_source: "config",
      tier: "standard",
      official_usd: "7",
      multiplier: "1",
      charge_usd: "7",
      was: { official_usd: null, charge_usd: null },
    };
    expect(totalOf(compare(write([draft], [correction]), { model: "large" }))).toEqual({
      requests: 1,
      compared: 1,
      partial: 0,
      official_usd: "7",
      charge_usd: "7",
      as_official_usd: "3",
      as_charge_usd: "3",
      difference_usd: "-4",
    });
  });

  test("prices long prompts by each call of a server tool's loop", () => {
    const call = { type: "message", input_tokens: 40_000, output_tokens: 10 };
    const counts = { input_tokens: 80_000, output_tokens: 20 };
    const raw_usage = JSON.stringify({ ...counts, iterations: [call, call] });
    const usage = { input: 80_000, output: 20 };
    const whole = draftOf("1", { usage, raw_usage });
    // No call is above 50,000 tokens.
    expect(totalOf(compare(write([whole]), { model: "small" }))["as_official_usd"]).toBe("0.00560666");
    const single = draftOf("1", { usage, raw_usage: JSON.stringify(counts) });
    expect(totalOf(compare(write([single]), { model: "small" }))["as_official_usd"]).toBe("0.01121");
  });

  test("of a channel that costs nothing says what the model would cost elsewhere", () => {
    const seller: Seller = { provider: null, makers: [], free: true, region: null };
    const draft = draftOf("1", { usage: { input: 1_000_000 }, official_usd: "0", charge_usd: "0" });
    const sellerOf = () => seller;
    expect(totalOf(compare(write([draft]), { model: "large" }, { sellerOf }))["as_charge_usd"]).toBe("3");
    expect(totalOf(compare(write([draft]), { recount: dropCache }, { sellerOf }))["as_charge_usd"]).toBe("0");
  });

  test("works with filters, periods and two dimensions", () => {
    const usage = { input: 1_000_000 };
    const path = write([
      draftOf("1", { usage, key: "a", group: "x" }),
      draftOf("2", { usage, key: "b", group: "x" }),
      draftOf("3", { usage, key: "b", group: "x", time: "2026-11-21T10:00:00.000Z" }),
    ]);
    const whatIf = { ...PRICES, change: { ...NO_CHANGE, model: "large" } };
    const until = "2026-11-21T00:00:00.000Z";
    const report = compareLedger(
      path,
      { by: ["group", "key"], since: null, until, only: { key: "b" } },
      whatIf,
    );
    expect(report.rows.map(({ names, totals }) => [names, totals.compared])).toEqual([[["x", "b"], 1]]);
    expect(report.priceSources).toEqual(["book test anthropic (by name)"]);
  });
});
