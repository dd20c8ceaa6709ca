// `bun run bench`: what the gateway costs, compared with the upstream itself, nginx and others. Flags → rounds → report.

import { parseArgs } from "node:util";
import { findRegressions, readCounts, updateBaseline } from "./allocated/baseline.ts";
import type { Bench } from "./bench.ts";
import { startLoad, startUpstream } from "./wire/ends.ts";
import { describeMachine, planCores, stopAll } from "./machine.ts";
import { profile } from "./profile.ts";
import type { Results } from "./results/measures.ts";
import { writeJson, writeReport } from "./results/report.ts";
import { EXTRAS, measure } from "./rounds.ts";
import { SCENARIOS } from "./parts/scenarios.ts";
import { listCommands } from "./targets/targets.ts";

const PARTS: readonly string[] = [...SCENARIOS.map(({ name }) => name), ...EXTRAS];

/** However short the rounds are. */
const LONG = new Set(["bridge", "flatness", "open-streams"]);

const HELP = `bun run bench [flags]
  --quick              under a minute: short rounds, a short ledger, no chat bridge, no long run of leaving clients
  --rounds N           rounds of every scenario, one target after the other in each (3 with --quick, else 9)
  --ms N               of each measurement (200 with --quick, else 2000)
  --only A,B           of ${PARTS.join(", ")}
  --executable A,B     compiled gateways, measured beside the source (dist/gateway when it exists)
  --against FOLDER     another checkout of this project, measured beside this one
  --peers              Portkey and claude-code-router too, from npm in temporary folders
  --layers             the floor, and what each of the gateway's duties adds to it, as programs beside it; also with "allocations"
  --profile PART       a CPU profile of the gateway in one of them instead of measurements
  --update-baseline    with "allocations": these counts are the new baseline, which must not be exceeded
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
      peers: { type: "boolean", default: false },
      layers: { type: "boolean", default: false },
      profile: { type: "string" },
      "update-baseline": { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const only = values.only?.split(",") ?? PARTS.filter((part) => !values.quick || !LONG.has(part));
  for (const part of [...only, ...(values.profile === undefined ? [] : [values.profile])]) {
    if (!PARTS.includes(part)) throw new Error(`There is no "${part}": ${PARTS.join(", ")}.`);
  }
  return {
    ...values,
    only: new Set(only),
    rounds: Number(values.rounds ?? (values.quick ? 3 : 9)),
    ms: Number(values.ms ?? (values.quick ? 200 : 2000)),
  };
}

type Flags = ReturnType<typeof readFlags>;

async function openBench({ rounds, ms }: Flags): Promise<Bench> {
  const cores = planCores();
  const [load, others] = [startLoad(cores?.load ?? null), startLoad(cores?.load ?? null)];
  return { cores, upstream: await startUpstream(cores), load, others, rounds, ms };
}

function note(text: string): void {
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
    const plan = { ...flags, commands: listCommands(flags), note };
    const results = await measure(plan, bench);
    note("");
    const machine = describeMachine(bench.cores);
    process.stdout.write(`${flags.json ? writeJson(results, machine) : writeReport(results, machine)}\n`);
    checkAllocated(results, flags["update-baseline"]);
  } finally {
    await stopAll();
  }
}

/** The only results that are the same on every machine, so the only ones that can fail. */
function checkAllocated(results: Results, update: boolean): void {
  const counted = readCounts(results, "gateway");
  if (update) updateBaseline(counted);
  const regressions = findRegressions(counted);
  for (const line of regressions) process.stderr.write(`bench: ${line}\n`);
  if (regressions.length > 0) process.exitCode = 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => void stopAll().then(() => process.exit(1)));
}
try {
  await run();
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
