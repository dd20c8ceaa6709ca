// What the next answer of a model will probably be like: its output and how long it takes, from the model's last answers,
// or else from those of the most similar model. Agents send caps of 128,000 tokens and use a few hundred, so a cap says
// little (docs/contract.md, "Limits").

import { BoundedMap } from "../../lib/memory/bounded-map.ts";

/** Older ones say less about the model's present use. */
const MAX_SAMPLES = 500;
const MAX_MODELS = 500;

export interface ExpectedAnswer {
  /** The mean of the outputs, in tokens. */
  readonly output: number;
  /** The mean of the times that the answers took; null: not known. */
  readonly seconds: number | null;
}

/** The mean of the last values of something. */
class Samples {
  readonly #values: number[] = [];
  /** Which one the next replaces. */
  #next = 0;
  #sum = 0;

  add(value: number): void {
    this.#sum += value - (this.#values[this.#next] ?? 0);
    this.#values[this.#next] = value;
    this.#next = (this.#next + 1) % MAX_SAMPLES;
  }

  get mean(): number | null {
    const { length } = this.#values;
    return length === 0 ? null : this.#sum / length;
  }
}

interface Answers {
  readonly outputs: Samples;
  readonly seconds: Samples;
}

export class AnswerHistory {
  /** By the client's name of the model; the one used longest ago comes first. */
  readonly #models = new BoundedMap<string, Answers>(MAX_MODELS);

  /** `durationMs`: null if it is not known. */
  add(model: string, output: number, durationMs: number | null): void {
    const answers = this.#models.get(model) ?? { outputs: new Samples(), seconds: new Samples() };
    answers.outputs.add(output);
    if (durationMs !== null) answers.seconds.add(durationMs / 1000);
    this.#models.set(model, answers);
  }

  /** Null: no model of this family has answered. */
  expect(model: string): ExpectedAnswer | null {
    const answers = this.#models.get(model) ?? this.#findSimilar(model);
    return answers && { output: Math.ceil(answers.outputs.mean ?? 0), seconds: answers.seconds.mean };
  }

  /** The one whose name begins with the most words of this name. */
  #findSimilar(model: string): Answers | null {
    const words = listWords(model);
    let most = 0;
    let similar: Answers | null = null;
    for (const [name, answers] of this.#models) {
      const others = listWords(name);
      const differs = words.findIndex((word, index) => word !== others[index]);
      const common = differs < 0 ? words.length : differs;
      if (common > most) [most, similar] = [common, answers];
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
