// The results, for people and for programs.

import { readSpread, type Results, writeNumber, writeTable } from "./measures.ts";

const CEILING = "requests/s, 64 connections";

export function writeReport(results: Results, machine: string): string {
  return [machine, writeTable(results), writeCeiling(results)].filter((part) => part !== "").join("\n\n");
}

/** Shows that the two ends are not the bottleneck. */
function writeCeiling(results: Results): string {
  const alone = results.read("direct", CEILING)?.median;
  const proxies = results.targets
    .filter((target) => target !== "direct")
    .map((target) => results.read(target, CEILING)?.median ?? 0);
  const fastest = Math.max(...proxies);
  if (alone === undefined || !(fastest > 0)) return "";
  const ratio = writeNumber(alone / fastest);
  return `The load generator and upstream alone reach ${writeNumber(alone)} requests/s: ${ratio} × the fastest proxy.`;
}

export function writeJson(results: Results, machine: string): string {
  const targets = results.targets.map((target) => [
    target,
    Object.fromEntries(
      results.metrics.flatMap((metric) => {
        const rounds = results.rounds(target, metric);
        return rounds.length === 0 ? [] : [[metric, { ...readSpread(rounds), rounds }]];
      }),
    ),
  ]);
  const document = {
    machine,
    date: new Date().toISOString(),
    targets: Object.fromEntries(targets),
  };
  return JSON.stringify(document, null, 2);
}
