// Which models a config names, and whether a model has a price at a channel.

import { findPrice, type PriceBook, sellerOf } from "../../../billing/prices.ts";
import type { Catalog } from "../../../config/catalog.ts";
import { resolveModel } from "../../../gateway/intake/match.ts";

export function hasPrice(catalog: Catalog, book: PriceBook, channelName: string, model: string): boolean {
  const channel = catalog.channels.get(channelName);
  const seller = channel && sellerOf(channel);
  const name = (channel && resolveModel(channel, model)) ?? model;
  if (seller?.free === true) return true;
  return findPrice({ book, overrides: catalog.prices, seller }, name, new Date()) !== null;
}

/** What the config names itself: exact names in `models`, and aliases. */
export function listNamedModels({
  channels,
}: Pick<Catalog, "channels">): { channel: string; model: string }[] {
  return [...channels.values()].flatMap(({ name, models, aliases, disabled }) => {
    if (disabled === true) return [];
    const plain = (models ?? []).filter((model) => !model.includes("*"));
    return [...plain, ...aliases.keys()].map((model) => ({ channel: name, model }));
  });
}
