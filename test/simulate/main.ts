// `bun run simulate`. README.md explains it.

import { parseArgs } from "node:util";
import { type Check, PROMISES } from "./checks/promises.ts";
import { makePlan } from "./plan/make.ts";
import type { Plan } from "./plan/plan.ts";
import { keepRegression, readRegressions } from "./plan/regressions.ts";
import { shrink } from "./plan/shrink.ts";
import { describeEvent, describePlan } from "./plan/story.ts";
import { type Accusation, type Outcome, runPlan } from "./run.ts";
import { bundleProgram } from "./world/bundle.ts";
import { compileProgram, type Program } from "./world/process.ts";

const HELP = `bun run simulate [--seed N | --seeds N..M | --commit] [--for 60s|5m|8h] [--story] [--all]

  --seed N        one run
  --seeds N..M    these runs. N.. with --for: from N on
  --commit        the first seed is computed from the commit's hash
  --for TIME      runs one seed after another until the time is over
  --power-cuts    nothing else happens, and that twice a second
  --regressions   first runs every plan that has ever failed
  --story         shows what happens in each run
  --all           continues after a failure, and counts the failures of each check
  --no-shrink     does not shorten the plan of a failure
  --keep WHY      adds a failure's shortest plan to regressions.jsonl
  --digest        prints the hash of each run's trace`;

const { values: flags } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    commit: { type: "boolean", default: false },
    for: { type: "string" },
    "power-cuts": { type: "boolean", default: false },
    regressions: { type: "boolean", default: false },
    story: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    "no-shrink": { type: "boolean", default: false },
    keep: { type: "string" },
    digest: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (flags.help) {
  console.log(HELP);
  process.exit(0);
}

const make: Program = compileProgram(await bundleProgram());
const sums = { runs: 0, sends: 0, arrivals: 0, events: 0, kills: 0, powerCuts: 0 };
const failures = new Map<Check, Array<{ seed: number; text: string }>>();
const start = performance.now();

function readSpan(text: string): number {
  const [, count, unit = ""] = /^(\d+)([smh])$/.exec(text) ?? [];
  if (count === undefined) throw new Error(`"${text}" is not a time such as 60s, 5m or 8h`);
  return Number(count) * 1000 * 60 ** "smh".indexOf(unit);
}

/** The first and the last seed. */
function readSeeds(): [number, number] {
  const endless = flags.for !== undefined;
  if (flags.commit) {
    const { stdout } = Bun.spawnSync(["git", "rev-parse", "HEAD"], { cwd: import.meta.dir });
    const from = Number.parseInt(stdout.toString().slice(0, 10), 16);
    return [Number.isNaN(from) ? 1 : from, Number.POSITIVE_INFINITY];
  }
  const named = flags.seeds ?? flags.seed;
  const [from = 1, to] = (named ?? "1")
    .split("..")
    .filter((part) => part !== "")
    .map(Number);
  if (named === undefined && !endless) return [1, flags.regressions ? 0 : 100];
  return [from, to ?? (endless ? Number.POSITIVE_INFINITY : from)];
}

function printEvent(line: string): void {
  const text = describeEvent(line);
  if (text !== null) console.log(text);
}

async function reportFailure(plan: Plan, accusation: Accusation): Promise<void> {
  const { check, text } = accusation;
  console.log(`\nFAILED ${check}, seed ${plan.seed}: ${text}`);
  console.log(`replay: bun run simulate --seed ${plan.seed}`);
  if (flags["no-shrink"]) return;
  const fails = async (each: Plan): Promise<boolean> => {
    const { accusations } = await runPlan(each, make);
    return accusations.some((other) => other.check === check);
  };
  const { plan: small, tries } = await shrink(plan, fails);
  console.log(`\nThe shortest plan that still fails (${tries} tried):\n`);
  for (const line of describePlan(small)) console.log(`  ${line}`);
  console.log("");
  await runPlan(small, make, printEvent);
  if (flags.keep === undefined) return;
  keepRegression({ check, why: flags.keep, plan: small });
}

function add(outcome: Outcome): void {
  sums.runs++;
  for (const name of ["sends", "arrivals", "events", "kills", "powerCuts"] as const)
    sums[name] += outcome[name];
}

function note(seed: number, { check, text }: Accusation): void {
  failures.getOrInsertComputed(check, () => []).push({ seed, text });
}

async function replayRegressions(): Promise<void> {
  for (const { check, why, plan } of readRegressions()) {
    const outcome = await runPlan(plan, make);
    add(outcome);
    const found = outcome.accusations.find((each) => each.check === check) ?? outcome.accusations[0];
    if (found === undefined) continue;
    console.log(`\nAGAIN (${why}): ${found.text}`);
    note(plan.seed, found);
  }
}

const listener = flags.story ? printEvent : null;

function withPowerCuts(plan: Plan): Plan {
  const happenings = Array.from({ length: 12 }, (_, index) => ({
    kind: "cut power" as const,
    atMs: 300 + index * 450 + (plan.seed % 40) * 10,
    afterSteps: 1,
    downMs: 30,
  }));
  return { ...plan, happenings };
}

async function runSeeds(): Promise<void> {
  const [from, to] = readSeeds();
  const until = flags.for === undefined ? Number.POSITIVE_INFINITY : start + readSpan(flags.for);
  for (let seed = from; seed <= to && performance.now() < until; seed++) {
    const plan = flags["power-cuts"] ? withPowerCuts(makePlan(seed)) : makePlan(seed);
    if (flags.story) for (const line of describePlan(plan)) console.log(line);
    const outcome = await runPlan(plan, make, listener);
    add(outcome);
    if (flags.digest) console.log(`seed ${seed}: ${outcome.digest}`);
    const byCheck = Map.groupBy(outcome.accusations, ({ check }) => check);
    const [first, ...others] = [...byCheck.values()].flatMap(([accusation]) => accusation ?? []);
    if (first === undefined) continue;
    for (const accusation of [first, ...others]) note(seed, accusation);
    if (flags.all) {
      console.log(`seed ${seed} fails: ${first.check}: ${first.text.slice(0, 200)}`);
      continue;
    }
    await reportFailure(plan, first);
    return;
  }
}

if (flags.regressions) await replayRegressions();
await runSeeds();

const seconds = (performance.now() - start) / 1000;
const { user, system } = process.cpuUsage();
const minutesOfWork = (user + system) / 60e6;
for (const [check, list] of failures) {
  console.log(`\n${check} (${PROMISES[check].join(", ")}): ${list.length} of ${sums.runs} runs`);
  for (const { seed, text } of list.slice(0, 5)) console.log(`  seed ${seed}: ${text.slice(0, 300)}`);
}
console.log(
  `\n${sums.runs} runs, ${sums.sends} requests, ${sums.events} events, ${sums.kills} kills, ${sums.powerCuts} power cuts in ${seconds.toFixed(1)} s` +
    ` (${Math.round(sums.sends / minutesOfWork)} requests per minute of one core); ${failures.size === 0 ? "nothing failed" : "failed"}`,
);
process.exitCode = failures.size === 0 ? 0 : 1;
