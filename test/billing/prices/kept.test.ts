// What is kept from one request to the next (a price while it is paid, the choice for the same kinds) never changes an amount.

import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { readFileSync } from "node:fs";
import { computeCharge } from "../../../src/billing/charge.ts";
import { type BookedModel, keepPrice, openBook, priceAt } from "../../../src/billing/prices/book.ts";
import { ANY_SELLER, type PriceBook } from "../../../src/billing/prices.ts";
import type { Tariff, Usage } from "../../../src/billing/usage.ts";

const TEXT = readFileSync(new URL("../../../src/billing/prices/book.jsonl", import.meta.url), "utf8");
const book = openBook(TEXT);
const DAY_MS = 86_400_000;
/** Around holidays, weekends, peak hours and new prices, to the millisecond and anywhere. */
const moment = fc.oneof(
  fc
    .tuple(
      fc.constantFrom("2026-08-17", "2026-08-23", "2026-09-25", "2026-10-08", "2026-11-21", "2027-01-01"),
      fc.constantFrom(0, 1, 4, 6, 10, 16, 24),
      fc.integer({ min: -1, max: 1 }),
    )
    .map(([day, hour, off]) => Date.parse(day) + hour * 3_600_000 + off),
  fc.integer({ min: Date.parse("2026-08-01"), max: Date.parse("2027-02-01") }),
);

const dated = book.providers
  .flatMap((provider) => book.listModels(provider))
  .filter(({ periods }: BookedModel) => periods.length > 1);

test("a kept price is the one that is paid, whatever moments follow each other", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...dated),
      fc.array(moment, { minLength: 2, maxLength: 30 }),
      (model, moments) => {
        const find = keepPrice(model.periods);
        for (const time of moments.flatMap((each) => [each, each + 1, each - DAY_MS, each])) {
          const at = new Date(time);
          expect([time, find(at)]).toEqual([time, priceAt(model.periods, at)]);
        }
      },
    ),
    { numRuns: 300 },
  );
});

/** Few lists of kinds, so that requests often have the same one with other counts. */
const kinds = fc.constantFrom<(keyof Usage)[]>(
  ["input", "cache_read", "output", "reasoning"],
  ["input", "output", "cache_write_1h", "web_search"],
  ["output", "input", "output_audio", "call"],
);
const usage = fc
  .tuple(kinds, fc.array(fc.constantFrom(0, 1, 1234, 300_001), { minLength: 4, maxLength: 4 }))
  .map(([named, counts]): Usage =>
    Object.fromEntries(named.map((kind, index) => [kind, counts[index] ?? 0])),
  );
const tariff = fc.constantFrom<Tariff[]>(
  {},
  { service_tier: "standard" },
  { service_tier: "flex" },
  { service_tier: "priority" },
  { speed: "fast" },
  { inference_geo: "us", service_tier: "batch" },
  { region: "eu" },
  { region: "moon" },
);
const model = fc.constantFrom("claude-haiku-5-5", "gpt-6.2-sol", "deepseek-v4-pro", "my-model");
const configured = new Map([
  ["my-model", { input: "0.3", output: "1.5", web_search_per_1k: "7", call_per_1k: "10" }],
]);

interface Request {
  readonly usage: Usage;
  readonly tariff: Tariff;
  readonly model: string;
  readonly moment: number;
  readonly multiplier: string;
}

const request: fc.Arbitrary<Request> = fc.record({
  usage,
  tariff,
  model,
  moment,
  multiplier: fc.constantFrom("1", "0.8", "1.25", "0"),
});

test("an amount is the same with everything kept and with nothing kept", () => {
  const charge = (from: PriceBook, overrides: typeof configured, one: Request) =>
    computeCharge({
      parts: [{ model: null, pass: "message", usage: { ...one.usage } }],
      tariff: { ...one.tariff },
      model: one.model,
      requested: null,
      book: from,
      overrides,
      seller: from === book ? ANY_SELLER : { ...ANY_SELLER },
      at: new Date(one.moment),
      multiplier: one.multiplier,
    });
  fc.assert(
    fc.property(fc.array(request, { minLength: 12, maxLength: 24 }), (requests) => {
      const fresh = requests.map((one) =>
        charge(openBook(TEXT), new Map([...configured].map(([name, rates]) => [name, { ...rates }])), one),
      );
      expect(requests.map((one) => charge(book, configured, one))).toEqual(fresh);
      // Once more, in another order: everything is kept now.
      expect(requests.toReversed().map((one) => charge(book, configured, one))).toEqual(fresh.toReversed());
    }),
    { numRuns: 80 },
  );
});
