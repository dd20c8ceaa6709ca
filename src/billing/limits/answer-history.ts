// What the next answer of a model will probably be like: its output and how long it takes, from the model's last answers,
// or else from those of the most similar model. Agents send caps of 128,000 tokens and use a few hundred, so a cap says
// little (docs/contract.md, "Limits").

import { BoundedMap } from "../../lib/memory/bounded-map.ts";

/** From this many answers on, a new one has this weight in the mean, so that old ones count less and less. */
const MAX_SAMPLES = 500;
const MAX_MODELS = 500;

export interface ExpectedAnswer {
  /** The mean of the outputs, in tokens. */
  readonly output: number;
  /** The mean of the times that the answers took; null: not known. */
  readonly seconds: number | null;
}

interface Means {
  readonly answers: number;
  readonly output: number;
  readonly timed: number;
  readonly seconds: number;
}

const NONE: Means = { answers: 0, output: 0, timed: 0, seconds: 0 };

export class AnswerHistory {
  /** By the client's name of the model; the one used longest ago comes first. */
  readonly #models = new BoundedMap<string, Means>(MAX_MODELS);

  /** `durationMs`: null if it is not known. */
  add(model: string, output: number, durationMs: number | null): void {
    const means = this.#models.get(model) ?? NONE;
    const answers = Math.min(MAX_SAMPLES, means.answers + 1);
    const timed = Math.min(MAX_SAMPLES, means.timed + (durationMs === null ? 0 : 1));
    this.#models.set(model, {
      answers,
      output: means.output + (output - means.output) / answers,
      timed,
      seconds:
        durationMs === null ? means.seconds : means.seconds + (durationMs / 1000 - means.seconds) / timed,
    });
  }

  /** Null: no model of this family has answered. */
  expect(model: string): ExpectedAnswer | null {
    const means = this.#models.get(model) ?? this.#findSimilar(model);
    return means && { output: Math.ceil(means.output), seconds: means.timed === 0 ? null : means.seconds };
  }

  /** The one whose name begins with the most words of this name. */
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

/** Where the name of a model begins, behind those of clouds and makers. */
const FAMILIES: ReadonlySet<string> = new Set([
  "claude",
  "gpt",
  "gemini",
  "grok",
  "deepseek",
  "qwen",
  "mistral",
]);
