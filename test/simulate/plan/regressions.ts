// The plans that ever failed, one JSON document a line.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plan } from "./plan.ts";

const PATH = join(import.meta.dir, "../regressions.jsonl");

export interface Regression {
  /** The check that it failed. */
  readonly check: string;
  /** What was wrong, in a sentence. */
  readonly why: string;
  /** Not fixed yet: that it fails is told, and is no failure. */
  readonly open?: boolean;
  readonly plan: Plan;
}

export function readRegressions(): Regression[] {
  if (!existsSync(PATH)) return [];
  const lines = readFileSync(PATH, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line): Regression => JSON.parse(line));
}

export function keepRegression(regression: Regression): void {
  appendFileSync(PATH, `${JSON.stringify(regression)}\n`);
}
