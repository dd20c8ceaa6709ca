// Checks that the limits of keys are never exceeded by more than the documentation says.

import type { Send } from "../clients/send.ts";
import { capOf } from "../clients/requests.ts";
import type { Dialect } from "../plan/plan.ts";
import type { World } from "../run.ts";
import { isOneGateway } from "./books.ts";
import { findBegin } from "./refused.ts";
import type { Arrival } from "../upstreams/upstream.ts";

export function checkLimits(world: World): void {
  if (world.stoodStill) return;
  const keys = new Map(world.sends.map(({ name, client }) => [name, client.key]));
  for (const client of world.plan.clients) {
    const { limits } = client;
    if (client.key !== client.name || Object.keys(limits).length === 0) continue;
    const own = world.arrivals.filter(({ send }) => keys.get(send) === client.key);
    checkRate(world, client.key, limits.requestsPerMinute, own);
    checkConcurrent(world, client.key, limits.concurrentRequests, own);
    const days = [
      { limit: limits.usdPerDay, since: (at: number) => dayBegins(world, at) },
      { limit: limits.usdPerMonth, since: (at: number) => monthBegins(world, at) },
    ];
    checkSpent(world, client.key, own, [
      { limit: limits.usdTotal, since: () => 0 },
      ...(world.timeWasBent ? [] : days),
    ]);
  }
}

/** A request may be on its way to an upstream for this long. */
const MAY_TRAVEL_US = 15_000_000;
/** A minute, minus the time that a request may need to reach the upstream. */
const WINDOW_US = 45_000_000;

/** Lines that a power cut took no longer count. A kill loses nothing: a request that reached an
 *  upstream has its line, or a record in the journal. */
function mayForget(world: World): boolean {
  return world.deaths.some(({ how }) => how === "without power");
}

function checkRate(
  world: World,
  holder: string,
  most: number | undefined,
  arrivals: readonly Arrival[],
): void {
  if (most === undefined || mayForget(world)) return;
  const firsts = new Map<string, number>();
  for (const { send, at } of arrivals) if (!firsts.has(send)) firsts.set(send, at);
  const times = [...firsts.values()];
  for (const [index, at] of times.entries()) {
    const until = times[index + most];
    const isBent = world.bends.some(({ at: bend }) => bend > at - MAY_TRAVEL_US && bend < (until ?? at));
    if (until !== undefined && until - at < WINDOW_US && !isBent) {
      world.accuse(
        "limits",
        `${holder} may make ${most} requests a minute, but ${most + 1} reached upstreams within ${(until - at) / 1000} ms.`,
      );
      return;
    }
  }
}

function checkConcurrent(
  world: World,
  key: string,
  most: number | undefined,
  arrivals: readonly Arrival[],
): void {
  if (most === undefined || world.deaths.length > 0) return;
  const stays = [...Map.groupBy(arrivals, ({ send }) => send)]
    .map(([send, own]) => ({ send, from: own[0]!.at, until: findStay(world.sendsByName.get(send), own) }))
    .filter(({ from, until }) => until > from);
  for (const { send, from } of stays) {
    const count = stays.filter(
      (other) => other.send !== send && other.from <= from && other.until > from,
    ).length;
    if (count < most) continue;
    world.accuse(
      "limits",
      `The key ${key} may have ${most} requests at once, but ${count} were at upstreams when ${send} came.`,
    );
    return;
  }
}

/** How long a request was certainly in flight: while the answer that its client got was being sent, and its client was
 *  connected. */
function findStay(send: Send | undefined, own: readonly Arrival[]): number {
  const last = send?.whole ?? own.at(-1);
  if (send === undefined || last === undefined || !isPlain(last, send)) return Number.NEGATIVE_INFINITY;
  return Math.min(last.endedAt, send.endedAt);
}

/** The gateway had no reason to cancel it early. */
function isPlain({ plan, stream }: Arrival, { request, end }: Send): boolean {
  const isWhole = plan?.kind === "answer" && plan.cut === null && plan.missing === 0;
  return (
    isWhole && end === "reply" && request.slow === null && request.leave === null && stream === request.stream
  );
}

interface Price {
  /** USD for a million tokens. */
  readonly input: number;
  readonly output: number;
  readonly multiplier: number;
}

/** The models that clients request. */
const PRICES: Readonly<Record<Dialect, Price>> = {
  messages: { input: 3, output: 15, multiplier: 1 },
  responses: { input: 1.25, output: 10, multiplier: 0.3333333333333 },
  content: { input: 0.3, output: 2.5, multiplier: 1.25 },
};

/** The least that one request cost. */
interface Spent {
  /** The gateway accepted it between these two moments. */
  readonly sentAt: number;
  readonly arrivedAt: number;
  readonly usd: number;
  /** The least that limits count until the gateway knows the cost. */
  readonly promptUsd: number;
  readonly knownAt: number;
  /** It was certainly in flight until then. */
  readonly staysUntil: number;
  /** What it had reserved at least, and what it might well cost. */
  readonly reservedUsd: number;
  readonly mostUsd: number;
}

/** A limit in USD, and when what counts for it began. */
interface Window {
  readonly limit: string | undefined;
  readonly since: (at: number) => number;
}

function checkSpent(
  world: World,
  holder: string,
  arrivals: readonly Arrival[],
  windows: readonly Window[],
): void {
  if (mayForget(world) || windows.every(({ limit }) => limit === undefined)) return;
  const spent = listSpent(world, arrivals);
  for (const window of windows) checkWindow(world, holder, spent, window);
}

function listSpent(world: World, arrivals: readonly Arrival[]): Spent[] {
  const own = Map.groupBy(arrivals, ({ send }) => send);
  const firstEnds = findFirstEnds(world);
  return world.sends.flatMap((send): Spent[] => {
    const [first, ...others] = own.get(send.name) ?? [];
    if (first === undefined) return [];
    const all = [first, ...others];
    const usd = costOf(send, all, Number.POSITIVE_INFINITY);
    const promptUsd = costOf(send, all, 0);
    const { output, multiplier } = PRICES[send.client.dialect];
    const mostUsd = promptUsd + (mostOutputOf(send) * output * multiplier) / 1e6;
    // The mean of the answers before can be small.
    const hasMean = (firstEnds.get(output) ?? 0) < first.at;
    const reservedUsd = hasMean ? promptUsd : mostUsd;
    // A client can have all of a response whose upstream does not end it: it is still in flight then.
    const isEnded = all.every(({ plan }) => plan === null || plan.missing === 0);
    // If it is killed before it writes the line, the next gateway counts what was reserved.
    const isKnown = isEnded && isOneGateway(world, first.at, send.endedAt);
    const knownAt = isKnown ? send.endedAt : Number.POSITIVE_INFINITY;
    const staysUntil = isKnown ? findStay(send, all) : 0;
    return [
      { sentAt: send.at, arrivedAt: first.at, usd, promptUsd, knownAt, staysUntil, reservedUsd, mostUsd },
    ];
  });
}

/** What a model's answer has without others before it, and may well have at least, if its cap is not smaller. */
const UNKNOWN_OUTPUT = 4000;

function mostOutputOf({ client, request }: Send): number {
  return Math.min(capOf(client.dialect, request) ?? UNKNOWN_OUTPUT, UNKNOWN_OUTPUT);
}

/** When the gateway may have had the first answer of a model. The output's price tells models apart. */
function findFirstEnds({ arrivals, sendsByName }: World): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  for (const { send: name, endedAt } of arrivals) {
    const send = sendsByName.get(name);
    if (send === undefined) continue;
    const { output } = PRICES[send.client.dialect];
    ends.set(output, Math.min(ends.get(output) ?? endedAt, endedAt, send.endedAt));
  }
  return ends;
}

/** A complete answer counts with its whole usage, any other one with the prompt that an upstream read. A request that was
 *  sent twice counts once: see `suspect` in the docs. */
function costOf({ client, whole }: Send, own: readonly Arrival[], mostOutput: number): number {
  const price = PRICES[client.dialect];
  const read = own.filter(isPaid);
  if (read.length === 0) return 0;
  if (read.length === own.length && whole?.plan?.kind === "answer") {
    const { input, output } = whole.counts;
    return ((input * price.input + Math.min(output, mostOutput) * price.output) * price.multiplier) / 1e6;
  }
  const tokens = Math.min(...read.map((arrival) => arrival.estimated - (arrival.plan?.cacheRead ?? 0)));
  return (Math.max(0, tokens) * CAREFUL * price.input * price.multiplier) / 1e6;
}

/** An error costs nothing, as a status or in a stream. */
function isPaid({ status, plan, stream }: Arrival): boolean {
  const isError = plan?.kind === "error status" || (plan?.kind === "error event" && stream);
  return status < 300 && !isError;
}

/** The gateway estimates a prompt from its bytes. */
const CAREFUL = 0.8;

/** In virtual time. */
function dayBegins({ plan }: World, at: number): number {
  return (findBegin(plan.wall + at / 1000, "day") - plan.wall) * 1000;
}

function monthBegins({ plan }: World, at: number): number {
  return (findBegin(plan.wall + at / 1000, "month") - plan.wall) * 1000;
}

/**
 * A request is accepted while less than the limit is spent or reserved. So everything that arrived before its client sent
 * it counts less than the limit: with what it had reserved while it was in flight, and with its cost afterwards. And with
 * what it and those beside it might well cost, it is at most twice the limit, or the limit and the dearest of them.
 */
function checkWindow(world: World, holder: string, spent: readonly Spent[], { limit, since }: Window): void {
  if (limit === undefined) return;
  const most = Number(limit) + 1e-9;
  for (const request of spent) {
    const { sentAt, arrivedAt } = request;
    const from = since(arrivedAt);
    const earlier = spent.filter((other) => other.sentAt >= from && other.arrivedAt < sentAt);
    const beside = earlier.filter(({ staysUntil }) => staysUntil > arrivedAt);
    const counted = earlier
      .filter((other) => !beside.includes(other))
      .reduce((sum, { usd, promptUsd, knownAt }) => sum + (knownAt < sentAt ? usd : promptUsd), 0);
    const probable = beside.reduce((sum, { reservedUsd }) => sum + reservedUsd, counted);
    const all = [request, ...beside];
    const possible = all.reduce((sum, { mostUsd }) => sum + mostUsd, counted);
    const dearest = Math.max(...all.map(({ mostUsd }) => mostUsd));
    const isTooMuch = beside.length > 0 && possible > 2 * most && possible > most + dearest;
    if (probable <= most && !isTooMuch) continue;
    world.accuse(
      "limits",
      `${holder} may spend $${limit}; $${probable.toFixed(5)} was spent or reserved, and $${possible.toFixed(5)} possible, when another request was accepted.`,
    );
    return;
  }
}
