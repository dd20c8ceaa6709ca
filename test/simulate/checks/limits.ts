// Limits of keys: never exceeded beyond what the documentation says.

import type { Send } from "../clients/client.ts";
import { type ClientPlan, type LimitPlan, platformOf } from "../plan/plan.ts";
import type { World } from "../run.ts";
import type { Arrival } from "../upstreams/upstream.ts";

export function checkLimits(world: World): void {
  if (world.timeWasBent) return;
  const keys = new Map(world.sends.map(({ name, client }) => [name, client.key]));
  for (const client of world.plan.clients) {
    if (client.key !== client.name) continue;
    const limits = findLoosest(world.limitsOf(client.key));
    if (Object.keys(limits).length === 0) continue;
    // To fetch a response costs nothing.
    const own = world.arrivals.filter(
      (arrival) => arrival.fetches === null && keys.get(arrival.send) === client.key,
    );
    checkRate(world, client.key, limits.requestsPerMinute, own);
    checkConcurrent(world, client.key, limits.concurrentRequests, own);
    checkSpent(world, client, limits, own);
  }
}

/** Of each limit the highest that the key ever had; none, if it once had none. */
function findLoosest(all: readonly LimitPlan[]): LimitPlan {
  const find = (name: keyof LimitPlan): object => {
    const values = all.flatMap((limits) => limits[name] ?? []);
    if (values.length < all.length) return {};
    return { [name]: values.reduce((a, b) => (Number(a) > Number(b) ? a : b)) };
  };
  return {
    ...find("requestsPerMinute"),
    ...find("concurrentRequests"),
    ...find("usdPerDay"),
    ...find("usdTotal"),
  };
}

/** A minute of the gateway's, less what a request may take to go out. */
const WINDOW_US = 45_000_000;

/** What somebody took from the ledger, or a power cut did, was not counted any more. A kill takes nothing. */
function mayForget(world: World): boolean {
  return world.removed.length > 0 || world.deaths.some(({ how }) => how === "without power");
}

function checkRate(world: World, key: string, most: number | undefined, arrivals: readonly Arrival[]): void {
  // What came to nothing before a kill has no line, and is not counted after it.
  if (most === undefined || world.deaths.length > 0 || mayForget(world)) return;
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

/** When a request was at its upstream without any doubt: its answer was still being sent, and its client was there. */
interface Stay {
  readonly send: string;
  readonly from: number;
  readonly until: number;
}

function checkConcurrent(
  world: World,
  key: string,
  most: number | undefined,
  arrivals: readonly Arrival[],
): void {
  if (most === undefined || world.deaths.length > 0) return;
  const sends = new Map(world.sends.map((send) => [send.name, send]));
  const stays = arrivals.flatMap((arrival): Stay[] => {
    const send = sends.get(arrival.send);
    return send !== undefined && isPlain(arrival, send)
      ? [{ send: send.name, from: arrival.at, until: Math.min(arrival.endedAt, send.endedAt) }]
      : [];
  });
  for (const { send, from } of stays) {
    const others = stays.filter((other) => other.send !== send && other.from <= from && other.until > from);
    const count = new Set(others.map((other) => other.send)).size;
    if (count < most) continue;
    world.accuse(
      "limits",
      `The key ${key} may have ${most} requests at once, and ${count} were at upstreams when ${send} came.`,
    );
    return;
  }
}

/** The gateway has no reason to give it up early. */
function isPlain({ plan, stream }: Arrival, { request, end }: Send): boolean {
  const isWhole = plan?.kind === "answer" && plan.cut === null && plan.missing === 0 && plan.coding === null;
  return (
    isWhole && end === "reply" && request.slow === null && request.leave === null && stream === request.stream
  );
}

/** USD for a million tokens, of the models that clients ask for. */
const PRICES: Readonly<Record<string, readonly [input: number, multiplier: number]>> = {
  messages: [3, 1],
  responses: [1.25, 0.3333333333333],
  content: [0.3, 1.25],
};

/** What one request cost at least: its prompt, which an upstream read. */
interface Spent {
  readonly at: number;
  readonly endedAt: number;
  readonly usd: number;
}

function checkSpent(world: World, client: ClientPlan, limits: LimitPlan, arrivals: readonly Arrival[]): void {
  const price = PRICES[platformOf(client.dialect)];
  if (price === undefined || mayForget(world)) return;
  const [input, multiplier] = price;
  // A request that was sent twice is counted once: see `suspect` in the docs.
  const bySend = Map.groupBy(arrivals, ({ send }) => send);
  const spent = [...bySend.values()].flatMap((own): Spent[] => {
    const read = own.filter(
      ({ whole, status, plan }) => whole && status < 300 && plan?.kind !== "error status",
    );
    const tokens = Math.min(...read.map((arrival) => arrival.estimated - (arrival.plan?.cacheRead ?? 0)));
    const endedAt = Math.max(...own.map((arrival) => Math.min(arrival.endedAt, arrival.at + GIVEN_UP_US)));
    const usd = (Math.max(0, tokens) * CAREFUL * input * multiplier) / 1e6;
    return read.length === 0 ? [] : [{ at: own[0]?.at ?? 0, endedAt, usd }];
  });
  checkWindow(world, client, spent, { limit: limits.usdTotal, since: () => 0 });
  checkWindow(world, client, spent, { limit: limits.usdPerDay, since: (at) => dayBegins(world, at) });
}

/** The gateway estimates a prompt by its own bytes; a bridge may have made them a few more. */
const CAREFUL = 0.8;
/** The longest that the gateway waits for an answer, and some time for its line. */
const GIVEN_UP_US = 45_000_000;
const SETTLED_US = 5_000_000;
const DAY_MS = 86_400_000;

/** In virtual time. */
function dayBegins({ plan }: World, at: number): number {
  return at - ((plan.wall + at / 1000) % DAY_MS) * 1000;
}

/** A request is let in as long as less than the limit is spent. So what earlier ones cost is below it. */
function checkWindow(
  world: World,
  { key }: ClientPlan,
  spent: readonly Spent[],
  { limit, since }: { readonly limit: string | undefined; readonly since: (at: number) => number },
): void {
  if (limit === undefined) return;
  for (const { at } of spent) {
    const from = since(at);
    const earlier = spent.filter((other) => other.at >= from && other.endedAt < at - SETTLED_US);
    const sum = earlier.reduce((total, { usd }) => total + usd, 0);
    if (sum <= Number(limit)) continue;
    world.accuse(
      "limits",
      `The key ${key} may spend $${limit}; prompts of more than $${sum.toFixed(5)} had been read when another request was let in.`,
    );
    return;
  }
}
