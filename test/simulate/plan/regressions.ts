// The plans that have ever failed, one JSON document on each line. A line has only a seed if no shorter plan fails.

import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeHttpPlan } from "./make.ts";
import type { Plan } from "./plan.ts";

const PATH = join(import.meta.dir, "../regressions.jsonl");

export interface Regression {
  /** The name of the check that failed. */
  readonly check: string;
  /** What was wrong, in one sentence. */
  readonly why: string;
  readonly plan: Plan;
}

type Kept = Omit<Regression, "plan"> & ({ readonly plan: Plan } | { readonly seed: number });

export function readRegressions(): Regression[] {
  const lines = readFileSync(PATH, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line): Regression => {
    const kept: Kept = JSON.parse(line);
    return "plan" in kept ? kept : { ...kept, plan: makeHttpPlan(kept.seed) };
  });
}

export function keepRegression(regression: Regression): void {
  appendFileSync(PATH, `${JSON.stringify(regression)}\n`);
}
