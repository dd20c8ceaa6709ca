// What relay.ts and relay-bridge.ts share: an answer on its way from its upstream to its client.

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
  /** Null where nothing can be billed, and no stream has to be seen ending. */
  readonly meter: Meter | null;
  /** An answer that comes bit by bit and ends with its dialect's terminal event. */
  readonly streamed: boolean;
  /** The client left before the end of the answer had passed. */
  left: boolean;
}

export function createDelivery(answer: ChannelResponse, job: Job, bill: Bill, gateway: Gateway): Delivery {
  const { status } = answer.response;
  const contentType = answer.response.field("content-type") ?? "";
  const streamed = status < 400 && (job.body.stream || contentType.startsWith("text/event-stream"));
  const told = bill.open || job.call.target.endpoint.purpose === "resource";
  const metered = streamed || (told && status < 400);
  const meter = metered ? job.dialect.openMeter(contentType) : null;
  const delivery: Delivery = { from: answer, job, bill, gateway, meter, streamed, left: false };
  job.cancel = () => answer.response.cancel();
  job.call.exchange.onGone(() => {
    delivery.left = !streamed || meter === null || meter.read().end === "open";
  });
  return delivery;
}

/** Shows a stream to watchers while it lasts. Returns what ends that. */
export function showStream({ from: answer, job, bill, meter, streamed, gateway }: Delivery): () => void {
  if (!streamed) return () => {};
  const { id } = job.call;
  gateway.observer.streamOpened({
    id,
    key: bill.match.key.name,
    model: bill.match.model,
    channel: answer.candidate.channel.name,
    since: job.call.time,
    tokens: () => (meter === null ? 0 : countOutput(meter.read())),
  });
  return () => gateway.observer.streamClosed(id);
}

/** While a stream runs, what it reports may be a placeholder. */
function countOutput({ parts, final, estimatedOutput }: Reading): number {
  const reported = sumUsage(parts).output ?? 0;
  return final ? reported : Math.max(reported, estimatedOutput);
}

/** Shows the meter a chunk that has been passed on: the client need not wait for that. One who has left needs no more
 *  of the answer than what is still to be learnt of it. */
export function meterChunk({ from: answer, job, meter }: Delivery, chunk: Uint8Array): void {
  meter?.see(chunk);
  if (job.call.exchange.gone && (meter === null || meter.read().final)) answer.response.cancel();
}

export function judgeDelivery(delivery: Delivery, fault: UpstreamFault | null): Ending {
  const { from: answer, meter, gateway } = delivery;
  const { status, closeDelimited } = answer.response;
  const streamed = delivery.streamed || closeDelimited;
  const reading = meter?.read() ?? null;
  const left = delivery.left ? describeLeaving(gateway.halt) : null;
  const outcome = judgeEnding({ status, reading, left, fault, streamed });
  const problem = outcome === "upstream_cut" ? explainBreak(delivery, fault).message : null;
  return { outcome, status, upstreamStatus: status, reading, problem };
}

/** What the client was told in its own dialect: there, a whole answer may have turned out to be none. */
export function convertEnding(ending: Ending, status: number, whole = status < 400): Ending {
  if (whole || ending.outcome !== "complete") return { ...ending, status };
  const outcome = ending.reading?.end === "complete" ? "upstream_error" : "upstream_cut";
  return { ...ending, status, outcome, problem: "The answer could not be converted." };
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
  const told = streamed && job.body.stream;
  return job.bridge === null ? fields : bridgeFields(fields, job.bridge, told);
}

function bridgeFields(fields: readonly Field[], { adjusted }: Bridge, streamed: boolean): Field[] {
  const told = fields.filter(([name]) => name !== "content-type");
  told.push(["content-type", streamed ? "text/event-stream; charset=utf-8" : "application/json"]);
  if (adjusted.length > 0) told.push(["x-gateway-adjusted", adjusted.join(", ")]);
  return told;
}
