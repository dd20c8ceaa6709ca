// One attempt: the request as this channel's upstream wants it, sent, until the
// head of its answer has come. Whether a failure is tried elsewhere is failover.ts.

import { ClientGone, type Inbound, type Outbound } from "../lib/http1/types.ts";
import { replaceSpan } from "../lib/json-scan.ts";
import { decodeInbound } from "./decode.ts";
import type { Errand } from "./errand.ts";
import type { Gateway } from "./gateway.ts";
import { overrideFields, requestFields } from "./headers.ts";
import { markHop } from "./loop.ts";
import type { Candidate } from "./match.ts";
import { renameRepeated } from "./repeated-name.ts";
import { upstreamOf } from "./upstream.ts";

interface Conditions {
  /** However patient the channel's own deadlines are. */
  readonly leftMs: number;
  readonly onResend: () => void;
}

export async function forward(
  errand: Errand,
  candidate: Candidate,
  gateway: Gateway,
  { leftMs, onResend }: Conditions,
): Promise<Inbound> {
  if (errand.call.exchange.gone) throw new ClientGone("The client left.");
  const outbound = buildOutbound(errand, candidate, gateway, onResend);
  const sending = gateway.client.send(shorten(outbound, leftMs));
  errand.cancel = () => sending.cancel();
  const inbound = decodeInbound(await sending.head);
  errand.cancel = () => inbound.cancel();
  return inbound;
}

function buildOutbound(
  errand: Errand,
  candidate: Candidate,
  gateway: Gateway,
  onResend: () => void,
): Outbound {
  const { call, request, dialect } = errand;
  const { channel } = candidate;
  const { origin, basePath, deadlines } = upstreamOf(channel);
  const { vendor } = gateway.catalog;
  const body = renameModel(errand, candidate);
  const keepEncoding = request.encoded && body === request.body;
  const fields = requestFields(call.exchange.fields, { vendor, keepEncoding });
  fields.push(dialect.sign(channel.credential, vendor), ...markHop(call.exchange, origin));
  return {
    origin,
    method: call.exchange.method,
    target: basePath + renamePath(errand, candidate) + call.query,
    fields: overrideFields(fields, channel.headers),
    body,
    deadlines,
    onResend,
  };
}

function shorten(outbound: Outbound, leftMs: number): Outbound {
  const { deadlines } = outbound;
  if (deadlines.connectMs + deadlines.firstByteMs <= leftMs) return outbound;
  const connectMs = Math.min(deadlines.connectMs, leftMs);
  return {
    ...outbound,
    deadlines: { ...deadlines, connectMs, firstByteMs: Math.min(deadlines.firstByteMs, leftMs) },
  };
}

/** An alias replaces the bytes of the model's name and nothing else. */
function renameModel({ call, request }: Errand, candidate: Candidate): Uint8Array | null {
  const { body, plain, model, modelSpan } = request;
  if (plain === null || model === null || candidate.model === null || candidate.model === model) return body;
  if (modelSpan !== null) return replaceSpan(plain, modelSpan, candidate.model);
  // A call that generates names its model in the path alone.
  if (call.target.endpoint.purpose === "generate") return body;
  return renameRepeated(plain, model, candidate.model) ?? body;
}

function renamePath(errand: Errand, candidate: Candidate): string {
  const { model } = errand.call.target;
  if (model === null || candidate.model === null || candidate.model === model.id) return errand.path;
  return (
    errand.path.slice(0, model.start) + encodeURIComponent(candidate.model) + errand.path.slice(model.end)
  );
}
