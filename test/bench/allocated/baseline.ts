// What the exact counts were when somebody last agreed to them. They must not grow.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Sample } from "../bench.ts";
import { WHAT } from "./exact.ts";
import type { Results } from "../results/measures.ts";

const FILE = join(import.meta.dir, "baseline.json");
const UPDATE = "bun run bench --only allocations --update-baseline";

interface Baseline {
  /** A share. Two runs differ by less. */
  readonly tolerance: number;
  readonly bytes: Sample;
}

function readBaseline(): Baseline {
  const read: Baseline = JSON.parse(readFileSync(FILE, "utf8"));
  return read;
}

/** One line for each count that is more than the baseline allows. */
export function findRegressions(counted: Sample, { tolerance, bytes } = readBaseline()): string[] {
  return Object.entries(bytes).flatMap(([what, before]) => {
    const now = counted[what];
    if (now === undefined || now <= before * (1 + tolerance)) return [];
    return [
      `${what}: ${now.toFixed(0)}, was ${before}: ${((now / before - 1) * 100).toFixed(1)} % more. If that is worth it: ${UPDATE}`,
    ];
  });
}

/** The counts among the results. */
export function readCounts(results: Results, target: string): Sample {
  const counts = results.metrics.filter((metric) => metric.startsWith(WHAT));
  return Object.fromEntries(counts.map((metric) => [metric, results.read(target, metric)?.median ?? 0]));
}

/** Counts that were not made now stay. */
export function updateBaseline(counted: Sample): void {
  const { tolerance, bytes } = readBaseline();
  const rounded = Object.entries(counted).map(([what, now]) => [what, Math.round(now)]);
  const document = { tolerance, bytes: { ...bytes, ...Object.fromEntries(rounded) } };
  writeFileSync(FILE, `${JSON.stringify(document, null, 2)}\n`);
}
