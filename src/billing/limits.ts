// Whether a key may send one more request: the limits of the key and of its
// group against what the ledger says is spent and what is in flight.
//
// The bound: a request is let in while what is spent plus what requests in
// flight have reserved is below the limit. So a limit is overshot by no more
// than the last request let in, plus those in flight whose worst case is not
// known. Unpriced and unknown lines have no amount and count for nothing.

import type { Key, Limits } from "../config/catalog.ts";
import { GatewayError } from "../lib/errors.ts";
import { addUsd, formatUsd, parseUsd, subtractUsd, type Usd, ZERO_USD } from "../lib/money.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Holder, Window } from "./ledger/sums.ts";

export interface Admission {
  /** The request is over. To be called after its line is in the ledger; again does nothing. */
  release(): void;
}

export interface Gate {
  /** Throws `limit_spent` or `rate_limited`. `reservation`: what the request may cost at worst, a decimal in USD; null: not known. */
  admit(key: Key, now: number, reservation: string | null): Admission;
}

const MINUTE_MS = 60_000;
/** What is reserved comes free as requests end. */
const IN_FLIGHT_RETRY_SECONDS = 2;
const NEVER_RESETS_RETRY_SECONDS = 86_400;

/** What is in flight for one key or group, and when its last requests were let in. */
interface Flight {
  running: number;
  reserved: Usd;
  /** Of the last minute, oldest first; no longer than the limit. */
  recent: number[];
}

/** One of the two whose limits count: the key, or its group. */
interface Side {
  readonly holder: Holder;
  readonly limits: Limits;
  readonly flight: Flight;
}

export function createGate(ledger: Pick<Ledger, "spentOf" | "recentOf">): Gate {
  const flights = new Map<string, Flight>();
  const openSide = (kind: Holder["kind"], name: string, limits: Limits, now: number): Side => {
    const holder: Holder = { kind, name };
    const id = `${kind} ${name}`;
    const known = flights.get(id);
    if (known !== undefined) return { holder, limits, flight: known };
    const flight = { running: 0, reserved: ZERO_USD, recent: ledger.recentOf(holder, now - MINUTE_MS) };
    flights.set(id, flight);
    return { holder, limits, flight };
  };
  return {
    admit(key, now, reservation) {
      const sides: Side[] = [];
      if (hasLimits(key.limits)) sides.push(openSide("key", key.name, key.limits, now));
      if (hasLimits(key.group.limits)) sides.push(openSide("group", key.group.name, key.group.limits, now));
      if (sides.length === 0) return FREE;
      for (const side of sides) checkSide(side, ledger, now);
      return enter(sides, now, reservation === null ? ZERO_USD : parseUsd(reservation));
    },
  };
}

const FREE: Admission = { release: () => undefined };

function hasLimits(limits: Limits): boolean {
  return Object.values(limits).some((limit) => limit !== null);
}

function enter(sides: readonly Side[], now: number, reserved: Usd): Admission {
  for (const { flight, limits } of sides) {
    flight.running += 1;
    flight.reserved = addUsd(flight.reserved, reserved);
    if (limits.requestsPerMinute !== null) flight.recent.push(now);
  }
  let left = false;
  return {
    release() {
      if (left) return;
      left = true;
      for (const { flight } of sides) {
        flight.running -= 1;
        flight.reserved = subtractUsd(flight.reserved, reserved);
      }
    },
  };
}

function checkSide(side: Side, ledger: Pick<Ledger, "spentOf">, now: number): void {
  const { limits } = side;
  checkConcurrency(side, limits.concurrentRequests);
  checkRate(side, limits.requestsPerMinute, now);
  checkSpent(side, { window: "day", limit: limits.usdPerDay, ledger, now });
  checkSpent(side, { window: "month", limit: limits.usdPerMonth, ledger, now });
  checkSpent(side, { window: "total", limit: limits.usdTotal, ledger, now });
}

function checkConcurrency({ holder, flight }: Side, limit: number | null): void {
  if (limit === null || flight.running < limit) return;
  throw new GatewayError(
    "rate_limited",
    `${describeHolder(holder)} may have ${countRequests(limit)} at once (concurrent_requests), and has them: try again when one has ended.`,
    { retryAfterSeconds: IN_FLIGHT_RETRY_SECONDS },
  );
}

function checkRate({ holder, flight }: Side, limit: number | null, now: number): void {
  if (limit === null) return;
  const { recent } = flight;
  // Those of a time to come were let in before the clock was set back.
  while (recent[0] !== undefined && (recent[0] <= now - MINUTE_MS || recent[0] > now)) recent.shift();
  if (recent.length < limit) return;
  const free = (recent[recent.length - limit] ?? now) + MINUTE_MS;
  const seconds = Math.max(1, Math.ceil((free - now) / 1000));
  throw new GatewayError(
    "rate_limited",
    `${describeHolder(holder)} may make ${countRequests(limit)} a minute (requests_per_minute), and has made ${recent.length} in the last one: try again in ${seconds} s.`,
    { retryAfterSeconds: seconds },
  );
}

interface SpendCheck {
  readonly window: Window;
  readonly limit: string | null;
  readonly ledger: Pick<Ledger, "spentOf">;
  readonly now: number;
}

const WORDS = { day: "usd_per_day", month: "usd_per_month", total: "usd_total" } as const;

function checkSpent({ holder, flight }: Side, { window, limit, ledger, now }: SpendCheck): void {
  if (limit === null) return;
  const most = parseUsd(limit);
  const spent = ledger.spentOf(holder, window);
  if (addUsd(spent, flight.reserved) < most) return;
  const told = `${describeHolder(holder)} may spend $${limit} (${WORDS[window]}) and has spent $${formatUsd(spent)}`;
  if (spent < most) {
    throw new GatewayError(
      "rate_limited",
      `${told}; up to $${formatUsd(flight.reserved)} more is reserved by ${countRequests(flight.running)} in flight: try again when one has ended.`,
      { retryAfterSeconds: IN_FLIGHT_RETRY_SECONDS },
    );
  }
  const reset = findReset(window, now);
  throw new GatewayError(
    "limit_spent",
    reset === null
      ? `${told}. This limit does not reset.`
      : `${told}. It resets at ${new Date(reset).toISOString().replace(".000Z", "Z")}.`,
    {
      retryAfterSeconds:
        reset === null ? NEVER_RESETS_RETRY_SECONDS : Math.max(1, Math.ceil((reset - now) / 1000)),
    },
  );
}

/** Days and months end as UTC has them. */
export function findReset(window: Window, now: number): number | null {
  const date = new Date(now);
  switch (window) {
    case "day":
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + 1);
    case "month":
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
    case "total":
      return null;
  }
}

function countRequests(count: number): string {
  return count === 1 ? "1 request" : `${count} requests`;
}

function describeHolder({ kind, name }: Holder): string {
  return `The ${kind} "${name}"`;
}
