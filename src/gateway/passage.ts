// What relay.ts and relay-bridge.ts share: an answer on its way from its upstream to its client.

import { type Meter, type Reading, sumUsage } from "../billing/usage.ts";
import type { GatewayError } from "../lib/errors.ts";
import type { Field, UpstreamFault } from "../lib/http1/types.ts";
import type { Answer } from "./answer.ts";
import type { Bill } from "./bill.ts";
import type { Bridge } from "./bridge.ts";
import { describeLeaving, judgeEnding } from "./ending.ts";
import type { Errand } from "./errand.ts";
import type { Gateway } from "./gateway.ts";
import { responseFields } from "./headers.ts";
import { redactFields } from "./redact.ts";
import type { Ending } from "./settle.ts";
import { describeBreak, describeEarlyEnd } from "./verdict.ts";

export interface Passage {
  readonly answer: Answer;
  readonly errand: Errand;
  readonly bill: Bill;
  readonly gateway: Gateway;
  /** Null where nothing can be billed, and no stream has to be seen ending. */
  readonly meter: Meter | null;
  /** An answer that comes bit by bit and ends with its dialect's terminal event. */
  readonly streamed: boolean;
  /** The client left before the end of the answer had passed. */
  left: boolean;
}

export function createPassage(answer: Answer, errand: Errand, bill: Bill, gateway: Gateway): Passage {
  const { status } = answer.inbound;
  const contentType = answer.inbound.field("content-type") ?? "";
  const streamed = status < 400 && (errand.request.stream || contentType.startsWith("text/event-stream"));
  const told = bill.open || errand.call.target.endpoint.purpose === "resource";
  const metered = streamed || (told && status < 400);
  const meter = metered ? errand.dialect.openMeter(contentType) : null;
  const passage: Passage = { answer, errand, bill, gateway, meter, streamed, left: false };
  errand.cancel = () => answer.inbound.cancel();
  errand.call.exchange.onGone(() => {
    passage.left = !streamed || meter === null || meter.read().end === "open";
  });
  return passage;
}

/** Shows a stream to watchers while it lasts. Returns what ends that. */
export function showStream({ answer, errand, bill, meter, streamed, gateway }: Passage): () => void {
  if (!streamed) return () => {};
  const { id } = errand.call;
  gateway.observer.streamOpened({
    id,
    key: bill.route.key.name,
    model: bill.route.model,
    channel: answer.candidate.channel.name,
    since: errand.call.time,
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
export function learn({ answer, errand, meter }: Passage, chunk: Uint8Array, plain = false): void {
  meter?.see(chunk, plain);
  if (errand.call.exchange.gone && (meter === null || meter.read().final)) answer.inbound.cancel();
}

export function judge(passage: Passage, fault: UpstreamFault | null): Ending {
  const { answer, meter, gateway } = passage;
  const { status, closeDelimited } = answer.inbound;
  const streamed = passage.streamed || closeDelimited;
  const reading = meter?.read() ?? null;
  const left = passage.left ? describeLeaving(gateway.halt) : null;
  const outcome = judgeEnding({ status, reading, left, fault, streamed });
  const problem = outcome === "upstream_cut" ? explainBreak(passage, fault).message : null;
  return { outcome, status, upstreamStatus: status, reading, problem };
}

/** What the client was told in its own dialect: there, a whole answer may have turned out to be none. */
export function endAs(ending: Ending, status: number, whole = status < 400): Ending {
  if (whole || ending.outcome !== "complete") return { ...ending, status };
  const outcome = ending.reading?.end === "complete" ? "upstream_error" : "upstream_cut";
  return { ...ending, status, outcome, problem: "The answer could not be converted." };
}

export function explainBreak({ answer }: Passage, fault: UpstreamFault | null): GatewayError {
  const { name } = answer.candidate.channel;
  return fault === null ? describeEarlyEnd(name) : describeBreak(name, fault);
}

export function noteFirstByte(bill: Bill): void {
  bill.firstByteMs ??= Math.round(performance.now() - bill.call.arrived);
}

export function answerFields({ answer, errand, streamed }: Passage): Field[] {
  const { status } = answer.inbound;
  const fields = redactFields(responseFields(answer.inbound.fields), answer.candidate.channel, status);
  fields.push(["x-request-id", errand.call.id]);
  const told = streamed && errand.request.stream;
  return errand.bridge === null ? fields : bridgeFields(fields, errand.bridge, told);
}

function bridgeFields(fields: readonly Field[], { adjusted }: Bridge, streamed: boolean): Field[] {
  const told = fields.filter(([name]) => name !== "content-type");
  told.push(["content-type", streamed ? "text/event-stream; charset=utf-8" : "application/json"]);
  if (adjusted.length > 0) told.push(["x-gateway-adjusted", adjusted.join(", ")]);
  return told;
}
