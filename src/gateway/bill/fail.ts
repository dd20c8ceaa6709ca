// Ends a request with an error, in the shape of its endpoint's dialect. All errors of a request end here.

import type { Gateway } from "../gateway.ts";
import { refuse, toGatewayError } from "../intake/refuse.ts";
import { reportFault } from "../observe/observer.ts";
import type { Request } from "../request.ts";
import { reportRefusal } from "./request-record.ts";
import { settleFailure } from "./settle.ts";

/** `thrown`: what a step has thrown. Never throws. */
export function failRequest(r: Request, thrown: unknown, gateway: Gateway): void {
  const error = toGatewayError(thrown, r.exchange, gateway.observer);
  r.error = error;
  r.memory?.free();
  try {
    r.upstream.cancel();
    refuse(r.exchange, error, r.target.endpoint.dialect, r.id);
  } catch (fault) {
    reportFault(fault, gateway.observer);
    r.exchange.reset();
  }
  if (r.held) settleFailure(r, error, gateway);
  else endUnbilled(r, () => reportRefusal(r, error, gateway), gateway);
}

/** A request without a bill has its answer. */
export function endUnbilled(r: Request, report: () => void, gateway: Gateway): void {
  if (r.settled) return;
  r.settled = true;
  try {
    report();
  } catch (fault) {
    reportFault(fault, gateway.observer);
  } finally {
    gateway.finished.leave();
  }
}
