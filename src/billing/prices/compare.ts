// What another price book would change for a model.

import type { Price } from "./book.ts";
import type { FoundPrice } from "../prices.ts";

export interface PriceChange {
  /** A kind of usage, `factor:service_tier=flex`, `over 200000: input`, or what changes at another time. */
  readonly what: string;
  /** Null: there was, or is, no price. */
  readonly was: string | null;
  readonly now: string | null;
}

const OTHER_TIMES = "prices at other times";

export function comparePrices(
  was: FoundPrice | null,
  now: FoundPrice | null,
  at: Date,
): readonly PriceChange[] {
  const before = flatten(was?.price(at) ?? null);
  const after = flatten(now?.price(at) ?? null);
  const changes = [...new Set([...before.keys(), ...after.keys()])]
    .map((what) => ({ what, was: before.get(what) ?? null, now: after.get(what) ?? null }))
    .filter((change) => change.was !== change.now);
  if (changes.length > 0 || Bun.deepEquals(was?.model.periods, now?.model.periods)) return changes;
  return [{ what: OTHER_TIMES, was: was && "old", now: now && "new" }];
}

/** Each of its decimals with a name. */
function flatten(price: Price | null): ReadonlyMap<string, string> {
  if (price === null) return new Map();
  return new Map([
    ...Object.entries(price.rates),
    ...price.tiers.flatMap(({ over, rates }) =>
      Object.entries(rates).map(([kind, rate]): [string, string] => [`over ${over}: ${kind}`, rate]),
    ),
    ...Object.entries(price.factors).map(([served, factor]): [string, string] => [
      `factor:${served}`,
      factor,
    ]),
  ]);
}
