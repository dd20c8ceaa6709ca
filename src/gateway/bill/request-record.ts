// Reports each request that has ended, as one plain record for the log, the metrics and the live view.

import type { LineDraft, Outcome } from "../../billing/ledger/line.ts";
import type { GatewayError } from "../../lib/errors.ts";
import { NOBODY, type UnroutedCall } from "../intake/call.ts";
import { readSender } from "../intake/client.ts";
import { type KnownSecrets, listOwnSecrets, Secrets, secretsOf } from "../intake/secrets.ts";
import type { RequestEnd } from "../channels/channels.ts";
import type { Gateway } from "../gateway.ts";
import type { Ending, Request } from "../request.ts";
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

/** What the log calls the end of a request that never went upstream: the gateway answered it, refused it, or its client left. */
const OUTCOMES: Partial<Record<Outcome, RequestRecord["outcome"]>> = {
  complete: "complete",
  upstream_error: "refused",
};

/** Reports a request without a bill. */
export function reportUnbilled(r: Request, { outcome, status, problem }: Ending, gateway: Gateway): void {
  const { id, time, target, admitted: key } = r;
  const secrets = secretsOf(gateway.catalog);
  r.recorded?.finish(null);
  gateway.observer.requestDone({
    ...NOTHING,
    id,
    time,
    key: key?.name ?? null,
    group: key?.group.name ?? null,
    model: readModel(r, secrets),
    client: r.client === NOBODY ? readSender(r, gateway.catalog) : r.client,
    endpoint: target.endpoint.label,
    durationMs: durationOf(r),
    status,
    outcome: OUTCOMES[outcome] ?? "client_closed",
    problem: problem === null ? null : secrets.mask(problem),
  });
}

function readModel({ body, target, exchange }: Request, secrets: KnownSecrets): string | null {
  const model = body.model ?? target.model?.id ?? "";
  const isKept = model !== "" && !secrets.holds(model) && !new Secrets(listOwnSecrets(exchange)).holds(model);
  return isKept ? model : null;
}

/** Reports a request without an endpoint. Its path is untrusted text, so only the problem may repeat it. */
export function reportStray(call: UnroutedCall, error: GatewayError, gateway: Gateway): void {
  const { id, time } = call;
  const { status } = error;
  const problem = secretsOf(gateway.catalog).mask(error.message);
  const durationMs = durationOf(call);
  const client = readSender(call, gateway.catalog);
  gateway.observer.requestDone({ ...NOTHING, id, time, client, endpoint: "-", status, durationMs, problem });
}

const UNPRICED_ALLOWED = "the model has no price, so no limit counts this request";

/** Reports a request that had a bill. `line`: null if nothing was billed. */
export function reportFinished(r: Request, line: LineDraft | null, gateway: Gateway): void {
  const { key, group, attempts, ending } = r;
  const channel = attempts.at(-1)?.channel ?? null;
  const record: RequestRecord = {
    id: r.id,
    time: r.time,
    key: key.name,
    group: group.name,
    model: r.model,
    channel,
    client: r.client,
    endpoint: r.target.endpoint.label,
    status: ending.status,
    outcome: ending.outcome,
    firstByteMs: r.firstByteMs,
    durationMs: r.durationMs,
    usage: line?.usage ?? null,
    chargeUsd: line?.charge_usd ?? null,
    planUsd: readPlanAmount(line),
    problem: ending.problem ?? (r.admission.unpriced ? UNPRICED_ALLOWED : null),
  };
  gateway.observer.requestDone(record, line);
  const isTelling = r.open && r.target.endpoint.purpose !== "other";
  const served = isTelling && r.candidates.find((candidate) => candidate.channel.name === channel);
  if (served) gateway.channels.reportEnd(served.channel, judgeChannel(r), gateway.now());
}

function readPlanAmount(line: LineDraft | null): string | undefined {
  return line?.paid_by === "plan" ? (line.official_usd ?? undefined) : undefined;
}

/** An incomplete response counts against the channel, unless the client disconnected or it was an error from the start. */
function judgeChannel({ attempts, ending }: Request): Pick<RequestEnd, "how" | "problem"> {
  const { outcome, problem } = ending;
  const last = attempts.at(-1);
  const hadBegun = last?.status !== undefined && last.status < 400 && last.error === undefined;
  const how = hadBegun ? (HOW_BY_OUTCOME[outcome] ?? "left") : "left";
  const reason = how === "cut" && problem !== null ? problem : "ended its response with an error";
  return { how, problem: reason };
}

const HOW_BY_OUTCOME: Readonly<Record<string, RequestEnd["how"]>> = {
  complete: "whole",
  upstream_cut: "cut",
  upstream_error: "failed",
};

export function durationOf({ arrived }: UnroutedCall): number {
  return Math.round(performance.now() - arrived);
}
