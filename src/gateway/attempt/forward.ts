// One attempt: the request as this channel's upstream wants it, sent, until the
// head of its answer has come. Whether a failure is tried elsewhere is failover.ts.

import { ClientGone, type UpstreamResponse, type UpstreamRequest } from "../../lib/http1/types.ts";
import { replaceSpan } from "../../lib/json/json-spans.ts";
import { decodeResponse } from "../upstream/decode.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";
import { overrideFields, requestFields } from "../upstream/headers.ts";
import { markHop } from "../upstream/self-call.ts";
import type { Candidate } from "../intake/match.ts";
import { renameRepeated } from "../upstream/repeated-name.ts";
import { addressOf } from "../upstream/origin.ts";

interface Conditions {
  /** However patient the channel's own deadlines are. */
  readonly leftMs: number;
  readonly onResend: () => void;
}

export async function forward(
  job: Job,
  candidate: Candidate,
  gateway: Gateway,
  { leftMs, onResend }: Conditions,
): Promise<UpstreamResponse> {
  if (job.call.exchange.gone) throw new ClientGone("The client left.");
  const request = buildRequest(job, candidate, gateway, onResend);
  const sending = gateway.client.send(shorten(request, leftMs));
  job.cancel = () => sending.cancel();
  const response = decodeResponse(await sending.head);
  job.cancel = () => response.cancel();
  return response;
}

function buildRequest(
  job: Job,
  candidate: Candidate,
  gateway: Gateway,
  onResend: () => void,
): UpstreamRequest {
  const { call, body: request, dialect } = job;
  const { channel } = candidate;
  const { origin, basePath, deadlines } = addressOf(channel);
  const { vendor } = gateway.catalog;
  const body = renameModel(job, candidate);
  const keepEncoding = request.encoded && body === request.bytes;
  const fields = requestFields(call.exchange.fields, { vendor, keepEncoding });
  fields.push(dialect.sign(channel.credential, vendor), ...markHop(call.exchange, origin));
  return {
    origin,
    method: call.exchange.method,
    target: basePath + renamePath(job, candidate) + call.query,
    fields: overrideFields(fields, channel.headers),
    body,
    deadlines,
    onResend,
  };
}

function shorten(request: UpstreamRequest, leftMs: number): UpstreamRequest {
  const { deadlines } = request;
  if (deadlines.connectMs + deadlines.firstByteMs <= leftMs) return request;
  const connectMs = Math.min(deadlines.connectMs, leftMs);
  return {
    ...request,
    deadlines: { ...deadlines, connectMs, firstByteMs: Math.min(deadlines.firstByteMs, leftMs) },
  };
}

/** An alias replaces the bytes of the model's name and nothing else. */
function renameModel({ call, body: request }: Job, candidate: Candidate): Uint8Array | null {
  const { bytes: body, plain, model, modelSpan } = request;
  if (plain === null || model === null || candidate.model === null || candidate.model === model) return body;
  if (modelSpan !== null) return replaceSpan(plain, modelSpan, candidate.model);
  // A call that generates names its model in the path alone.
  if (call.target.endpoint.purpose === "generate") return body;
  return renameRepeated(plain, model, candidate.model) ?? body;
}

function renamePath(job: Job, candidate: Candidate): string {
  const { model } = job.call.target;
  if (model === null || candidate.model === null || candidate.model === model.id) return job.path;
  return job.path.slice(0, model.start) + encodeURIComponent(candidate.model) + job.path.slice(model.end);
}
