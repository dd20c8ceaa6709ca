// What is in flight for a key, a group or a session: what it has reserved, whether there is room next to it, and how long it
// may take until there is.

import { addUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import type { Forecast } from "./reserve.ts";

/** What is reserved comes free as requests end. */
export const IN_FLIGHT_RETRY_SECONDS = 2;
/** Clients do not come back by themselves after a minute or more. */
const MAX_IN_FLIGHT_RETRY_SECONDS = 55;

/** What is in flight for one key or group, and when its last requests were let in. */
export interface Flight {
  readonly shares: Set<FlightShare>;
  /** Requests that wait for room. */
  waiting: number;
  /** Arrivals in the last minute, oldest first; no longer than the limit. */
  recent: number[];
}

/** What one request in flight may cost. */
export interface FlightShare extends Forecast {
  readonly since: number;
}

export interface Room {
  /** What is spent. */
  readonly counted: Usd;
  readonly limit: Usd;
  readonly request: Forecast;
  /** The request has waited for its turn: others that wait do not come before it. */
  readonly hasWaited: boolean;
}

/** What requests in flight have reserved, if that leaves no room; null: the request fits. A request alone fits. Next to
 *  others, what these will probably cost must leave room below the limit, and what all of them may well cost must exceed the
 *  limit by no more than the limit, or than the dearest of them. */
export function findInWay(
  { shares, waiting }: Flight,
  { counted, limit, request, hasWaited }: Room,
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

/** As long as this model's answers take, or as those in flight have taken already: once for each turn of those that wait. */
export function guessWait({ shares, waiting }: Flight, answerSeconds: number, now: number): number {
  let answer = answerSeconds;
  for (const { since } of shares) answer = Math.max(answer, (now - since) / 1000);
  const turns = 1 + Math.floor(waiting / Math.max(1, shares.size));
  const wait = Math.ceil(Math.max(IN_FLIGHT_RETRY_SECONDS, answer * turns));
  return Math.min(wait, MAX_IN_FLIGHT_RETRY_SECONDS);
}
