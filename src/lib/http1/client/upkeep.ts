// Looks after warm connections once a second, while one of their pools is in use. Notices that the machine has slept, or
// that its network has changed: idle connections may then be dead without a sign of it, so they are replaced.

import { networkInterfaces } from "node:os";
import { everySecond } from "../../time/heartbeat.ts";
import type { Pool } from "./pool.ts";

/** Timers stand still while the machine sleeps. Its clock does not. */
const SLEPT_MS = 10_000;
/** Reading the interfaces takes 0.1 ms. A request reads them again if this is older than a second: after a change, it could
 *  wait on a dead connection until its time limit. */
const NETWORK_PERIOD_MS = 5000;
const NETWORK_PERIOD_OF_REQUESTS_MS = 1000;

export class Upkeep {
  readonly #pools: ReadonlyMap<string, Pool>;
  readonly #readInterfaces: typeof networkInterfaces;
  /** Ends the runs; null while there are none. */
  #endRuns: (() => void) | null = null;
  #active = false;
  #lastRun = 0;
  #network = "";
  #networkReadAt = 0;

  constructor(pools: ReadonlyMap<string, Pool>, readInterfaces = networkInterfaces) {
    this.#pools = pools;
    this.#readInterfaces = readInterfaces;
  }

  setActive(active: boolean): void {
    this.#active = active;
    if (!active) {
      this.#stop();
      return;
    }
    if (this.#endRuns === null) this.#start();
    this.#run();
  }

  /** Call this before each request. */
  noteRequest(): void {
    if (!this.#active) return;
    if (this.#endRuns === null) this.#start();
    else if (Date.now() - this.#networkReadAt > NETWORK_PERIOD_OF_REQUESTS_MS)
      this.#run(NETWORK_PERIOD_OF_REQUESTS_MS);
  }

  #start(): void {
    this.#endRuns = everySecond(() => this.#run());
    this.#lastRun = Date.now();
    this.#network = describeNetwork(this.#readInterfaces());
    this.#networkReadAt = this.#lastRun;
  }

  #stop(): void {
    this.#endRuns?.();
    this.#endRuns = null;
  }

  #run(networkPeriodMs = NETWORK_PERIOD_MS): void {
    const now = Date.now();
    if (this.#mustRenew(now, networkPeriodMs)) for (const pool of this.#pools.values()) pool.renew();
    this.#lastRun = now;
    let inUse = false;
    for (const pool of this.#pools.values()) inUse = pool.maintain(now) || inUse;
    if (!inUse) this.#stop();
  }

  #mustRenew(now: number, networkPeriodMs: number): boolean {
    const slept = Math.abs(now - this.#lastRun) > SLEPT_MS;
    if (!slept && now - this.#networkReadAt < networkPeriodMs) return false;
    this.#networkReadAt = now;
    const before = this.#network;
    this.#network = describeNetwork(this.#readInterfaces());
    return slept || this.#network !== before;
  }
}

/** The addresses that this machine has on networks. */
function describeNetwork(interfaces: ReturnType<typeof networkInterfaces>): string {
  return Object.values(interfaces)
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !/^fe80:/i.test(address))
    .map(({ address }) => address)
    .sort()
    .join(" ");
}
