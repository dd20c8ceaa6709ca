// `bun run prices`: makes book.jsonl out of the maintained price package and overlay.json. Runs by hand and in a
// test, never in the gateway.

import { writeFileSync } from "node:fs";
import { findProvider } from "@pydantic/genai-prices";
import { makeBook } from "./convert.ts";
import overlay from "./overlay.json";
import { publishedSchema } from "./published.ts";
import { KNOWN_PROVIDERS } from "./sellers.ts";

export const PACKAGE = "@pydantic/genai-prices 0.1.8";

export function buildBook(): string {
  const providers = KNOWN_PROVIDERS.flatMap((providerId) => findProvider({ providerId }) ?? []);
  return makeBook(publishedSchema.parse(providers), {
    date: overlay.revision,
    source: PACKAGE,
    strict: true,
  });
}

if (import.meta.main) writeFileSync(new URL("book.jsonl", import.meta.url), buildBook());
