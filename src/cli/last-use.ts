// When each key was last used, by the key's name, as the ledger tells it.

import { readSums } from "../billing/ledger-sums.ts";
import type { Catalog } from "../config/catalog.ts";

export async function readLastUse({ ledger, keys }: Catalog): Promise<ReadonlyMap<string, Date>> {
  const sums = readSums(ledger.path);
  const used = new Map<string, Date>();
  for (const name of keys.keys()) {
    const time = sums.lastUsed(name);
    if (time !== null) used.set(name, new Date(time));
  }
  return used;
}
