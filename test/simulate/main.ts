// bun run simulate: see README.md.

import { parseArgs } from "node:util";
import { makePlan } from "./plan/make.ts";
import type { Plan } from "./plan/plan.ts";
import { shrink } from "./plan/shrink.ts";
import { tellLine, tellPlan } from "./plan/story.ts";
import { type Accusation, type Outcome, runPlan } from "./run.ts";
import { bundleProgram } from "./world/bundle.ts";
import { compileProgram } from "./world/process.ts";

const HELP = `bun run simulate [--seed N | --seeds N..M] [--for 60s|5m|8h] [--story] [--all] [--digest]

  --seed N      one run
  --seeds N..M  these runs
  --for TIME    runs from the seed on (default 1) until the time is over
  --story       tells what happens in each run
  --all         goes on after a failure, and counts the failures of each check
  --digest      prints the hash of each run's trace`;

const { values: flags } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    for: { type: "string" },
    story: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    digest: { type: "boolean", default: false },
    "no-shrink": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

function readSpan(text: string): number {
  const match = /^(\d+)(s|m|h)$/.exec(text);
  if (match === null) throw new Error(`not a time: ${text} (60s, 5m, 8h)`);
  return Number(match[1]) * { s: 1000, m: 60_000, h: 3_600_000 }[match[2] as "s" | "m" | "h"];
}

if (flags.help) {
  console.log(HELP);
  process.exit(0);
}

const make = compileProgram(await bundleProgram());
const [from = 1, last] = (flags.seeds ?? flags.seed ?? "1").split("..").map(Number);
const until = flags.for === undefined ? null : performance.now() + readSpan(flags.for);
const to = last ?? (until === null ? from : Number.POSITIVE_INFINITY);

const sums = { runs: 0, sends: 0, arrivals: 0, events: 0, kills: 0, powerCuts: 0 };
const failures = new Map<string, Array<{ seed: number; text: string }>>();
const rejected: unknown[] = [];
process.on("unhandledRejection", (error) => void rejected.push(error));

function tell(line: string): void {
  const told = tellLine(line);
  if (told !== null) console.log(told);
}

function tellFailure(plan: Plan, { check, text }: Accusation): void {
  console.log(`\nFAILED ${check}, seed ${plan.seed}: ${text}`);
  console.log(`replay: bun run simulate --seed ${plan.seed}`);
  if (flags["no-shrink"]) return;
  const { plan: small, tries } = shrink(plan, (each) => runPlan(each, make).accusations.some((other) => other.check === check));
  console.log(`\nThe shortest story of it that was found (${tries} tried):\n`);
  for (const line of tellPlan(small)) console.log(`  ${line}`);
  console.log("");
  runPlan(small, make, tell);
}

function add(outcome: Outcome): void {
  sums.runs++;
  for (const name of ["sends", "arrivals", "events", "kills", "powerCuts"] as const) sums[name] += outcome[name];
}

const start = performance.now();
for (let seed = from; seed <= to && (until === null || performance.now() < until); seed++) {
  const plan = makePlan(seed);
  if (flags.story) for (const line of tellPlan(plan)) console.log(line);
  const outcome = runPlan(plan, make, flags.story ? tell : null);
  add(outcome);
  // Promises that nobody waited for are told of when the runtime's own loop turns.
  await new Promise((resolve) => setImmediate(resolve));
  if (flags.digest) console.log(`seed ${seed}: ${outcome.digest}`);
  const [first] = outcome.accusations;
  if (first === undefined) continue;
  const list = failures.get(first.check) ?? [];
  failures.set(first.check, list);
  list.push({ seed, text: first.text });
  if (!flags.all) {
    tellFailure(plan, first);
    break;
  }
}

const seconds = (performance.now() - start) / 1000;
for (const [check, list] of failures) {
  console.log(`\n${check}: ${list.length} of ${sums.runs} runs`);
  for (const { seed, text } of list.slice(0, 5)) console.log(`  seed ${seed}: ${text.slice(0, 300)}`);
}
console.log(
  `\n${sums.runs} runs, ${sums.sends} requests, ${sums.events} events, ${sums.kills} kills, ${sums.powerCuts} power cuts in ${seconds.toFixed(1)} s` +
    ` (${Math.round((sums.sends / seconds) * 60)} requests a minute); ${failures.size === 0 ? "nothing failed" : "failed"}`,
);
process.exitCode = failures.size === 0 ? 0 : 1;
