// What the next answer of a model will probably be like, from its last ones. A cap says little: agents send 128,000 and
// use a few hundred tokens.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";

/** The mean is that of about this many last answers. */
const MAX_SAMPLES = 500;
const MAX_MODELS = 500;

export interface ExpectedAnswer {
  /** The mean of the outputs, in tokens. */
  readonly output: number;
  /** The mean of the times that the answers took. */
  readonly seconds: number;
}

interface Means extends ExpectedAnswer {
  readonly answers: number;
}

const NONE: Means = { answers: 0, output: 0, seconds: 0 };

export class AnswerHistory {
  /** By the client's name of the model; the one used longest ago comes first. */
  readonly #models = new BoundedMap<string, Means>(MAX_MODELS);

  /** `durationMs`: null if it is not known. */
  add(model: string, output: number, durationMs: number | null): void {
    const means = this.#models.get(model) ?? NONE;
    const answers = Math.min(MAX_SAMPLES, means.answers + 1);
    const move = (mean: number, value: number): number => mean + (value - mean) / answers;
    const seconds = durationMs === null ? means.seconds : move(means.seconds, durationMs / 1000);
    this.#models.set(model, { answers, output: move(means.output, output), seconds });
  }

  /** Null: the model has not answered yet. */
  expect(model: string): ExpectedAnswer | null {
    const means = this.#models.get(model);
    return means === undefined ? null : { output: Math.ceil(means.output), seconds: means.seconds };
  }
}
