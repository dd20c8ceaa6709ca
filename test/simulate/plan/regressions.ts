// The plans that ever failed, one JSON document a line. Where no shorter plan fails, the line has the seed alone.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeHttpPlan } from "./make.ts";
import type { Plan } from "./plan.ts";

const PATH = join(import.meta.dir, "../regressions.jsonl");

export interface Regression {
  /** The check that it failed. */
  readonly check: string;
  /** What was wrong, in a sentence. */
  readonly why: string;
  readonly plan: Plan;
}

type Kept = Omit<Regression, "plan"> & ({ readonly plan: Plan } | { readonly seed: number });

export function readRegressions(): Regression[] {
  if (!existsSync(PATH)) return [];
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
