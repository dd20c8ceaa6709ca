import { calcPrice, findProvider, type Provider } from "@pydantic/genai-prices";
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { computeCharge } from "../../src/billing/charge.ts";
import { ANY_SELLER, findModel, findPrice, loadBook } from "../../src/billing/prices.ts";
import { PriceBook } from "../../src/billing/prices/book.ts";
import { buildBook } from "../../.ci/prices.ts";
import { makeBook } from "../../src/billing/prices/convert.ts";
import { isMovingName } from "../../src/billing/prices/names.ts";
import { publishedSchema } from "../../src/billing/prices/published.ts";
import { KNOWN_PROVIDERS } from "../../src/billing/prices/sellers.ts";
import type { Usage } from "../../src/billing/usage.ts";
import { getField, getList } from "../../src/lib/json/json.ts";
import { parseDecimal } from "../../src/lib/money.ts";

const book = loadBook();
const entries = buildBook()
  .trimEnd()
  .split("\n")
  .slice(1)
  .map((line): unknown => JSON.parse(line));
const none = new Map();
const AT = new Date("2026-11-20T12:00:00Z");
const inputOf = (model: string, at = AT) =>
  findPrice({ book, overrides: none }, model, at)?.rates["input"] ?? null;

test("building the price book again gives the same file", () => {
  expect(buildBook()).toBe(
    readFileSync(new URL("../../src/billing/prices/book.jsonl", import.meta.url), "utf8"),
  );
});

test("an updated price book has every name of the built-in book, if both are made from the same data", () => {
  const providers = KNOWN_PROVIDERS.flatMap((providerId) => findProvider({ providerId }) ?? []);
  const text = makeBook(publishedSchema.parse(providers), { date: "2026-12-24", source: "test" });
  const update = new PriceBook(() => text);
  const lost = book.providers.flatMap((provider) =>
    book
      .listModels(provider)
      .flatMap(({ ids }) => ids)
      .filter((id) => findModel(update, { ...ANY_SELLER, provider }, id) === null),
  );
  expect(lost).toEqual([]);
});

test("every number in the price book is a plain decimal", () => {
  const numbers: unknown[] = [];
  JSON.stringify(entries, (key, value: unknown) => {
    if (key === "rates" || key === "factors") numbers.push(...Object.values(value ?? {}));
    return value;
  });
  expect(numbers.length).toBeGreaterThan(500);
  for (const number of numbers) expect(parseDecimal(String(number)).units).toBeGreaterThanOrEqual(0n);
});

/** Names that mean the newest version of a model, and the periods of their prices. */
function listMoving(lines: readonly unknown[]) {
  return lines.flatMap((entry) =>
    getList(getField(entry, "ids"))
      .map(String)
      .filter((id) => id.endsWith("-latest"))
      .map((id) => ({ id, periods: getList(getField(entry, "periods")) })),
  );
}

describe("a name that means the newest version costs what that version costs", () => {
  test("in the built-in book, a name that means the newest version has a start date for each price", () => {
    const moving = listMoving(entries);
    expect(moving.map(({ id }) => id)).toContain("mistral-large-latest");
    for (const { id, periods } of moving) {
      expect([id, isMovingName(id)]).toEqual([id, true]);
      for (const period of periods) expect([id, getField(period, "from")]).toEqual([id, expect.any(String)]);
    }
  });

  test("in an updated book, a name that means the newest version has only those prices that have a start date", () => {
    const model = (id: string, prices: unknown) => ({ id, match: { equals: id }, prices });
    const published = publishedSchema.parse([
      {
        id: "mistral",
        models: [
          model("nova-latest", { input_mtok: 1 }),
          model("nova-3-latest", { input_mtok: 2 }),
          model("other-latest", [
            { prices: { input_mtok: 3 } },
            { constraint: { start_date: "2026-12-01" }, prices: { input_mtok: 4 } },
          ]),
        ],
      },
    ]);
    const text = makeBook(published, { date: "2026-12-24", source: "test" });
    const made = new PriceBook(() => text.replace('"providers":{}', '"providers":{"mistral":[]}'));
    const names = ["nova-latest", "nova-3-latest", "other-latest"];
    const priceOn = (id: string, day: string) =>
      findPrice({ book: made, overrides: none }, id, new Date(day))?.rates["input"] ?? null;
    expect(names.map((id) => priceOn(id, "2026-11-30"))).toEqual([null, "2", null]);
    expect(names.map((id) => priceOn(id, "2026-12-01"))).toEqual([null, "2", "4"]);
  });

  test("a name that means the newest version has the price of the model that the answer names", () => {
    const priced = (model: string) =>
      computeCharge({
        parts: [{ model: null, pass: "message", usage: { input: 1_000_000 } }],
        tariff: {},
        model,
        requested: "gemini-flash-latest",
        book,
        overrides: none,
        at: AT,
        multiplier: "1",
      });
    expect(priced("gemini-2.5-flash")).toMatchObject({ official: "0.3", pricedAs: null });
    expect(priced("gemini-flash-latest")).toMatchObject({ official: null });
  });
});

describe("a model's price is found", () => {
  test.each([
    ["claude-sonnet-4-5", "3"],
    ["claude-sonnet-4-5-20250929", "3"],
    ["claude-sonnet-4-5@20250929", "3"],
    ["CLAUDE-SONNET-4-5", "3"],
    ["gpt-5-2025-08-07", "1.25"],
    ["gpt-5.4-2025-04-14", "2.5"],
    ["gpt-4o-2024-05-13", "5"],
    ["models/gemini-2.5-pro", "1.25"],
    ["gemini-2.0-flash-001", "0.1"],
    ["gemini-2.5-flash-preview-09-2025", "0.3"],
  ])("a price is found by an id in upper or lower case, or by a snapshot's id: %s", (model, input) => {
    expect(inputOf(model)).toBe(input);
  });

  test.each([
    "claude-opus-4-50",
    "claude-opus-4-5-extra",
    "claude-opus-4-5-2025",
    "gpt-4o-mini-search-preview",
    "gpt-4o-mini-2",
    "gpt-5.4-2025-04",
    "gemini-flash-latest",
    "gemini-3-flash",
    "constructor",
    "__proto__",
    "",
  ])("a price is never found by a similar name: %p has no price", (model) => {
    expect(inputOf(model)).toBeNull();
  });

  test("a request gets the price that its model had on that day", () => {
    expect(inputOf("gpt-5.6-luna", new Date("2026-07-29T23:59:59Z"))).toBe("1");
    expect(inputOf("gpt-5.6-luna", new Date("2026-07-30T00:00:00Z"))).toBe("0.2");
    expect(inputOf("gemini-3.8-flash", new Date("2026-12-31T23:59:59Z"))).toBe("0.75");
    expect(inputOf("gemini-3.8-flash", new Date("2027-01-01T00:00:00Z"))).toBe("1.5");
  });
});

/**
 * The book is compared with the package. These differences are known, and the book is right:
 * - the package charges OpenAI's long-context rates at 272 000 tokens, but OpenAI only above 272 000;
 * - the package still has claude-sonnet-4-5's long-context rates above 200 000 tokens, but the 1M context
 *   ended on 2026-04-30;
 * - the package knows no service tiers, regions, speeds or containers, no search previews and no Google searches.
 */
describe("the price book agrees with the package that it is made from", () => {
  const lists = entries.filter((entry) => getField(entry, "source") === undefined);
  const usages: Usage[] = [
    { input: 1234, output: 567 },
    { input: 100, cache_read: 50_000, output: 1 },
    { input: 250_000, cache_read: 1000, output: 100 },
    { input: 10, cache_write: 3000, output: 100 },
    { input: 400_000, output: 20_000 },
  ];

  test.each([new Date("2026-03-01"), AT, new Date("2027-06-01")])("book and package agree on %p", (at) => {
    let compared = 0;
    for (const entry of lists) {
      const model = String(getList(getField(entry, "ids"))[0]);
      const provider = String(getField(entry, "provider"));
      const seller = { ...ANY_SELLER, provider };
      for (const usage of usages) {
        const own = findPrice({ book, overrides: none, seller }, model, at);
        if (own?.rates["output"] === undefined || isKnownToDiffer(model, usage, at)) continue;
        const [fresh = 0, read = 0, written = 0] = [usage.input, usage.cache_read, usage.cache_write];
        const theirs = calcPrice(
          {
            input_tokens: fresh + read + written,
            output_tokens: usage.output ?? 0,
            cache_read_tokens: read,
            cache_write_tokens: written,
          },
          model,
          { provider: packageWith(provider, model), timestamp: at },
        );
        const parts = [{ model: null, pass: "message", usage }];
        const ours = computeCharge({
          parts,
          tariff: {},
          model,
          requested: null,
          book,
          overrides: none,
          seller,
          at,
          multiplier: "1",
        });
        expect({
          provider,
          model,
          usage,
          off: Math.abs(Number(ours.official) - (theirs?.total_price ?? Number.NaN)) < 1e-9,
        }).toEqual({ provider, model, usage, off: true });
        compared += 1;
      }
    }
    expect(compared).toBeGreaterThan(5000);
  });

  /** Returns the provider with this model only, because an id can fit the patterns of several models.
   *  If no model has the id, a model whose pattern names the id is taken. */
  function packageWith(provider: string, id: string): Provider {
    const found = findProvider({ providerId: provider });
    const named = (each: Provider["models"][number]) =>
      each.id === `${id}-latest` || JSON.stringify(each.match).includes(JSON.stringify(id));
    const model = found?.models.find((each) => each.id === id) ?? found?.models.find(named);
    if (found === undefined || model === undefined) throw new Error(`the package has no ${provider} ${id}`);
    return { ...found, models: [{ ...model, match: { equals: id } }] };
  }

  function isKnownToDiffer(model: string, usage: Usage, at: Date): boolean {
    const context = (usage.input ?? 0) + (usage.cache_read ?? 0);
    return model === "claude-sonnet-4-5" && context > 200_000 && at >= new Date("2026-04-30");
  }
});
