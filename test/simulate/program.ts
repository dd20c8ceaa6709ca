// Runs inside the simulated world: the real gateway, started as `gateway serve` starts it, and the real commands that read
// its ledger. world/bundle.ts bundles it.

import { Table } from "../../src/billing/store/open.ts";
import { verifyLedger } from "../../src/billing/verify/verify.ts";
import { loadConfig } from "../../src/config/file/load.ts";
import type { Listener } from "../../src/gateway/observe/observer.ts";
import { type Network, type RunningGateway, startGateway } from "../../src/gateway/start.ts";
import { BodyTooLarge, ClientGone } from "../../src/lib/http/exchange.ts";
import { Fields, Malformed } from "../../src/lib/http/fields.ts";
import { UpstreamFault } from "../../src/lib/http/upstream.ts";

/** The classes whose instances the simulated network and the gateway exchange. Each process has its own classes. */
export const seam = {
  BodyTooLarge,
  ClientGone,
  Fields,
  Malformed,
  UpstreamFault,
};
export type Seam = typeof seam;

export interface Served {
  readonly running: RunningGateway;
  /** Stops the gateway as a signal does. Running streams get this long to finish. */
  stop(graceMs: number): Promise<void>;
}

/** Starts the gateway as cli/serve/serve.ts does, without a terminal. */
export function serve(configPath: string, listener: Listener, network: Network): Served {
  const loaded = loadConfig(configPath, process.env);
  const running = startGateway(loaded.catalog, [listener], { configPath: loaded.path, network });
  const stopFollowing = followLedger(running.gateway);
  return {
    running,
    stop: async (graceMs) => {
      stopFollowing();
      await running.stop(graceMs);
    },
  };
}

const FOLLOW_MS = 3000;
const FOLLOW_BYTES = 1 << 16;

/** Does the same as the thread of gateway/api/worker.ts: it reads new lines of the ledger into the table. */
function followLedger({ catalog }: RunningGateway["gateway"]): () => void {
  const timer = setInterval(() => {
    new Table(catalog.ledger.path, { report: () => {}, most: FOLLOW_BYTES })[Symbol.dispose]();
  }, FOLLOW_MS);
  return () => clearInterval(timer);
}

/** Returns the findings of `gateway ledger verify`. */
export function verify(path: string): string[] {
  const found: string[] = [];
  verifyLedger(path, { partial: false, running: false }, (finding) => found.push(JSON.stringify(finding)));
  return found;
}
