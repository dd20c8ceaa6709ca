// Reports each ended request as a record.

import type { LineDraft, Outcome } from "../../billing/ledger/line.ts";
import type { Key } from "../../config/catalog.ts";
import type { GatewayError } from "../../lib/errors.ts";
import type { UnroutedCall } from "../intake/call.ts";
import { readSender } from "../intake/client.ts";
import { listOwnSecrets } from "../intake/authenticate.ts";
import { Secrets, secretsOf } from "../intake/secrets.ts";
import type { Gateway } from "../gateway.ts";
import { NOBODY, type Request } from "../request.ts";
import type { RequestRecord } from "../observe/observer.ts";

const OUTCOMES: Partial<Record<Outcome, RequestRecord["outcome"]>> = {
  complete: "complete",
  upstream_error: "refused",
};

const UNPRICED_ALLOWED = "the model has no price, so no limit counts this request";

export function reportRequest(r: Request, line: LineDraft | null, gateway: Gateway): void {
  const { ending } = r;
  const { key, group } = nameKey(r.foundKey);
  const record: RequestRecord = {
    id: r.id,
    time: r.time,
    key,
    group,
    channel: r.attempts.at(-1)?.channel ?? null,
    endpoint: r.target.endpoint.label,
    status: ending.status,
    firstByteMs: r.firstByteMs,
    durationMs: r.durationMs,
    usage: line?.usage ?? null,
    chargeUsd: line?.charge_usd ?? null,
    model: r.model,
    client: r.client,
    outcome: ending.outcome,
    planUsd: line === null ? undefined : readPlanUsd(line),
    problem: ending.problem ?? (r.admission.unpriced ? UNPRICED_ALLOWED : null),
  };
  const shown = r.cleared ? record : { ...record, ...describeUnsent(r, gateway) };
  gateway.observer.requestDone(shown, line);
  if (r.recorded !== null) gateway.recorder.finish(r, r.recorded, line);
}

function readPlanUsd({ paid_by, official_usd }: LineDraft): string | undefined {
  return paid_by === "plan" ? (official_usd ?? undefined) : undefined;
}

function nameKey(key: Key | null): Pick<RequestRecord, "key" | "group"> {
  return { key: key?.name ?? null, group: key?.group.name ?? null };
}

/** A request that was not sent may still hold secrets. */
function describeUnsent(r: Request, { catalog }: Gateway): Partial<RequestRecord> {
  const { ending, exchange } = r;
  const secrets = secretsOf(catalog);
  const model = r.model ?? r.target.model?.id ?? "";
  const own = new Secrets(listOwnSecrets(exchange));
  const isKept = model !== "" && !secrets.holds(model) && !own.holds(model);
  return {
    model: isKept ? model : null,
    client: r.client === NOBODY ? readSender(r, catalog) : r.client,
    outcome: OUTCOMES[ending.outcome] ?? "client_closed",
    problem: ending.problem === null ? null : secrets.maskText(ending.problem),
  };
}

/** No endpoint has the request's path. This path is untrusted, so only the error's text may have it. */
export function reportStray(call: UnroutedCall, error: GatewayError, gateway: Gateway): void {
  gateway.observer.requestDone({
    id: call.id,
    time: call.time,
    key: null,
    group: null,
    model: null,
    channel: null,
    client: readSender(call, gateway.catalog),
    endpoint: "-",
    status: error.status,
    outcome: "refused",
    firstByteMs: null,
    durationMs: Math.round(performance.now() - call.arrived),
    usage: null,
    chargeUsd: null,
    problem: secretsOf(gateway.catalog).maskText(error.message),
  });
}

export function reportToChannel(r: Request, { channels, now }: Gateway): void {
  if (r.tried === null || !r.isTelling) return;
  const last = r.attempts.at(-1);
  // If the response did not begin as an error, the channel learns how it ended. An incomplete
  // response counts against the channel, unless the client left.
  const hadBegun = last?.status !== undefined && last.status < 400 && last.error === undefined;
  if (hadBegun) channels.reportEnd(r.tried.channel, r.ending, now());
}
