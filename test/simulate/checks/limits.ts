// Limits of keys: never exceeded beyond what the documentation says.

import { type ClientPlan, platformOf } from "../plan/plan.ts";
import type { World } from "../run.ts";
import type { Arrival } from "../upstreams/upstream.ts";

export function checkLimits(world: World): void {
  if (world.timeWasBent) return;
  for (const client of world.plan.clients) {
    if (client.key !== client.name) continue;
    const own = world.arrivals.filter((arrival) => isOf(world, arrival, client.key));
    checkRate(world, client, own);
    checkSpent(world, client, own);
  }
}

function isOf(world: World, arrival: Arrival, key: string): boolean {
  const send = world.sends.find(({ name }) => name === arrival.send);
  return send?.client.key === key;
}

/** A minute of the gateway's, less what a request may take to go out. */
const WINDOW_US = 45_000_000;

function checkRate(world: World, { key, limits }: ClientPlan, arrivals: readonly Arrival[]): void {
  const most = limits.requestsPerMinute;
  // What a power cut took from the ledger was not counted any more.
  if (most === undefined || world.deaths.length > 0 || world.removed.length > 0) return;
  const firsts = new Map<string, number>();
  for (const { send, at } of arrivals) if (!firsts.has(send)) firsts.set(send, at);
  const times = [...firsts.values()];
  for (const [index, at] of times.entries()) {
    const until = times[index + most];
    if (until !== undefined && until - at < WINDOW_US) {
      world.accuse(
        "limits",
        `The key ${key} may make ${most} requests a minute, and ${most + 1} reached upstreams within ${(until - at) / 1000} ms.`,
      );
      return;
    }
  }
}

/** USD for a million tokens, of the models that clients ask for. */
const PRICES: Readonly<Record<string, readonly [input: number, multiplier: number]>> = {
  messages: [3, 1],
  responses: [1.25, 0.3333333333333],
  content: [0.3, 1.25],
};

/** Prompts alone cost this much: whatever became of their answers, an upstream read them. */
function checkSpent(world: World, client: ClientPlan, arrivals: readonly Arrival[]): void {
  const limit = Number(client.limits.usdTotal ?? client.limits.usdPerDay ?? Number.POSITIVE_INFINITY);
  const price = PRICES[platformOf(client.dialect)];
  if (
    price === undefined ||
    limit === Number.POSITIVE_INFINITY ||
    world.deaths.length > 0 ||
    world.removed.length > 0
  )
    return;
  const [input, multiplier] = price;
  let spent = 0;
  const ended: Array<{ at: number; usd: number }> = [];
  for (const arrival of arrivals) {
    const before = ended
      .filter(({ at }) => at < arrival.at - 5_000_000)
      .reduce((sum, { usd }) => sum + usd, 0);
    // The gateway estimates prompts whose usage it never learns, generously.
    if (before > 3 * limit) {
      world.accuse(
        "limits",
        `The key ${client.key} may spend $${limit}; prompts of more than $${before.toFixed(5)} had been read when another request was let in.`,
      );
      return;
    }
    if (arrival.status >= 300 || !arrival.whole) continue;
    spent = (arrival.estimated * input * multiplier) / 1e6;
    ended.push({ at: Math.min(arrival.endedAt, arrival.at + 30_000_000), usd: spent });
  }
}
