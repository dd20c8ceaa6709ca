// `bun run bench`: what the gateway costs, beside the upstream itself, nginx and others. Flags → rounds → report.

import { parseArgs } from "node:util";
import { startLoad, startUpstream } from "./ends.ts";
import { judge, type Verdict } from "./goals.ts";
import { measureColdStart, measureFlatness, measureMemory, measureVersion } from "./lifecycle.ts";
import { describeMachine, planCores, stopAll } from "./machine.ts";
import { alignRows, Results, writeNumber, writeTable } from "./measures.ts";
import { profile } from "./profile.ts";
import type { Bench, Sample } from "./bench.ts";
import { makeBook, measureReports } from "./reports.ts";
import { SCENARIOS } from "./scenarios.ts";
import { direct, listCommands, planGateway, planNginx, type Recipe, type Target } from "./targets.ts";

const EXTRAS = ["memory", "flatness", "start", "reports"] as const;
const PARTS: readonly string[] = [...SCENARIOS.map(({ name }) => name), ...EXTRAS];

const HELP = `bun run bench [flags]
  --quick              under a minute: short rounds, no long run of leaving clients
  --rounds N           rounds of every scenario, one target after the other in each (3 with --quick, else 9)
  --ms N               of each measurement (300 with --quick, else 2000)
  --only A,B           of ${PARTS.join(", ")}
  --executable FILE    the compiled gateway, measured beside the source (dist/gateway when it exists)
  --against FOLDER     another checkout of this project, measured beside this one
  --profile SCENARIO   a CPU profile of the gateway in one scenario instead of measurements
  --json               the results as one JSON document
`;

function readFlags() {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      ms: { type: "string" },
      only: { type: "string" },
      executable: { type: "string" },
      against: { type: "string" },
      profile: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const only = values.only?.split(",") ?? PARTS.filter((part) => !values.quick || part !== "flatness");
  for (const part of [...only, ...(values.profile === undefined ? [] : [values.profile])]) {
    if (!PARTS.includes(part)) throw new Error(`There is no "${part}": ${PARTS.join(", ")}.`);
  }
  return {
    ...values,
    only: new Set(only),
    rounds: Number(values.rounds ?? (values.quick ? 3 : 9)),
    ms: Number(values.ms ?? (values.quick ? 300 : 2000)),
  };
}

type Flags = ReturnType<typeof readFlags>;

async function openBench({ rounds, ms }: Flags): Promise<Bench> {
  const cores = planCores();
  return { cores, upstream: await startUpstream(cores), load: startLoad(cores?.load ?? null), rounds, ms };
}

async function measure(flags: Flags, bench: Bench): Promise<Results> {
  const results = new Results();
  const commands = listCommands(flags);
  const gateways = Object.entries(commands).map(([name, command]) => planGateway(name, command, bench.cores));
  const nginx = planNginx(bench.cores);
  const recipes = [direct, ...(nginx === null ? [] : [nginx]), ...gateways];
  await measureScenarios(recipes, flags, bench, results);
  if (flags.only.has("start")) await measureStarts(commands, bench, results);
  if (flags.only.has("reports")) measureBooks(commands, flags, bench, results);
  if (flags.only.has("memory"))
    await measureEach(recipes.slice(1), results, (recipe) => measureMemory(recipe, bench));
  if (flags.only.has("flatness"))
    await measureEach(gateways, results, (recipe) => measureFlatness(recipe, bench));
  return results;
}

async function measureScenarios(
  recipes: readonly Recipe[],
  flags: Flags,
  bench: Bench,
  results: Results,
): Promise<void> {
  const chosen = SCENARIOS.filter(({ name }) => flags.only.has(name));
  if (chosen.length === 0) return;
  const targets: Target[] = [];
  for (const recipe of recipes) targets.push(await recipe.start(bench.upstream.port));
  for (const scenario of chosen) {
    for (const target of targets) await scenario.run(target, { ...bench, ms: 200 });
    for (let round = 0; round < flags.rounds; round += 1) {
      tell(`${scenario.name} ${round + 1}/${flags.rounds}`);
      for (const target of targets) results.add(target.name, await scenario.run(target, bench));
    }
  }
  for (const target of targets) await target.stop();
}

async function measureStarts(
  commands: ReturnType<typeof listCommands>,
  bench: Bench,
  results: Results,
): Promise<void> {
  for (let round = 0; round < bench.rounds + 2; round += 1) {
    tell(`start ${round + 1}`);
    for (const [name, command] of Object.entries(commands)) {
      results.add(name, await measureColdStart(command, bench));
      results.add(name, measureVersion(command));
    }
  }
}

function measureBooks(
  commands: ReturnType<typeof listCommands>,
  flags: Flags,
  bench: Bench,
  results: Results,
): void {
  tell("a ledger to report on");
  const book = makeBook(flags.quick ? 100_000 : 400_000);
  for (let round = 0; round < Math.min(5, bench.rounds); round += 1) {
    for (const [name, command] of Object.entries(commands)) {
      tell(`reports ${round + 1}`);
      results.add(name, measureReports(command, book, bench.cores));
    }
  }
  book.folder.remove();
}

async function measureEach(
  recipes: readonly Recipe[],
  results: Results,
  run: (recipe: Recipe) => Promise<Sample>,
): Promise<void> {
  for (const recipe of recipes) {
    tell(`memory of ${recipe.name}`);
    results.add(recipe.name, await run(recipe));
  }
}

function writeReport(results: Results, machine: string): string {
  const verdicts = ["gateway", "executable"].map((target) => writeVerdicts(target, judge(results, target)));
  return [machine, writeTable(results), ...verdicts].filter((part) => part !== "").join("\n\n");
}

function writeVerdicts(target: string, verdicts: readonly Verdict[]): string {
  if (verdicts.length === 0) return "";
  const rows = verdicts.map(({ goal, measured, met }) => [
    `  ${goal}`,
    writeNumber(measured),
    met ? "met" : "MISSED",
  ]);
  return `${target}:\n${alignRows(rows)}`;
}

function writeJson(results: Results, machine: string): string {
  const targets = results.targets.map((target) => [
    target,
    Object.fromEntries(
      results.metrics.map((metric) => [
        metric,
        { ...results.read(target, metric), rounds: results.rounds(target, metric) },
      ]),
    ),
  ]);
  const goals = Object.fromEntries(
    ["gateway", "executable"].map((target) => [target, judge(results, target)]),
  );
  return JSON.stringify(
    { machine, date: new Date().toISOString(), targets: Object.fromEntries(targets), goals },
    null,
    2,
  );
}

function tell(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
}

async function run(): Promise<void> {
  const flags = readFlags();
  if (flags.help) {
    process.stdout.write(HELP);
    return;
  }
  const bench = await openBench(flags);
  try {
    if (flags.profile !== undefined) {
      process.stdout.write(await profile(flags.profile, bench));
      return;
    }
    const results = await measure(flags, bench);
    tell("");
    const machine = describeMachine(bench.cores);
    process.stdout.write(`${flags.json ? writeJson(results, machine) : writeReport(results, machine)}\n`);
  } finally {
    await stopAll();
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => void stopAll().then(() => process.exit(1)));
}
await run();
