// Whether a key may send one more request: the limits of the key and of its
// group against what the ledger counts and what is in flight.
//
// A request is let in while two sums fit. What is counted, plus what the requests in flight will probably cost, is below
// the limit. And what is counted, plus what these and the request itself may well cost, is at most twice the limit, or the
// limit and the dearest of them. A request alone is let in while less than the limit is counted. Where only requests in
// flight are in the way, the request may wait. With `strict`, each request reserves the most that it can cost and has to
// fit: nothing is exceeded. Requests whose cost is not known count with an estimate.
// docs/decisions/0017-limits-bind.md has the reasons.

import type { Key, Limits } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { findNextSpan, type Zone } from "../../lib/text/zone.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Holder, Window } from "../ledger/sums/sums.ts";
import type { CountWarning } from "./stops.ts";
import {
  type Claim,
  type Demand,
  findInWay,
  type Flight,
  guessWait,
  IN_FLIGHT_RETRY_SECONDS,
  leave,
  mostOf,
  noteRefusal,
  openFlight,
  type Share,
} from "./flight.ts";
import type { Forecast, UnboundedCost } from "./reserve.ts";

export interface Admission {
  /** What limits count for this request as long as its cost is not known, a decimal in USD; null: no limit in USD does. */
  readonly reservedUsd: string | null;
  /** The same for a response that goes on when its request has ended: what it may well cost. */
  readonly mostUsd: string | null;
  /** A limit is `strict`: then an estimate counts in full, also if part of the cost is known. */
  readonly strict: boolean;
  /** A limit in USD let it in, although the model has no price: no limit counts it. */
  readonly unpriced: boolean;
  /** The request is over. To be called after its line is in the ledger; again does nothing. `isWhole`: it had its whole
   *  answer, which shows that as many requests at once are usual. */
  release(isWhole?: boolean): void;
}

/** Requests in flight are in the way. When one of them ends, the request may be let in. */
export interface NoRoom {
  readonly noRoom: GatewayError;
  /** Where the room is missing, and how many wait there. */
  readonly at: { waiting: number };
}

/** What a request may cost. Computed only if a limit in USD needs it. */
export interface Cost {
  /** The client's name of the model. */
  readonly model: string;
  /** Null: the model has no price. */
  readonly expect: () => Forecast | null;
  /** The most that it can cost. */
  readonly bound: () => string | UnboundedCost;
  /** How long its model's answers take; null: not known. */
  readonly seconds: () => number | null;
}

export interface Arrival {
  readonly session?: string | undefined;
  /** It has waited for its turn: others that wait do not come before it. */
  readonly hasWaited?: boolean;
}

export interface Gate {
  /**
   * Throws `limit_spent`, `limit_unenforceable` or `rate_limited`. A request without `cost` is not billed: only
   * the settings on the number of requests count it.
   */
  admit(key: Key, now: number, cost: Cost | null, arrival?: Arrival): Admission | NoRoom;
}

const MINUTE_MS = 60_000;
/** Clients are not to wait for a limit that does not reset. */
export const NEVER_RESETS_RETRY_SECONDS = 86_400;

/** Whose limits count: the key, its group, or the session, as the key or the group limits each session. */
interface Side {
  readonly holder: Holder;
  /** Whose setting it is. */
  readonly owner: Holder;
  readonly limits: Limits;
  readonly flight: Flight;
}

type Sums = Pick<Ledger, "spentOf" | "estimatedOf" | "recentOf" | "zone">;

/** Called for each refusal because of a limit on the number of a session's requests. */
export type ReportStop = (warning: CountWarning) => void;

/** `freed`: called when a request in flight has ended. */
export function createGate(ledger: Sums, report: ReportStop = () => undefined, freed = (): void => {}): Gate {
  const flights = new Map<string, Flight>();
  const findFlight = (id: string, holder: Holder, now: number): Flight => {
    const flight = flights.get(id) ?? openFlight(ledger.recentOf(holder, now - MINUTE_MS));
    // The least recently used come first.
    flights.delete(id);
    flights.set(id, flight);
    return flight;
  };
  const listSides = (owner: Holder, limits: Limits, now: number, session: string | undefined): Side[] => {
    const sides: Side[] = [];
    const id = `${owner.kind} ${owner.name}`;
    if (hasOwnLimits(limits))
      sides.push({ holder: owner, owner, limits, flight: findFlight(id, owner, now) });
    if (session === undefined || !limitsSessions(limits)) return sides;
    const holder: Holder = { kind: "session", name: session };
    const flight = findFlight(`${id} ${session}`, holder, now);
    return [...sides, { holder, owner, limits: limitSession(limits), flight }];
  };
  return {
    admit(key, now, cost, { session, hasWaited = false } = {}) {
      const { group } = key;
      const sides = [
        ...listSides({ kind: "key", name: key.name }, key.limits, now, session),
        ...listSides({ kind: "group", name: group.name }, group.limits, now, session),
      ];
      if (sides.length === 0) return FREE;
      for (const side of sides) checkRates(side, now, report);
      const demand = cost === null ? NOTHING : findDemand(sides, cost);
      for (const side of cost === null ? [] : sides) {
        const noRoom = checkMoney(side, { demand, hasWaited }, ledger, now);
        if (noRoom !== null) return noRoom;
      }
      forgetIdle(flights, now);
      return enter(sides, now, demand, freed);
    },
  };
}

const NOTHING: Demand = {
  expected: null,
  most: () => ZERO_USD,
  worst: null,
  unpriced: false,
  seconds: () => null,
};

/** For a request that no limit counts. */
export const FREE: Admission = {
  reservedUsd: null,
  mostUsd: null,
  strict: false,
  unpriced: false,
  release: () => undefined,
};

/** The limits of each session, in the form of limits of a key. */
function limitSession(limits: Limits): Limits {
  const { usdPerSession: usdTotal, requestsPerMinutePerSession: requestsPerMinute } = limits;
  const none = { usdPerDay: null, usdPerMonth: null, usdPerSession: null, requestsPerMinutePerSession: null };
  return { ...limits, ...none, usdTotal, requestsPerMinute, concurrentRequests: null };
}

/** Sessions come and go. */
const MAX_FLIGHTS = 10_000;

function forgetIdle(flights: Map<string, Flight>, now: number): void {
  if (flights.size <= MAX_FLIGHTS) return;
  for (const [id, { running, recent }] of flights) {
    // Those after it were used later.
    if (flights.size <= MAX_FLIGHTS || (recent.at(-1) ?? 0) > now - MINUTE_MS) return;
    if (running === 0) flights.delete(id);
  }
}

function hasOwnLimits(limits: Limits): boolean {
  return hasOwnUsdLimit(limits) || limits.requestsPerMinute !== null || limits.concurrentRequests !== null;
}

/** Whether any limit counts the requests of this key. */
export function isLimited({ limits, group }: Key): boolean {
  return hasAnyLimit(limits) || hasAnyLimit(group.limits);
}

function hasAnyLimit(limits: Limits): boolean {
  const { sameCall, agents } = limits;
  return hasOwnLimits(limits) || limitsSessions(limits) || sameCall !== null || agents !== null;
}

function limitsSessions({ usdPerSession, requestsPerMinutePerSession }: Limits): boolean {
  return usdPerSession !== null || requestsPerMinutePerSession !== null;
}

export function hasUsdLimit(limits: Limits): boolean {
  return hasOwnUsdLimit(limits) || limits.usdPerSession !== null;
}

export function refusesUnpriced(limits: Limits): boolean {
  return hasUsdLimit(limits) && !limits.allowUnpriced;
}

/** A limit in USD that is not counted for each session. */
function hasOwnUsdLimit({ usdPerDay, usdPerMonth, usdTotal }: Limits): boolean {
  return usdPerDay !== null || usdPerMonth !== null || usdTotal !== null;
}

function findDemand(sides: readonly Side[], cost: Cost): Demand {
  const limited = sides.filter(({ limits }) => hasOwnUsdLimit(limits));
  if (limited.length === 0) return NOTHING;
  const forecast = cost.expect();
  if (forecast === null) {
    for (const side of limited) if (!side.limits.allowUnpriced) throw refuseUnpriced(side, cost.model);
    return { ...NOTHING, unpriced: true };
  }
  const expected = parseUsd(forecast.expected);
  const most = (isProven: boolean): Usd => parseUsd(forecast.most(isProven));
  const { seconds } = cost;
  const strict = limited.find(({ limits }) => limits.strict);
  if (strict === undefined) return { expected, most, worst: null, unpriced: false, seconds };
  const worst = cost.bound();
  if (typeof worst !== "string") throw refuseUnbounded(strict, cost.model, worst);
  return { expected, most, worst: parseUsd(worst), unpriced: false, seconds };
}

function refuseUnpriced({ holder }: Side, model: string): GatewayError {
  return new GatewayError(
    "limit_unenforceable",
    `${describeHolder(holder)} has a limit in USD, and "${model}" has no price, so the limit could not be kept. ` +
      `Add its price under \`prices:\` in the config, or \`unpriced: allow\` to the limits.`,
  );
}

function refuseUnbounded({ holder }: Side, model: string, { unbounded }: UnboundedCost): GatewayError {
  return new GatewayError(
    "limit_unenforceable",
    `${describeHolder(holder)} has a strict limit in USD, and nothing bounds the cost of this request to "${model}": ${unbounded}.`,
  );
}

function enter(sides: readonly Side[], now: number, demand: Demand, freed: () => void): Admission {
  const { expected, worst, unpriced } = demand;
  const shares = sides.map(({ flight, limits }): Share => {
    const reserved = (limits.strict ? worst : expected) ?? ZERO_USD;
    const most = mostOf(flight, demand, now);
    flight.running += 1;
    flight.reserved = addUsd(flight.reserved, reserved);
    if (limits.requestsPerMinute !== null) flight.recent.push(now);
    const share = { flight, reserved, most, rank: flight.running, since: now };
    flight.shares.add(share);
    return share;
  });
  const counted = worst ?? expected;
  const most = worst ?? (expected === null ? null : demand.most(false));
  let left = false;
  return {
    reservedUsd: counted === null ? null : formatUsd(counted),
    mostUsd: most === null ? null : formatUsd(most),
    strict: worst !== null,
    unpriced,
    release(isWhole = false) {
      if (left) return;
      left = true;
      for (const share of shares) leave(share, isWhole);
      freed();
    },
  };
}

function checkRates(side: Side, now: number, report: ReportStop): void {
  checkConcurrency(side, side.limits.concurrentRequests);
  checkRate(side, side.limits.requestsPerMinute, now, report);
}

function checkMoney(side: Side, claim: Claim, ledger: Sums, now: number): NoRoom | null {
  const { usdPerDay, usdPerMonth, usdTotal } = side.limits;
  return (
    checkSpent(side, { window: "day", limit: usdPerDay, claim, ledger, now }) ??
    checkSpent(side, { window: "month", limit: usdPerMonth, claim, ledger, now }) ??
    checkSpent(side, { window: "total", limit: usdTotal, claim, ledger, now })
  );
}

function checkConcurrency({ holder, flight }: Side, limit: number | null): void {
  if (limit === null || flight.running < limit) return;
  throw new GatewayError(
    "rate_limited",
    `${describeHolder(holder)} may have ${countRequests(limit)} at once (concurrent_requests), and has them: try again when one has ended.`,
    { retryAfterSeconds: IN_FLIGHT_RETRY_SECONDS },
  );
}

function checkRate({ holder, flight }: Side, limit: number | null, now: number, report: ReportStop): void {
  if (limit === null) return;
  const { recent } = flight;
  // Those of a time to come were let in before the clock was set back.
  while (recent[0] !== undefined && (recent[0] <= now - MINUTE_MS || recent[0] > now)) recent.shift();
  if (recent.length < limit) return;
  const free = (recent[recent.length - limit] ?? now) + MINUTE_MS;
  const seconds = Math.max(1, Math.ceil((free - now) / 1000));
  const isSession = holder.kind === "session";
  const setting = isSession ? "requests_per_minute_per_session" : "requests_per_minute";
  if (isSession)
    report({ holder, limit: "requests_per_minute_per_session", count: limit, percent: 100, resets: null });
  throw new GatewayError(
    "rate_limited",
    `${describeHolder(holder)} may make ${countRequests(limit)} a minute (${setting}), and has made ${recent.length} in the last one: try again in ${seconds} s.`,
    { retryAfterSeconds: seconds },
  );
}

interface SpendCheck {
  readonly window: Window;
  readonly limit: string | null;
  readonly claim: Claim;
  readonly ledger: Sums;
  readonly now: number;
}

const SETTINGS = { day: "usd_per_day", month: "usd_per_month", total: "usd_total" } as const;

function checkSpent(side: Side, { window, limit, claim, ledger, now }: SpendCheck): NoRoom | null {
  if (limit === null) return null;
  const { holder, flight, limits } = side;
  const { demand } = claim;
  const most = parseUsd(limit);
  const own = limits.strict ? demand.worst : null;
  const charged = ledger.spentOf(holder, window);
  const estimated = ledger.estimatedOf(holder, window);
  const counted = addUsd(charged, estimated);
  const reserved = findInWay(flight, { counted, most, own, now }, claim);
  if (reserved === null) return null;
  const doubt =
    estimated > ZERO_USD ? ` and $${formatUsd(estimated)} estimated for requests without known usage` : "";
  const setting = holder.kind === "session" ? "usd_per_session" : SETTINGS[window];
  const state = `${describeHolder(holder)} may spend $${limit} (${setting}) and has spent $${formatUsd(charged)}${doubt}`;
  const need =
    own === null ? "" : ` This request may cost up to $${formatUsd(own)}, and the limit is strict.`;
  const couldFit = own === null ? counted < most : addUsd(counted, own) <= most;
  if (couldFit) {
    noteRefusal(flight, now);
    const noRoom = new GatewayError(
      "rate_limited",
      `${state}; up to $${formatUsd(reserved)} more is reserved by ${countRequests(flight.running)} in flight: try again when one has ended.${need}`,
      { retryAfterSeconds: guessWait(flight, demand, now) },
    );
    return { noRoom, at: flight };
  }
  const reset = findReset(window, ledger.zone, now);
  const advice = own !== null && counted < most ? " A smaller max_tokens or prompt may fit." : "";
  throw new GatewayError("limit_spent", `${state}.${need}${advice} ${describeEnd(side, reset)}`, {
    retryAfterSeconds:
      reset === null ? NEVER_RESETS_RETRY_SECONDS : Math.max(1, Math.ceil((reset - now) / 1000)),
  });
}

function describeEnd({ holder, owner }: Side, reset: number | null): string {
  if (reset !== null) return `It resets at ${new Date(reset).toISOString().replace(".000Z", "Z")}.`;
  return holder.kind === "session"
    ? `Start a new session, or raise usd_per_session of the ${owner.kind} "${owner.name}".`
    : "This limit does not reset.";
}

/** When the day or month ends that a moment belongs to; null: totals do not end. */
export function findReset(window: Window, zone: Zone, now: number): number | null {
  return window === "total" ? null : findNextSpan(window, zone, now);
}

function countRequests(count: number): string {
  return count === 1 ? "1 request" : `${count} requests`;
}

function describeHolder({ kind, name }: Holder): string {
  return `The ${kind} "${name}"`;
}
