// Forecasts a model's next answer from its last answers, or from those of the most similar model. A
// cap says little: agents send 128,000 and use a few hundred tokens.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";

/** The mean covers about this many answers. */
const MAX_SAMPLES = 500;
const MAX_MODELS = 500;

interface Means {
  readonly answers: number;
  /** In tokens. */
  readonly output: number;
}

export class AnswerHistory {
  /** By the client's model name, the least recently used first. */
  readonly #models = new BoundedMap<string, Means>(MAX_MODELS);

  add(model: string, output: number): void {
    const { answers: before, output: mean } = this.#models.get(model) ?? { answers: 0, output: 0 };
    const answers = Math.min(MAX_SAMPLES, before + 1);
    this.#models.set(model, { answers, output: mean + (output - mean) / answers });
  }

  /** Tokens. Null: no model of this family has answered. */
  expect(model: string): number | null {
    const means = this.#models.get(model) ?? this.#findSimilar(model);
    return means && Math.ceil(means.output);
  }

  /** The model whose name begins with the most words of this name. */
  #findSimilar(model: string): Means | null {
    const words = listWords(model);
    let most = 0;
    let similar: Means | null = null;
    for (const [name, means] of this.#models) {
      const others = listWords(name);
      const differs = words.findIndex((word, index) => word !== others[index]);
      const common = differs < 0 ? words.length : differs;
      if (common > most) [most, similar] = [common, means];
    }
    return similar;
  }
}

/** `us.anthropic.claude-opus-4-8` → claude, opus, 4, 8. */
function listWords(model: string): string[] {
  const words = model.toLowerCase().split(/[^a-z0-9]+/);
  const first = words.findIndex((word) => FAMILIES.has(word));
  return words.slice(Math.max(0, first));
}

/** Where a model's name begins, after names of clouds and makers. */
const FAMILIES = new Set(["claude", "gpt", "gemini", "grok", "deepseek", "qwen", "mistral"]);
