// The one end of a request, whatever happened. All errors of a request end here, in the shape of its endpoint's dialect.

import type { Outcome } from "../../billing/ledger/line.ts";
import type { Reading } from "../../billing/usage.ts";
import type { GatewayError } from "../../lib/errors.ts";
import type { UpstreamFault } from "../../lib/http/upstream.ts";
import type { Gateway } from "../gateway.ts";
import { refuse, toGatewayError } from "../intake/refuse.ts";
import { reportFault } from "../observe/observer.ts";
import type { Ending, Request } from "../request.ts";
import { durationOf, reportRequest } from "./request-record.ts";

/** Answers with what a step has thrown. Never throws. */
export function fail(r: Request, thrown: unknown, gateway: Gateway): Ending {
  const error = toGatewayError(thrown, r.exchange, gateway.observer);
  r.memory?.free();
  try {
    r.upstream.cancel();
    refuse(r.exchange, error, r.target.endpoint.dialect, r.id);
  } catch (fault) {
    reportFault(fault, gateway.observer);
    r.exchange.reset();
  }
  return describeFailure(error, gateway);
}

export function describeFailure({ code, status, message }: GatewayError, { halt }: Gateway): Ending {
  const outcome = code === "client_gone" ? describeLeaving(halt) : "upstream_error";
  return { outcome, status, upstreamStatus: status, reading: null, problem: message };
}

/** The client has its answer. What can wait is done in the finish queue. A request that never went upstream has no bill. */
export function finish(r: Request, ending: Ending, gateway: Gateway): void {
  r.durationMs = durationOf(r);
  r.ending = ending;
  r.endDrain?.();
  if (r.streamed) gateway.observer.streamClosed(r.id);
  if (r.held) return gateway.finished.add(r);
  try {
    reportRequest(r, null, gateway);
  } catch (fault) {
    reportFault(fault, gateway.observer);
  }
  gateway.finished.leave();
}

/** What shows how a response ended. */
interface EndingSigns {
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
