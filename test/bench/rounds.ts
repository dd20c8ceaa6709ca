// The order of measuring: rounds, in each of them one target after the other, so that a noisy machine weighs on all.

import type { Bench } from "./bench.ts";
import { measureColdStart, measureFlatness, measureMemory, measureVersion } from "./lifecycle.ts";
import { readMemory } from "./machine.ts";
import { Results } from "./measures.ts";
import { planPeers } from "./peers.ts";
import { makeBook, measureReports } from "./reports.ts";
import { type Scenario, SCENARIOS } from "./scenarios.ts";
import { type Commands, direct, planGateway, planNginx, type Recipe, type Target } from "./targets.ts";

export interface Plan {
  readonly commands: Commands;
  /** What to measure. */
  readonly only: ReadonlySet<string>;
  readonly quick: boolean;
  readonly peers: boolean;
  /** How far it has come. */
  readonly tell: (text: string) => void;
}

/** Besides the scenarios. */
export const EXTRAS = ["memory", "flatness", "start", "reports"] as const;

export async function measure(plan: Plan, bench: Bench): Promise<Results> {
  const { commands, only } = plan;
  const results = new Results();
  const gateways = Object.entries(commands).map(([name, command]) => planGateway(name, command, bench.cores));
  const nginx = planNginx(bench.cores);
  const proxies = [...(nginx === null ? [] : [nginx]), ...gateways];
  await measureScenarios([direct, ...proxies], plan, bench, results);
  if (only.has("start")) await measureStarts(plan, bench, results);
  if (only.has("reports")) measureBooks(plan, bench, results);
  for (const recipe of only.has("memory") ? proxies : []) {
    plan.tell(`memory of ${recipe.name}`);
    results.add(recipe.name, await measureMemory(recipe, bench));
  }
  for (const recipe of only.has("flatness") ? gateways : []) {
    plan.tell(`flatness of ${recipe.name}`);
    results.add(recipe.name, await measureFlatness(recipe, bench));
  }
  return results;
}

async function measureScenarios(
  recipes: readonly Recipe[],
  plan: Plan,
  bench: Bench,
  results: Results,
): Promise<void> {
  const chosen = SCENARIOS.filter(({ name }) => plan.only.has(name));
  if (chosen.length === 0) return;
  const targets: Target[] = [];
  for (const recipe of recipes) targets.push(await recipe.start(bench.upstream.port));
  for (const recipe of plan.peers ? planPeers(bench.cores) : []) {
    plan.tell(`fetching ${recipe.name}`);
    targets.push(...(await invite(recipe, bench, results)));
  }
  results.notes.push(...targets.flatMap(({ guest }) => guest ?? []));
  for (const scenario of chosen) {
    const able = [];
    for (const target of targets) if (await warm(scenario, target, bench, results)) able.push(target);
    for (let round = 0; round < bench.rounds; round += 1) {
      plan.tell(`${scenario.name} ${round + 1}/${bench.rounds}`);
      for (const target of able) results.add(target.name, await scenario.run(target, bench));
    }
  }
  for (const target of targets) {
    if (target.pid !== null)
      results.add(target.name, { "memory MB, after the rounds": readMemory(target.pid) });
    await target.stop();
  }
}

/** Nothing and a note, where a peer can't be had: the benchmark goes on without it. */
async function invite(recipe: Recipe, { upstream }: Bench, results: Results): Promise<Target[]> {
  try {
    return [await recipe.start(upstream.port)];
  } catch (error) {
    results.notes.push(`${recipe.name} was not measured: ${error instanceof Error ? error.message : "?"}`);
    return [];
  }
}

/** Whether it answers as it should: a proxy from elsewhere may not, and what it does instead is no measure. */
async function warm(scenario: Scenario, target: Target, bench: Bench, results: Results): Promise<boolean> {
  if (target.guest !== null && scenario.common !== true) return false;
  const { errors = 0 } = await scenario.run(target, { ...bench, ms: Math.min(bench.ms, 500) });
  if (errors === 0 || target.guest === null) return true;
  results.notes.push(`${target.name} was not measured in ${scenario.name}: it answered with errors`);
  return false;
}

async function measureStarts({ commands, tell }: Plan, bench: Bench, results: Results): Promise<void> {
  for (let round = 0; round < bench.rounds + 2; round += 1) {
    tell(`start ${round + 1}`);
    for (const [name, command] of Object.entries(commands)) {
      results.add(name, await measureColdStart(command, bench));
      results.add(name, measureVersion(command));
    }
  }
}

function measureBooks({ commands, quick, tell }: Plan, bench: Bench, results: Results): void {
  tell("a ledger to report on");
  const book = makeBook(quick ? 100_000 : 400_000);
  for (let round = 0; round < Math.min(5, bench.rounds); round += 1) {
    for (const [name, command] of Object.entries(commands)) {
      tell(`reports ${round + 1}`);
      results.add(name, measureReports(command, book, bench.cores));
    }
  }
  book.folder.remove();
}
