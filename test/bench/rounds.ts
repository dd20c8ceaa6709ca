// The order of measuring: in each round, one target after the other, so that a noisy machine affects all.

import { type Bench, describeRequest } from "./bench.ts";
import { SCENARIOS } from "./parts/scenarios.ts";
import { measureColdStart } from "./parts/start.ts";
import { Results } from "./results/measures.ts";
import { type Commands, direct, planGateway, planNginx, type Target } from "./targets/targets.ts";

export interface Plan {
  readonly commands: Commands;
  /** What to measure. */
  readonly only: ReadonlySet<string>;
  /** Reports the progress. */
  readonly note: (text: string) => void;
}

const START = "start";
export const PARTS: readonly string[] = [...SCENARIOS.map(({ name }) => name), START];

export async function measure({ commands, only, note }: Plan, bench: Bench): Promise<Results> {
  const results = new Results();
  const nginx = planNginx(bench.cores);
  const recipes = [
    direct,
    ...(nginx === null ? [] : [nginx]),
    ...Object.entries(commands).map(([name, command]) => planGateway(name, command, bench.cores)),
  ];
  const chosen = SCENARIOS.filter(({ name }) => only.has(name));
  const targets: Target[] = [];
  for (const recipe of chosen.length === 0 ? [] : recipes)
    targets.push(await recipe.start(bench.upstream.port));
  for (const target of targets) await warmUp(target, bench);
  for (const scenario of chosen) {
    for (let round = 0; round < bench.rounds; round += 1) {
      note(`${scenario.name} ${round + 1}/${bench.rounds}`);
      for (const target of targets) results.add(target.name, await scenario.run(target, bench));
    }
  }
  for (const target of targets) await target.stop();
  for (let round = 0; only.has(START) && round < bench.rounds; round += 1) {
    note(`${START} ${round + 1}`);
    for (const [name, command] of Object.entries(commands))
      results.add(name, await measureColdStart(command, bench));
  }
  return results;
}

const WARM_MS = 2000;

/** A just-in-time compiler is slow in its first seconds, but users' gateways run for days. */
async function warmUp(target: Target, { load }: Bench): Promise<void> {
  if (target.pid === null) return;
  const request = describeRequest(target, "json");
  await load.run({ do: "repeat", request, connections: 64, warmMs: 0, ms: WARM_MS });
}
