// Tests which unit prices an answer pays: rule by rule, with invented prices.

import { describe, expect, test } from "bun:test";
import type { Rates } from "../../src/billing/prices.ts";
import { chooseTariff } from "../../src/billing/tariff.ts";
import { type Tariff, type Usage, PROMPT_KINDS, USAGE_KINDS } from "../../src/billing/usage.ts";

const pricesOf = (rates: Rates, usage: Usage) =>
  chooseTariff({ source: "test", rates, tiers: [], factors: {} }, usage, {});

describe("a kind without a price of its own has the price of a similar kind, or none", () => {
  test.each<[string, Rates, string]>([
    ["tool_prompt", { input: "1" }, "1"],
    ["input_image", { input: "1" }, "1"],
    ["input_video", { input: "1" }, "1"],
    ["cache_read", { input: "1" }, "1"],
    ["cache_read_audio", { input_audio: "2", input: "1" }, "2"],
    ["cache_read_image", { input_image: "2", cache_read: "0.1", input: "1" }, "2"],
    ["cache_read_image", { cache_read: "0.1", input: "1" }, "0.1"],
    ["cache_read_image", { input: "1" }, "1"],
    ["cache_read_video", { input_video: "2", cache_read: "0.1", input: "1" }, "2"],
    ["cache_read_video", { cache_read: "0.1", input: "1" }, "0.1"],
    ["cache_read_video", { input: "1" }, "1"],
    ["cache_write", { cache_write_5m: "1.25", input: "1" }, "1.25"],
    ["cache_write", { input: "1" }, "1"],
    ["cache_write_5m", { cache_write: "1.25" }, "1.25"],
  ])("%s with the prices %j costs %s", (kind, rates, price) => {
    expect(pricesOf(rates, { [kind]: 1 })).toEqual({
      prices: { [kind]: price },
      tier: "standard",
      unpriced: [],
    });
    const own = { ...rates, [kind]: "7" };
    expect(pricesOf(own, { [kind]: 1 })).toEqual({ prices: { [kind]: "7" }, tier: "standard", unpriced: [] });
  });

  test.each<[string, Rates]>([
    ["cache_write_1h", { cache_write_5m: "1", cache_write: "1", input: "1" }],
    ["cache_write_5m", { input: "1" }],
    ["cache_read_audio", { cache_read: "1", input: "1" }],
    ["input_audio", { input: "1" }],
    ["output_image", { output: "1" }],
    ["output", { input: "1" }],
  ])("%s with the prices %j has no price", (kind, rates) => {
    expect(pricesOf(rates, { [kind]: 1 })).toEqual({ prices: {}, tier: "standard", unpriced: [kind] });
    expect(pricesOf(rates, { [kind]: 0 })).toEqual({ prices: {}, tier: "standard", unpriced: [] });
  });

  test("a Google search is charged by queries or by prompts, as the price says, and the other count is free", () => {
    const searched = { google_search: 3, google_search_prompt: 1 };
    expect(pricesOf({ google_search_per_1k: "14" }, searched)).toMatchObject({
      prices: { google_search_per_1k: "14", google_search_prompt_per_1k: "0" },
    });
    expect(pricesOf({ google_search_prompt_per_1k: "35" }, searched)).toMatchObject({
      prices: { google_search_per_1k: "0", google_search_prompt_per_1k: "35" },
    });
    expect(pricesOf({}, searched)).toMatchObject({
      unpriced: ["google_search_per_1k", "google_search_prompt_per_1k"],
    });
    expect(pricesOf({ google_search_per_1k: "14" }, { web_search: 1 })).toMatchObject({
      unpriced: ["web_search_per_1k"],
    });
  });
});

describe("P130: the rates of a long context follow the prompt's length", () => {
  const kinds = [...USAGE_KINDS, "web_search_per_1k"];
  const rates = Object.fromEntries(kinds.map((kind) => [kind, "1"]));
  const tiers = [100, 200].map((over) => ({ over, rates }));
  const tierOf = (usage: Usage) => {
    const chosen = chooseTariff({ source: "test", rates, tiers, factors: {} }, usage, {});
    return "tier" in chosen ? chosen.tier : chosen;
  };

  test.each(PROMPT_KINDS)("%s counts towards the prompt's length, which decides the tier", (kind) => {
    expect(tierOf({ [kind]: 100 })).toBe("standard");
    expect(tierOf({ [kind]: 101 })).toBe("standard+over_100");
    expect(tierOf({ [kind]: 201 })).toBe("standard+over_200");
  });

  test("output and calls do not count towards a prompt's length", () => {
    expect(tierOf({ input: 1, output: 999, reasoning: 999, output_audio: 999, web_search: 999 })).toBe(
      "standard",
    );
  });
});

describe("P130: the price of an answer depends on how it was served", () => {
  const factors = {
    "service_tier=flex": "0.5",
    "speed=fast": "6",
    "inference_geo=us": "1.1",
    "traffic_type=dedicated": "3",
  };
  const serve = (tariff: Tariff) =>
    chooseTariff({ source: "test", rates: { input: "1" }, tiers: [], factors }, { input: 1 }, tariff);

  test.each<Tariff>([
    {},
    { service_tier: "standard" },
    { service_tier: "Default" },
    { service_tier: "auto" },
    { service_tier: "SERVICE_TIER_UNSPECIFIED" },
    { traffic_type: "ON_DEMAND" },
    { traffic_type: "TRAFFIC_TYPE_UNSPECIFIED" },
    { speed: "standard" },
    { inference_geo: "mars" },
  ])("an answer served as %j has the standard price", (tariff) => {
    expect(serve(tariff)).toEqual({ prices: { input: "1" }, tier: "standard", unpriced: [] });
  });

  test("a line's tier names each factor by which its price is multiplied", () => {
    expect(serve({ service_tier: "flex", speed: "fast", inference_geo: "us" })).toEqual({
      prices: {
        input: "1",
        "factor:service_tier=flex": "0.5",
        "factor:speed=fast": "6",
        "factor:inference_geo=us": "1.1",
      },
      tier: "flex+fast+us",
      unpriced: [],
    });
    expect(serve({ traffic_type: "DEDICATED", service_tier: "flex" })).toEqual({
      prices: { input: "1", "factor:traffic_type=dedicated": "3" },
      tier: "dedicated",
      unpriced: [],
    });
  });

  test.each<[Tariff, string]>([
    [{ service_tier: "ultra" }, "service_tier=ultra"],
    [{ speed: "slow" }, "speed=slow"],
    [{ traffic_type: "PROVISIONED" }, "traffic_type=provisioned"],
    [{ traffic_type: "ON_DEMAND_ULTRA" }, "service_tier=ultra"],
  ])("an answer served as %j has no price", (tariff, missing) => {
    expect(serve(tariff)).toEqual({ missing });
  });
});
