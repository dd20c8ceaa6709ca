// Reads what a call of a tool endpoint costs: the tokens that the answer reports, or else the call itself. These are the
// endpoints that Codex calls for its tools, a search and pictures.

import type { Meter, Reading } from "../../billing/usage.ts";
import { getField, getName, isObject } from "../../lib/json/json.ts";
import { CountReader } from "./counts.ts";
import { openMeter, type UsageReader, type UsageReport } from "./meter.ts";
import { readOpenaiUsage } from "./openai.ts";

/** The name that has the price of a call: `prices: { codex-search: { call_per_1k: "10" } }`. */
export const SEARCH_PRICE = "codex-search";

export function openSearchMeter(contentType: string): Meter {
  return openMeter(contentType, new CallReader(SEARCH_PRICE));
}

export function openImagesMeter(contentType: string): Meter {
  return openMeter(contentType, new CallReader(null));
}

class CallReader implements UsageReader {
  // All that a body has is read: without usage, nothing marks it.
  readonly needles = ['"usage"', '"error"', '"type"'];
  readonly shape = { model: true, type: true, usage: true, error: { message: true } } as const;

  readonly #name: string | null;
  #model: string | null = null;
  #raw: unknown = null;
  #end: Reading["end"] = "open";

  /** `name`: that of the call, if it is not priced as the model. */
  constructor(name: string | null) {
    this.#name = name;
  }

  learn(event: unknown): void {
    this.#model = getName(getField(event, "model")) ?? this.#model;
    const usage = getField(event, "usage");
    if (isObject(usage)) this.#raw = usage;
    if (isObject(getField(event, "error"))) this.#end = "error";
    // Pictures that are streamed: image_generation.completed, image_edit.completed.
    else if (getName(getField(event, "type"))?.endsWith(".completed") === true) this.#end = "complete";
  }

  measureText(): number {
    return 0;
  }

  report(): UsageReport {
    const counts = new CountReader();
    const tokens = readOpenaiUsage(this.#raw, "responses", counts);
    return {
      model: tokens === null ? (this.#name ?? this.#model) : this.#model,
      parts: [{ model: null, pass: "message", usage: tokens ?? { call: 1 } }],
      faults: counts.faults,
      raw: this.#raw,
      tariff: {},
      end: this.#end,
      final: this.#end === "complete",
    };
  }
}
