// bun test/simulate/planted/main.ts [--from SEED] [TEXT…]: plants one bug after another (those whose names contain one of the
// texts) and prints how long it took to find each, with which check and seed. Without --from, the first seed is random, so
// that nothing is tuned to it. Fails if a bug is not found in three minutes. A seed that fails on the code as it is finds
// nothing.

import { parseArgs } from "node:util";
import { makePlan } from "../plan/make.ts";
import { runPlan } from "../run.ts";
import { bundleProgram, type Change } from "../world/bundle.ts";
import { compileProgram } from "../world/process.ts";
import { BUGS, findPlace } from "./bugs.ts";

/** CPU seconds, so that a busy machine makes no difference. */
const MAX_SECONDS = 3 * 60;
const { values: flags, positionals: words } = parseArgs({
  options: { from: { type: "string" } },
  allowPositionals: true,
});
const from = Number(flags.from ?? Math.floor(Math.random() * 1e9));
const unchanged = compileProgram(await bundleProgram());

function countWork(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

async function find(change: Change): Promise<string | null> {
  const make = compileProgram(await bundleProgram([change]));
  const start = countWork();
  for (let seed = from; countWork() - start < MAX_SECONDS; seed++) {
    const plan = makePlan(seed);
    const [found] = (await runPlan(plan, make)).accusations;
    if (found === undefined || (await runPlan(plan, unchanged)).accusations.length > 0) continue;
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
  const found = typeof place === "string" ? place : await find(place);
  if (found === null || typeof place === "string") missed++;
  console.log(`${bug.name}\n  ${found ?? "NOT FOUND in three minutes"}`);
}
process.exitCode = missed === 0 ? 0 : 1;
