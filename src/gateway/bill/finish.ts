// Ends all requests, and answers errors in the endpoint's dialect.

import type { GatewayError } from "../../lib/errors.ts";
import type { Gateway } from "../gateway.ts";
import { refuse, toGatewayError } from "../intake/refuse.ts";
import { reportFault } from "../observe/observer.ts";
import type { Ending, Request } from "../request.ts";

/** Answers with what a step has thrown. Never throws. */
export function fail(r: Request, thrown: unknown, gateway: Gateway): Ending {
  const error = toGatewayError(thrown, r.exchange, gateway);
  r.memory?.free();
  try {
    r.upstream.cancel();
    refuse(r.exchange, error, r.clientDialect, r.id);
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

export function finish(r: Request, ending: Ending, gateway: Gateway): void {
  r.durationMs = Math.round(performance.now() - r.arrived);
  r.ending = ending;
  r.endWait?.();
  if (r.memory !== null) void r.exchange.sent.then(r.memory.free);
  if (r.streamed) gateway.observer.streamClosed(r.id);
  gateway.finished.add(r);
}

export function describeLeaving(halt: AbortSignal): "interrupted" | "client_closed" {
  return halt.aborted ? "interrupted" : "client_closed";
}
