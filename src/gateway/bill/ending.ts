// Decides how a response ended: from its meter, from whether the client was still connected, and from how the upstream's
// connection ended. Pure.

import type { Outcome } from "../../billing/ledger/line.ts";
import type { Reading } from "../../billing/usage.ts";
import type { UpstreamFault } from "../../lib/http/faults.ts";

export interface EndingSigns {
  readonly status: number;
  /** Null if nothing is metered. */
  readonly reading: Reading | null;
  /** Why the client did not get the end: it had disconnected, or the gateway was stopping. */
  readonly left: "client_closed" | "interrupted" | null;
  readonly fault: UpstreamFault | null;
  /** True if only the dialect shows that a response is whole: for event streams, and for bodies that end with the
   *  connection. */
  readonly streamed: boolean;
}

/** After the terminal event, a client that disconnects or an upstream that fails changes nothing. */
export function judgeEnding({ status, reading, left, fault, streamed }: EndingSigns): Outcome {
  if (status >= 400) return "upstream_error";
  if (left !== null) return left;
  const end = reading?.end ?? null;
  const hasEnded = streamed && end !== null && end !== "open";
  if (fault !== null && !hasEnded) return "upstream_cut";
  if (end === "error") return "upstream_error";
  return streamed && lacksEnd(reading) ? "upstream_cut" : "complete";
}

function lacksEnd(reading: Reading | null): boolean {
  return reading?.end === "open" && reading.isFinished !== true;
}

/** Why the client's connection is gone: the gateway is stopping, or the client has disconnected. */
export function describeLeaving(halt: AbortSignal): "interrupted" | "client_closed" {
  return halt.aborted ? "interrupted" : "client_closed";
}
