// The usage of embeddings, searches and pictures. Some have only a fee.
// https://platform.openai.com/docs/api-reference/embeddings/object

import type { Reading, Usage } from "../../billing/usage.ts";
import { getField, getName, isObject } from "../../lib/json/json.ts";
import { CountReader } from "../../billing/counts.ts";
import { listNeedles, meterOf, type UsageReader, type UsageReport } from "./meter.ts";
import { readOpenaiUsage } from "./openai.ts";

/** In a config: `prices: { codex-search: { call_per_1k: "10" } }`. */
export const SEARCH_PRICE = "codex-search";

interface Endpoint {
  readonly names?: "embeddings";
  /** The name in the price book, if it is not the model's. */
  readonly name?: string;
  /** The usage of an answer that reports none. */
  readonly call?: Usage;
}

class BodyReader implements UsageReader {
  // An event without usage is found by its type.
  readonly needles = listNeedles('"usage"', '"error"', '"type"');

  readonly #endpoint: Endpoint;
  #model: string | null = null;
  #raw: unknown = null;
  #end: Reading["end"] = "open";

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  learn(event: unknown): void {
    this.#model = getName(getField(event, "model")) ?? this.#model;
    const usage = getField(event, "usage");
    if (isObject(usage)) this.#raw = usage;
    if (isObject(getField(event, "error"))) this.#end = "error";
    // Streamed pictures: image_generation.completed, image_edit.completed.
    else if (getName(getField(event, "type"))?.endsWith(".completed") === true) this.#end = "complete";
  }

  measureText(): number {
    return 0;
  }

  report(): UsageReport {
    const { names = "responses", name, call } = this.#endpoint;
    const counts = new CountReader();
    const tokens = readOpenaiUsage(this.#raw, names, counts);
    const usage = tokens ?? call;
    return {
      model: tokens === null ? (name ?? this.#model) : this.#model,
      parts: usage === undefined ? [] : [{ model: null, pass: "message", usage }],
      faults: counts.faults,
      rawUsage: this.#raw,
      tariff: {},
      end: this.#end,
      final: this.#end === "complete",
    };
  }
}

const CALL = { call: 1 };

export const openSearchMeter = meterOf(() => new BodyReader({ name: SEARCH_PRICE, call: CALL }));
export const openImagesMeter = meterOf(() => new BodyReader({ call: CALL }));
export const openEmbeddingsMeter = meterOf(() => new BodyReader({ names: "embeddings" }));
