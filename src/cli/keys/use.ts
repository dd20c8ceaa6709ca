// What the ledger tells of a key: when it was last used, and what it has spent.

import { readSums } from "../../billing/ledger/sums.ts";
import type { Catalog } from "../../config/catalog.ts";
import { formatUsd } from "../../lib/money.ts";

export interface KeyUse {
  readonly lastUsed: Date | null;
  /** Decimals in USD; days are UTC. */
  readonly spentToday: string;
  readonly spentTotal: string;
}

/** By the key's name; for every key of the catalog. */
export function readKeyUse({ ledger, keys }: Catalog, now: number): (name: string) => KeyUse {
  const sums = readSums(ledger.path);
  const read = (name: string): KeyUse => {
    const time = sums.lastUsed(name);
    const holder = { kind: "key", name } as const;
    return {
      lastUsed: time === null ? null : new Date(time),
      spentToday: formatUsd(sums.spentOf(holder, "day", now)),
      spentTotal: formatUsd(sums.spentOf(holder, "total", now)),
    };
  };
  const uses = new Map([...keys.keys()].map((name) => [name, read(name)]));
  return (name) => uses.get(name) ?? read(name);
}
