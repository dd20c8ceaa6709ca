// Checks that limits of keys work, and that they refuse only with a reason. What a key has spent is the sum of its lines:
// other checks compare the amounts of lines with what the upstreams counted.

import type { Send } from "../clients/send.ts";
import { hasBadDisk } from "../plan/plan.ts";
import type { World } from "../run.ts";
import type { Arrival } from "../upstreams/upstream.ts";

/** The fields of a ledger line that the checks of limits read. */
export interface Counted {
  readonly id: string;
  readonly time: string;
  readonly request_time?: string;
  readonly key: string;
  readonly outcome: string;
  readonly charge_usd: string | null;
  readonly limit_usd?: string;
}

export function checkLimits(world: World, lines: readonly Counted[]): void {
  const names = Map.groupBy(world.sends, ({ client }) => client.key);
  for (const { name, key, limits } of world.plan.clients) {
    const sends = new Set(names.get(key)?.map((send) => send.name));
    const arrivals = world.arrivals.filter(({ send }) => sends.has(send));
    if (name !== key) continue;
    checkRate(world, key, limits.requestsPerMinute, arrivals);
    checkConcurrent(world, key, limits.concurrentRequests, arrivals);
    const own = lines.filter((line) => line.key === key);
    checkSpent(world, key, own, { limit: limits.usdTotal, window: () => 0 });
    checkSpent(world, key, own, { limit: limits.usdPerDay, window: findDay });
    checkSpent(world, key, own, { limit: limits.usdPerMonth, window: findMonth });
  }
  if (!mayMissLines(world)) for (const send of world.sends) checkRefused(world, send, lines);
}

/** Whether lines that limits counted may be gone from the ledger, or may not be in it yet. */
function mayMissLines(world: World): boolean {
  return mayForget(world) || hasBadDisk(world.plan) || world.stoodStill;
}

/** Whether limits may have forgotten spending because a power cut took lines. A kill takes no lines: each
 *  request that reached an upstream has its line, or a record in the journal. */
function mayForget(world: World): boolean {
  return world.deaths.some(({ how }) => how === "without power");
}

/** A request may be on its way to an upstream for this long. */
const MAY_TRAVEL_US = 15_000_000;
/** A minute, minus the time that a request may need to reach the upstream. */
const WINDOW_US = 45_000_000;

function checkRate(world: World, key: string, most: number | undefined, arrivals: readonly Arrival[]): void {
  if (most === undefined || world.boots.length > 1 || world.stoodStill) return;
  const firsts = new Map<string, number>();
  for (const { send, at } of arrivals) if (!firsts.has(send)) firsts.set(send, at);
  const times = [...firsts.values()];
  for (const [index, at] of times.entries()) {
    const until = times[index + most];
    const isBent = world.bends.some(({ at: bend }) => bend > at - MAY_TRAVEL_US && bend < (until ?? at));
    if (until === undefined || until - at >= WINDOW_US || isBent) continue;
    const ms = (until - at) / 1000;
    world.accuse(
      "limits",
      `${key} may make ${most} requests a minute, but ${most + 1} reached upstreams within ${ms} ms.`,
    );
    return;
  }
}

function checkConcurrent(
  world: World,
  key: string,
  most: number | undefined,
  arrivals: readonly Arrival[],
): void {
  if (most === undefined || world.deaths.length > 0 || world.stoodStill) return;
  const stays = [...Map.groupBy(arrivals, ({ send }) => send)]
    .map(([send, own]) => ({ send, from: own[0]!.at, until: findStay(world.sendsByName.get(send), own) }))
    .filter(({ from, until }) => until > from);
  for (const { send, from } of stays) {
    const others = stays.filter((other) => other.send !== send && other.from <= from && other.until > from);
    if (others.length < most) continue;
    world.accuse(
      "limits",
      `The key ${key} may have ${most} requests at once, but ${others.length} were at upstreams when ${send} came.`,
    );
    return;
  }
}

/** Returns the time up to which a request was certainly in flight. Up to then, the upstream was sending the
 *  answer, and the client was connected. */
function findStay(send: Send | undefined, own: readonly Arrival[]): number {
  const last = send?.whole ?? own.at(-1);
  if (send === undefined || last === undefined || !isPlain(last, send)) return Number.NEGATIVE_INFINITY;
  return Math.min(last.endedAt, send.endedAt);
}

/** Whether the gateway had no reason to cancel the request early. */
function isPlain({ plan, stream }: Arrival, { request, end }: Send): boolean {
  const isWhole = plan.kind === "answer" && plan.cut === null;
  return (
    isWhole && end === "reply" && request.slow === null && request.leave === null && stream === request.stream
  );
}

const NOTHING_USD = 1e-9;

function timeOf({ request_time, time }: Counted): number {
  return Date.parse(request_time ?? time);
}

function spentOf({ limit_usd, charge_usd }: Counted): number {
  return Number(limit_usd ?? charge_usd ?? 0);
}

/** Returns when the day of this moment began, in UTC by the wall clock. */
function findDay(wall: number): number {
  return Date.parse(new Date(wall).toISOString().slice(0, 10));
}

function findMonth(wall: number): number {
  return Date.parse(new Date(wall).toISOString().slice(0, 7));
}

interface Spending {
  readonly limit: string | undefined;
  /** When the window that contains this moment began. */
  readonly window: (wall: number) => number;
}

/** Checks what a key has spent in each window. A request is let in while less than the limit is spent, so the
 *  sum may exceed the limit by the limit itself, or by the charge of the dearest request if that is more. */
function checkSpent(world: World, key: string, lines: readonly Counted[], { limit, window }: Spending): void {
  if (limit === undefined) return;
  const written = new Map(world.written.map(({ id, at }) => [id, at]));
  for (const own of Map.groupBy(lines, (line) => window(timeOf(line))).values()) {
    const charges = own.flatMap((line) => (line.outcome === "interrupted" ? [] : [Number(line.charge_usd)]));
    const sum = charges.reduce((total, usd) => total + usd, 0);
    if (
      !mayForget(world) &&
      sum > Math.max(2 * Number(limit), Number(limit) + Math.max(...charges)) + NOTHING_USD
    )
      world.accuse("limits", `The key ${key} may spend $${limit}, and has spent $${sum}.`);
    for (const line of own) {
      const sentAt = world.sendsByName.get(world.ids.get(line.id) ?? "")?.at ?? 0;
      const before = own.filter(({ id }) => (written.get(id) ?? Number.POSITIVE_INFINITY) < sentAt);
      const spent = before.reduce((total, other) => total + spentOf(other), 0);
      if (spent >= Number(limit) + NOTHING_USD)
        world.accuse(
          "limits",
          `The key ${key} may spend $${limit}; ${line.id} came when $${spent} were spent.`,
        );
    }
  }
}

const REFUSAL =
  /The key \\*"([^"\\]+)\\*" may spend \$[\d.]+ \(usd_(?:per_)?(\w+)\) and has spent \$([\d.]+)(?: and \$([\d.]+) estimated)?/;

/** Checks that a refusal names no more spending than the ledger has, also after the clock was changed. */
function checkRefused(world: World, send: Send, lines: readonly Counted[]): void {
  const refusal = REFUSAL.exec(send.reply?.body.toString() ?? "");
  if (refusal === null) return;
  const [, key, span, spent, estimated = "0"] = refusal;
  const from =
    span === "total"
      ? Number.NEGATIVE_INFINITY
      : findStart(world, send, span === "day" ? findDay : findMonth);
  const own = lines.filter((line) => line.key === key && timeOf(line) >= from);
  const charged = own.reduce((sum, line) => sum + Number(line.charge_usd ?? 0), 0);
  const counted = own.reduce((sum, line) => sum + Number(line.limit_usd ?? 0), 0);
  if (Number(spent) > charged + NOTHING_USD || Number(estimated) > counted + NOTHING_USD)
    world.accuse(
      "refused",
      `${send.name} was refused because of $${spent} and $${estimated} estimated (${span}), but all lines have $${charged.toFixed(9)} and $${counted.toFixed(9)}.`,
    );
}

/** When the window of a refusal began. Earlier spending does not count. */
function findStart({ plan, bends }: World, { at, endedAt }: Send, window: (wall: number) => number): number {
  if (bends.some((bend) => bend.at >= at && bend.at <= endedAt)) return Number.NEGATIVE_INFINITY;
  const moved = bends.filter((bend) => bend.at < at).reduce((sum, { byMs }) => sum + byMs, 0);
  return window(plan.wall + at / 1000 + moved);
}
