// How many output tokens a response of a model will probably have: what the longest 1 % of its recent responses
// used. Agents send caps of 128,000 tokens and use a few hundred, so a cap says little (docs/contract.md, "Limits").

import { BoundedMap } from "../../lib/memory/bounded-map.ts";

/** A percentile of 1 % needs some hundred values. Older ones say less about the model's present use. */
const MAX_SAMPLES = 500;
const MAX_MODELS = 500;
const SHARE = 0.99;

interface Samples {
  readonly outputs: number[];
  /** Which one the next replaces. */
  next: number;
}

export class OutputHistory {
  /** By the client's name of the model; the one used longest ago comes first. */
  readonly #models = new BoundedMap<string, Samples>(MAX_MODELS);

  add(model: string, output: number): void {
    const samples = this.#models.get(model) ?? { outputs: [], next: 0 };
    samples.outputs[samples.next] = output;
    samples.next = (samples.next + 1) % MAX_SAMPLES;
    this.#models.set(model, samples);
  }

  /** Null: the model has no recent response. */
  expect(model: string): number | null {
    const samples = this.#models.get(model);
    if (samples === undefined) return null;
    const sorted = samples.outputs.toSorted((a, b) => a - b);
    return sorted[Math.ceil(sorted.length * SHARE) - 1] ?? null;
  }
}
