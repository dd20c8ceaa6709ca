// A response on its way to the client: what all its forms share.

import type { Conversion } from "../../bridges/convert.ts";
import type { Outcome } from "../../billing/ledger/line.ts";
import { countTokens, type Reading, sumUsage, type Usage, USAGE_KINDS } from "../../billing/usage.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { type Body, UpstreamFault, type UpstreamResponse } from "../../lib/http/upstream.ts";
import { NO_BODY } from "../intake/body.ts";
import { describeLeaving } from "../bill/finish.ts";
import { StreamRedactor } from "../intake/secrets.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import type { Ending, Request } from "../request.ts";
import { responseFields } from "../send/headers.ts";
import { failureOf, toError } from "../upstream/failures.ts";

export function beginDelivery(
  r: Request,
  response: UpstreamResponse,
  candidate: Candidate,
  gateway: Gateway,
): void {
  const { status } = response;
  r.answered = { response, candidate };
  r.body = { ...NO_BODY, model: r.model, stream: r.stream };
  r.memory?.free();
  const contentType = response.fields.get("content-type") ?? "";
  r.streamed = status < 400 && (r.stream || contentType.startsWith("text/event-stream"));
  const mayReportUsage = r.open || r.target.endpoint.purpose === "resource";
  const isReadable = r.target.endpoint.purpose !== "other";
  const isMetered = isReadable && (r.streamed || (mayReportUsage && status < 400));
  r.meter = isMetered ? r.upstreamDialect.openMeter(contentType, r.calls) : null;
  if (r.exchange.gone) noteLeft(r);
  if (!r.streamed) return;
  // The live view shows a stream until its request has ended.
  gateway.observer.streamOpened({
    id: r.id,
    key: r.key.name,
    client: r.client,
    model: r.model,
    channel: candidate.channel.name,
    since: r.time,
    tokens: () => (r.meter === null ? 0 : countOutput(r.meter.read())),
  });
}

/** The client left. After a stream's end, this changes nothing. */
export function noteLeft(r: Request): void {
  if (r.answered === null) return;
  r.left = !r.streamed || r.meter === null || r.meter.read().end === "open";
}

/** Before the end, the count may be a placeholder. */
function countOutput({ parts, final, estimatedOutput }: Reading): number {
  const reported = sumUsage(parts).output ?? 0;
  return final ? reported : Math.max(reported, estimatedOutput);
}

/** Notes which channel stores the response. The client may soon ask for it.
 *  Returns false without an id. */
export function keepStored(r: Request, { channels }: Gateway): boolean {
  if (r.group.channels.length === 1) return true;
  const { id } = r.meter?.read().stored ?? {};
  if (id !== undefined) channels.keepStored(id, r);
  return id !== undefined;
}

/** Once the client has left, reading stops at the usage. */
export function meterChunk(r: Request, chunk: Uint8Array): void {
  r.meter?.see(chunk);
  if (r.exchange.gone && (r.meter === null || r.meter.isFinal)) r.upstream.cancel();
}

export function countUsage(r: Request): Usage {
  const reading = r.meter?.read();
  const usage = sumUsage(reading?.parts ?? []);
  if (reading === undefined || countTokens(usage, USAGE_KINDS) > 0) return usage;
  return { input: r.estimatedInput, output: reading.estimatedOutput };
}

export function judgeDelivery(r: Request, fault: UpstreamFault | null, { halt }: Gateway): Ending {
  const { status, closeDelimited } = r.served.response;
  const reading = r.meter?.read() ?? null;
  const left = r.left ? describeLeaving(halt) : null;
  // A billed response is JSON, whose end shows that it is complete.
  const isBilled = r.open && status === 200 && fault === null;
  const showsEnd = r.streamed || closeDelimited || isBilled;
  const outcome = status >= 400 ? "upstream_error" : (left ?? judgeEnd(reading, showsEnd, fault));
  const problem = outcome === "upstream_cut" ? explainBreak(r, fault).message : null;
  return { outcome, status, upstreamStatus: status, reading, problem };
}

/** After the terminal event, a failing upstream changes nothing. */
function judgeEnd(reading: Reading | null, showsEnd: boolean, fault: UpstreamFault | null): Outcome {
  const end = reading?.end ?? null;
  const hasEnded = showsEnd && end !== null && end !== "open";
  if (fault !== null && !hasEnded) return "upstream_cut";
  if (end === "error") return "upstream_error";
  const lacksEnd = showsEnd && end === "open" && reading?.isFinished !== true;
  return lacksEnd ? "upstream_cut" : "complete";
}

export function convertEnding(ending: Ending, status: number, whole = status < 400): Ending {
  if (whole || ending.outcome !== "complete")
    return ending.status === status ? ending : { ...ending, status };
  const outcome = ending.reading?.end === "complete" ? "upstream_error" : "upstream_cut";
  return { ...ending, status, outcome, problem: "The response could not be converted." };
}

export function explainBreak(r: Request, fault: UpstreamFault | null): GatewayError {
  const { name } = r.served.candidate.channel;
  if (fault !== null) return toError(failureOf(name, fault));
  const text = `The channel "${name}" ended its response before it was complete.`;
  return new GatewayError("upstream_failed", text);
}

export function answerFields(r: Request): Fields {
  const { response, candidate } = r.served;
  const fields = responseFields(response.fields, r.secrets);
  fields.push(["x-request-id", r.id]);
  const answer = r.conversion === null ? fields : convertFields(fields, r, r.conversion);
  const { idField } = r.clientDialect;
  if (idField !== undefined && answer.get(idField) === undefined)
    answer.push([idField, r.upstreamRequestId ?? r.id]);
  const adjusted = r.conversion?.adjusted ?? [];
  const all = candidate.isReplaced === true ? [`model=${candidate.model}`, ...adjusted] : adjusted;
  return all.length === 0 ? answer : answer.add("x-gateway-adjusted", all.join(", "));
}

const OF_BODY = new Set(["content-digest", "content-md5", "content-type", "digest", "etag", "repr-digest"]);

function convertFields(fields: Fields, r: Request, { between: { client, upstream } }: Conversion): Fields {
  const type = r.streamed && r.stream ? "text/event-stream; charset=utf-8" : "application/json";
  const answer = fields.without(OF_BODY).add("content-type", type);
  return answer.add("x-gateway-converted", `${client}->${upstream}`);
}

/** `send` writes and meters a piece. For a slow client, it returns a promise. */
export async function passBody(
  r: Request,
  body: Body,
  send: (piece: Uint8Array) => Promise<void> | null,
): Promise<UpstreamFault | null> {
  const redactor = new StreamRedactor(r.secrets);
  let fault: UpstreamFault | null = null;
  try {
    for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
      const passed = redactor.passInTurns(chunk);
      const piece = passed instanceof Uint8Array ? passed : await passed;
      const slow = piece.length === 0 ? null : send(piece);
      if (slow !== null) await slow; // nobody reads meanwhile, so the upstream is not read
    }
  } catch (thrown) {
    if (!(thrown instanceof UpstreamFault)) throw thrown;
    fault = thrown;
  }
  const rest = redactor.end(fault !== null || r.served.response.closeDelimited);
  if (rest.length > 0) void send(rest);
  return fault;
}
