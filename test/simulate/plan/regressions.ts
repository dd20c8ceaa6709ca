// The plans that have ever failed, one JSON document on each line.

import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plan } from "./plan.ts";

const PATH = join(import.meta.dir, "../regressions.jsonl");

export interface Regression {
  /** The name of the check that failed. */
  readonly check: string;
  /** What was wrong, in one sentence. */
  readonly why: string;
  readonly plan: Plan;
}

export function readRegressions(): Regression[] {
  const lines = readFileSync(PATH, "utf8").trim().split("\n");
  return lines.map((line): Regression => JSON.parse(line));
}

export function keepRegression(regression: Regression): void {
  appendFileSync(PATH, `${JSON.stringify(regression)}\n`);
}
