// What it costs to turn one API's stream into another's: CPU of the gateway for each event of an upstream's
// Responses stream, passed on as it is, converted to chat chunks, and converted for a messages client by a group that
// converts, beside one JSON.parse of the event.

import { startLoad } from "../wire/ends.ts";
import { readCpu } from "../machine.ts";
import { EVENTS } from "../wire/requests.ts";
import { type Bench, describeRequest, type Sample } from "../bench.ts";
import { SECRET, type Target } from "../targets/targets.ts";

const PATHS = {
  passthrough: "/v1/responses",
  bridge: "/v1/chat/completions",
  converted: "/v1/messages",
} as const;
type Way = keyof typeof PATHS;
const WAYS = ["passthrough", "bridge", "converted"] as const satisfies readonly Way[];
type Tempo = keyof typeof STREAMS;

/** The same work at every speed of the machine: parallel streams, repeated in proportion to the measurement's length. */
const STREAMS = {
  events: { connections: 32, msEach: 2000 },
  burst: { connections: 8, msEach: 100 },
} as const;

export async function measureBridge(target: Target, bench: Bench): Promise<Sample> {
  const { openai, pid } = target;
  if (openai === null || pid === null || readCpu(pid) === null) return {};
  const parse = await measureParse(bench);
  const events = await measureTempo(target, bench, "events");
  const burst = await measureTempo(target, bench, "burst");
  return {
    "bridge cost": events.bridge.micros / (events.passthrough.micros + parse),
    "bridge cost, burst": burst.bridge.micros / (burst.passthrough.micros + parse),
    "converted cost": events.converted.micros / events.passthrough.micros,
    "converted cost, burst": burst.converted.micros / burst.passthrough.micros,
    "CPU µs an event, passthrough": events.passthrough.micros,
    "CPU µs an event, bridge": events.bridge.micros,
    "CPU µs an event, converted": events.converted.micros,
    "CPU µs an event, passthrough, burst": burst.passthrough.micros,
    "CPU µs an event, bridge, burst": burst.bridge.micros,
    "CPU µs an event, converted, burst": burst.converted.micros,
    "CPU µs an event, JSON.parse": parse,
    "events a packet, passthrough": events.passthrough.packed,
    "events a packet, bridge": events.bridge.packed,
    "events a packet, passthrough, burst": burst.passthrough.packed,
    "events a packet, bridge, burst": burst.bridge.packed,
    errors: [events, burst].reduce(
      (sum, costs) => sum + WAYS.reduce((so, way) => so + costs[way].errors, 0),
      0,
    ),
  };
}

/** In both orders, so that a machine that becomes slower or faster affects both alike. */
async function measureTempo(target: Target, bench: Bench, tempo: Tempo): Promise<Record<Way, Cost>> {
  const costs: Record<Way, Cost[]> = { passthrough: [], bridge: [], converted: [] };
  for (const way of [...WAYS, ...WAYS.toReversed()])
    costs[way].push(await measureWay(target, bench, tempo, way));
  const { passthrough, bridge, converted } = costs;
  return { passthrough: joinCosts(passthrough), bridge: joinCosts(bridge), converted: joinCosts(converted) };
}

function joinCosts(costs: readonly Cost[]): Cost {
  const sum = (read: (cost: Cost) => number): number => costs.reduce((so, cost) => so + read(cost), 0);
  return {
    micros: sum(({ micros }) => micros) / costs.length,
    packed: sum(({ packed }) => packed) / costs.length,
    errors: sum(({ errors }) => errors),
  };
}

interface Cost {
  readonly micros: number;
  /** As the clients got them. */
  readonly packed: number;
  readonly errors: number;
}

async function measureWay(target: Target, { load, ms }: Bench, tempo: Tempo, way: Way): Promise<Cost> {
  const { connections, msEach } = STREAMS[tempo];
  const fields =
    way === "converted" ? { authorization: `Bearer ${SECRET}-converted` } : target.openai?.fields;
  const request = {
    ...describeRequest(target, tempo),
    ...target.openai,
    ...(fields && { fields }),
    path: PATHS[way],
  };
  const before = readCpu(target.pid ?? 0) ?? 0;
  const { served, reads, errors } = await load.run({
    do: "stream",
    request,
    connections,
    times: Math.ceil(ms / msEach),
  });
  const events = served * EVENTS[tempo];
  return { micros: ((readCpu(target.pid ?? 0) ?? 0) - before) / events, packed: events / reads, errors };
}

/** On the target's core, which is idle now. */
async function measureParse({ cores, ms }: Bench): Promise<number> {
  const load = startLoad(cores?.proxy ?? null);
  const { requests, seconds } = await load.run({ do: "parse", ms: Math.min(ms, 300) });
  await load.stop();
  return (seconds * 1e6) / requests;
}
