// A CPU profile of the gateway while one part of the benchmark runs.

import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bench } from "./bench.ts";
import { measureConsole } from "./parts/console.ts";
import { measureColdStart, measureFlatness, measureMemory } from "./parts/lifecycle.ts";
import { makeBook, measureReports, SHORT_LEDGER } from "./parts/reports.ts";
import type { EXTRAS } from "./rounds.ts";
import { SCENARIOS } from "./parts/scenarios.ts";
import { MAIN, planGateway } from "./targets/targets.ts";

const PROFILE_MS = 5000;

type Part = (command: readonly string[], bench: Bench) => unknown;

const LIFE: Record<Exclude<(typeof EXTRAS)[number], "allocations">, Part> = {
  memory: (command, bench) => measureMemory(planGateway("gateway", command, bench.cores), bench),
  flatness: (command, bench) => measureFlatness(planGateway("gateway", command, bench.cores), bench),
  start: measureColdStart,
  reports: (command, { cores }) => {
    const book = makeBook(SHORT_LEDGER);
    measureReports(command, book, cores);
    book.folder.remove();
  },
  console: (command, bench) => measureConsole(command, bench, SHORT_LEDGER),
};

function findPart(name: string): Part | undefined {
  const scenario = SCENARIOS.find((candidate) => candidate.name === name);
  if (scenario === undefined) return Object.entries(LIFE).find(([part]) => part === name)?.[1];
  return async (command, bench) => {
    const target = await planGateway("gateway", command, bench.cores).start(bench.upstream.port);
    await scenario.run(target, { ...bench, ms: PROFILE_MS });
    await target.stop();
  };
}

/** Writes two profiles for each process, one for a browser's developer tools and one to read; says where. */
export async function profile(name: string, bench: Bench): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "gateway-profile-"));
  const flags = ["--cpu-prof", "--cpu-prof-md", `--cpu-prof-dir=${folder}`];
  await findPart(name)?.([process.execPath, ...flags, MAIN], bench);
  return `${readdirSync(folder)
    .map((file) => join(folder, file))
    .join("\n")}\n`;
}
