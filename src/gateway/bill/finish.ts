// The one end of a request, whatever happened. All errors of a request end here, in the shape of its endpoint's dialect.

import type { GatewayError } from "../../lib/errors.ts";
import type { Gateway } from "../gateway.ts";
import { refuse, toGatewayError } from "../intake/refuse.ts";
import { reportFault } from "../observe/observer.ts";
import type { Ending, Request } from "../request.ts";
import { describeLeaving } from "./ending.ts";
import { reportUnbilled } from "./request-record.ts";
import { closeBill } from "./settle.ts";

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
  if (r.held) {
    closeBill(r, ending, gateway);
    gateway.finished.add(r);
    return;
  }
  try {
    reportUnbilled(r, ending, gateway);
  } catch (fault) {
    reportFault(fault, gateway.observer);
  }
  gateway.finished.leave();
}
