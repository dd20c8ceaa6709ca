// Which prices each part of an answer pays, and whose they are. What that comes to is charge.ts.

import { findPrice, type Overrides, type Price, type PriceBook, type Seller } from "../prices.ts";
import { type TariffChoice, chooseNothing, chooseTariff } from "../tariff.ts";
import type { Part, Tariff, Usage } from "../usage.ts";

export interface BilledAnswer {
  readonly parts: readonly Part[];
  readonly tariff: Tariff;
  /** The model that the answer names. */
  readonly model: string | null;
  /** The requested model: used if the answer names none, or one that has no price. */
  readonly requested: string | null;
  readonly book: PriceBook;
  readonly overrides: Overrides;
  /** Whose prices are paid; absent: the channel is not known. */
  readonly seller?: Seller | undefined;
  /** Why nothing is charged whatever was used, as the line says it for a source of prices; absent: it is charged. */
  readonly unbilled?: string | undefined;
  readonly at: Date;
  readonly multiplier: string;
}

/** A part of an answer with its prices. */
export interface PricedPart {
  readonly model: string;
  readonly pass: string;
  readonly usage: Usage;
  /** Null where no price is known. */
  readonly chosen: TariffChoice | null;
  readonly source: string | null;
  /** The requested model's name, if its price was used because the answer's own name has none. */
  readonly pricedAs: string | null;
  /** What has no price; null: all has. */
  readonly because: string | null;
}

export function priceParts(billed: BilledAnswer): readonly PricedPart[] {
  return billed.parts.flatMap((part) => pricePart(part, billed));
}

/** Long-prompt prices count for each call to the model by itself: where several are reported, each is a part. */
function pricePart(part: Part, billed: BilledAnswer): PricedPart[] {
  const { model, pass, usage, calls = [] } = part;
  const name = model ?? billed.model ?? billed.requested;
  const free = billed.seller?.free === true ? "free" : billed.unbilled;
  if (free !== undefined) {
    const paid = { source: free, pricedAs: null, chosen: chooseNothing(usage) };
    return [payFor(part, name ?? "", paid)];
  }
  if (name === null) return [leaveUnpriced(part, "", "the answer names no model")];
  const found = priceOf(name, model === null, billed);
  if (found === null) return [leaveUnpriced(part, name, `no price for ${name}`)];
  const { price, pricedAs } = found;
  const isByCall = price.tiers.length > 0 && calls.length > 1;
  const pieces = isByCall ? calls.map((call) => ({ model, pass, usage: call })) : [part];
  return pieces.map((piece) => {
    const chosen = chooseTariff(price, piece.usage, billed.tariff);
    if ("missing" in chosen) return leaveUnpriced(piece, name, `no price for ${chosen.missing} of ${name}`);
    // The requested model has no price for a search, either: nothing is priced as that model.
    const isUseless = chosen.unpriced.length > 0 && Object.keys(chosen.prices).length === 0;
    if (pricedAs !== null && isUseless) return leaveUnpriced(piece, name, `no price for ${name}`);
    return payFor(piece, name, { source: price.source, pricedAs, chosen });
  });
}

interface Paid {
  readonly source: string;
  readonly pricedAs: string | null;
  readonly chosen: TariffChoice;
}

function payFor({ pass, usage }: Part, model: string, paid: Paid): PricedPart {
  const { unpriced } = paid.chosen;
  const because = unpriced.length > 0 ? `no price for ${unpriced.join(" and ")} of ${model}` : null;
  const { source, pricedAs, chosen } = paid;
  return { model, pass, usage, chosen, source, pricedAs, because };
}

function leaveUnpriced({ pass, usage }: Part, model: string, because: string): PricedPart {
  return { model, pass, usage, chosen: null, source: null, pricedAs: null, because };
}

/** If the answer's own name for its model has no price, the requested model's price is used. */
function priceOf(
  name: string,
  isOwn: boolean,
  { book, overrides, seller, requested, at }: BilledAnswer,
): { readonly price: Price; readonly pricedAs: string | null } | null {
  const sources = { book, overrides, seller };
  const own = findPrice(sources, name, at);
  if (own !== null) return { price: own, pricedAs: null };
  if (!isOwn || requested === null || requested === name) return null;
  const price = findPrice(sources, requested, at);
  return price && { price, pricedAs: requested };
}
