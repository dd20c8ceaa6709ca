// Checks that nothing is held when no request is in flight: no connections, files, timers or reservations.

import type { World } from "../run.ts";

/** Probes never stop. Between two of them, no connection to an upstream is in use. */
export function isBetweenProbes({ served }: World): boolean {
  const stats = served?.running.gateway.client.stats();
  return stats === undefined || stats.open === stats.idle;
}

export function checkReleased(world: World): void {
  const { process, served } = world;
  if (process === null || process.dead || served === null) return;
  const { gateway } = served.running;
  const { open, idle } = gateway.client.stats();
  if (open !== idle)
    world.accuse(
      "released",
      `Nothing is in flight, but ${open - idle} of ${open} connections to upstreams are in use.`,
    );
  if (gateway.sockets.open !== 0)
    world.accuse(
      "released",
      `Nothing is in flight, but the gateway counts ${gateway.sockets.open} open WebSockets.`,
    );
  const { usedBytes } = gateway.memory;
  if (usedBytes !== 0)
    world.accuse("released", `Nothing is in flight, but ${usedBytes} bytes are reserved for large bodies.`);
  // The listener and idle connections: to upstreams, and of clients that have not closed theirs.
  const sockets = process.sockets.size;
  if (sockets > idle)
    world.accuse("released", `Nothing is in flight, but ${sockets - idle} connections of clients are open.`);
  const files = [...process.files.values()].map(({ path }) => path);
  const known = (path: string): boolean =>
    /\/ledger\.jsonl(?:\.open|\.lock)?$/.test(path) || path.endsWith(".tmp");
  if (files.length > 3 || !files.every(known))
    world.accuse(
      "released",
      `Nothing is in flight, but more files are open than the ledger, its journal and its lock: ${files.join(", ")}`,
    );
}
