// bun test/simulate/planted/main.ts [TEXT…]: plants one bug after another (those whose names contain one of the texts) and
// prints how long it took to find each, with which check and seed. Fails if one is not found in five minutes. A seed that
// fails on the code as it is finds nothing.

import { makePlan } from "../plan/make.ts";
import { runPlan } from "../run.ts";
import { bundleProgram } from "../world/bundle.ts";
import { compileProgram } from "../world/process.ts";
import type { Bug } from "./bug.ts";
import { BUGS } from "./bugs.ts";

/** CPU seconds, so that a busy machine makes no difference. */
const MAX_SECONDS = 5 * 60;
const words = process.argv.slice(2);
const unchanged = compileProgram(await bundleProgram());

function countWork(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

async function find({ changes }: Bug): Promise<string | null> {
  const make = compileProgram(await bundleProgram(changes));
  const start = countWork();
  for (let seed = 1; countWork() - start < MAX_SECONDS; seed++) {
    const plan = makePlan(seed);
    const [found] = (await runPlan(plan, make)).accusations;
    if (found === undefined || (await runPlan(plan, unchanged)).accusations.length > 0) continue;
    const seconds = (countWork() - start).toFixed(1).padStart(6);
    return `${seconds} s  seed ${String(seed).padEnd(5)} ${found.check}: ${found.text.slice(0, 150).replaceAll("\n", " ")}`;
  }
  return null;
}

let missed = 0;
for (const bug of BUGS.filter(
  ({ name }) => words.length === 0 || words.some((word) => name.includes(word)),
)) {
  const found = await find(bug);
  if (found === null) missed++;
  console.log(`${bug.name}\n  ${found ?? "NOT FOUND in five minutes"}`);
}
process.exitCode = missed === 0 ? 0 : 1;
