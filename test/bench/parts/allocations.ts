// The bytes that the gateway allocates on the runtime's heap: for a request, the start of a stream, an event and a
// converted event. They depend little on the machine. The collector's own log counts them, in steps of a collection: here
// one for every 2 MB.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, describeRequest, type Sample } from "../bench.ts";
import { makeFolder } from "../machine.ts";
import { EVENTS } from "../wire/requests.ts";
import { planGateway, type Target } from "../targets/targets.ts";

const CROWD = 64;
/** Until the compiler has optimised what runs, it allocates more. */
const WARM_MS = 3000;
const CHAT = "/v1/chat/completions";

type Count = () => number;

/** A gateway of its own, because the log takes time. */
export async function measureAllocations(command: readonly string[], bench: Bench): Promise<Sample> {
  const folder = makeFolder();
  const log = join(folder.path, "collections");
  const logged = [
    "sh",
    "-c",
    'BUN_JSC_logGC=1 BUN_JSC_gcMaxHeapSize=2000000 exec "$@" 2>>"$0"',
    log,
    ...command,
  ];
  const recipe = planGateway("", logged, bench.cores);
  const target = await recipe.start(bench.upstream.port);
  const count: Count = () => readAllocated(log);
  const [alone, many] = [
    await measureRequests(target, bench, 1, count),
    await measureRequests(target, bench, CROWD, count),
  ];
  const { start, event } = await measureStreams(target, bench, count);
  const converted = await measureConverted(target, bench, count);
  await target.stop();
  folder.remove();
  return {
    "bytes allocated, JSON request, 1 connection": alone,
    [`bytes allocated, JSON request, ${CROWD} connections`]: many,
    "bytes allocated, start of a stream": start,
    "bytes allocated, event": event,
    "bytes allocated, converted event": converted,
  };
}

function readAllocated(log: string): number {
  const cycles = readFileSync(log, "utf8").matchAll(/bytes allocated this cycle: (\d+)/g);
  return cycles.reduce((sum, [, bytes]) => sum + Number(bytes), 0);
}

async function measureRequests(
  target: Target,
  { load, ms }: Bench,
  connections: number,
  count: Count,
): Promise<number> {
  const request = describeRequest(target, "json");
  const repeat = { do: "repeat", request, connections, warmMs: 0 } as const;
  await load.run({ ...repeat, ms: WARM_MS });
  const before = count();
  const { served } = await load.run({ ...repeat, ms: Math.max(3 * ms, WARM_MS) });
  return (count() - before) / served;
}

/** Short streams have a start and two packets, long ones a packet for each event. */
async function measureStreams(
  target: Target,
  bench: Bench,
  count: Count,
): Promise<{ start: number; event: number }> {
  const short = await measureStream(target, bench, { kind: "halves", times: 30 }, count);
  const long = await measureStream(target, bench, { kind: "events", times: 2 }, count);
  return { start: short, event: (long - short) / EVENTS.events };
}

async function measureConverted(target: Target, bench: Bench, count: Count): Promise<number> {
  const way = { kind: "events", times: 2, path: CHAT } as const;
  return (await measureStream(target, bench, way, count)) / EVENTS.events;
}

interface Way {
  readonly kind: "halves" | "events";
  readonly times: number;
  /** The path for clients of the OpenAI APIs. */
  readonly path?: string;
}

/** Bytes for each stream. */
async function measureStream(
  target: Target,
  { load }: Bench,
  { kind, times, path }: Way,
  count: Count,
): Promise<number> {
  const plain = describeRequest(target, kind);
  const request = path === undefined ? plain : { ...plain, ...target.openai, path };
  const job = { do: "stream", request, connections: CROWD, times } as const;
  await load.run({ ...job, times: Math.ceil(times / 4) });
  const before = count();
  const { served } = await load.run(job);
  return (count() - before) / served;
}
