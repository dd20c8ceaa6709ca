// Reads the usage of an answer with embeddings: the prompt's tokens only. The vectors, as numbers or in base64, pass
// unread. https://platform.openai.com/docs/api-reference/embeddings/object

import type { Meter } from "../../billing/usage.ts";
import { getField, getName, isObject } from "../../lib/json/json.ts";
import { CountReader } from "./counts.ts";
import { openMeter, type UsageReader, type UsageReport } from "./meter.ts";
import { readOpenaiUsage } from "./openai.ts";

export function openEmbeddingsMeter(contentType: string): Meter {
  return openMeter(contentType, new EmbeddingsReader());
}

class EmbeddingsReader implements UsageReader {
  readonly needles = ['_tokens"', '"error"'];
  readonly shape = { model: true, usage: true, error: { message: true } } as const;

  #model: string | null = null;
  #raw: unknown = null;
  #failed = false;

  learn(body: unknown): void {
    this.#model = getName(getField(body, "model")) ?? this.#model;
    const usage = getField(body, "usage");
    if (isObject(usage)) this.#raw = usage;
    if (isObject(getField(body, "error"))) this.#failed = true;
  }

  measureText(): number {
    return 0;
  }

  report(): UsageReport {
    const counts = new CountReader();
    const usage = readOpenaiUsage(this.#raw, "embeddings", counts);
    return {
      model: this.#model,
      parts: usage === null ? [] : [{ model: null, pass: "message", usage }],
      faults: counts.faults,
      raw: this.#raw,
      tariff: {},
      end: this.#failed ? "error" : "open",
      final: false,
    };
  }
}
