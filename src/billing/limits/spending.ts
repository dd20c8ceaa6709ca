// A key's last use and spending, from the ledger.

import { type Births, Sums } from "../ledger/sums.ts";
import { findReset, listUsdLimits } from "./limits.ts";
import type { Catalog } from "../../config/catalog.ts";
import { formatUsd } from "../../lib/money.ts";

export function listBirths(keys: Catalog["keys"]): Births {
  return new Map(
    [...keys.values()].flatMap(({ name, created }) => (created ? [[name, created.getTime()]] : [])),
  );
}

export function openSums({ ledger: { path }, keys, zone }: Catalog, now: number, isCopy: boolean): Sums {
  const births = listBirths(keys);
  return new Sums({ path, zone, births, isCopy, now: () => now, report: () => {} });
}

export function readSpending(catalog: Catalog, now: number, isCopy: boolean) {
  const { keys, zone } = catalog;
  const sums = openSums(catalog, now, isCopy);
  return (name: string) => {
    const holder = { kind: "key", name } as const;
    const time = sums.lastUsed(name);
    const limits = keys.get(name)?.limits;
    return {
      lastUsed: time === null ? null : new Date(time),
      spentToday: formatUsd(sums.spentOf(holder, "day").charged),
      spentTotal: formatUsd(sums.spentOf(holder, "total").charged),
      /** `estimated`: what limits count for requests with unknown cost. */
      limits: (limits === undefined ? [] : listUsdLimits(limits)).map(({ limit, usd, window }) => {
        const { charged, estimated } = sums.spentOf(holder, window);
        const reset = findReset(window, zone, now);
        const resets = reset === null ? null : new Date(reset);
        return { limit, usd, spent: formatUsd(charged), estimated: formatUsd(estimated), resets };
      }),
    };
  };
}
