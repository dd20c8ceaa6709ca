// What happened to a request, as one plain record for the log, the metrics and the live view.

import type { Usage } from "../../billing/usage.ts";
import type { Key } from "../../config/catalog.ts";
import type { GatewayError } from "../../lib/errors.ts";
import type { Bill } from "./bill.ts";
import type { UnroutedCall, ClientCall } from "../intake/call.ts";
import type { RequestEnd } from "../channels/channels.ts";
import type { Gateway } from "../gateway.ts";
import type { RequestRecord } from "../observe/observer.ts";

const NOTHING = {
  key: null,
  group: null,
  model: null,
  channel: null,
  outcome: "refused",
  firstByteMs: null,
  usage: null,
  chargeUsd: null,
  problem: null,
} satisfies Partial<RequestRecord>;

/** A request that never got a bill: refused before it went anywhere. */
export function reportRefusal(
  call: ClientCall,
  key: Key | null,
  error: GatewayError,
  gateway: Gateway,
): void {
  const outcome = error.code === "client_gone" ? "client_closed" : "refused";
  reportUnbilled(call, key, { status: error.status, outcome, problem: error.message }, gateway);
}

/** Answered by the gateway itself: a model list, or one model. */
export function reportOwnAnswer(call: ClientCall, key: Key, gateway: Gateway): void {
  reportUnbilled(call, key, { status: 200, outcome: "complete", problem: null }, gateway);
}

type Told = Pick<RequestRecord, "status" | "outcome" | "problem">;

function reportUnbilled(call: ClientCall, key: Key | null, told: Told, gateway: Gateway): void {
  const { id, time, target } = call;
  gateway.observer.requestDone({
    ...NOTHING,
    id,
    time,
    key: key?.name ?? null,
    group: key?.group.name ?? null,
    model: target.model?.id ?? null,
    endpoint: target.endpoint.label,
    durationMs: durationOf(call),
    ...told,
  });
}

/** Turned away before it was a call. Its path is the client's own words: only the problem repeats them. */
export function reportStray(arrival: UnroutedCall, error: GatewayError, gateway: Gateway): void {
  const { id, time } = arrival;
  const { status, message: problem } = error;
  const durationMs = durationOf(arrival);
  gateway.observer.requestDone({ ...NOTHING, id, time, endpoint: "-", status, durationMs, problem });
}

export interface Finished {
  readonly status: number;
  readonly outcome: string;
  readonly usage: Usage | null;
  readonly chargeUsd: string | null;
  readonly problem: string | null;
}

export function reportFinished(bill: Bill, finished: Finished, gateway: Gateway): void {
  const { call, match: route } = bill;
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
  const served = bill.open && route.candidates.find(({ channel }) => channel.name === record.channel);
  if (served) gateway.channels.reportEnd(served.channel, judgeChannel(bill, finished), gateway.now());
}

/** An answer that did not come whole is the channel's doing, unless the client left, or was told so at its beginning. */
function judgeChannel(bill: Bill, { outcome, problem, chargeUsd }: Finished): RequestEnd {
  const last = bill.attempts.at(-1);
  const hadBegun = last?.status !== undefined && last.status < 400 && last.error === undefined;
  const how = hadBegun ? (ENDS[outcome] ?? "left") : "left";
  const told = how === "cut" && problem !== null ? problem : "ended its answer with an error";
  return { how, problem: told, chargeUsd };
}

const ENDS: Readonly<Record<string, RequestEnd["how"]>> = {
  complete: "whole",
  upstream_cut: "cut",
  upstream_error: "failed",
};

export function durationOf({ arrived }: UnroutedCall): number {
  return Math.round(performance.now() - arrived);
}
