// Many samples → medians and spread, a table, the goals.

import type { Sample } from "../bench.ts";

export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** Target → metric → one number for each round. */
export class Results {
  readonly #samples = new Map<string, Map<string, number[]>>();

  add(target: string, sample: Sample): void {
    const metrics = this.#samples.get(target) ?? new Map<string, number[]>();
    this.#samples.set(target, metrics);
    for (const [metric, value] of Object.entries(sample))
      metrics.set(metric, [...(metrics.get(metric) ?? []), value]);
  }

  get targets(): readonly string[] {
    return [...this.#samples.keys()];
  }

  get metrics(): readonly string[] {
    return [...new Set([...this.#samples.values()].flatMap((metrics) => [...metrics.keys()]))];
  }

  rounds(target: string, metric: string): readonly number[] {
    return this.#samples.get(target)?.get(metric) ?? [];
  }

  read(target: string, metric: string): Spread | null {
    const rounds = this.rounds(target, metric);
    return rounds.length === 0 ? null : readSpread(rounds);
  }
}

export function readSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
  return { median, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 };
}

export function writeTable(results: Results): string {
  const { targets } = results;
  const rows = results.metrics
    .filter(
      (metric) =>
        metric !== "errors" || targets.some((target) => (results.read(target, metric)?.most ?? 0) > 0),
    )
    .map((metric) => [metric, ...targets.map((target) => writeSpread(results.read(target, metric)))]);
  return alignRows([["", ...targets], ...rows]);
}

function writeSpread(spread: Spread | null): string {
  if (spread === null) return "";
  const { median, least, most } = spread;
  return least === most
    ? writeNumber(median)
    : `${writeNumber(median)} (${writeNumber(least)}–${writeNumber(most)})`;
}

export function writeNumber(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

function alignRows(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  "),
    )
    .join("\n");
}
