// What a request may cost at worst, as far as its body tells: the prompt by its
// size, the output by the cap that the client set. For limits only, never for a bill.

import { asBuffer } from "../lib/bytes.ts";
import { parseJson } from "../lib/json/json.ts";
import { type Span, scanTopLevel } from "../lib/json/json-spans.ts";
import { computeCharge } from "./charge.ts";
import type { Overrides, PriceBook, Seller } from "./prices.ts";

export interface Asked {
  /** The request's body, decompressed. */
  readonly body: Uint8Array;
  readonly estimatedInput: number;
  readonly model: string | null;
  readonly multiplier: string;
  readonly book: PriceBook;
  readonly overrides: Overrides;
  readonly seller?: Seller | undefined;
  readonly at: Date;
}

const CAPS = ["max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig"] as const;

/** A decimal in USD; null where the model has no price. Without a cap only the prompt is reserved. */
export function reserve({ body, estimatedInput, model, ...billed }: Asked): string | null {
  const usage = { input: estimatedInput, output: readOutputCap(body) };
  return computeCharge({
    ...billed,
    parts: [{ model, pass: "message", usage }],
    tariff: {},
    model,
    requested: model,
  }).charge;
}

/** The cap on output tokens, wherever a dialect puts it; 0 when there is none. */
function readOutputCap(body: Uint8Array): number {
  const scan = scanTopLevel(body, CAPS);
  if (scan.kind !== "object") return 0;
  const caps = CAPS.map((name) => readCap(body, scan.spans.get(name)));
  return Math.max(...caps);
}

function readCap(body: Uint8Array, span: Span | undefined): number {
  if (span === undefined) return 0;
  const value = parseJson(asBuffer(body).toString("utf8", span.start, span.end));
  const cap =
    typeof value === "object" && value !== null && "maxOutputTokens" in value ? value.maxOutputTokens : value;
  return typeof cap === "number" && Number.isSafeInteger(cap) && cap > 0 ? cap : 0;
}
