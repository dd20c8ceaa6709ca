// Compares charges with those in a shared file, which were calculated by hand. The file is never copied here.

import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { computeCharge, deriveAmounts } from "../../src/billing/charge.ts";
import { loadBook } from "../../src/billing/prices.ts";
import type { Meter } from "../../src/billing/usage.ts";
import { openContentMeter } from "../../src/dialects/meters/content.ts";
import { openMessagesMeter } from "../../src/dialects/meters/messages.ts";
import { openResponsesMeter } from "../../src/dialects/meters/responses.ts";
import { isThere } from "../harness/needs.ts";

const SHARED = new URL("../../../shared/", import.meta.url);
const VECTORS = new URL("reference/pricing-vectors.json", SHARED);
const present = isThere("vectors") && isThere("recordings");

interface Vector {
  name: string;
  fixture: string | null;
  model: string;
  usage: Record<string, unknown>;
  official_usd: string;
  charge_at_multiplier: Record<string, string>;
}

const vectors: Vector[] = present ? JSON.parse(readFileSync(VECTORS, "utf8")).vectors : [];

/** Reads the vector's recording or, without one, a body with the vector's usage. */
function readVector({ fixture, model, usage }: Vector) {
  const family = fixture?.split("/")[0] ?? "gemini";
  const open: Record<string, (contentType: string) => Meter> = {
    anthropic: openMessagesMeter,
    "openai-responses": openResponsesMeter,
    gemini: openContentMeter,
  };
  const file = [".sse", ".json"]
    .map((end) => new URL(`fixtures/${fixture}${end}`, SHARED))
    .find((url) => existsSync(url));
  const meter = open[family]!(
    file?.pathname.endsWith(".sse") === true ? "text/event-stream" : "application/json",
  );
  meter.see(
    file === undefined
      ? Buffer.from(JSON.stringify({ modelVersion: model, usageMetadata: usage }))
      : readFileSync(file),
  );
  return meter.read();
}

describe.skipIf(!present)("a recorded answer costs what was calculated by hand", () => {
  const book = loadBook();
  const cases = vectors.map((vector): [string, Vector] => [vector.name, vector]);
  test.each(cases)("the recorded answer %s costs what was calculated by hand", (_name, vector) => {
    const reading = readVector(vector);
    for (const [multiplier, charge] of Object.entries(vector.charge_at_multiplier)) {
      const charged = computeCharge({
        parts: reading.parts,
        tariff: reading.tariff,
        model: reading.model,
        requested: null,
        book,
        overrides: new Map(),
        at: new Date("2026-11-20T12:00:00Z"),
        multiplier,
      });
      expect(charged).toMatchObject({ unpricedBecause: null, official: vector.official_usd, charge });
      expect(charged.parts.length).toBeGreaterThan(0);
      const { usage, prices, parts } = charged;
      expect(deriveAmounts({ usage, prices, multiplier, parts })).toMatchObject({
        official: vector.official_usd,
        charge,
      });
      if (parts.length === 1) expect(deriveAmounts({ usage, prices, multiplier })).toMatchObject({ charge });
    }
  });
});
