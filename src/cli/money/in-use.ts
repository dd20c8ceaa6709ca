// The prices that count now, and which models in use have one.

import { findPrice, type PriceBook, sellerOf, loadPriceBook } from "../../billing/prices.ts";
import type { Catalog } from "../../config/catalog.ts";
import { resolveModel } from "../../gateway/intake/match.ts";
import type { CurrentPrices } from "../../billing/reports/reprice.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { readCalls } from "../../dialects/meters/messages.ts";

/** A model that is used through a channel, or that the config names there. */
export interface ModelInUse {
  readonly channel: string;
  readonly model: string;
  /** As its answers call it; empty: none has come. */
  readonly answeredBy: ReadonlySet<string>;
  readonly requests: number;
}

/** As requests are priced: by the answer's name for the model, else by the requested one. */
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
    findPrice({ book, overrides: catalog.prices, seller }, each, at) !== null;
  const requested = (channel && resolveModel(channel, model)) ?? model;
  return isPriced(requested) || (answeredBy.size > 0 && [...answeredBy].every(isPriced));
}

const NOT_ANSWERED: ReadonlySet<string> = new Set();

/** What the config names itself: exact names in `models`, and aliases. */
function listNamedModels({ channels }: Pick<Catalog, "channels">): ModelInUse[] {
  return [...channels.values()].flatMap(({ name, models, aliases, disabled }) => {
    if (disabled) return [];
    const plain = (models ?? []).filter((model) => !model.includes("*"));
    return [...plain, ...aliases.keys()].map((model) => ({
      channel: name,
      model,
      answeredBy: NOT_ANSWERED,
      requests: 0,
    }));
  });
}

/** What a ledger has seen, of the channels that there still are, and what the config names itself. */
export function listInUse(catalog: Catalog, ledger: readonly ModelInUse[]): readonly ModelInUse[] {
  const seen = ledger.filter(({ channel }) => catalog.channels.has(channel));
  const known = new Map<string, ModelInUse>();
  for (const each of [...listNamedModels(catalog), ...seen])
    known.set(`${each.channel}\n${each.model}`, each);
  return [...known.values()].toSorted((a, b) => b.requests - a.requests);
}

/** Without a config: those of the built-in book. */
export function readCurrentPrices(loaded: Pick<LoadedConfig, "catalog" | "path"> | null): CurrentPrices {
  const { catalog, path = null } = loaded ?? {};
  return {
    book: loadPriceBook(path),
    overrides: catalog?.prices ?? new Map(),
    sellerOf: (name) => {
      const channel = catalog?.channels.get(name);
      return channel && sellerOf(channel);
    },
    readCalls,
  };
}
