import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  computeCharge,
  deriveAmounts,
  type BilledAnswer,
  multiplyExactly,
} from "../../src/billing/charge.ts";
import { ANY_SELLER, loadBook, type Rates } from "../../src/billing/prices.ts";
import type { Tariff, Usage } from "../../src/billing/usage.ts";
import { parseDecimal, subtractDecimals } from "../../src/lib/money.ts";

const book = loadBook();
const AT = new Date("2026-11-20T12:00:00Z");

function bill(model: string, usage: Usage, more: Partial<BilledAnswer> = {}) {
  return computeCharge({
    parts: [{ model: null, pass: "message", usage }],
    tariff: {},
    model,
    requested: null,
    book,
    overrides: new Map(),
    at: AT,
    multiplier: "1",
    ...more,
  });
}

describe("P135: a kind of usage without a price leaves the line without an amount", () => {
  test("a kind of usage without a price is named with its count, and the line's least amount is what the other kinds cost", () => {
    const usage = { input: 1_000_000, output: 0, code_interpreter: 2, input_audio: 7 };
    const overrides = new Map([["m", { input: "1.5" }]]);
    expect(bill("m", usage, { overrides, multiplier: "0.5" })).toMatchObject({
      official: null,
      charge: null,
      prices: { input: "1.5" },
      unpricedBecause: "no price for code_interpreter_per_1k and input_audio of m",
      unpricedUsage: { code_interpreter: 2, input_audio: 7 },
      atLeast: "0.75",
    });
  });

  test.each([
    ["the model", "m-2", { input: 5, output: 1, reasoning: 1 }, { input: 5, output: 1 }],
    ["the only kind of usage", "m", { input_audio: 5 }, { input_audio: 5 }],
  ])("if %s has no price, the line has no least amount", (_what, model, usage: Usage, unpricedUsage) => {
    const overrides = new Map([["m", { input: "1.5" }]]);
    expect(bill(model, usage, { overrides })).toMatchObject({
      official: null,
      unpricedUsage,
      atLeast: null,
    });
  });

  test("if one part has a kind without a price, the line's least amount is the cost of all usage that has a price", () => {
    const parts = [
      { model: "m", pass: "message", usage: { input: 1_000_000, input_audio: 3 } },
      { model: "m", pass: "compaction", usage: { input: 2_000_000 } },
      { model: "m-2", pass: "advisor_message", usage: { input: 9 } },
    ];
    const overrides = new Map([["m", { input: "1" }]]);
    expect(bill("m", {}, { parts, overrides })).toMatchObject({
      official: null,
      unpricedUsage: { input_audio: 3, input: 9 },
      atLeast: "3",
    });
  });

  test("if all kinds of usage have a price, the bill names no kind without a price", () => {
    expect(bill("gpt-5", { input: 1 })).toMatchObject({ unpricedUsage: null, atLeast: null });
  });

  test("if a kind of usage has no price, the least amount is the cost of the other kinds, whatever the counts are", () => {
    const count = fc.integer({ min: 0, max: 10 ** 9 });
    fc.assert(
      fc.property(count, count, count, (input, output, audio) => {
        const usage = { input, output, input_audio: audio };
        const some = { input: "1.1", output: "2.3" };
        const whole = bill("m", usage, { overrides: new Map([["m", { ...some, input_audio: "7" }]]) });
        const least = bill("m", usage, { overrides: new Map([["m", some]]) });
        const known = bill("m", { input, output }, { overrides: new Map([["m", some]]) });
        if (audio === 0) expect(least.charge).toBe(whole.charge);
        else expect(least.atLeast ?? "0").toBe(known.charge ?? "");
      }),
    );
  });
});

describe("P117: a channel that costs nothing charges 0", () => {
  test("a channel that costs nothing charges 0 for every kind, whatever the model is called", () => {
    const seller = { ...ANY_SELLER, free: true };
    const usage = { input: 5, output: 6, reasoning: 1, code_interpreter: 1, cache_write_1h: 3 };
    expect(bill("llama3:8b", usage, { seller, tariff: { service_tier: "any" } })).toMatchObject({
      official: "0",
      charge: "0",
      priceSource: "free",
      prices: { input: "0", output: "0", code_interpreter_per_1k: "0", cache_write_1h: "0" },
      unpricedBecause: null,
    });
    expect(bill("", usage, { seller, model: null })).toMatchObject({ official: "0", priceSource: "free" });
  });
});

describe("P130: several calls to the model in one answer are priced one by one", () => {
  const calls = [40_000, 40_000, 40_000].map((input) => ({ input, output: 100 }));
  const part = (each: Usage[]) => ({
    model: null,
    pass: "message",
    usage: { input: each.reduce((sum, { input = 0 }) => sum + input, 0), output: each.length * 100 },
    calls: each,
  });

  test("several calls to the model in one answer are each priced by the length of their own prompt, not of all prompts together", () => {
    const charged = bill("claude-haiku-5-5", {}, { parts: [part(calls)] });
    expect(charged).toMatchObject({ official: "0.01215", tier: "standard", usage: { input: 120_000 } });
    expect(charged.parts).toHaveLength(3);
    const long = [...calls.slice(1), { input: 100_001, output: 100 }];
    const mixed = bill("claude-haiku-5-5", {}, { parts: [part(long)] });
    expect(mixed.parts.map(({ tier }) => tier)).toEqual(["standard", "standard", "standard+over_100000"]);
  });

  test("several calls are billed as one part if the model's price does not depend on the prompt's length", () => {
    expect(bill("claude-sonnet-5", {}, { parts: [part(calls)] }).parts).toHaveLength(1);
  });
});

describe("P129: an answer's charge is its usage at its prices, rounded once", () => {
  test("an answer's charge is usage × price, and the prices are named next to it", () => {
    const usage = {
      input: 12,
      cache_read: 11000,
      cache_write_5m: 0,
      cache_write_1h: 420,
      output: 350,
      reasoning: 120,
    };
    expect(bill("claude-sonnet-4-5-20250929", usage)).toEqual({
      usage,
      parts: [
        {
          model: "claude-sonnet-4-5-20250929",
          pass: "message",
          usage,
          prices: {
            input: "3",
            cache_read: "0.3",
            cache_write_5m: "3.75",
            cache_write_1h: "6",
            output: "15",
          },
          tier: "standard",
          official_usd: "0.011106",
        },
      ],
      prices: { input: "3", cache_read: "0.3", cache_write_5m: "3.75", cache_write_1h: "6", output: "15" },
      priceSource: "book 2026-11-28 anthropic (by name)",
      pricedAs: null,
      tier: "standard",
      official: "0.011106",
      charge: "0.011106",
      unpricedBecause: null,
      unpricedUsage: null,
      atLeast: null,
    });
  });

  test.each([
    ["0.0000000000005", "0.000000000001"],
    ["0.00000000000049", "0"],
    ["1.0000000000015", "1.000000000002"],
    ["1.5", "1.5"],
    ["0", "0"],
  ])(
    "a charge is rounded once at twelve decimals, half away from zero: one dollar times %s is %s",
    (multiplier, charge) => {
      const overrides = new Map([["m", { input: "1" }]]);
      expect(bill("m", { input: 1_000_000 }, { overrides, multiplier })).toMatchObject({
        official: "1",
        charge,
      });
    },
  );

  test("official amounts are never rounded, however many decimals a price has", () => {
    const overrides = new Map([["m", { input: "0.000000000000000001" }]]);
    expect(bill("m", { input: 3 }, { overrides })).toMatchObject({
      official: "0.000000000000000000000003",
      charge: "0",
    });
  });

  test("an answer that used nothing costs nothing", () => {
    expect(bill("gpt-5", {}, { parts: [] })).toMatchObject({
      official: "0",
      charge: "0",
      parts: [],
      prices: {},
      priceSource: null,
      tier: null,
      unpricedBecause: null,
    });
    expect(bill("gpt-5", { input: 0, output: 0 })).toMatchObject({ official: "0", charge: "0" });
  });

  test("an answer of two models costs the sum of its parts, each at the prices of its own model", () => {
    const parts = [
      { model: null, pass: "message", usage: { input: 1_000_000, web_search: 2 } },
      { model: "claude-opus-4-8", pass: "advisor_message", usage: { input: 1_000_000, output: 10 } },
    ];
    const charged = bill("claude-sonnet-5", {}, { parts, multiplier: "0.5" });
    expect(charged).toMatchObject({
      usage: { input: 2_000_000, output: 10, web_search: 2 },
      prices: { input: "2", web_search_per_1k: "10" },
      official: "7.02025",
      charge: "3.510125",
    });
    expect(charged.parts.map(({ model, official_usd }) => [model, official_usd])).toEqual([
      ["claude-sonnet-5", "2.02"],
      ["claude-opus-4-8", "5.00025"],
    ]);
  });
});

describe("an answer in parts names the prices of its parts", () => {
  const advisor = { model: "claude-opus-4-8", pass: "advisor_message", usage: { input: 1 } };
  const compaction = { model: "claude-haiku-4-5", pass: "compaction", usage: { input: 1 } };

  test("an answer in parts shows the prices of the model that the answer names, even if another model made the first part", () => {
    const parts = [advisor, { model: null, pass: "message", usage: { input: 1 } }];
    expect(bill("claude-sonnet-5", {}, { parts })).toMatchObject({ prices: { input: "2" } });
    const asked = { parts, model: null, requested: "claude-sonnet-5" };
    expect(bill("", {}, asked)).toMatchObject({ prices: { input: "2" }, tier: "standard" });
    // The requested model made only one part, and the answer names another model.
    const named = [compaction, { ...advisor, model: "claude-sonnet-5" }];
    const both = { parts: named, requested: "claude-haiku-4-5" };
    expect(bill("claude-sonnet-5", {}, both)).toMatchObject({ prices: { input: "2" } });
  });

  test("if an answer names a model that made none of its parts, it shows the first part's prices", () => {
    const parts = [advisor, compaction];
    expect(bill("claude-sonnet-5", {}, { parts })).toMatchObject({ prices: { input: "5" } });
  });

  test("an answer in parts names each source of its prices once", () => {
    const overrides = new Map<string, Rates>([["mine", { input: "3" }]]);
    const own = { model: "mine", pass: "message", usage: { input: 1 } };
    const from = (...parts: BilledAnswer["parts"]) => bill("mine", {}, { parts, overrides }).priceSource;
    expect([from(own), from(own, own), from(own, advisor, compaction)]).toEqual([
      "config",
      "config",
      "config, book 2026-11-28 anthropic (by name)",
    ]);
  });
});

describe("P130: how an answer was served decides the price", () => {
  const million = { input: 1_000_000, output: 1_000_000 };
  test.each<[string, Tariff, string, string]>([
    ["gpt-5", { service_tier: "default" }, "11.25", "standard"],
    ["gpt-5", { service_tier: "auto" }, "11.25", "standard"],
    ["gpt-5", { service_tier: "flex" }, "5.625", "flex"],
    ["gpt-6.1-sol", { service_tier: "ultrafast" }, "114", "ultrafast+over_272000"],
    ["gpt-6.2-sol", { service_tier: "ultrafast" }, "57", "ultrafast+over_272000"],
    ["gpt-6.2-astra", { service_tier: "fast" }, "152", "fast+over_272000"],
    ["gpt-6-astra", { region: "eu" }, "104.5", "eu+over_272000"],
    ["gpt-5", { region: "eu" }, "11.25", "standard"],
    ["gpt-5", { service_tier: "priority" }, "22.5", "priority"],
    ["o3", { service_tier: "priority" }, "17.5", "priority"],
    ["claude-opus-5", { service_tier: "batch" }, "15", "batch"],
    ["claude-opus-5", { inference_geo: "us" }, "33", "us"],
    ["claude-opus-5", { inference_geo: "global" }, "30", "standard"],
    ["claude-opus-5", { inference_geo: "not_available" }, "30", "standard"],
    ["claude-haiku-4-5", { inference_geo: "us" }, "6", "standard"],
    ["claude-opus-5", { speed: "fast" }, "60", "fast"],
    ["claude-opus-4-6", { speed: "fast" }, "180", "fast"],
    ["claude-opus-5", { speed: "fast", inference_geo: "us", service_tier: "standard" }, "66", "fast+us"],
    ["gemini-3-flash-preview", { traffic_type: "ON_DEMAND" }, "3.5", "standard"],
    ["gemini-3-flash-preview", { traffic_type: "ON_DEMAND_FLEX" }, "1.75", "flex"],
    ["gemini-3-flash-preview", { service_tier: "SERVICE_TIER_FLEX" }, "1.75", "flex"],
    ["gemini-3.8-flash", { traffic_type: "ON_DEMAND_PRIORITY", service_tier: "priority" }, "8.1", "priority"],
  ])("for %s with %p, a million tokens of input and of output cost $%s", (model, tariff, official, tier) => {
    expect(bill(model, million, { tariff })).toMatchObject({ official, tier, unpricedBecause: null });
  });

  test("a web search costs the same in the flex tier, which halves the price of tokens", () => {
    const charged = bill("gpt-5", { input: 1_000_000, web_search: 1 }, { tariff: { service_tier: "flex" } });
    expect(charged).toMatchObject({
      official: "0.635",
      prices: { input: "1.25", web_search_per_1k: "10", "factor:service_tier=flex": "0.5" },
    });
  });

  test.each([
    ["gpt-5.4", { input: 272_000 }, "0.68", "standard"],
    ["gpt-5.4", { input: 272_001 }, "1.360005", "standard+over_272000"],
    ["gpt-5.4", { input: 1, cache_read: 272_000, output: 1_000_000 }, "22.636005", "standard+over_272000"],
    ["gemini-2.5-pro", { input: 150_000, tool_prompt: 50_000 }, "0.25", "standard"],
    ["gemini-2.5-pro", { input: 150_000, tool_prompt: 50_001 }, "0.5000025", "standard+over_200000"],
    ["gemini-2.5-pro", { input: 1, input_audio: 200_000 }, "0.5000025", "standard+over_200000"],
    ["claude-sonnet-4-6", { input: 900_000 }, "2.7", "standard"],
    ["claude-haiku-5-5", { input: 100_001 }, "0.0500005", "standard+over_100000"],
  ])("a prompt to %s with the counts %p costs %s", (model, usage, official, tier) => {
    expect(bill(model, usage)).toMatchObject({ official, tier });
  });

  const expectUnpriced = (model: string, usage: Usage, tariff: Tariff, missing: string) =>
    expect(bill(model, usage, { tariff })).toMatchObject({
      usage,
      parts: [{ model, pass: "message", usage, official_usd: null }],
      official: null,
      charge: null,
      unpricedBecause: `no price for ${missing}`,
    });
  const UNPRICED = "%s is unpriced, never free and never guessed";

  test.each([
    ["an unknown model", "gpt-7-nova", {}, "gpt-7-nova"],
    ["a model whose name only begins like a known one", "claude-opus-4-50", {}, "claude-opus-4-50"],
    ["audio without a price of its own", "gpt-4o", { input_audio: 1 }, "input_audio of gpt-4o"],
    ["pictures of a text model", "gemini-2.5-pro", { output_image: 1 }, "output_image of gemini-2.5-pro"],
    ["a container without its minutes", "gpt-5", { code_interpreter: 1 }, "code_interpreter_per_1k of gpt-5"],
    ["another model's picture", "gpt-5", { image_generation: 1 }, "image_generation_per_1k of gpt-5"],
    ["an hour-long write without a price", "claude-2", { cache_write_1h: 1 }, "cache_write_1h of claude-2"],
  ])(UNPRICED, (_what, model, usage: Usage, missing) => {
    expectUnpriced(model, { input: 1, output: 1, ...usage }, {}, missing);
  });

  test.each([
    ["an unknown service tier", "gpt-5", "service_tier", "ultrafast"],
    ["a tier that this model has no price for", "o4-mini", "service_tier", "priority"],
    ["throughput that was paid ahead", "gemini-2.5-pro", "traffic_type", "PROVISIONED_THROUGHPUT"],
  ])(UNPRICED, (_what, model, name, value) => {
    expectUnpriced(model, { input: 1 }, { [name]: value }, `${name}=${value.toLowerCase()} of ${model}`);
  });

  test("if one part of an answer has no price, the answer has no amount, but the other part has one", () => {
    const parts = [
      { model: null, pass: "message", usage: { input: 1_000_000 } },
      { model: "claude-nova-9", pass: "fallback_message", usage: { input: 1 } },
    ];
    const charged = bill("claude-sonnet-5", {}, { parts });
    expect(charged).toMatchObject({
      official: null,
      charge: null,
      unpricedBecause: "no price for claude-nova-9",
    });
    expect(charged.parts.map((part) => part.official_usd)).toEqual(["2", null]);
  });
});

describe("P130: a kind without a price of its own costs as much as a similar kind", () => {
  const AUDIO = { input_audio: 1e6, cache_read_audio: 1e6 };
  const SEARCHES = { google_search: 3, google_search_prompt: 1 };

  test.each<[string, string, Usage, string]>([
    ["a cached token without a price of its own costs a full token", "gpt-5-pro", { cache_read: 1e6 }, "15"],
    ["a cache write without a price of its own costs like input", "gpt-5", { cache_write: 1e6 }, "1.25"],
    ["a cache write of unknown lifetime is one of 5 minutes", "claude-opus-5", { cache_write: 1e6 }, "6.25"],
    ["pictures in a prompt cost as much as text", "gpt-5", { input_image: 1e6 }, "1.25"],
    ["audio costs as much as text if Google names one price", "gemini-3.5-flash", AUDIO, "1.65"],
    ["audio has its own price if Google names one", "gemini-2.5-flash", AUDIO, "1.1"],
    ["what tools put into the prompt costs like text", "gemini-3-flash-preview", { tool_prompt: 1e6 }, "0.5"],
    ["early Gemini models charge searches by the prompt", "gemini-2.5-flash", SEARCHES, "0.035"],
    ["later Gemini models charge searches by the query", "gemini-3-flash-preview", SEARCHES, "0.042"],
  ])("%s", (_what, model, usage, official) => {
    const charged = bill(model, usage);
    expect(charged).toMatchObject({ official, unpricedBecause: null });
    expect(deriveAmounts({ usage, prices: charged.prices, multiplier: "1" }).official).toBe(official);
  });
});

describe("P133: a price in the config comes before those of the book", () => {
  const overrides = new Map<string, Rates>([
    ["gpt-5", { input: "1", output: "2" }],
    ["my-model", { input: "3", web_search_per_1k: "5" }],
  ]);

  test("a price in the config replaces all prices that the book has for the model and its snapshots", () => {
    expect(bill("gpt-5-2025-08-07", { input: 1_000_000 }, { overrides })).toMatchObject({
      official: "1",
      priceSource: "config",
    });
    expect(bill("gpt-5", { input: 1, web_search: 1 }, { overrides }).unpricedBecause).toBe(
      "no price for web_search_per_1k of gpt-5",
    );
    expect(bill("gpt-5-mini", { input: 1_000_000 }, { overrides })).toMatchObject({ official: "0.25" });
  });

  test("a price in the config is multiplied by the book's factor for the model's service tier", () => {
    const charged = bill("gpt-5", { input: 1_000_000 }, { overrides, tariff: { service_tier: "flex" } });
    expect(charged).toMatchObject({ official: "0.5" });
  });

  test("the config's price for the requested model is used if the answer has another name for the model", () => {
    const asked = { overrides, requested: "my-model" };
    expect(bill("vendor/their-model:8b", { input: 1_000_000, web_search: 1 }, asked)).toMatchObject({
      official: "3.005",
    });
    expect(bill("gpt-5-mini", { input: 1_000_000 }, asked)).toMatchObject({ official: "0.25" });
  });

  test("the config's price for the requested model is not used for another model that took part in the answer", () => {
    const parts = [{ model: "claude-nova-9", pass: "advisor_message", usage: { input: 1 } }];
    expect(bill("my-model", {}, { parts, overrides, requested: "my-model" })).toMatchObject({
      official: null,
      unpricedBecause: "no price for claude-nova-9",
    });
  });

  test("an answer whose model has no price is priced as the requested model, and the bill says so", () => {
    const asked = { requested: "gpt-5-mini" };
    expect(bill("gpt-7-nova", { input: 1_000_000 }, asked)).toMatchObject({
      official: "0.25",
      pricedAs: "gpt-5-mini",
      parts: [{ model: "gpt-7-nova" }],
    });
    expect(bill("gpt-5", { input: 1_000_000 }, asked)).toMatchObject({ official: "1.25", pricedAs: null });
    for (const requested of ["gpt-7-nova", "gpt-8", null])
      expect(bill("gpt-7-nova", { input: 1 }, { requested }).unpricedBecause).toBe("no price for gpt-7-nova");
  });

  test("an answer without a model's name has the price of the requested model", () => {
    expect(bill("", { input: 1_000_000 }, { model: null, requested: "gpt-5-mini" })).toMatchObject({
      official: "0.25",
    });
    expect(bill("", { input: 1 }, { model: null })).toMatchObject({
      unpricedBecause: "the answer names no model",
      parts: [{ model: "", usage: { input: 1 } }],
    });
  });
});

// Calculates the expected charge with fractions of integers. It shares no code with the gateway.
function fraction(text: string): [bigint, bigint] {
  const [whole = "0", places = ""] = text.split(".");
  return [BigInt(whole + places), 10n ** BigInt(places.length)];
}

function expectedCharge(usage: Usage, rates: Rates, multiplier: string): string {
  let [top, bottom] = [0n, 1n];
  for (const [kind, count] of Object.entries(usage)) {
    if (kind === "reasoning") continue;
    const [price, unit] = fraction(rates[kind] ?? "0");
    const per = unit * 1_000_000n;
    [top, bottom] = [top * per + BigInt(count) * price * bottom, bottom * per];
  }
  const [factor, unit] = fraction(multiplier);
  [top, bottom] = [top * factor * 10n ** 12n * 2n + bottom * unit, bottom * unit * 2n];
  const pico = (top / bottom).toString().padStart(13, "0");
  return `${pico.slice(0, -12)}.${pico.slice(-12)}`.replace(/\.?0+$/, "");
}

const price = fc
  .tuple(fc.nat(10_000), fc.nat(9_999_999))
  .map(([whole, part]) => `${whole}.${String(part).padStart(7, "0")}`);
const multipliers = fc
  .tuple(fc.nat(20), fc.nat(99_999))
  .map(([whole, part]) => `${whole}.${String(part).padStart(5, "0")}`);
const KINDS = ["input", "cache_read", "cache_write_5m", "cache_write_1h", "output"] as const;
const counts = fc.record(Object.fromEntries(KINDS.map((kind) => [kind, fc.nat(2 ** 31)])));
const rates = fc.record(Object.fromEntries(KINDS.map((kind) => [kind, price])));

describe("P129: the charge for any usage, prices and multiplier is exact", () => {
  const charge = (usage: Usage, prices: Rates, multiplier: string) =>
    bill("m", usage, { overrides: new Map([["m", prices]]), multiplier });

  test("for any usage, prices and multiplier the charge equals the exact fraction, rounded once", () => {
    fc.assert(
      fc.property(counts, rates, multipliers, (usage, prices, multiplier) => {
        expect(charge(usage, prices, multiplier).charge).toBe(expectedCharge(usage, prices, multiplier));
      }),
    );
  });

  test("for any usage, prices and multiplier the charge is derived again from the line alone", () => {
    fc.assert(
      fc.property(counts, rates, multipliers, (usage, prices, multiplier) => {
        const charged = charge(usage, prices, multiplier);
        const line = JSON.parse(JSON.stringify({ usage: charged.usage, prices: charged.prices, multiplier }));
        expect(deriveAmounts(line)).toEqual({
          official: charged.official,
          charge: charged.charge,
          parts: [charged.official],
        });
      }),
    );
  });

  test("for any usage and prices the official amount is additive over usage, and more usage never makes it smaller or negative", () => {
    fc.assert(
      fc.property(counts, counts, rates, (some, more, prices) => {
        const both = Object.fromEntries(KINDS.map((kind) => [kind, (some[kind] ?? 0) + (more[kind] ?? 0)]));
        const amount = (usage: Usage) => parseDecimal(charge(usage, prices, "1").official ?? "");
        const [a, b, sum] = [amount(some), amount(more), amount(both)];
        const scale = Math.max(a.scale, b.scale, sum.scale);
        const units = (value: { units: bigint; scale: number }) =>
          value.units * 10n ** BigInt(scale - value.scale);
        expect(units(a) + units(b)).toBe(units(sum));
        expect(a.units >= 0n).toBe(true);
        expect(subtractDecimals(sum, a).units >= 0n).toBe(true);
      }),
    );
  });
});

test("if one part of a line has no price, the line has no amount, but the other parts keep theirs", () => {
  const parts = [
    { usage: { input: 2 }, prices: { input: "1" } },
    { usage: { input: 1 }, prices: null },
  ];
  const line = { usage: { input: 3 }, prices: null, multiplier: "1" };
  expect(deriveAmounts({ ...line, parts })).toEqual({
    official: null,
    charge: null,
    parts: ["0.000002", null],
  });
  expect(deriveAmounts({ ...line, parts: parts.slice(0, 1) })).toEqual({
    official: "0.000002",
    charge: "0.000002",
    parts: ["0.000002"],
  });
});

test("multiplyExactly keeps all decimals of a product", () => {
  expect(multiplyExactly("0.0000000000001", "0.3")).toBe("0.00000000000003");
});
