// What a model costs at a moment: by the config's own prices, or by the price book.
//
// A known provider's channel pays that provider's prices, or else those of the models' makers.
// At an unknown address, the model's name decides, and the price's source says `(by name)`.
// The lists of the platform's makers are searched first. If they lack the name,
// the model has a price only if exactly one other list has it.

import { BoundedMap } from "../lib/memory/bounded-map.ts";
import type { Channel } from "../config/catalog.ts";
import { didYouMean } from "../lib/text/nearest.ts";
import { ConfigError } from "../config/yaml/problems.ts";
import { looksSecret } from "../lib/secret.ts";
import { type BookedModel, isPaidAt, type Price, type PriceBook, type Rates } from "./prices/book.ts";
import { listNames, type ModelNames } from "./prices/names.ts";
import { ALL_MAKERS, ANY_SELLER, type Seller } from "./prices/sellers.ts";

export { loadBook, type Price, type PriceBook, type Rates } from "./prices/book.ts";
export { addRegion, ANY_SELLER, isAllAt, type Seller, sellerOf } from "./prices/sellers.ts";

export type Overrides = ReadonlyMap<string, Rates>;

export interface PriceSources {
  readonly book: PriceBook;
  readonly overrides: Overrides;
  readonly seller?: Seller | undefined;
}

/** With an unknown provider, everything would be unpriced. */
export function refuseUnknownProviders(channels: Iterable<Channel>, book: PriceBook): void {
  for (const { name, priceProvider } of channels) {
    if (priceProvider === null || priceProvider === undefined || book.providers.includes(priceProvider))
      continue;
    const shown = looksSecret(priceProvider) ? "of that name" : `"${priceProvider}"`;
    throw new ConfigError(
      `channels.${name}.price_provider: the price book has no provider ${shown}${didYouMean(priceProvider, book.providers)}. It has: ${book.providers.join(", ")}.`,
    );
  }
}

/** Reads a seller's prices now: no request waits for them. */
export function readPrices(book: PriceBook, { provider, makers }: Seller): void {
  for (const name of provider === null ? makers : [provider]) book.listModels(name);
}

export function listBookedModels(book: PriceBook, providers: readonly string[]) {
  return providers.flatMap((provider) =>
    book.listModels(provider).flatMap(({ ids }) => ids.map((id) => ({ provider, id }))),
  );
}

export function findPrice(sources: PriceSources, model: string, at: Date): Price | null {
  const { book, overrides, seller = ANY_SELLER } = sources;
  const { names, found } = lookUp(book, seller, model);
  const booked = found?.price(at) ?? null;
  if (overrides.size === 0) return booked;
  const listed = [...overrides];
  for (const name of names) {
    const lower = name.toLowerCase();
    const rates = overrides.get(name) ?? listed.find(([own]) => own.toLowerCase() === lower)?.[1];
    // Kinds that the config does not name have no price.
    // Factors of service tiers come from the book: the config cannot name them.
    if (rates !== undefined) return { source: "config", rates, factors: booked?.factors };
  }
  return booked;
}

export function findModel(book: PriceBook, seller: Seller, model: string): FoundPrice | null {
  return lookUp(book, seller, model).found;
}

type Found = ModelNames & { readonly found: FoundPrice | null };

/** Found prices are kept, since a lookup tries twenty rules. */
const lookedUp = new WeakMap<PriceBook, WeakMap<Seller, Map<string, Found>>>();
const MAX_KEPT = 1000;
const MAX_KEPT_LENGTH = 200;

function lookUp(book: PriceBook, seller: Seller, model: string): Found {
  const known = lookedUp.get(book)?.get(seller)?.get(model);
  if (known !== undefined) return known;
  const names = listNames(model, seller.provider);
  const fresh = { ...names, found: findBooked(book, seller, model, names) };
  const ofBook = lookedUp.getOrInsertComputed(book, () => new WeakMap());
  const kept = ofBook.getOrInsertComputed(seller, () => new BoundedMap(MAX_KEPT));
  if (model.length <= MAX_KEPT_LENGTH) kept.set(model, fresh);
  return fresh;
}

export type FoundPrice = ReturnType<typeof describeFound>;

const FREE = { input: "0", output: "0", cache_read: "0", cache_write: "0", cache_write_5m: "0" };
const FREE_SOURCE = "https://openrouter.ai/docs/guides/routing/model-variants/free";

function findBooked(book: PriceBook, seller: Seller, model: string, names: ModelNames): FoundPrice | null {
  const { provider } = seller;
  if (provider === null) {
    const found = findByName(book, seller.makers, names);
    return found && describeFound(book, found, `${book.label} ${found.provider} (by name)`);
  }
  const own = findIn(book, provider, names);
  // A free variant without an entry of its own costs nothing.
  if (provider === "openrouter" && model.endsWith(":free") && own?.ids.includes(model) !== true)
    return describeFound(book, { provider, ids: [model], periods: [{ rates: FREE }], source: FREE_SOURCE });
  const found = own ?? firstOf(book.fallbacksOf(provider), (other) => findIn(book, other, names));
  return found && describeFound(book, found);
}

function describeFound(book: PriceBook, model: BookedModel, source = `${book.label} ${model.provider}`) {
  const offers = model.periods.map((period) => {
    return { isPaid: isPaidAt(period, book), price: { ...period, source } };
  });
  return {
    model,
    source,
    price: (at: Date): Price | null => offers.findLast(({ isPaid }) => isPaid(at))?.price ?? null,
  };
}

function findIn(book: PriceBook, provider: string, { names }: ModelNames): BookedModel | null {
  return firstOf(names, (name) => book.find(provider, name));
}

function findByName(book: PriceBook, makers: readonly string[], names: ModelNames): BookedModel | null {
  if (names.maker !== null) return findIn(book, names.maker, names);
  const usual = firstOf(makers, (maker) => findIn(book, maker, names));
  if (usual !== null) return usual;
  const found = ALL_MAKERS.flatMap((maker) => findIn(book, maker, names) ?? []);
  return found.length === 1 ? (found[0] ?? null) : null;
}

function firstOf<T, R>(list: readonly T[], find: (each: T) => R | null): R | null {
  return (
    list
      .values()
      .map(find)
      .find((found) => found !== null) ?? null
  );
}
