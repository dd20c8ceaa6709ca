// What happened to a request, as one plain record for the log, the metrics and the live view.

import type { Usage } from "../billing/usage.ts";
import type { Key } from "../config/catalog.ts";
import type { GatewayError } from "../lib/errors.ts";
import type { Bill } from "./bill.ts";
import type { Call } from "./call.ts";
import type { Gateway } from "./gateway.ts";
import type { RequestRecord } from "./observer.ts";

/** A request that never got a bill: refused before it went anywhere. */
export function reportRefusal(call: Call, key: Key | null, error: GatewayError, gateway: Gateway): void {
  gateway.observer.requestDone({
    id: call.id,
    time: call.time,
    key: key?.name ?? null,
    group: key?.group.name ?? null,
    model: call.target.model?.id ?? null,
    channel: null,
    endpoint: call.target.endpoint.label,
    status: error.status,
    outcome: "refused",
    firstByteMs: null,
    durationMs: durationOf(call),
    usage: null,
    chargeUsd: null,
    problem: error.message,
  });
}

export interface Finished {
  readonly status: number;
  readonly outcome: string;
  readonly usage: Usage | null;
  readonly chargeUsd: string | null;
  readonly problem: string | null;
}

export function reportFinished(bill: Bill, finished: Finished, gateway: Gateway): void {
  const { call, route } = bill;
  const record: RequestRecord = {
    id: call.id,
    time: call.time,
    key: route.key.name,
    group: route.group.name,
    model: route.model,
    channel: bill.attempts.at(-1)?.channel ?? null,
    endpoint: call.target.endpoint.label,
    firstByteMs: bill.firstByteMs,
    durationMs: durationOf(call),
    ...finished,
  };
  gateway.observer.requestDone(record);
}

export function durationOf(call: Call): number {
  return Math.round(performance.now() - call.arrived);
}
