// How an answer ended, from what its meter saw, whether the client was still
// there and how the upstream left. Pure.

import type { Outcome } from "../../billing/ledger/line.ts";
import type { Reading } from "../../billing/usage.ts";
import type { UpstreamFault } from "../../lib/http1/types.ts";

export interface Signs {
  readonly status: number;
  /** Null where nothing is metered. */
  readonly reading: Reading | null;
  /** Why nobody heard the answer's end: the client had left, or the gateway ends what still runs. */
  readonly left: "client_closed" | "interrupted" | null;
  readonly fault: UpstreamFault | null;
  /** True where only the dialect tells that an answer is whole: in event streams, and where the connection's end is the body's. */
  readonly streamed: boolean;
}

/** What comes after the terminal event, a client that leaves or an upstream that breaks, changes nothing. */
export function judgeEnding({ status, reading, left, fault, streamed }: Signs): Outcome {
  if (status >= 400) return "upstream_error";
  if (left !== null) return left;
  const end = reading?.end ?? null;
  const over = streamed && end !== null && end !== "open";
  if (fault !== null && !over) return "upstream_cut";
  if (end === "error") return "upstream_error";
  return streamed && end === "open" ? "upstream_cut" : "complete";
}

/** Nobody listens any more: the gateway is being ended, or it is the client's own will. */
export function describeLeaving(halt: AbortSignal): "interrupted" | "client_closed" {
  return halt.aborted ? "interrupted" : "client_closed";
}
