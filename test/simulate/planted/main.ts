// bun test/simulate/planted/main.ts [--from SEED] [--rate RUNS] [TEXT…]: plants one bug after another (those whose names
// contain one of the texts) and prints how long it took to find each, with which check and seed. Without --from, the first
// seed is random, so that nothing is tuned to it. Fails if a bug is not found in three minutes. A seed that fails on the code
// as it is finds nothing. With --rate, it makes as many runs of each and prints how many of them show the bug.

import { parseArgs } from "node:util";
import { makePlan } from "../plan/make.ts";
import { type Accusation, runPlan } from "../run.ts";
import { bundleProgram, type Change } from "../world/bundle.ts";
import { compileProgram, type Program } from "../world/process.ts";
import { BUGS, findPlace } from "./bugs.ts";

/** CPU seconds, so that a busy machine makes no difference. */
const MAX_SECONDS = 3 * 60;
const { values: flags, positionals: words } = parseArgs({
  options: { from: { type: "string" }, rate: { type: "string" } },
  allowPositionals: true,
});
const from = Number(flags.from ?? Math.floor(Math.random() * 1e9));
const unchanged = compileProgram(await bundleProgram());

function countWork(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** What a seed shows of the bug. */
async function show(seed: number, make: Program): Promise<Accusation | undefined> {
  const plan = makePlan(seed);
  const [found] = (await runPlan(plan, make)).accusations;
  return found && (await runPlan(plan, unchanged)).accusations.length === 0 ? found : undefined;
}

async function count(change: Change, runs: number): Promise<string> {
  const make = compileProgram(await bundleProgram([change]));
  let shown = 0;
  for (let seed = from; seed < from + runs; seed++) if (await show(seed, make)) shown++;
  return `${shown} of ${runs} runs`;
}

async function find(change: Change): Promise<string | null> {
  const make = compileProgram(await bundleProgram([change]));
  const start = countWork();
  for (let seed = from; countWork() - start < MAX_SECONDS; seed++) {
    const found = await show(seed, make);
    if (found === undefined) continue;
    const seconds = (countWork() - start).toFixed(1);
    return `${seconds} s, run ${seed - from + 1}, ${found.check}: ${found.text.slice(0, 150).replaceAll("\n", " ")}`;
  }
  return null;
}

console.log(`seeds from ${from} on`);
let missed = 0;
for (const bug of BUGS.filter(
  ({ name }) => words.length === 0 || words.some((word) => name.includes(word)),
)) {
  const place = findPlace(bug);
  const runs = Number(flags.rate ?? 0);
  const found = typeof place === "string" ? place : await (runs > 0 ? count(place, runs) : find(place));
  if (found === null || typeof place === "string") missed++;
  console.log(`${bug.name}\n  ${found ?? "NOT FOUND in three minutes"}`);
}
process.exitCode = missed === 0 ? 0 : 1;
