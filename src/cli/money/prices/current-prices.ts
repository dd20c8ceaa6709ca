// The prices that count now, for commands that compute what a ledger's usage costs with them.

import { loadPriceBook, sellerOf } from "../../../billing/prices.ts";
import type { CurrentPrices } from "../../../billing/report/line-charge.ts";
import type { Loaded } from "../../../config/file/load.ts";
import { readCalls } from "../../../dialects/meters/messages.ts";

/** Without a config: those of the built-in book. */
export function readCurrentPrices(loaded: Loaded | null): CurrentPrices {
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
