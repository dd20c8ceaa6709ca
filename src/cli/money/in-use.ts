// The current prices, and which models in use have one.

import { findPrice, loadBook, type PriceBook, sellerOf } from "../../billing/prices.ts";
import type { CurrentPrices } from "../../billing/reports/reprice.ts";
import type { listSeenModels } from "../../billing/reports/requests.ts";
import type { Catalog } from "../../config/catalog.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { readCalls } from "../../dialects/meters/messages.ts";
import { resolveModel } from "../../gateway/intake/match.ts";

export type ModelInUse = Readonly<ReturnType<typeof listSeenModels>[number]>;

export function hasPrice(
  catalog: Catalog,
  book: PriceBook,
  { channel: name, model, answeredBy }: ModelInUse,
): boolean {
  const channel = catalog.channels.get(name);
  const seller = channel && sellerOf(channel);
  if (seller?.free === true) return true;
  const at = new Date();
  const isPriced = (each: string): boolean =>
    findPrice(
      {
        book,
        overrides: catalog.prices,
        seller,
      },
      each,
      at,
    ) !== null;
  const requested = (channel && resolveModel(channel, model)) ?? model;
  return isPriced(requested) || (answeredBy.size > 0 && [...answeredBy].every(isPriced));
}

export function listInUse({ channels }: Catalog, ledger: readonly ModelInUse[]): readonly ModelInUse[] {
  const named = [...channels.values()].flatMap(({ name: channel, models, aliases, disabled }) => {
    const plain = (models ?? []).filter((model) => !model.includes("*"));
    const all = disabled ? [] : [...plain, ...aliases.keys()];
    return all.map((model) => ({
      channel,
      model,
      answeredBy: new Set<string>(),
      requests: 0,
    }));
  });
  const seen = ledger.filter(({ channel }) => channels.has(channel));
  const known = new Map([...named, ...seen].map((each) => [`${each.channel}\n${each.model}`, each]));
  return [...known.values()].toSorted((a, b) => b.requests - a.requests);
}

export function readCurrentPrices(loaded: Pick<LoadedConfig, "catalog" | "path"> | null): CurrentPrices {
  const { catalog, path = null } = loaded ?? {};
  return {
    book: loadBook(path),
    overrides: catalog?.prices ?? new Map(),
    sellerOf: (name) => {
      const channel = catalog?.channels.get(name);
      return channel && sellerOf(channel);
    },
    readCalls,
  };
}
