// Checks that nothing is held when no request is in flight: no connections, files, timers or reservations.

import type { Served } from "../program.ts";
import type { World } from "../run.ts";
import type { SimProcess, Timer } from "../world/process.ts";

export function checkReleased(world: World): void {
  const { process, served } = world;
  if (process === null || process.dead || served === null) return;
  const accuse = (what: string): void => world.accuse("released", `Nothing is in flight, but ${what}.`);
  const { client, memory } = served.running.gateway;
  const { open, idle } = client.stats();
  if (open !== idle) accuse(`${open - idle} of ${open} connections to upstreams are in use`);
  if (memory.usedBytes !== 0) accuse(`${memory.usedBytes} bytes are reserved for large bodies`);
  if (process.connections.size > 0) accuse(`${process.connections.size} connections are open`);
  const files = [...process.files.values()].map(({ path }) => path);
  const known = (path: string): boolean =>
    /\/ledger\.jsonl(?:\.open|\.lock)?$/.test(path) || path.endsWith(".tmp");
  if (files.length > 3 || !files.every(known))
    accuse(`more files are open than the ledger, its journal and its lock: ${files.join(", ")}`);
}

/** Checks that nothing is held after a clean stop. Returns the timer that may be left: all time limits share one timer, which
 *  fires once more after the last of them was switched off. */
export function checkStopped(world: World, process: SimProcess, { running }: Served): Timer[] {
  const accuse = (what: string): void => world.accuse("released", `The gateway has stopped, but ${what}.`);
  const { client, memory } = running.gateway;
  if (process.connections.size > 0) accuse(`${process.connections.size} connections are open`);
  if (client.stats().open > 0) accuse(`it counts ${client.stats().open} connections to upstreams`);
  if (memory.usedBytes > 0) accuse(`${memory.usedBytes} bytes of large bodies are reserved`);
  if (process.hasControl) accuse("its control socket is open");
  const files = [...process.files.values()].map(({ path }) => path);
  if (files.length > 0) accuse(`these files are open: ${files.join(", ")}`);
  const timers = [...process.timers];
  if (timers.length > 1) accuse(`${timers.length} timers are left`);
  return timers;
}

export function checkTimersEnded(world: World, process: SimProcess): void {
  if (process.timers.size > 0)
    world.accuse("released", "The gateway has stopped, but a timer is left that starts again.");
}
