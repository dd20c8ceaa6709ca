// The order of measuring: in each round, one target after the other, so that a noisy machine affects all.

import { type Bench, describeRequest } from "./bench.ts";
import { countAllocated, countLayer } from "./allocated/exact.ts";
import { measureAllocations } from "./parts/allocations.ts";
import { measureConsole } from "./parts/console.ts";
import { LAYERS } from "./targets/layer-list.ts";
import { planLayers } from "./targets/layers.ts";
import {
  buildEmpty,
  measureColdStart,
  measureCommands,
  measureFlatness,
  measureMemory,
} from "./parts/lifecycle.ts";
import { makeFolder, readMemory } from "./machine.ts";
import { Results } from "./results/measures.ts";
import { planPeers } from "./targets/peers.ts";
import { LONG_LEDGER, makeBook, measureReports, SHORT_LEDGER } from "./parts/reports.ts";
import { type Scenario, SCENARIOS } from "./parts/scenarios.ts";
import {
  type Commands,
  direct,
  planGateway,
  planNginx,
  type Recipe,
  type Target,
} from "./targets/targets.ts";

export interface Plan {
  readonly commands: Commands;
  /** What to measure. */
  readonly only: ReadonlySet<string>;
  readonly quick: boolean;
  readonly peers: boolean;
  readonly layers: boolean;
  /** Reports the progress. */
  readonly note: (text: string) => void;
}

/** In addition to the scenarios. */
export const EXTRAS = ["memory", "flatness", "start", "reports", "console", "allocations"] as const;

export async function measure(plan: Plan, bench: Bench): Promise<Results> {
  const { commands, only } = plan;
  const results = new Results();
  const gateways = Object.entries(commands).map(([name, command]) => planGateway(name, command, bench.cores));
  const nginx = planNginx(bench.cores);
  const recipes = [direct, ...(nginx === null ? [] : [nginx]), ...gateways];
  await measureScenarios(recipes, plan, bench, results);
  await measureAllocated(plan, bench, results);
  if (only.has("start")) await measureStarts(plan, bench, results);
  if (only.has("reports")) measureBooks(plan, bench, results);
  if (only.has("console")) await measurePages(plan, bench, results);
  for (const recipe of only.has("memory") ? gateways : []) {
    plan.note(`memory of ${recipe.name}`);
    results.add(recipe.name, await measureMemory(recipe, bench));
  }
  for (const recipe of only.has("flatness") ? gateways : []) {
    plan.note(`flatness of ${recipe.name}`);
    results.add(recipe.name, await measureFlatness(recipe, bench));
  }
  return results;
}

async function measureAllocated(plan: Plan, bench: Bench, results: Results): Promise<void> {
  const { commands, only } = plan;
  for (const [name, command] of only.has("allocations") ? Object.entries(commands) : []) {
    if (name === "executable") continue; // the same code
    plan.note(`allocations of ${name}`);
    results.add(name, await countAllocated(command, "all"));
    results.add(name, await measureAllocations(command, bench));
  }
  for (const { name } of only.has("allocations") && plan.layers ? LAYERS : [])
    results.add(name, await countLayer(name));
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
  for (const recipe of plan.layers ? planLayers(bench.cores) : [])
    targets.push(await recipe.start(bench.upstream.port));
  for (const recipe of plan.peers ? planPeers(bench.cores) : []) {
    plan.note(`fetching ${recipe.name}`);
    targets.push(...(await invite(recipe, bench, results)));
  }
  for (const target of targets) await warmUp(target, bench);
  for (const scenario of chosen) await measureRounds(scenario, targets, plan, bench, results);
  for (const target of targets) await leave(target, results);
}

async function measureRounds(
  scenario: Scenario,
  targets: readonly Target[],
  plan: Plan,
  bench: Bench,
  results: Results,
): Promise<void> {
  const able: Target[] = [];
  for (const target of targets) {
    const known = target.guest === null && plan.quick;
    if (known || (await tryOut(scenario, target, bench, results))) able.push(target);
  }
  for (let round = 0; round < bench.rounds; round += 1) {
    plan.note(`${scenario.name} ${round + 1}/${bench.rounds}`);
    for (const target of able) results.add(target.name, await scenario.run(target, bench));
  }
}

async function leave({ name, pid, guest, stop }: Target, results: Results): Promise<void> {
  if (guest !== null) results.notes.push(guest);
  if (pid !== null) results.add(name, { "memory MB, after the rounds": readMemory(pid) });
  await stop();
}

/** Without a peer that cannot be installed, the benchmark goes on, with a note. */
async function invite(recipe: Recipe, { upstream }: Bench, results: Results): Promise<Target[]> {
  try {
    return [await recipe.start(upstream.port)];
  } catch (error) {
    results.notes.push(`${recipe.name} was not measured: ${error instanceof Error ? error.message : "?"}`);
    return [];
  }
}

const WARM_MS = 2000;

/** A just-in-time compiler is slow in its first seconds, but users' gateways run for days. */
async function warmUp(target: Target, { load }: Bench): Promise<void> {
  if (target.pid === null) return;
  const request = describeRequest(target, "json");
  await load.run({ do: "repeat", request, connections: 64, warmMs: 0, ms: WARM_MS });
}

/** Whether it answers correctly: a peer may not, and then its numbers mean nothing. */
async function tryOut(scenario: Scenario, target: Target, bench: Bench, results: Results): Promise<boolean> {
  if (target.guest !== null && scenario.common !== true) return false;
  const { errors = 0 } = await scenario.run(target, { ...bench, ms: Math.min(bench.ms, 200) });
  if (errors === 0 || target.guest === null) return true;
  results.notes.push(`${target.name} was not measured in ${scenario.name}: it answered with errors`);
  return false;
}

async function measureStarts({ commands, note }: Plan, bench: Bench, results: Results): Promise<void> {
  const folder = makeFolder();
  const empty = await buildEmpty(folder);
  for (let round = 0; round < bench.rounds; round += 1) {
    note(`start ${round + 1}`);
    for (const [name, command] of Object.entries(commands)) {
      results.add(name, await measureColdStart(command, bench));
      results.add(name, measureCommands(command));
    }
    results.add("empty executable", measureCommands([empty]));
  }
  folder.remove();
}

async function measurePages({ commands, quick, note }: Plan, bench: Bench, results: Results): Promise<void> {
  const lines = quick ? SHORT_LEDGER : LONG_LEDGER;
  for (const [name, command] of Object.entries(commands)) {
    note(`the page of ${name}`);
    for (const sample of await measureConsole(command, bench, lines)) results.add(name, sample);
  }
}

function measureBooks({ commands, quick, note }: Plan, bench: Bench, results: Results): void {
  note("a ledger to report on");
  const book = makeBook(quick ? SHORT_LEDGER : LONG_LEDGER);
  for (let round = 0; round < (quick ? 1 : 5); round += 1) {
    for (const [name, command] of Object.entries(commands)) {
      note(`reports ${round + 1}`);
      results.add(name, measureReports(command, book, bench.cores));
    }
  }
  book.folder.remove();
}
