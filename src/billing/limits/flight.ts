// What is in flight for a key, a group or a session: what it has reserved, whether there is room beside it, and how long it
// may take until there is.

import { addUsd, subtractUsd, type Usd, ZERO_USD } from "../../lib/money.ts";

/** What is reserved comes free as requests end. */
export const IN_FLIGHT_RETRY_SECONDS = 2;
/** Clients do not come back by themselves after a minute or more. */
const MAX_IN_FLIGHT_RETRY_SECONDS = 55;

/** What is in flight for one key or group, and when its last requests were let in. */
export interface Flight {
  running: number;
  /** What those in flight will probably cost. */
  reserved: Usd;
  readonly shares: Set<Share>;
  /** The largest number of requests at once of which one got its whole answer, since a request was refused. */
  proven: number;
  /** When one was refused last because of those in flight. */
  refusedAt: number;
  /** Requests that wait for room. */
  waiting: number;
  /** Of the last minute, oldest first; no longer than the limit. */
  recent: number[];
}

/** What one request in flight may cost. */
export interface Share {
  readonly flight: Flight;
  readonly reserved: Usd;
  /** What it may well cost. */
  readonly most: Usd;
  /** How many were in flight with it when it was let in. */
  readonly rank: number;
  readonly since: number;
}

/** What one request asks the limits for. */
export interface Demand {
  /** Null: the model has no price, or no limit in USD needs to know. */
  readonly expected: Usd | null;
  readonly most: (isProven: boolean) => Usd;
  /** The most that it can cost; null unless a limit is strict. */
  readonly worst: Usd | null;
  readonly unpriced: boolean;
  readonly seconds: () => number | null;
}

export function openFlight(recent: number[]): Flight {
  return {
    running: 0,
    reserved: ZERO_USD,
    shares: new Set(),
    proven: 0,
    refusedAt: Number.NEGATIVE_INFINITY,
    waiting: 0,
    recent,
  };
}

export function leave(share: Share, isWhole: boolean): void {
  const { flight, reserved, rank } = share;
  flight.running -= 1;
  flight.reserved = subtractUsd(flight.reserved, reserved);
  flight.shares.delete(share);
  if (isWhole) flight.proven = Math.max(flight.proven, rank);
}

/** As long as clients that were refused may come back. */
const CONTENTION_MS = 60_000;
/** Whole answers of N requests at once are evidence for this many times N. */
const GROWTH = 4;

/** What one more request may well cost. Its limit asks for less where whole answers since the last refusal are evidence. */
export function mostOf({ running, proven, refusedAt }: Flight, { most }: Demand, now: number): Usd {
  return most(running < GROWTH * proven && Math.abs(now - refusedAt) <= CONTENTION_MS);
}

export function noteRefusal(flight: Flight, now: number): void {
  if (Math.abs(now - flight.refusedAt) > CONTENTION_MS) flight.proven = 0;
  flight.refusedAt = now;
}

/** What asks for room, and whether it is its turn. */
export interface Claim {
  readonly demand: Demand;
  readonly hasWaited: boolean;
}

interface Room {
  readonly counted: Usd;
  readonly most: Usd;
  /** The most that the request can cost, if the limit is strict. */
  readonly own: Usd | null;
  readonly now: number;
}

/** What requests in flight have reserved, if that leaves no room; null: the request fits. */
export function findInWay(
  flight: Flight,
  { counted, most, own, now }: Room,
  { demand, hasWaited }: Claim,
): Usd | null {
  const { reserved, shares } = flight;
  const committed = addUsd(counted, reserved);
  if (own !== null ? addUsd(committed, own) > most : committed >= most) return reserved;
  if (flight.waiting > 0 && !hasWaited) return reserved;
  // Whatever it may cost, a request alone is let in.
  if (own !== null || shares.size === 0) return null;
  const request = mostOf(flight, demand, now);
  let [dearest, others] = [request, ZERO_USD];
  for (const share of shares) {
    others = addUsd(others, share.most);
    if (share.most > dearest) dearest = share.most;
  }
  const ceiling = addUsd(most, dearest > most ? dearest : most);
  return addUsd(addUsd(counted, others), request) <= ceiling ? null : others;
}

/** As long as this model's answers take, or as those in flight have taken already: once for each turn of those that wait. */
export function guessWait({ shares, waiting }: Flight, { seconds }: Demand, now: number): number {
  let answer = seconds() ?? 0;
  for (const { since } of shares) answer = Math.max(answer, (now - since) / 1000);
  const turns = 1 + Math.floor(waiting / Math.max(1, shares.size));
  const wait = Math.ceil(Math.max(IN_FLIGHT_RETRY_SECONDS, answer * turns));
  return Math.min(wait, MAX_IN_FLIGHT_RETRY_SECONDS);
}
