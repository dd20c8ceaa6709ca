// What the owner reads when a limit on the work of a session stops it.

import type { Holder } from "../ledger/sums/sums.ts";

/** A limit on what an agent does is reached. Nothing warns before: an agent in a loop goes through it in a minute. */
export interface CountWarning {
  readonly holder: Holder;
  readonly limit: keyof typeof STOPS;
  readonly count: number;
  readonly percent: 100;
  readonly resets: null;
}

const STOPS = {
  same_call: "was stopped in a loop of equal tool calls",
  agents: "has reached its limit of open agents",
  requests_per_minute_per_session: "has reached its limit of requests per minute",
} as const;

/** `The session "…" was stopped in a loop of equal tool calls (same_call: 8)` */
export function describeStop({ holder, limit, count }: CountWarning): string {
  return `The ${holder.kind} "${holder.name}" ${STOPS[limit]} (${limit}: ${count})`;
}
