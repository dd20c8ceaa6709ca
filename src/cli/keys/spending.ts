// What the ledger knows about a key: when it was last used, and what it has spent.

import { readSums } from "../../billing/ledger/sums.ts";
import type { Catalog } from "../../config/catalog.ts";
import { formatUsd } from "../../lib/money.ts";

export interface KeySpending {
  readonly lastUsed: Date | null;
  /** Decimals in USD; days are UTC. */
  readonly spentToday: string;
  readonly spentTotal: string;
}

/** A function from a key's name to its spending. Reads the ledger once. */
export function readSpending({ ledger, keys }: Catalog, now: number): (name: string) => KeySpending {
  const sums = readSums(ledger.path);
  const read = (name: string): KeySpending => {
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
