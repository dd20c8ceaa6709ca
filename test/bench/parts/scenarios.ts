// One round of measurements of a target.

import { type Bench, describeRequest, KB, type Sample } from "../bench.ts";
import type { Load } from "../wire/ends.ts";
import type { Outcome, Times } from "../wire/crowd.ts";
import type { Job } from "../wire/load.ts";
import { readCpu } from "../machine.ts";
import type { Target } from "../targets/targets.ts";

export interface Scenario {
  readonly name: string;
  run(target: Target, bench: Bench): Promise<Sample>;
}

const GAP_MS = 20;

export const SCENARIOS: readonly Scenario[] = [
  { name: "agent-turns", run: measureTurns },
  { name: "throughput-64", run: (target, bench) => measureRate(target, bench, 64) },
  { name: "throughput-256", run: (target, bench) => measureRate(target, bench, 256) },
  { name: "latency", run: measureLatency },
  { name: "sparse", run: measureSparse },
  { name: "paced-streams", run: measurePacedStreams },
  { name: "open-streams", run: measureOpenStreams },
  { name: "full-speed-streams", run: measureFlood },
  { name: "body-1mb", run: (target, bench) => measureBody(target, bench, 1000 * KB) },
  { name: "body-10mb", run: (target, bench) => measureBody(target, bench, 10_000 * KB) },
];

async function measureRate(target: Target, { load, ms }: Bench, connections: number): Promise<Sample> {
  const { outcome, cpu } = await runWithCpu(target, load, {
    do: "repeat",
    request: describeRequest(target, "json"),
    connections,
    warmMs: ms / 4,
    ms,
  });
  const spent: Sample =
    cpu === null || outcome.served === 0
      ? {}
      : { [`CPU µs a request, ${connections} connections`]: cpu / outcome.served };
  return {
    [`requests/s, ${connections} connections`]: outcome.requests / outcome.seconds,
    ...spent,
    errors: outcome.errors,
  };
}

const AGENTS = 8;
/** A model works for a while on each turn. */
const THINKING_MS = 250;

/** What an agent's turn costs, and how long an event of another stream waits for eight agents. */
async function measureTurns(target: Target, { load, others, ms }: Bench): Promise<Sample> {
  const request = describeRequest(target, "turn");
  const { outcome, cpu } = await runWithCpu(target, load, {
    do: "repeat",
    request,
    connections: AGENTS,
    warmMs: ms / 4,
    ms,
  });
  const agents = others.run({ do: "pause", request, connections: AGENTS, pauseMs: THINKING_MS, ms: ms * 2 });
  await Bun.sleep(THINKING_MS * 2);
  const watched = await load.run({
    do: "stream",
    request: describeRequest(target, "paced"),
    connections: 10,
    times: Math.ceil(ms / 500),
  });
  const paused = await agents;
  return {
    ...(cpu === null ? {} : { "CPU µs an agent's turn": cpu / outcome.served }),
    ...nameTimes("agent's turn µs", outcome.whole),
    ...nameTimes("event delay µs beside 8 agents", watched.delay),
    errors: outcome.errors + paused.errors + watched.errors,
  };
}

async function measureLatency(target: Target, { load, ms }: Bench): Promise<Sample> {
  const job: Job = {
    do: "repeat",
    request: describeRequest(target, "json"),
    connections: 1,
    warmMs: ms / 4,
    ms,
  };
  const outcome = await load.run(job);
  return { ...nameTimes("latency µs", outcome.whole), errors: outcome.errors };
}

/** Requests like one person's tools: between two of them, other work has filled the processor's caches. */
async function measureSparse(target: Target, { load, ms }: Bench): Promise<Sample> {
  const request = describeRequest(target, "json");
  const outcome = await load.run({ do: "sparse", request, gapMs: GAP_MS, times: Math.ceil(ms / GAP_MS) });
  return { ...nameTimes(`latency µs, a request every ${GAP_MS} ms`, outcome.whole), errors: outcome.errors };
}

async function measurePacedStreams(target: Target, { load, ms }: Bench): Promise<Sample> {
  const request = describeRequest(target, "paced");
  const outcome = await load.run({ do: "stream", request, connections: 20, times: Math.ceil(ms / 500) });
  return {
    ...nameTimes("first byte µs", outcome.first),
    ...nameTimes("event delay µs", outcome.delay),
    errors: outcome.errors,
  };
}

const OPEN_STREAMS = 100;
/** The streams begin within a tenth of a second. They last five seconds. */
const [BEGUN_MS, OPEN_MS] = [500, 4000];

/** What streams of 50 events a second cost while none begins or ends. */
async function measureOpenStreams(target: Target, { load }: Bench): Promise<Sample> {
  const request = describeRequest(target, "lasting");
  const running = load.run({ do: "stream", request, connections: OPEN_STREAMS, times: 1 });
  await Bun.sleep(BEGUN_MS);
  const began = performance.now();
  const before = target.pid === null ? null : readCpu(target.pid);
  await Bun.sleep(OPEN_MS);
  const after = target.pid === null ? null : readCpu(target.pid);
  const micros = (performance.now() - began) * 1000;
  const { errors } = await running;
  return before === null || after === null
    ? { errors }
    : { [`${OPEN_STREAMS} open streams, % of a core`]: (100 * (after - before)) / micros, errors };
}

async function measureFlood(target: Target, { load, ms }: Bench): Promise<Sample> {
  const request = describeRequest(target, "flood");
  const outcome = await load.run({ do: "repeat", request, connections: 8, warmMs: ms / 4, ms });
  return { "full-speed SSE MB/s": outcome.megabytes / outcome.seconds, errors: outcome.errors };
}

async function measureBody(target: Target, { load, ms }: Bench, bytes: number): Promise<Sample> {
  const request = describeRequest(target, "json", bytes);
  const outcome = await load.run({ do: "repeat", request, connections: 1, warmMs: ms / 4, ms });
  const name = `first byte µs, ${bytes / 1e6} MB body`;
  return { [name]: outcome.first?.p50 ?? 0, errors: outcome.errors };
}

function nameTimes(name: string, times: Times | null): Sample {
  return times === null ? {} : { [`${name}, p50`]: times.p50, [`${name}, p99`]: times.p99 };
}

async function runWithCpu(
  target: Target,
  load: Load,
  job: Job,
): Promise<{ outcome: Outcome; cpu: number | null }> {
  const before = target.pid === null ? null : readCpu(target.pid);
  const outcome = await load.run(job);
  const after = target.pid === null ? null : readCpu(target.pid);
  return { outcome, cpu: before === null || after === null ? null : after - before };
}
