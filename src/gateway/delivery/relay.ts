// Upstream answer → client, shown to the meter on the way. Short answers go
// whole, with their charge; streams go chunk by chunk, as they come.

import type { Break } from "../../dialects/dialect.ts";
import { asBuffer } from "../../lib/bytes.ts";
import { GatewayError } from "../../lib/errors.ts";
import { UpstreamFault } from "../../lib/http1/types.ts";
import { CONVERTED_LIMIT, joinChunks, readUpTo, saysJson } from "../upstream/answer.ts";
import {
  answerFields,
  convertEnding,
  explainBreak,
  judgeDelivery,
  meterChunk,
  noteFirstByte,
  type Delivery,
  showStream,
} from "./delivery.ts";
import { redactBody, redactError, redactText, StreamRedactor } from "../upstream/redact.ts";
import { relayConverted } from "./relay-converted.ts";
import { closeBill, recordBill, settle } from "../bill/settle.ts";

/** Answers up to this size are read whole before they are passed on, so that their charge can go in a header. */
const WHOLE_LIMIT = 4 * 1024 * 1024;

export async function relay(delivery: Delivery): Promise<void> {
  const { bridge, body: request } = delivery.job;
  const hideStream = showStream(delivery);
  try {
    // Some upstreams answer with a stream whatever they are asked: what is converted is told as it was asked for.
    if (!delivery.streamed || (bridge !== null && !request.stream)) await relayWhole(delivery);
    else if (bridge === null) await relayStream(delivery, []);
    else await relayConverted(delivery, bridge);
  } finally {
    hideStream();
  }
}

async function relayWhole(delivery: Delivery): Promise<void> {
  const { from: answer, bill, meter, job, gateway } = delivery;
  const whole = answer.whole ?? answer.response.takeRest();
  const read = whole === null ? await readWhole(delivery) : { chunks: [whole], rest: false };
  noteFirstByte(bill);
  if (read.rest) return await relayStream(delivery, read.chunks);
  const body = redactAnswer(delivery, joinChunks(read.chunks));
  meter?.see(body);
  const ending = judgeDelivery(delivery, null);
  if (ending.outcome === "upstream_cut") throw settleCut(delivery, null);
  const told = convert(delivery, body);
  const closing = closeBill(bill, convertEnding(ending, told.status), gateway);
  const fields = answerFields(delivery);
  const chargeUsd = closing.draft?.charge_usd ?? null;
  if (chargeUsd !== null) fields.push(["x-gateway-charge", chargeUsd]);
  // Nobody need wait for the books.
  try {
    job.call.exchange.answer(told.status, fields, told.body);
  } finally {
    recordBill(closing, gateway);
  }
}

async function readWhole(delivery: Delivery): Promise<{ chunks: Uint8Array[]; rest: boolean }> {
  const { from: answer, job } = delivery;
  const { name } = answer.candidate.channel;
  try {
    if (job.bridge === null) return await readUpTo(answer.response, WHOLE_LIMIT);
    const read = await readUpTo(answer.response, CONVERTED_LIMIT);
    if (!read.rest) return read;
    answer.response.cancel();
    throw new GatewayError("upstream_failed", `The answer of the channel "${name}" is too long to convert.`);
  } catch (fault) {
    throw fault instanceof UpstreamFault ? settleCut(delivery, fault) : fault;
  }
}

/** Nothing of the answer has been told yet: the client gets an error instead. */
function settleCut(delivery: Delivery, fault: UpstreamFault | null): GatewayError {
  const error = explainBreak(delivery, fault);
  settle(delivery.bill, { ...judgeDelivery(delivery, fault), status: error.status }, delivery.gateway);
  return error;
}

/** An upstream's error may quote the credential that it refuses. */
function redactAnswer({ from: answer }: Delivery, body: Uint8Array): Uint8Array {
  const { channel } = answer.candidate;
  return answer.response.status < 400 ? redactBody(body, channel) : redactError(body, channel);
}

/** What the client is told: the answer as it is, or in its own dialect. */
function convert(
  { from: answer, job }: Delivery,
  body: Uint8Array,
): { status: number; body: Uint8Array | string } {
  const { status } = answer.response;
  const { bridge } = job;
  if (bridge === null) return { status, body };
  const { channel } = answer.candidate;
  const converted = status < 400 ? bridge.convertReply(body) : bridge.convertError(status, body);
  // What was escaped, or apart, in the upstream's answer may be plain, or joined, in the converted one.
  if (converted.status >= 400) return { ...converted, body: redactText(converted.body, channel) };
  return { ...converted, body: redactBody(Buffer.from(converted.body), channel) };
}

async function relayStream(delivery: Delivery, begun: readonly Uint8Array[]): Promise<void> {
  const { from: answer, job, bill, gateway, streamed } = delivery;
  const { exchange } = job.call;
  // A stream's length is not announced: what says that it broke would not fit in.
  const length = streamed ? null : answer.response.length;
  exchange.begin(answer.response.status, answerFields(delivery), length ?? undefined);
  if (begun.length === 0 && !answer.response.buffered) exchange.flush();
  const { fault, last } = await pump(delivery, begun);
  const ending = judgeDelivery(delivery, fault);
  // Nobody need wait for the books.
  try {
    if (exchange.gone) return;
    if (ending.outcome === "complete")
      exchange.end(streamed && fault !== null ? closeEvent(last) : undefined);
    else if (!streamed) exchange.reset();
    else breakStream(delivery, ending.reading?.end === "error" ? null : explainBreak(delivery, fault), last);
  } finally {
    settle(bill, ending, gateway);
  }
}

/** Moves the body. Returns why it stopped early, if it did, and its last two chunks. */
async function pump(
  delivery: Delivery,
  begun: readonly Uint8Array[],
): Promise<{ fault: UpstreamFault | null; last: readonly Uint8Array[] }> {
  const { from: answer, job, bill } = delivery;
  const { response, candidate } = answer;
  const { exchange } = job.call;
  const redactor = new StreamRedactor(candidate.channel, response.status);
  const held = [...begun];
  let before: Uint8Array | null = null;
  let last: Uint8Array | null = null;
  const takeLast = (): Uint8Array[] => [before, last].filter((chunk) => chunk !== null);
  const pass = (chunk: Uint8Array): boolean => {
    const taken = exchange.gone || exchange.write(chunk);
    if (chunk.length > 0) {
      noteFirstByte(bill);
      before = last;
      last = chunk;
      meterChunk(delivery, chunk);
    }
    return taken;
  };
  try {
    for (;;) {
      const came = held.shift() ?? (await response.read());
      const taken = pass(came === null ? redactor.end() : redactor.pass(came));
      if (!taken) await exchange.drained();
      if (came === null) return { fault: null, last: takeLast() };
    }
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    pass(redactor.end());
    return { fault, last: takeLast() };
  }
}

/** The upstream broke inside the line end of its last event. Without that end clients would drop the event, and take the
 *  clean end of the reply for an answer that has none. */
function closeEvent(last: readonly Uint8Array[]): Buffer {
  const end = asBuffer(joinChunks(last)).toString("latin1");
  if (endsEvent(end)) return Buffer.alloc(0);
  return Buffer.from(end.includes("\r\n") ? "\r\n\r\n" : "\n\n");
}

/** Ends a stream so that no client takes it for a whole answer. `error` is null when the upstream has said it itself. */
function breakStream(delivery: Delivery, error: GatewayError | null, last: readonly Uint8Array[]): void {
  const { call } = delivery.job;
  const { dialect } = call.target.endpoint;
  if (error !== null) {
    const end = asBuffer(joinChunks(last)).toString("latin1");
    const event = dialect.errorEvent(error, call.id, describePlace(delivery, end));
    call.exchange.write(Buffer.from(endsEvent(end) ? event : dialect.eventCloser + event));
  }
  if (dialect.resetAfterErrorEvent) call.exchange.reset();
  else call.exchange.end();
}

/** `end`: of what was passed on, as latin-1. */
function describePlace({ from: answer, meter }: Delivery, end: string): Break {
  const { model = null, stored = null } = meter?.read() ?? {};
  return {
    form: saysJson(answer.response) ? "json-array" : "sse",
    begun: end !== "",
    ...(model === null ? {} : { model }),
    ...(stored === null ? {} : { id: stored.id }),
    sequence: readNextNumber(end),
  };
}

/** Events that bear numbers are counted: the next one's is by one more than the last one's. */
function readNextNumber(end: string): number {
  const numbers = end.match(/"sequence_number"\s*:\s*\d+/g);
  return Number(numbers?.at(-1)?.replace(/\D+/, "") ?? -1) + 1;
}

/** True when the bytes so far end with a whole event, so that another one can follow. */
function endsEvent(end: string): boolean {
  return end === "" || end.endsWith("\n\n") || end.endsWith("\r\n\r\n");
}
