// `bun run prices`: makes the price book out of the maintained price package and overlay.json. A test compares it.

import { writeFileSync } from "node:fs";
import { findProvider } from "@pydantic/genai-prices";
import { makeBook } from "../src/billing/prices/convert.ts";
import overlay from "../src/billing/prices/overlay.json";
import { publishedSchema } from "../src/billing/prices/published.ts";
import { KNOWN_PROVIDERS } from "../src/billing/prices/sellers.ts";

export const PACKAGE = "@pydantic/genai-prices 0.1.8";

export function buildBook(): string {
  const providers = KNOWN_PROVIDERS.flatMap((providerId) => findProvider({ providerId }) ?? []);
  return makeBook(publishedSchema.parse(providers), {
    date: overlay.revision,
    source: PACKAGE,
    strict: true,
  });
}

if (import.meta.main)
  writeFileSync(new URL("../src/billing/prices/book.jsonl", import.meta.url), buildBook());
