// With `strict`, a request reserves the most that it can cost: more than any answer of any model in the book can cost,
// however the provider serves it. The request names no tier and no place.

import { expect, test } from "bun:test";

import { computeCharge } from "../../../src/billing/charge.ts";
import { boundCost } from "../../../src/billing/limits/reserve.ts";
import { addRegion, listBookedModels, loadPriceBook, sellerOf } from "../../../src/billing/prices.ts";
import type { Tariff, Usage } from "../../../src/billing/usage.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { messages } from "../../../src/dialects/formats/messages.ts";
import { listWays, quoteAt } from "../../../src/gateway/bill/bill.ts";
import { findMatch } from "../../../src/gateway/intake/match.ts";
import { parseUsd } from "../../../src/lib/money.ts";

const prices = loadPriceBook();
const NOW = Date.parse("2026-11-20T12:00:00Z");
const gateway = { prices, now: () => NOW };
const NONE = new Map<string, never>();

const CAP = 1000;
/** The second is longer than every long prompt of the book. */
const BODIES = [40, 600_000].map((size) =>
  Buffer.from(JSON.stringify({ max_tokens: CAP, input: "x".repeat(size) })),
);
const WRITES = ["cache_write_5m", "cache_write_1h", "cache_write", "cache_write_12h"] as const;

function listAnswers(tokens: number): Usage[] {
  return [
    { input: tokens, output: CAP },
    { input: 1, output: CAP },
    { input: 1, cache_read: tokens - 1, output: CAP },
    ...WRITES.map((kind) => ({ input: 1, [kind]: tokens - 1, output: CAP })),
  ];
}

/** Every way in which the provider may serve a request that names none. */
function listServings(ways: readonly string[]): Tariff[] {
  const of = (name: string): string[] =>
    ways.filter((way) => way.startsWith(`${name}=`)).map((way) => way.slice(name.length + 1));
  const tiers = [undefined, ...of("service_tier"), "standard", "default"];
  return tiers.flatMap((service_tier) =>
    [undefined, ...of("inference_geo"), "global"].map((inference_geo) => ({
      ...(service_tier !== undefined && { service_tier }),
      ...(inference_geo !== undefined && { inference_geo }),
    })),
  );
}

test.each([
  ["messages", "https://api.anthropic.com", "anthropic"],
  ["responses", "https://api.openai.com/v1", "openai"],
  ["responses", "https://eu.api.openai.com/v1", "openai"],
  ["content", "https://generativelanguage.googleapis.com", "google"],
  ["messages", "https://api.deepseek.com/anthropic", "deepseek"],
  ["responses", "https://api.x.ai/v1", "x-ai"],
])("no answer on the %s platform at %s costs more than the bound", (platform, url, provider) => {
  const config = {
    channels: { c: { platform, base_url: url, credential: "xxxx" } },
    groups: { g: { platform, channels: ["c"], multiplier: "1.3" } },
    keys: [{ name: "k", group: "g", secret: "sk-test" }],
  };
  const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
  let compared = 0;
  for (const { id } of listBookedModels(prices, [provider])) {
    const match = findMatch(catalog.keys.get("k")!, id);
    const [candidate] = match.candidates;
    if (candidate === undefined) continue;
    const ways = listWays(candidate, NONE, gateway);
    const seller = sellerOf(candidate.channel);
    for (const body of BODIES) {
      const quotes = [quoteAt(candidate, match, NONE, gateway)];
      const bound = boundCost({
        body,
        prompt: { tokens: 0, cached: 0 },
        answer: null,
        hasOutput: true,
        scan: null,
        capNames: ["max_tokens", "max_output_tokens", "generationConfig"],
        clientTools: messages.clientTools,
        quotes,
        ways,
      });
      // Models without a price for output are refused.
      if (typeof bound !== "string") continue;
      for (const tariff of listServings(ways))
        for (const usage of listAnswers(body.length)) {
          const { charge } = computeCharge({
            parts: [{ model: id, pass: "message", usage }],
            tariff: addRegion(tariff, seller),
            model: id,
            requested: id,
            book: prices,
            overrides: NONE,
            seller,
            at: new Date(NOW),
            multiplier: match.group.multiplier,
          });
          if (charge === null) continue;
          compared += 1;
          if (parseUsd(charge) > parseUsd(bound))
            expect([id, tariff, usage, charge]).toEqual([id, tariff, usage, `at most ${bound}`]);
        }
    }
  }
  expect(compared).toBeGreaterThan(20);
});
