// A response on its way to the client. relay.ts and relay-converted.ts share this.

import { type Meter, type Reading, sumUsage } from "../../billing/usage.ts";
import type { GatewayError } from "../../lib/errors.ts";
import type { Field, UpstreamFault } from "../../lib/http1/types.ts";
import type { ChannelResponse } from "../upstream/answer.ts";
import type { Bill } from "../bill/bill.ts";
import type { Bridge } from "../upstream/crossing.ts";
import { describeLeaving, judgeEnding } from "../bill/ending.ts";
import type { Job } from "../upstream/job.ts";
import type { Gateway } from "../gateway.ts";
import { responseFields } from "../upstream/headers.ts";
import { redactFields } from "../upstream/redact.ts";
import type { Ending } from "../bill/settle.ts";
import { describeBreak, describeEarlyEnd } from "../upstream/failure-rules.ts";

export interface Delivery {
  readonly from: ChannelResponse;
  readonly job: Job;
  readonly bill: Bill;
  readonly gateway: Gateway;
  /** Null if nothing can be billed and there is no stream whose end matters. */
  readonly meter: Meter | null;
  /** The response comes in events and ends with its dialect's terminal event. */
  readonly streamed: boolean;
  /** The client disconnected before the end of the response was sent. */
  left: boolean;
}

export function createDelivery(answer: ChannelResponse, job: Job, bill: Bill, gateway: Gateway): Delivery {
  const { status } = answer.response;
  const contentType = answer.response.field("content-type") ?? "";
  const streamed = status < 400 && (job.body.stream || contentType.startsWith("text/event-stream"));
  const mayReportUsage = bill.open || job.call.target.endpoint.purpose === "resource";
  const metered = streamed || (mayReportUsage && status < 400);
  const meter = metered ? job.dialect.openMeter(contentType, bill.calls) : null;
  const delivery: Delivery = { from: answer, job, bill, gateway, meter, streamed, left: false };
  job.cancel = () => answer.response.cancel();
  job.call.exchange.onGone(() => {
    delivery.left = !streamed || meter === null || meter.read().end === "open";
  });
  return delivery;
}

/** Shows a stream in the live view. Returns a function that ends this. */
export function showStream({ from: answer, job, bill, meter, streamed, gateway }: Delivery): () => void {
  if (!streamed) return () => {};
  const { id } = job.call;
  gateway.observer.streamOpened({
    id,
    key: bill.match.key.name,
    client: bill.client,
    model: bill.match.model,
    channel: answer.candidate.channel.name,
    since: job.call.time,
    tokens: () => (meter === null ? 0 : countOutput(meter.read())),
  });
  return () => gateway.observer.streamClosed(id);
}

/** Until a stream has ended, its reported count may be a placeholder. */
function countOutput({ parts, final, estimatedOutput }: Reading): number {
  const reported = sumUsage(parts).output ?? 0;
  return final ? reported : Math.max(reported, estimatedOutput);
}

/** Shows the meter a chunk that has been passed on, so that the client does not wait for the meter. After the client
 *  has disconnected, the response is read only until its usage is known. */
export function meterChunk({ from: answer, job, meter }: Delivery, chunk: Uint8Array): void {
  meter?.see(chunk);
  if (job.call.exchange.gone && (meter === null || meter.read().final)) answer.response.cancel();
}

export function judgeDelivery(delivery: Delivery, fault: UpstreamFault | null): Ending {
  const { from: answer, meter, gateway } = delivery;
  const { status, closeDelimited } = answer.response;
  // A billed response is JSON. Its end shows that it is complete, even if nothing was cut.
  const isBilled = delivery.bill.open && status === 200 && fault === null;
  const streamed = delivery.streamed || closeDelimited || isBilled;
  const reading = meter?.read() ?? null;
  const left = delivery.left ? describeLeaving(gateway.halt) : null;
  const outcome = judgeEnding({ status, reading, left, fault, streamed });
  const problem = outcome === "upstream_cut" ? explainBreak(delivery, fault).message : null;
  return { outcome, status, upstreamStatus: status, reading, problem };
}

/** The ending with the status that the client got. A complete response can fail in the conversion. */
export function convertEnding(ending: Ending, status: number, whole = status < 400): Ending {
  if (whole || ending.outcome !== "complete") return { ...ending, status };
  const outcome = ending.reading?.end === "complete" ? "upstream_error" : "upstream_cut";
  return { ...ending, status, outcome, problem: "The response could not be converted." };
}

export function explainBreak({ from: answer }: Delivery, fault: UpstreamFault | null): GatewayError {
  const { name } = answer.candidate.channel;
  return fault === null ? describeEarlyEnd(name) : describeBreak(name, fault);
}

export function noteFirstByte(bill: Bill): void {
  bill.firstByteMs ??= Math.round(performance.now() - bill.call.arrived);
}

export function answerFields({ from: answer, job, streamed }: Delivery): Field[] {
  const { status } = answer.response;
  const fields = redactFields(responseFields(answer.response.fields), answer.candidate.channel, status);
  fields.push(["x-request-id", job.call.id]);
  return job.bridge === null ? fields : convertFields(fields, job.bridge, streamed && job.body.stream);
}

/** Fields that describe the upstream's bytes, which a bridge replaces. */
const OF_BODY = new Set(["content-digest", "content-md5", "content-type", "digest", "etag", "repr-digest"]);

function convertFields(fields: readonly Field[], { adjusted }: Bridge, streamed: boolean): Field[] {
  const converted = fields.filter(([name]) => !OF_BODY.has(name));
  converted.push(["content-type", streamed ? "text/event-stream; charset=utf-8" : "application/json"]);
  if (adjusted.length > 0) converted.push(["x-gateway-adjusted", adjusted.join(", ")]);
  return converted;
}
