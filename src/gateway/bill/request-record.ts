// Reports each request that has ended, as one plain record for the log, the metrics and the live view.

import type { Usage } from "../../billing/usage.ts";
import type { GatewayError } from "../../lib/errors.ts";
import type { Bill } from "./bill.ts";
import type { UnroutedCall, ClientCall } from "../intake/call.ts";
import { readSender } from "../intake/client.ts";
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

/** Reports a request that was refused before it had a bill. */
export function reportRefusal(call: ClientCall, error: GatewayError, gateway: Gateway): void {
  const outcome = error.code === "client_gone" ? "client_closed" : "refused";
  reportUnbilled(call, { status: error.status, outcome, problem: error.message }, gateway);
}

/** Reports a request that the gateway answered itself: a model list, or one model. */
export function reportOwnAnswer(call: ClientCall, gateway: Gateway): void {
  reportUnbilled(call, { status: 200, outcome: "complete", problem: null }, gateway);
}

type UnbilledResult = Pick<RequestRecord, "status" | "outcome" | "problem">;

function reportUnbilled(call: ClientCall, result: UnbilledResult, gateway: Gateway): void {
  const { id, time, target, key } = call;
  gateway.observer.requestDone({
    ...NOTHING,
    id,
    time,
    key: key?.name ?? null,
    group: key?.group.name ?? null,
    model: target.model?.id ?? null,
    client: call.client ?? readSender(call),
    endpoint: target.endpoint.label,
    durationMs: durationOf(call),
    ...result,
  });
}

/** Reports a request without an endpoint. Its path is untrusted text, so only the problem may repeat it. */
export function reportStray(call: UnroutedCall, error: GatewayError, gateway: Gateway): void {
  const { id, time } = call;
  const { status, message: problem } = error;
  const durationMs = durationOf(call);
  const client = readSender(call);
  gateway.observer.requestDone({ ...NOTHING, id, time, client, endpoint: "-", status, durationMs, problem });
}

export interface RequestResult {
  readonly status: number;
  readonly outcome: string;
  readonly usage: Usage | null;
  readonly chargeUsd: string | null;
  readonly problem: string | null;
}

export function reportFinished(bill: Bill, result: RequestResult, gateway: Gateway): void {
  const { call, match } = bill;
  const record: RequestRecord = {
    id: call.id,
    time: call.time,
    key: match.key.name,
    group: match.group.name,
    model: match.model,
    channel: bill.attempts.at(-1)?.channel ?? null,
    client: bill.client,
    endpoint: call.target.endpoint.label,
    firstByteMs: bill.firstByteMs,
    durationMs: durationOf(call),
    ...result,
  };
  gateway.observer.requestDone(record);
  const served = bill.open && match.candidates.find(({ channel }) => channel.name === record.channel);
  if (served) gateway.channels.reportEnd(served.channel, judgeChannel(bill, result), gateway.now());
}

/** An incomplete response counts against the channel, unless the client disconnected or it was an error from the start. */
function judgeChannel(bill: Bill, { outcome, problem, chargeUsd }: RequestResult): RequestEnd {
  const last = bill.attempts.at(-1);
  const hadBegun = last?.status !== undefined && last.status < 400 && last.error === undefined;
  const how = hadBegun ? (HOW_BY_OUTCOME[outcome] ?? "left") : "left";
  const reason = how === "cut" && problem !== null ? problem : "ended its response with an error";
  return { how, problem: reason, chargeUsd };
}

const HOW_BY_OUTCOME: Readonly<Record<string, RequestEnd["how"]>> = {
  complete: "whole",
  upstream_cut: "cut",
  upstream_error: "failed",
};

export function durationOf({ arrived }: UnroutedCall): number {
  return Math.round(performance.now() - arrived);
}
