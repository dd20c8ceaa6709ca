// Looks after warm connections once a second, while one of their pools is in use. Notices that the machine has slept, or
// that its network has changed: idle connections may then be dead without a sign of it, so they are replaced.

import { networkInterfaces } from "node:os";
import { everySecond } from "../../time/heartbeat.ts";
import type { Pool } from "./pool.ts";

/** Timers stand still while the machine sleeps. Its clock does not. */
const SLEPT_MS = 10_000;
/** Reading the interfaces takes 0.1 ms. */
const NETWORK_PERIOD_MS = 5000;

export class Upkeep {
  readonly #pools: ReadonlyMap<string, Pool>;
  /** Ends the runs; null while there are none. */
  #endRuns: (() => void) | null = null;
  #active = false;
  #lastRun = 0;
  #network = "";
  #networkReadAt = 0;

  constructor(pools: ReadonlyMap<string, Pool>) {
    this.#pools = pools;
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
    else if (Date.now() - this.#lastRun > SLEPT_MS) this.#run();
  }

  #start(): void {
    this.#endRuns = everySecond(() => this.#run());
    this.#lastRun = Date.now();
    this.#network = describeNetwork();
    this.#networkReadAt = this.#lastRun;
  }

  #stop(): void {
    this.#endRuns?.();
    this.#endRuns = null;
  }

  #run(): void {
    const now = Date.now();
    if (this.#mustRenew(now)) for (const pool of this.#pools.values()) pool.renew();
    this.#lastRun = now;
    let inUse = false;
    for (const pool of this.#pools.values()) inUse = pool.maintain(now) || inUse;
    if (!inUse) this.#stop();
  }

  #mustRenew(now: number): boolean {
    const slept = Math.abs(now - this.#lastRun) > SLEPT_MS;
    if (!slept && now - this.#networkReadAt < NETWORK_PERIOD_MS) return false;
    this.#networkReadAt = now;
    const before = this.#network;
    this.#network = describeNetwork();
    return slept || this.#network !== before;
  }
}

/** The addresses that this machine has on networks. */
function describeNetwork(): string {
  return Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !/^fe80:/i.test(address))
    .map(({ address }) => address)
    .sort()
    .join(" ");
}
