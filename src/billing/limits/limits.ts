// Decides whether a key may send another request: decision 0017.

import type { Key, Limits } from "../../config/catalog.ts";
import { formatMoment } from "../../config/changes/names.ts";
import { GatewayError } from "../../lib/errors.ts";
import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { findNextSpan, type Zone } from "../../lib/text/zone.ts";
import type { Holder, Sums, Window } from "../ledger/sums.ts";
import type { Forecast } from "./reserve.ts";

export interface Admission {
  /** Counted until the cost is known. Null: no USD limit counts it. */
  readonly reservedUsd: string | null;
  /** The most that the request may cost.
   *  Limits count it if the response goes on in the background. */
  readonly mostUsd: string | null;
  /** A USD limit let the request in although its model has no price. */
  readonly unpriced: boolean;
  /** Called when the line is in the ledger. */
  release(): void;
}

/** When another request ends, this one may be let in. */
export interface NoRoom {
  readonly noRoom: GatewayError;
  /** The limit that has no room, with the number of requests that wait for it. */
  readonly at: { waiting: number };
}

/** What a request may cost, computed only for a USD limit. */
export interface Cost {
  readonly model: string;
  readonly forecast: () => Forecast | null;
}

/** A run of `gateway run`, which counts its own cost. */
export interface Run {
  readonly id: string;
  /** The most that the run may cost, in USD. Null: no limit. */
  readonly budget: string | null;
  readonly charged: Usd;
  readonly estimated: Usd;
  refused: number;
  unpriced: string | null;
}

interface Arrival {
  readonly session?: string | undefined;
  readonly run?: Run | null;
  readonly hasWaited?: boolean;
}

export type Gate = ReturnType<typeof createGate>;

const MINUTE_MS = 60_000;
const IN_FLIGHT_RETRY_SECONDS = 2;
/** So long that no client waits for a limit that never resets. */
const NEVER_RESETS_RETRY_SECONDS = 86_400;

export interface UsdLimit {
  readonly limit: string;
  readonly window: Window;
  readonly usd: string;
}

/** The limits of one run, key, group or session. */
interface Side {
  readonly holder: Holder;
  readonly owner: Holder;
  /** Requests of an earlier key of the same name do not count. */
  readonly since: number;
  readonly usd: readonly UsdLimit[];
  readonly perMinute: number | null;
  readonly atOnce: number | null;
  readonly allowUnpriced: boolean;
  readonly run?: Run;
}

interface Flight {
  readonly shares: Set<Forecast>;
  waiting: number;
  /** Times of the last requests, the oldest first. */
  recent: number[];
}

type Placed = Side & { readonly flight: Flight };

export type Spending = Pick<Sums, "spentOf" | "zone">;

export function createGate(sums: Spending, freed = (): void => {}) {
  const flights = new Map<string, Flight>();
  const place = (side: Side): Placed => {
    const { owner, holder, since } = side;
    const id = JSON.stringify([owner.kind, owner.name, since, holder.kind, holder.name]);
    const flight = flights.get(id) ?? { shares: new Set(), waiting: 0, recent: [] };
    // The least recently used come first.
    flights.delete(id);
    flights.set(id, flight);
    return { ...side, flight };
  };
  return {
    /** Without `cost`, only limits on numbers of requests count the request. */
    enter(key: Key, now: number, cost: Cost | null, arrival: Arrival = {}): Admission | NoRoom {
      const { session, run = null, hasWaited = false } = arrival;
      const sides = listSides(key, run, session).map(place);
      if (sides.length === 0) return FREE;
      for (const side of sides) checkNumbers(side, now);
      const forecast = cost === null ? null : forecastFor(sides, cost);
      const request = forecast ?? { expected: ZERO_USD, most: ZERO_USD };
      const noRoom = cost && findNoRoom(sides, { request, hasWaited }, sums, now);
      if (noRoom !== null) return noRoom;
      forgetIdle(flights, now);
      const release = addShare(sides, request, now, freed);
      const unpriced = cost !== null && sides.some(({ usd }) => usd.length > 0);
      if (forecast === null) return { ...FREE, unpriced, release };
      const { expected, most } = forecast;
      return { reservedUsd: formatUsd(expected), mostUsd: formatUsd(most), unpriced: false, release };
    },
  };
}

function addShare(sides: readonly Placed[], request: Forecast, now: number, freed: () => void): () => void {
  // A copy: two requests may have the same forecast.
  const share = { ...request };
  for (const { flight, perMinute } of sides) {
    if (perMinute !== null) flight.recent.push(now);
    flight.shares.add(share);
  }
  return () => {
    const isFirst = sides.map(({ flight }) => flight.shares.delete(share)).includes(true);
    if (isFirst) freed();
  };
}

function listSides({ name, created, limits, group }: Key, run: Run | null, session: string | undefined) {
  const sides: Side[] = [];
  const add = (owner: Holder, since: number, own: Limits): void => {
    const { concurrentRequests: atOnce, requestsPerMinute, requestsPerMinutePerSession, allowUnpriced } = own;
    const side = { owner, since, allowUnpriced };
    sides.push({ ...side, holder: owner, usd: listUsdLimits(own), perMinute: requestsPerMinute, atOnce });
    if (session === undefined) return;
    const holder = { kind: "session", name: session } as const;
    const perMinute = requestsPerMinutePerSession;
    sides.push({ ...side, holder, usd: listSessionLimits(own), perMinute, atOnce: null });
  };
  if (hasBudget(run)) {
    const holder = { kind: "run", name: run.id } as const;
    const usd = [{ limit: "--budget", window: "total", usd: run.budget }] as const;
    // A key may allow unpriced requests, a run's budget never does.
    const allowUnpriced = false;
    sides.push({ holder, owner: holder, since: 0, usd, perMinute: null, atOnce: null, allowUnpriced, run });
  }
  add({ kind: "key", name }, created?.getTime() ?? 0, limits);
  add({ kind: "group", name: group.name }, 0, group.limits);
  return sides.filter(
    ({ usd, perMinute, atOnce }) => usd.length > 0 || perMinute !== null || atOnce !== null,
  );
}

export const FREE: Admission = {
  reservedUsd: null,
  mostUsd: null,
  unpriced: false,
  release: () => undefined,
};

const MAX_FLIGHTS = 10_000;

function forgetIdle(flights: Map<string, Flight>, now: number): void {
  if (flights.size <= MAX_FLIGHTS) return;
  for (const [id, { shares, recent }] of flights) {
    // The entries after this one were used later.
    if (flights.size <= MAX_FLIGHTS || (recent.at(-1) ?? 0) > now - MINUTE_MS) return;
    if (shares.size === 0) flights.delete(id);
  }
}

function hasBudget(run: Run | null): run is Run & { readonly budget: string } {
  return run !== null && run.budget !== null;
}

export function isLimited(key: Key, run: Run | null): boolean {
  return hasBudget(run) || limitsCalls(key) || hasLimit(key.limits) || hasLimit(key.group.limits);
}

function hasLimit(limits: Limits): boolean {
  const { requestsPerMinute, concurrentRequests, requestsPerMinutePerSession } = limits;
  const isCounted = (requestsPerMinute ?? concurrentRequests ?? requestsPerMinutePerSession) !== null;
  return isCounted || hasUsdLimit(limits);
}

export function limitsCalls({ limits, group }: Key): boolean {
  return (limits.sameCall ?? group.limits.sameCall) !== null;
}

export function hasUsdLimit({ usdPerDay, usdPerMonth, usdTotal, usdPerSession }: Limits): boolean {
  return (usdPerDay ?? usdPerMonth ?? usdTotal ?? usdPerSession) !== null;
}

function forecastFor(sides: readonly Side[], { model, forecast }: Cost): Forecast | null {
  const limited = sides.filter(({ usd }) => usd.length > 0);
  const found = limited.length === 0 ? null : forecast();
  const refusing = limited.find(({ allowUnpriced }) => !allowUnpriced);
  if (found !== null || refusing === undefined) return found;
  if (refusing.run !== undefined) refusing.run.unpriced = model;
  const instead = refusing.run === undefined ? "add `unpriced: allow` to the limits" : "run without --budget";
  throw new GatewayError(
    "limit_unenforceable",
    `${describeHolder(refusing.holder)} has a limit in USD, and "${model}" has no price. ` +
      `Add its price under \`prices:\` in the config, or ${instead}.`,
  );
}

function checkNumbers({ holder, perMinute, atOnce, flight }: Placed, now: number): void {
  if (atOnce !== null && flight.shares.size >= atOnce)
    throw new GatewayError(
      "rate_limited",
      `${describeHolder(holder)} may have ${countRequests(atOnce)} at once (concurrent_requests): try again when one has ended.`,
      { retrySeconds: IN_FLIGHT_RETRY_SECONDS },
    );
  if (perMinute === null) return;
  const { recent } = flight;
  // Arrivals in the future came before the clock was set back.
  while (recent[0] !== undefined && (recent[0] <= now - MINUTE_MS || recent[0] > now)) recent.shift();
  if (recent.length < perMinute) return;
  const free = (recent[recent.length - perMinute] ?? now) + MINUTE_MS;
  const seconds = Math.max(1, Math.ceil((free - now) / 1000));
  const limit = holder.kind === "session" ? "requests_per_minute_per_session" : "requests_per_minute";
  throw new GatewayError(
    "rate_limited",
    `${describeHolder(holder)} may make ${countRequests(perMinute)} a minute (${limit}), and has made ${recent.length} in the last one: try again in ${seconds} s.`,
    { retrySeconds: seconds },
  );
}

interface Claim {
  readonly request: Forecast;
  /** The request has waited: it need not give way to others that wait. */
  readonly hasWaited: boolean;
}

function findNoRoom(sides: readonly Placed[], claim: Claim, sums: Spending, now: number): NoRoom | null {
  const limits = sides.flatMap((side) => side.usd.map((limit) => ({ ...side, ...limit, side })));
  for (const { side, holder, flight, run, limit, window, usd } of limits) {
    const { charged, estimated } = run ?? sums.spentOf(holder, window);
    const counted = addUsd(charged, estimated);
    const reserved = findInWay(flight, counted, parseUsd(usd), claim);
    if (reserved === null) continue;
    const doubt =
      estimated > ZERO_USD ? ` and $${formatUsd(estimated)} estimated for requests without known usage` : "";
    const state = `${describeHolder(holder)} may spend $${usd} (${limit}) and has spent $${formatUsd(charged)}${doubt}`;
    if (counted < parseUsd(usd)) {
      const others = `up to $${formatUsd(reserved)} more is reserved by ${countRequests(flight.shares.size)} in flight`;
      const noRoom = new GatewayError("rate_limited", `${state}; ${others}: try again when one has ended.`, {
        retrySeconds: IN_FLIGHT_RETRY_SECONDS,
      });
      return { noRoom, at: flight };
    }
    if (run !== undefined) run.refused += 1;
    const reset = findReset(window, sums.zone, now);
    const wait = reset === null ? NEVER_RESETS_RETRY_SECONDS : Math.ceil((reset - now) / 1000);
    throw new GatewayError("limit_spent", `${state}. ${describeEnd(side, reset)}`, {
      retrySeconds: Math.max(1, wait),
      resetsAt: reset,
    });
  }
  return null;
}

/** Returns null if the request fits, or else what the other requests in flight reserve.
 *  What is spent, plus what the others will probably cost, must be below the limit.
 *  If there are others, `ceiling` bounds what is spent plus the most that all may cost. */
function findInWay(
  { shares, waiting }: Flight,
  counted: Usd,
  limit: Usd,
  { request, hasWaited }: Claim,
): Usd | null {
  let [expected, most, dearest] = [ZERO_USD, ZERO_USD, request.most];
  for (const share of shares) {
    expected = addUsd(expected, share.expected);
    most = addUsd(most, share.most);
    if (share.most > dearest) dearest = share.most;
  }
  if (addUsd(counted, expected) >= limit || (waiting > 0 && !hasWaited)) return expected;
  if (shares.size === 0) return null;
  const ceiling = addUsd(limit, dearest > limit ? dearest : limit);
  return addUsd(addUsd(counted, most), request.most) <= ceiling ? null : most;
}

export function listUsdLimits({ usdPerDay, usdPerMonth, usdTotal }: Limits): UsdLimit[] {
  const limits: UsdLimit[] = [];
  if (usdPerDay !== null) limits.push({ limit: "usd_per_day", window: "day", usd: usdPerDay });
  if (usdPerMonth !== null) limits.push({ limit: "usd_per_month", window: "month", usd: usdPerMonth });
  if (usdTotal !== null) limits.push({ limit: "usd_total", window: "total", usd: usdTotal });
  return limits;
}

export function listSessionLimits({ usdPerSession: usd }: Limits): UsdLimit[] {
  return usd === null ? [] : [{ limit: "usd_per_session", window: "total", usd }];
}

function describeEnd({ holder, owner }: Side, reset: number | null): string {
  if (reset !== null) return `It resets at ${formatMoment(new Date(reset))}.`;
  if (holder.kind === "run") return "Start it again, with a larger --budget if one run needs more.";
  return holder.kind === "session"
    ? `Start a new session, or raise usd_per_session of the ${owner.kind} "${owner.name}".`
    : "This limit does not reset.";
}

export function findReset(window: Window, zone: Zone, now: number): number | null {
  return window === "total" ? null : findNextSpan(window, zone, now);
}

function countRequests(count: number): string {
  return count === 1 ? "1 request" : `${count} requests`;
}

function describeHolder({ kind, name }: Holder): string {
  return kind === "run" ? "This run" : `The ${kind} "${name}"`;
}

export function stopLoop(
  { name, limits, group }: Key,
  session: string | undefined,
  sameCalls: () => number,
): void {
  let count: number | null = null;
  for (const [owner, { sameCall }] of [
    [`key "${name}"`, limits],
    [`group "${group.name}"`, group.limits],
  ] as const) {
    if (sameCall === null || (count ??= sameCalls()) < sameCall) continue;
    const holder: Holder = session === undefined ? { kind: "key", name } : { kind: "session", name: session };
    throw new GatewayError(
      "limit_spent",
      `${describeHolder(holder)} has made the same tool call ${count} times in a row, with the same result; the ${owner} allows less than ${sameCall} (same_call). Give the agent a new instruction.`,
      { retrySeconds: NEVER_RESETS_RETRY_SECONDS },
    );
  }
}
