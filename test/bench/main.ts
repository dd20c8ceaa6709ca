// `bun run bench`: what the gateway costs, compared with the upstream itself and with nginx. Flags → rounds → table.

import { parseArgs } from "node:util";
import type { Bench } from "./bench.ts";
import { type Cores, describeMachine, planCores, stopAll } from "./machine.ts";
import { writeJson, writeReport } from "./results/report.ts";
import { measure, PARTS } from "./rounds.ts";
import { listCommands } from "./targets/targets.ts";
import { startLoad, startUpstream } from "./wire/ends.ts";

const HELP = `bun run bench [flags]
  --quick              three short rounds
  --rounds N           rounds of every part, one target after the other in each (3 with --quick, else 9)
  --ms N               of each measurement (200 with --quick, else 2000)
  --only A,B           of ${PARTS.join(", ")}
  --executable A,B     compiled gateways, measured beside the source (dist/gateway when it exists)
  --against FOLDER     another checkout of this project, measured beside this one
  --json               the results as one JSON document
`;

const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    ms: { type: "string" },
    only: { type: "string" },
    executable: { type: "string" },
    against: { type: "string" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

async function openBench(cores: Cores | null): Promise<Bench> {
  return {
    cores,
    upstream: await startUpstream(cores),
    load: startLoad(cores?.load ?? null),
    others: startLoad(cores?.load ?? null),
    rounds: Number(flags.rounds ?? (flags.quick ? 3 : 9)),
    ms: Number(flags.ms ?? (flags.quick ? 200 : 2000)),
  };
}

async function run(): Promise<void> {
  const only = new Set(flags.only?.split(",") ?? PARTS);
  const unknown = [...only].find((part) => !PARTS.includes(part));
  if (unknown !== undefined) throw new Error(`There is no "${unknown}": ${PARTS.join(", ")}.`);
  const cores = planCores();
  const bench = await openBench(cores);
  try {
    const note = (text: string): void => {
      if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
    };
    const results = await measure({ commands: listCommands(flags), only, note }, bench);
    note("");
    const machine = describeMachine(cores);
    process.stdout.write(`${flags.json ? writeJson(results, machine) : writeReport(results, machine)}\n`);
  } finally {
    await stopAll();
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => void stopAll().then(() => process.exit(1)));
}
try {
  if (flags.help) process.stdout.write(HELP);
  else await run();
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
