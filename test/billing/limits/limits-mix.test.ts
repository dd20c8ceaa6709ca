import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";

import { assert, asyncProperty, integer, array, record, constantFrom } from "fast-check";

import { type Ledger, openLedger } from "../../../src/billing/ledger/ledger.ts";
import { type Admission, createGate, type Gate } from "../../../src/billing/limits/limits.ts";
import type { Key } from "../../../src/config/catalog.ts";
import { GatewayError } from "../../../src/lib/errors.ts";
import { formatUsd } from "../../../src/lib/money.ts";
import { chargedOf, draftOf, intentOf, newLedgerPath, optionsFor } from "../ledger/ledger-samples.ts";
import { limitedKey } from "./simulated-sessions.ts";

const NOON = Date.parse("2026-11-20T12:00:00Z");
const TIME = new Date(NOON).toISOString();
const LIMIT = 100;

/** What a client does: begins a request, ends one of those that run, or kills the gateway. */
const step = record({
  action: constantFrom(
    "begin",
    "begin",
    "begin",
    "end",
    "end",
    "leave",
    "background",
    "fetch",
    "kill",
    "restart",
  ),
  expected: integer({ min: 0, max: 30 }),
  /** Of what it can cost at most, in percent. */
  share: integer({ min: 0, max: 100 }),
  beyond: integer({ min: 0, max: 30 }),
  which: integer({ min: 0, max: 1000 }),
});

interface Running {
  readonly id: string;
  readonly admission: Admission;
  readonly actual: number;
  readonly reserved: number;
}

interface Kept {
  readonly id: string;
  readonly limit: string;
  readonly actual: number;
}

class World {
  readonly #path = newLedgerPath();
  readonly #key: Key;
  readonly #strict: boolean;
  #ledger: Ledger;
  #gate: Gate;
  #running: Running[] = [];
  #kept: Kept[] = [];
  #count = 0;
  /** What all requests that were let in really cost, or will cost. */
  truth = 0;
  /** By how much requests cost more than was reserved or estimated for them. */
  beyond = 0;
  last = 0;

  constructor(strict: boolean) {
    this.#strict = strict;
    this.#key = limitedKey({ usdTotal: String(LIMIT), strict });
    this.#ledger = this.#openLedger();
    this.#gate = createGate(this.#ledger);
  }

  #openLedger(): Ledger {
    return openLedger(optionsFor(this.#path, { now: () => NOON }));
  }

  async begin(expected: number, worst: number, share: number): Promise<void> {
    const forecast = { expected: String(expected), most: () => String(worst) };
    const cost = { model: "m", expect: () => forecast, bound: () => String(worst), seconds: () => null };
    let admission: Admission;
    try {
      const place = this.#gate.admit(this.#key, NOON, cost);
      if ("noRoom" in place) return;
      admission = place;
    } catch (error) {
      if (error instanceof GatewayError) return;
      throw error;
    }
    this.#count += 1;
    const id = `req_${this.#count}`;
    const actual = Math.floor((worst * share) / 100);
    const reserved = this.#strict ? worst : expected;
    await this.#ledger.open(intentOf(id, { time: TIME, limit_usd: String(reserved) }));
    this.#running.push({ id, admission, actual, reserved });
    this.truth += actual;
    this.beyond += Math.max(0, actual - reserved);
    this.last = Math.max(this.last, actual);
  }

  #take(which: number): Running | undefined {
    return this.#running.splice(which % Math.max(1, this.#running.length), 1)[0];
  }

  end(which: number): void {
    const request = this.#take(which);
    if (request === undefined) return;
    this.#ledger.append(chargedOf(request.id, { time: TIME, charge_usd: String(request.actual) }));
    request.admission.release();
  }

  /** The cost is not known: the line counts with what was reserved. */
  leave(which: number, isKept: boolean): void {
    const request = this.#take(which);
    if (request === undefined) return;
    const limit = String(request.reserved);
    const unknown = {
      basis: "unknown",
      prices: null,
      official_usd: null,
      charge_usd: null,
      usage: {},
    } as const;
    this.#ledger.append(draftOf(request.id, { time: TIME, ...unknown, limit_usd: limit }));
    request.admission.release();
    if (isKept) this.#kept.push({ id: request.id, limit, actual: request.actual });
  }

  async fetch(): Promise<void> {
    const kept = this.#kept.shift();
    if (kept === undefined) return;
    const id = `${kept.id}_fetched`;
    await this.#ledger.open(intentOf(id, { time: TIME }));
    const replaces = { id: kept.id, time: TIME, limit_usd: kept.limit };
    this.#ledger.append(chargedOf(id, { time: TIME, charge_usd: String(kept.actual), replaces }));
  }

  async restart(isKilled: boolean): Promise<void> {
    if (!isKilled) while (this.#running.length > 0) this.end(0);
    await new Promise<void>((resolve) => setImmediate(resolve));
    const journal = readFileSync(`${this.#path}.open`);
    await this.#ledger.close();
    if (isKilled) writeFileSync(`${this.#path}.open`, journal);
    this.#running = [];
    this.#ledger = this.#openLedger();
    this.#gate = createGate(this.#ledger);
  }

  /** What the limit counts. */
  get counted(): number {
    const holder = { kind: "key", name: "laptop" } as const;
    const sums = [this.#ledger.spentOf(holder, "total"), this.#ledger.estimatedOf(holder, "total")];
    return sums.reduce((sum, usd) => sum + Number(formatUsd(usd)), 0);
  }

  get reserved(): number {
    return this.#running.reduce((sum, { reserved }) => sum + reserved, 0);
  }

  async close(): Promise<void> {
    while (this.#running.length > 0) this.end(0);
    await this.#ledger.close();
  }
}

test.each([false, true])("random mixes of requests stay within a limit, strict: %p", async (strict) => {
  await assert(
    asyncProperty(array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      const world = new World(strict);
      for (const { action, expected, share, beyond, which } of steps) {
        if (action === "begin") await world.begin(expected, expected + beyond, share);
        else if (action === "end") world.end(which);
        else if (action === "leave") world.leave(which, false);
        else if (action === "background") world.leave(which, true);
        else if (action === "fetch") await world.fetch();
        else await world.restart(action === "kill");
        // What is counted never hides what was spent, except for what requests used beyond their reservation.
        expect(world.counted + world.reserved + world.beyond).toBeGreaterThanOrEqual(world.truth);
      }
      if (strict) expect(world.truth).toBeLessThanOrEqual(LIMIT);
      else expect(world.truth).toBeLessThanOrEqual(LIMIT + world.last + world.beyond);
      await world.close();
    }),
    { numRuns: 25 },
  );
});
