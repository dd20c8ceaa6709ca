// Whether a key may send one more request: the limits of the key and of its
// group against what the ledger counts and what is in flight.
//
// The bound: a request is let in while what is counted plus what requests in
// flight have reserved is below the limit. So a limit is exceeded by at most the
// last request let in, plus what requests in flight used beyond their reservation.
// With `strict`, each request reserves the most that it can cost and has to fit:
// nothing is exceeded. Requests whose cost is not known count with an estimate.
// docs/decisions/0017-limits-bind.md has the reasons.

import type { Key, Limits } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import { addUsd, formatUsd, parseUsd, subtractUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { findNextSpan, type Zone } from "../../lib/text/zone.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Holder, Window } from "../ledger/sums/sums.ts";
import type { CountWarning } from "./stops.ts";
import type { UnboundedCost } from "./reserve.ts";

export interface Admission {
  /** What limits count for this request as long as its cost is not known, a decimal in USD; null: no limit in USD does. */
  readonly reservedUsd: string | null;
  /** A limit is `strict`: then an estimate counts in full, also if part of the cost is known. */
  readonly strict: boolean;
  /** A limit in USD let it in, although the model has no price: no limit counts it. */
  readonly unpriced: boolean;
  /** The request is over. To be called after its line is in the ledger; again does nothing. */
  release(): void;
}

/** What a request may cost. Computed only if a limit in USD needs it. */
export interface Cost {
  /** The client's name of the model. */
  readonly model: string;
  /** What it will probably cost, a decimal in USD; null: the model has no price. */
  readonly expect: () => string | null;
  /** The most that it can cost. */
  readonly bound: () => string | UnboundedCost;
}

export interface Gate {
  /**
   * Throws `limit_spent`, `limit_unenforceable` or `rate_limited`. A request without `cost` is not billed: only
   * the settings on the number of requests count it.
   */
  admit(key: Key, now: number, cost: Cost | null, session?: string): Admission;
}

const MINUTE_MS = 60_000;
/** What is reserved comes free as requests end. */
const IN_FLIGHT_RETRY_SECONDS = 2;
/** Clients are not to wait for a limit that does not reset. */
export const NEVER_RESETS_RETRY_SECONDS = 86_400;

/** What is in flight for one key or group, and when its last requests were let in. */
interface Flight {
  running: number;
  reserved: Usd;
  /** Of the last minute, oldest first; no longer than the limit. */
  recent: number[];
}

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

export function createGate(ledger: Sums, report: ReportStop = () => undefined): Gate {
  const flights = new Map<string, Flight>();
  const openFlight = (id: string, holder: Holder, now: number): Flight => {
    const flight = flights.get(id) ?? {
      running: 0,
      reserved: ZERO_USD,
      recent: ledger.recentOf(holder, now - MINUTE_MS),
    };
    // The least recently used come first.
    flights.delete(id);
    flights.set(id, flight);
    return flight;
  };
  const listSides = (owner: Holder, limits: Limits, now: number, session: string | undefined): Side[] => {
    const sides: Side[] = [];
    const id = `${owner.kind} ${owner.name}`;
    if (hasOwnLimits(limits))
      sides.push({ holder: owner, owner, limits, flight: openFlight(id, owner, now) });
    if (session === undefined || !limitsSessions(limits)) return sides;
    const holder: Holder = { kind: "session", name: session };
    const flight = openFlight(`${id} ${session}`, holder, now);
    return [...sides, { holder, owner, limits: limitSession(limits), flight }];
  };
  return {
    admit(key, now, cost, session) {
      const { group } = key;
      const sides = [
        ...listSides({ kind: "key", name: key.name }, key.limits, now, session),
        ...listSides({ kind: "group", name: group.name }, group.limits, now, session),
      ];
      if (sides.length === 0) return FREE;
      for (const side of sides) checkRates(side, now, report);
      const demand = cost === null ? NOTHING : findDemand(sides, cost);
      if (cost !== null) for (const side of sides) checkMoney(side, demand, ledger, now);
      forgetIdle(flights, now);
      return enter(sides, now, demand);
    },
  };
}

/** What one request asks the limits for. */
interface Demand {
  /** Null: the model has no price, or no limit in USD needs to know. */
  readonly expected: Usd | null;
  /** The most that it can cost; null unless a limit is strict. */
  readonly worst: Usd | null;
  readonly unpriced: boolean;
}

const NOTHING: Demand = { expected: null, worst: null, unpriced: false };

/** For a request that no limit counts. */
export const FREE: Admission = {
  reservedUsd: null,
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
  const expected = cost.expect();
  if (expected === null) {
    for (const side of limited) if (!side.limits.allowUnpriced) throw refuseUnpriced(side, cost.model);
    return { ...NOTHING, unpriced: true };
  }
  const strict = limited.find(({ limits }) => limits.strict);
  if (strict === undefined) return { expected: parseUsd(expected), worst: null, unpriced: false };
  const worst = cost.bound();
  if (typeof worst !== "string") throw refuseUnbounded(strict, cost.model, worst);
  return { expected: parseUsd(expected), worst: parseUsd(worst), unpriced: false };
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

function enter(sides: readonly Side[], now: number, { expected, worst, unpriced }: Demand): Admission {
  const shares = sides.map(({ flight, limits }) => {
    const reserved = (limits.strict ? worst : expected) ?? ZERO_USD;
    flight.running += 1;
    flight.reserved = addUsd(flight.reserved, reserved);
    if (limits.requestsPerMinute !== null) flight.recent.push(now);
    return { flight, reserved };
  });
  const counted = worst ?? expected;
  let left = false;
  return {
    reservedUsd: counted === null ? null : formatUsd(counted),
    strict: worst !== null,
    unpriced,
    release() {
      if (left) return;
      left = true;
      for (const { flight, reserved } of shares) {
        flight.running -= 1;
        flight.reserved = subtractUsd(flight.reserved, reserved);
      }
    },
  };
}

function checkRates(side: Side, now: number, report: ReportStop): void {
  checkConcurrency(side, side.limits.concurrentRequests);
  checkRate(side, side.limits.requestsPerMinute, now, report);
}

function checkMoney(side: Side, { worst }: Demand, ledger: Sums, now: number): void {
  const { limits } = side;
  const own = limits.strict ? worst : null;
  checkSpent(side, { window: "day", limit: limits.usdPerDay, own, ledger, now });
  checkSpent(side, { window: "month", limit: limits.usdPerMonth, own, ledger, now });
  checkSpent(side, { window: "total", limit: limits.usdTotal, own, ledger, now });
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
  /** The most that the request can cost, if the limit is strict. */
  readonly own: Usd | null;
  readonly ledger: Sums;
  readonly now: number;
}

const SETTINGS = { day: "usd_per_day", month: "usd_per_month", total: "usd_total" } as const;

function checkSpent(side: Side, { window, limit, own, ledger, now }: SpendCheck): void {
  if (limit === null) return;
  const { holder, flight } = side;
  const most = parseUsd(limit);
  const charged = ledger.spentOf(holder, window);
  const estimated = ledger.estimatedOf(holder, window);
  const counted = addUsd(charged, estimated);
  const committed = addUsd(counted, flight.reserved);
  if (own === null ? committed < most : addUsd(committed, own) <= most) return;
  const doubt =
    estimated > ZERO_USD ? ` and $${formatUsd(estimated)} estimated for requests without known usage` : "";
  const setting = holder.kind === "session" ? "usd_per_session" : SETTINGS[window];
  const state = `${describeHolder(holder)} may spend $${limit} (${setting}) and has spent $${formatUsd(charged)}${doubt}`;
  const need =
    own === null ? "" : ` This request may cost up to $${formatUsd(own)}, and the limit is strict.`;
  const couldFit = own === null ? counted < most : addUsd(counted, own) <= most;
  if (couldFit) {
    throw new GatewayError(
      "rate_limited",
      `${state}; up to $${formatUsd(flight.reserved)} more is reserved by ${countRequests(flight.running)} in flight: try again when one has ended.${need}`,
      { retryAfterSeconds: IN_FLIGHT_RETRY_SECONDS },
    );
  }
  const reset = findReset(window, ledger.zone, now);
  const advice = own !== null && counted < most ? " A smaller max_tokens or prompt may fit." : "";
  throw new GatewayError("limit_spent", `${state}.${need}${advice} ${describeEnd(side, reset)}`, {
    resetsAt: reset,
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
