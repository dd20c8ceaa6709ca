// Sends the request to one channel's upstream. failover.ts waits for the response and decides what happens after a failure.

import type { Channel } from "../../config/catalog.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import {
  ClientGone,
  type Exchange,
  type Field,
  type SentRequest,
  type UpstreamRequest,
} from "../../lib/http1/types.ts";
import {
  findFirstElements,
  readString,
  replaceSpan,
  scanTopLevel,
  type Span,
} from "../../lib/json/json-spans.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";
import { overrideFields, requestFields } from "../upstream/headers.ts";
import { markHop } from "../upstream/self-call.ts";
import type { Candidate } from "../intake/match.ts";
import { addressOf } from "../upstream/origin.ts";

interface ForwardOptions {
  /** Limits the channel's own deadlines. */
  readonly leftMs: number;
  readonly onResend: () => void;
}

export function forward(
  job: Job,
  candidate: Candidate,
  gateway: Gateway,
  { leftMs, onResend }: ForwardOptions,
): SentRequest {
  if (job.call.exchange.gone) throw new ClientGone("The client disconnected.");
  const request = buildRequest(job, candidate, onResend);
  return gateway.client.send(shorten(request, leftMs));
}

function buildRequest(job: Job, candidate: Candidate, onResend: () => void): UpstreamRequest {
  const { call, body: request, dialect } = job;
  const { channel } = candidate;
  const { origin, basePath, deadlines } = addressOf(channel);
  const body = renameModel(job, candidate);
  const keepEncoding = request.encoded && body === request.bytes;
  return {
    origin,
    method: call.exchange.method,
    target: basePath + renamePath(job, candidate) + call.query,
    fields: signedFields(call.exchange, channel, dialect, keepEncoding),
    body,
    deadlines,
    onResend,
  };
}

/** The client's fields, the channel's credential and the channel's own fields. */
export function signedFields(
  exchange: Exchange,
  channel: Channel,
  dialect: Dialect,
  keepEncoding: boolean,
): readonly Field[] {
  const fields = requestFields(exchange.fields, keepEncoding);
  fields.push(dialect.sign(channel.credential), ...markHop(exchange, addressOf(channel).origin));
  return overrideFields(fields, channel.headers);
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
export function renameModel({ call, body: request }: Job, candidate: Candidate): Uint8Array | null {
  const { bytes: body, plain, model, modelSpan } = request;
  if (plain === null || model === null || candidate.model === null || candidate.model === model) return body;
  if (modelSpan !== null) return replaceSpan(plain, modelSpan, candidate.model);
  // A generating request names its model only in the path.
  if (call.target.endpoint.purpose === "generate") return body;
  return renameInBody(plain, model, candidate.model) ?? body;
}

function renamePath(job: Job, candidate: Candidate): string {
  const { model } = job.call.target;
  if (model === null || candidate.model === null || candidate.model === model.id) return job.path;
  return job.path.slice(0, model.start) + encodeURIComponent(candidate.model) + job.path.slice(model.end);
}

/** Google also writes model names with this prefix. */
const PREFIX = "models/";

/** Embedding and counting requests repeat the path's model in the body, and both must agree. Returns the body with `to`
 *  in place of `from`, or null if the body does not name `from`. */
function renameInBody(plain: Uint8Array, from: string, to: string): Uint8Array | null {
  let renamed: Uint8Array | null = null;
  for (const span of findNames(plain).toReversed()) {
    const name = readString(plain, span);
    if (name !== from && name !== PREFIX + from) continue;
    renamed = replaceSpan(renamed ?? plain, span, name === from ? to : PREFIX + to);
  }
  return renamed;
}

function findNames(plain: Uint8Array): Span[] {
  const whole = { start: 0, end: plain.length };
  const scan = scanTopLevel(plain, ["requests", "generateContentRequest"]);
  if (scan.kind !== "object") return [];
  const requests = scan.spans.get("requests");
  const elements = requests === undefined ? [] : findFirstElements(plain, requests, Number.POSITIVE_INFINITY);
  const counted = scan.spans.get("generateContentRequest") ?? [];
  return [whole, ...elements]
    .concat(counted)
    .flatMap((span) => findName(plain, span))
    .toSorted((a, b) => a.start - b.start);
}

function findName(plain: Uint8Array, { start, end }: Span): Span[] {
  const scan = scanTopLevel(plain.subarray(start, end), ["model"]);
  const found = scan.kind === "object" ? scan.spans.get("model") : undefined;
  return found === undefined ? [] : [{ start: start + found.start, end: start + found.end }];
}
