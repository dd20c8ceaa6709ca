// `bun run bench`: what the gateway costs, next to the upstream alone and to nginx. In each round, one target is measured
// after the other, so that a noisy machine affects all targets.

import { availableParallelism, cpus } from "node:os";
import { parseArgs } from "node:util";
import { type Kind, openUpstream, type Outcome, runLoad } from "./ends.ts";
import {
  type Gateways,
  listGateways,
  measureStart,
  pinEnds,
  planDirect,
  startFloor,
  startGateway,
  startNginx,
  stopAll,
  type Target,
} from "./targets.ts";

/** The results of one round, by metric. */
type Sample = Readonly<Record<string, number>>;

const AGENTS = 8;
/** How long a model works on a turn. */
const THINKING_MS = 250;

const PARTS: Readonly<Record<string, (target: Target, ms: number) => Promise<Sample>>> = {
  "agent-turns": measureTurns,
  throughput: async (target, ms) => {
    const { rate, micros, errors } = await measureCpu(target, "json", 64, ms);
    const alone = await runLoad({ address: target.address, kind: "json", clients: 1, ms });
    return {
      "requests/s, 64 clients": rate,
      ...(micros !== null && { "CPU µs a request": micros }),
      ...nameTimes("µs of a request, 1 client", alone.whole),
      errors: errors + alone.errors,
    };
  },
  streams: async (target, ms) => {
    const paced = await runLoad({ address: target.address, kind: "paced", clients: 20, ms });
    const flood = await runLoad({ address: target.address, kind: "flood", clients: 4, ms });
    return {
      ...nameTimes("µs to a stream's first byte", paced.first),
      ...nameTimes("µs of an event's delay", paced.delay),
      "MB/s at full speed": flood.bytes / flood.seconds / 1e6,
      errors: paced.errors + flood.errors,
    };
  },
};
const START = "start";

const HELP = `bun run bench [flags]
  --quick              three short rounds
  --rounds N           rounds of every part, one target after the other in each (3 with --quick, else 9)
  --ms N               of each measurement (200 with --quick, else 2000)
  --only A,B           of ${[...Object.keys(PARTS), START].join(", ")}
  --executable A,B     compiled gateways, measured next to the source
  --check              only compares an agent's turn with the runtime's floor; fails if it costs too much (20 s)
`;

const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    ms: { type: "string" },
    only: { type: "string" },
    executable: { type: "string" },
    check: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

async function measureCpu(target: Target, kind: Kind, clients: number, ms: number) {
  const before = target.readCpu();
  const { answers, seconds, errors, whole } = await runLoad({ address: target.address, kind, clients, ms });
  const after = target.readCpu();
  const micros = before === null || after === null ? null : (after - before) / answers;
  return { rate: answers / seconds, micros, errors, whole };
}

/** Measures the CPU time of an agent's turn, and how late the events of other streams are while eight agents work. */
async function measureTurns(target: Target, ms: number): Promise<Sample> {
  const busy = await measureCpu(target, "turn", AGENTS, ms);
  const { address } = target;
  const agents = runLoad({ address, kind: "turn", clients: AGENTS, ms: 2 * ms, pauseMs: THINKING_MS });
  const watched: Outcome = await runLoad({ address, kind: "paced", clients: 10, ms });
  const paused = await agents;
  return {
    ...(busy.micros !== null && { "CPU µs an agent's turn": busy.micros }),
    ...nameTimes("µs of an agent's turn", busy.whole),
    ...nameTimes(`µs of an event's delay, ${AGENTS} agents`, watched.delay),
    errors: busy.errors + paused.errors + watched.errors,
  };
}

function nameTimes(name: string, times: readonly number[]): Sample {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
  return { [`${name}, p50`]: at(0.5), [`${name}, p99`]: at(0.99) };
}

type Results = Map<string, Map<string, number[]>>;

function addSample(results: Results, target: string, sample: Sample): void {
  const metrics = results.get(target) ?? new Map<string, number[]>();
  results.set(target, metrics);
  for (const [metric, value] of Object.entries(sample))
    metrics.set(metric, [...(metrics.get(metric) ?? []), value]);
}

function readOnly(): ReadonlySet<string> {
  const only = flags.only?.split(",") ?? [...Object.keys(PARTS), START];
  const unknown = only.find((part) => part !== START && PARTS[part] === undefined);
  if (unknown !== undefined) throw new Error(`There is no "${unknown}".\n${HELP}`);
  return new Set(only);
}

async function openTargets(upstream: number, gateways: Gateways): Promise<Target[]> {
  const nginx = await startNginx(upstream);
  const targets = [planDirect(upstream), ...(nginx === null ? [] : [nginx])];
  for (const [name, command] of gateways) targets.push(await startGateway(name, command, upstream));
  // Each target is warmed up: a just-in-time compiler is slow in its first seconds, but users' gateways run for days.
  for (const { address } of targets) await runLoad({ address, kind: "json", clients: 64, ms: 2000 });
  return targets;
}

async function measure(): Promise<Results> {
  const only = readOnly();
  const [usualRounds, usualMs] = flags.quick ? [3, 200] : [9, 2000];
  const rounds = Array.from({ length: Number(flags.rounds ?? usualRounds) });
  const ms = Number(flags.ms ?? usualMs);
  const results: Results = new Map();
  const upstream = openUpstream();
  const gateways = listGateways(flags.executable?.split(",") ?? []);
  const parts = Object.entries(PARTS).filter(([name]) => only.has(name));
  const targets = await openTargets(upstream, gateways);
  for (const [, run] of parts)
    for (const _ of rounds)
      for (const target of targets) addSample(results, target.name, await run(target, ms));
  for (const target of targets) await target.stop();
  if (only.has(START)) for (const _ of rounds) await addStarts(results, gateways, upstream);
  return results;
}

async function addStarts(results: Results, gateways: Gateways, upstream: number): Promise<void> {
  for (const [name, command] of gateways)
    addSample(results, name, { "ms of a start": await measureStart(command, upstream) });
}

/** A turn costs the gateway 3.6 times as much CPU as the floor, on a busy machine 4.2 times. If turns get cheaper, lower this. */
const EXPECTED = 4.2;
const TOLERATED = 1.15;

async function checkTurn(): Promise<string> {
  const upstream = openUpstream();
  const targets = [await startFloor(upstream)];
  for (const own of listGateways([])) targets.push(await startGateway(...own, upstream));
  const ratios: number[] = [];
  // On a busy machine, the just-in-time compiler needs more rounds. Only the last seven count.
  const median = (): number => readSpread(ratios.slice(-7)).median;
  while (ratios.length < 12 || (ratios.length < 24 && median() > EXPECTED * TOLERATED)) {
    const costs: number[] = [];
    for (const target of targets) costs.push((await measureCpu(target, "turn", AGENTS, 700)).micros ?? 1);
    ratios.push(costs[1]! / costs[0]!);
  }
  const text = `an agent's turn costs ${writeNumber(median())} times the floor; at most ${EXPECTED} is expected`;
  return median() > EXPECTED * TOLERATED ? Promise.reject(new Error(text)) : text;
}

function readSpread(values: readonly number[]): { least: number; median: number; most: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
  return { least: sorted[0] ?? 0, median, most: sorted.at(-1) ?? 0 };
}

function writeNumber(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

function writeTable(results: Results): string {
  const targets = [...results.keys()];
  const metrics = [...new Set([...results.values()].flatMap((each) => [...each.keys()]))];
  const cell = (target: string, metric: string): string => {
    const values = results.get(target)?.get(metric);
    if (values === undefined) return "";
    const { least, median, most } = readSpread(values);
    return least === most
      ? writeNumber(median)
      : `${writeNumber(median)} (${writeNumber(least)}–${writeNumber(most)})`;
  };
  const rows = [
    ["", ...targets],
    ...metrics
      .filter((metric) => metric !== "errors" || targets.some((target) => cell(target, metric) !== "0"))
      .map((metric) => [metric, ...targets.map((target) => cell(target, metric))]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) => row.map((text, at) => (at === 0 ? text.padEnd(widths[0]!) : text.padStart(widths[at]!))))
    .map((row) => row.join("  "))
    .join("\n");
}

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.on(signal, () => void stopAll().then(() => process.exit(1)));
try {
  if (flags.help) process.stdout.write(HELP);
  else if (flags.check) process.stdout.write(`${pinEnds()}: ${await checkTurn()}\n`);
  else {
    const machine = `${cpus()[0]?.model.trim() ?? "unknown processor"}, ${availableParallelism()} cores, ${process.platform} ${process.arch}, Bun ${Bun.version}; ${pinEnds()}`;
    const results = await measure();
    process.stdout.write(`${machine}\n\n${writeTable(results)}\n`);
  }
  process.exitCode = 0;
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
} finally {
  await stopAll();
}
process.exit();
