// The program of `bun run simulate`, which README.md explains.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Check, PROMISES } from "./checks/promises.ts";
import { makePlan } from "./plan/make.ts";
import type { Plan } from "./plan/plan.ts";
import { shrink } from "./plan/shrink.ts";
import { type Accusation, type Outcome, runPlan } from "./run.ts";
import { bundleProgram } from "./world/bundle.ts";
import { compileProgram, type Program } from "./world/process.ts";

const HELP = `bun run simulate [--seeds N..M | --commit] [--for 60s|5m|8h] [--story] [--all]

  --seeds N..M    runs these seeds; N: only this one; N.. with --for: from N on
  --commit        the first seed is computed from the commit's hash
  --for TIME      runs one seed after another until the time is over
  --power-cuts    the power is cut twice a second, and nothing else happens
  --regressions   first runs every plan that has ever failed
  --story         shows what happens in each run
  --all           continues after a failure, and counts the failures of each check
  --no-shrink     does not shorten the plan of a failure
  --digest        prints the hash of each run's trace`;

const { values: flags } = parseArgs({
  options: {
    seeds: { type: "string", default: "1..100" },
    commit: { type: "boolean", default: false },
    for: { type: "string", default: "" },
    "power-cuts": { type: "boolean", default: false },
    regressions: { type: "boolean", default: false },
    story: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    "no-shrink": { type: "boolean", default: false },
    digest: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (flags.help) {
  console.log(HELP);
  process.exit(0);
}

const make: Program = compileProgram(await bundleProgram());
const sums = { runs: 0, sends: 0, events: 0, kills: 0, powerCuts: 0 };
const failures = new Map<Check, Array<{ seed: number; text: string }>>();
const start = performance.now();

/** Reads --for. Returns the time after which no run begins. */
function readEnd(): number {
  if (flags.for === "") return Number.POSITIVE_INFINITY;
  const [, count, unit = ""] = /^(\d+)([smh])$/.exec(flags.for) ?? [];
  if (count === undefined) throw new Error(`"${flags.for}" is not a time such as 60s, 5m or 8h`);
  return start + Number(count) * 1000 * 60 ** "smh".indexOf(unit);
}

/** Reads the flags about seeds. Returns the first and the last seed. */
function readSeeds(): [number, number] {
  if (flags.commit) {
    const { stdout } = Bun.spawnSync(["git", "rev-parse", "HEAD"], { cwd: import.meta.dir });
    const from = Number.parseInt(stdout.toString().slice(0, 10), 16);
    return [Number.isNaN(from) ? 1 : from, Number.POSITIVE_INFINITY];
  }
  const [, from = "1", dots, to = ""] = /^(\d+)(\.\.)?(\d*)$/.exec(flags.seeds) ?? [];
  if (dots === undefined) return [Number(from), Number(from)];
  return [Number(from), to === "" ? Number.POSITIVE_INFINITY : Number(to)];
}

/** The lines of the trace that are shown. Lines about bytes and timers are not. */
const SHOWN =
  / is sent | ends \(| gets (?!GET)| answers |says \(|is killed|does not start|FAILED|without power|started again|has stopped|everything works|: (?:kill|cut power|stop|clock|standstill|disk|slow disk|index|upstream down)/;

function printEvent(line: string): void {
  if (!SHOWN.test(line)) return;
  const space = line.indexOf(" ");
  const ms = (Number(line.slice(0, space)) / 1000).toFixed(1).padStart(10);
  console.log(`${ms} ms  ${line.slice(space + 1).replace(/^world: /, "")}`);
}

async function reportFailure(plan: Plan, { check, text }: Accusation): Promise<void> {
  console.log(`\nFAILED ${check}, seed ${plan.seed}: ${text}`);
  console.log(`replay: bun run simulate --seeds ${plan.seed}`);
  if (flags["no-shrink"]) return;
  const fails = async (each: Plan): Promise<boolean> => {
    const { accusations } = await runPlan(each, make);
    return accusations.some((other) => other.check === check);
  };
  const { plan: small, tries } = await shrink(plan, fails);
  await runPlan(small, make, printEvent);
  console.log(`\nThe shortest plan that still fails (${tries} tried), as a line of regressions.jsonl:\n`);
  console.log(JSON.stringify({ check, why: text, plan: small }));
}

function note(seed: number, outcome: Outcome, accusations: readonly Accusation[]): void {
  sums.runs++;
  for (const name of ["sends", "events", "kills", "powerCuts"] as const) sums[name] += outcome[name];
  for (const { check, text } of accusations)
    failures.getOrInsertComputed(check, () => []).push({ seed, text });
}

async function replayRegressions(): Promise<void> {
  const texts = readFileSync(join(import.meta.dir, "regressions.jsonl"), "utf8")
    .trim()
    .split("\n");
  for (const text of texts) {
    const { why, plan }: { why: string; plan: Plan } = JSON.parse(text);
    const outcome = await runPlan(plan, make);
    const found = outcome.accusations.slice(0, 1);
    note(plan.seed, outcome, found);
    for (const accusation of found) console.log(`\nAGAIN (${why}): ${accusation.text}`);
  }
}

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
  const until = readEnd();
  for (let seed = from; seed <= to && performance.now() < until; seed++) {
    const plan = flags["power-cuts"] ? withPowerCuts(makePlan(seed)) : makePlan(seed);
    const outcome = await runPlan(plan, make, flags.story ? printEvent : null);
    if (flags.digest) console.log(`seed ${seed}: ${outcome.digest}`);
    const found = [...new Map(outcome.accusations.toReversed().map((each) => [each.check, each])).values()];
    note(seed, outcome, found);
    const first = found.at(-1);
    if (first === undefined) continue;
    if (!flags.all) return reportFailure(plan, first);
    console.log(`seed ${seed} fails: ${first.check}: ${first.text.slice(0, 200)}`);
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
