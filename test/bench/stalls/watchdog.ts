// Preloaded into a gateway: notes each time at which the event loop did not turn for more than 10 ms, and which functions
// ran then. Time in which this thread had no processor does not count.
//   STALLS=FILE bun --preload watchdog.ts src/main.ts serve

import * as jsc from "bun:jsc";
import { appendFileSync } from "node:fs";
import { z } from "zod";

const PERIOD_MS = 2;
/** The samples are dropped this often: in a long run they would fill the memory. */
const DROP_EVERY = 100;
export const MAX_STALL_MS = 10;

const profile = z.object({
  traces: z.array(
    z.object({
      timestamp: z.number(),
      frames: z.array(z.object({ name: z.string(), sourceURL: z.string().optional() })),
    }),
  ),
});

/** Milliseconds of CPU time of this thread. */
function readThread(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** The types of the runtime lack this function. */
function readTraces(): unknown {
  const read: unknown = Reflect.get(jsc, "samplingProfilerStackTraces");
  return typeof read === "function" ? Reflect.apply(read, undefined, []) : { traces: [] };
}

/** Our functions that ran most often in the last milliseconds, callers included. */
function nameCulprits(ms: number): string {
  const { traces } = profile.parse(readTraces());
  const last = traces.at(-1)?.timestamp ?? 0;
  const counts = new Map<string, number>();
  for (const { frames } of traces.filter(({ timestamp }) => last - timestamp < ms / 1000)) {
    const own = frames.filter(({ sourceURL = "" }) => sourceURL.includes("/src/"));
    for (const name of new Set(own.map((frame) => frame.name))) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, 6)
    .map(([name]) => name)
    .join(" < ");
}

const file = process.env["STALLS"];
if (file !== undefined) {
  jsc.startSamplingProfiler();
  let before = readThread();
  let count = 0;
  setInterval(() => {
    const now = readThread();
    const ms = now - before;
    if (ms > MAX_STALL_MS) appendFileSync(file, `${JSON.stringify({ ms, names: nameCulprits(ms) })}\n`);
    else if ((count += 1) % DROP_EVERY === 0) readTraces();
    before = readThread();
  }, PERIOD_MS).unref();
}
