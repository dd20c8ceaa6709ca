// Sends an upstream's response to the client and shows it to the meter. A short response is sent whole, with its charge
// in a header. A stream is sent chunk by chunk, as it comes.

import type { StreamBreak } from "../../dialects/dialect.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { GatewayError } from "../../lib/errors.ts";
import { UpstreamFault } from "../../lib/http1/types.ts";
import { isLongWork, nextTurn } from "../../lib/time/next-turn.ts";
import { findMissingEnd } from "../../lib/sse/sse-parser.ts";
import type { Bridge } from "../upstream/crossing.ts";
import { MAX_CONVERTED_BYTES, joinChunks, readUpTo, isJsonResponse } from "../upstream/answer.ts";
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
import {
  redactBody,
  redactErrorBody,
  redactLongBody,
  redactText,
  StreamRedactor,
} from "../upstream/redact.ts";
import { LargeResponse } from "./large-response.ts";
import { relayConverted } from "./relay-converted.ts";
import { closeBill, recordBill, settle } from "../bill/settle.ts";

/** A response up to this size is read whole before it is sent, so that its charge can be in a header. */
const MAX_WHOLE_BYTES = 4 * 1024 * 1024;

/** No promise if everything has arrived. */
export function relay(delivery: Delivery): void | Promise<void> {
  return delivery.streamed ? relayShown(delivery) : relayWhole(delivery);
}

/** The live view shows it while it lasts. */
async function relayShown(delivery: Delivery): Promise<void> {
  const { bridge, body: request } = delivery.job;
  const hideStream = showStream(delivery);
  try {
    // Some upstreams always send a stream. A bridge converts it to what the client requested.
    if (bridge !== null && !request.stream) await relayWhole(delivery);
    else if (bridge === null) await relayStream(delivery, []);
    else await relayConverted(delivery, bridge);
  } finally {
    hideStream();
  }
}

function relayWhole(delivery: Delivery): void | Promise<void> {
  const { bill, from, job, meter } = delivery;
  const { response } = from;
  const whole = from.whole ?? response.takeBuffered();
  if (whole === null) return relayArriving(delivery);
  if (job.bridge !== null || isLongWork(whole.length))
    return relayRead({ chunks: [whole], hasMore: false }, null, delivery);
  noteFirstByte(bill);
  const body = redactShort(delivery, whole);
  meter?.see(body);
  answerWhole(delivery, { status: response.status, body }, null);
}

async function relayArriving(delivery: Delivery): Promise<void> {
  const memory = new LargeResponse(delivery);
  try {
    await relayRead(await readWhole(memory, delivery), memory, delivery);
    await memory.sent();
  } finally {
    memory.free();
  }
}

interface ReadBody {
  readonly chunks: readonly Uint8Array[];
  /** It is longer than what may be read whole. */
  readonly hasMore: boolean;
}

async function relayRead(read: ReadBody, memory: LargeResponse | null, delivery: Delivery): Promise<void> {
  const { bill, meter, job } = delivery;
  noteFirstByte(bill);
  if (read.hasMore) return await relayStream(delivery, read.chunks);
  const { status } = delivery.from.response;
  const whole = joinChunks(read.chunks);
  const isLong = isLongWork(whole.length);
  if (isLong) await nextTurn();
  const body = await redactAnswer(delivery, whole);
  meter?.see(body);
  if (isLong) await nextTurn();
  const converted = job.bridge === null ? { status, body } : await convert(delivery, body, job.bridge);
  answerWhole(delivery, converted, memory);
}

interface WholeAnswer {
  readonly status: number;
  readonly body: Uint8Array | string;
}

/** Sends a response that has been metered, with its charge. */
function answerWhole(delivery: Delivery, answer: WholeAnswer, memory: LargeResponse | null): void {
  const { bill, job, gateway } = delivery;
  const ending = judgeDelivery(delivery, null);
  if (ending.outcome === "upstream_cut") throw settleCut(delivery, null);
  memory?.shrink(answer.body.length);
  const closed = closeBill(bill, convertEnding(ending, answer.status), gateway);
  const fields = answerFields(delivery);
  const chargeUsd = closed.draft?.charge_usd ?? null;
  if (chargeUsd !== null) fields.push(["x-gateway-charge", chargeUsd]);
  // Answer first, write the ledger after.
  try {
    job.call.exchange.answer(answer.status, fields, answer.body);
  } finally {
    recordBill(closed, gateway);
  }
}

async function readWhole(memory: LargeResponse, delivery: Delivery): Promise<ReadBody> {
  const { from: answer, job } = delivery;
  const { name } = answer.candidate.channel;
  try {
    if (job.bridge === null) return await readUpTo(answer.response, MAX_WHOLE_BYTES, memory.admit);
    const read = await readUpTo(answer.response, MAX_CONVERTED_BYTES, memory.admit);
    if (!read.hasMore) return read;
    answer.response.cancel();
    throw new GatewayError(
      "upstream_failed",
      `The response of the channel "${name}" is too long to convert.`,
    );
  } catch (fault) {
    throw fault instanceof UpstreamFault ? settleCut(delivery, fault) : fault;
  }
}

/** Nothing has been sent yet, so the client gets an error instead of the response. */
function settleCut(delivery: Delivery, fault: UpstreamFault | null): GatewayError {
  const error = explainBreak(delivery, fault);
  settle(delivery.bill, { ...judgeDelivery(delivery, fault), status: error.status }, delivery.gateway);
  return error;
}

function redactAnswer(delivery: Delivery, body: Uint8Array): Uint8Array | Promise<Uint8Array> {
  const { response, candidate } = delivery.from;
  const isLong = response.status < 400 && isLongWork(body.length);
  return isLong ? redactLongBody(body, candidate.channel) : redactShort(delivery, body);
}

/** An upstream's error may quote pieces of the credential that it refuses. */
function redactShort({ from }: Delivery, body: Uint8Array): Uint8Array {
  const { response, candidate } = from;
  const redact = response.status >= 400 ? redactErrorBody : redactBody;
  return redact(body, candidate.channel);
}

/** The response in the client's dialect. */
async function convert({ from: answer }: Delivery, body: Uint8Array, bridge: Bridge): Promise<WholeAnswer> {
  const { status } = answer.response;
  const { channel } = answer.candidate;
  const isLong = isLongWork(body.length);
  const reply = status < 400 ? bridge.readReply(body) : null;
  if (isLong) await nextTurn();
  const converted = status < 400 ? bridge.convertReply(reply) : bridge.convertError(status, body);
  // A secret that was escaped or in pieces in the upstream's response may be plain or joined in the converted one.
  if (converted.status >= 400) return { ...converted, body: redactText(converted.body, channel) };
  if (isLong) await nextTurn();
  const bytes = Buffer.from(converted.body);
  return { ...converted, body: isLong ? await redactLongBody(bytes, channel) : redactBody(bytes, channel) };
}

async function relayStream(delivery: Delivery, begun: readonly Uint8Array[]): Promise<void> {
  const { from: answer, job, bill, gateway, streamed } = delivery;
  const { exchange } = job.call;
  // A stream's length is not announced, because an error event at its end would not fit.
  const length = streamed ? null : answer.response.length;
  exchange.begin(answer.response.status, answerFields(delivery), length ?? undefined);
  if (begun.length === 0 && !answer.response.buffered) exchange.flush();
  const { fault, last } = await pump(delivery, begun);
  const ending = judgeDelivery(delivery, fault);
  // Answer first, write the ledger after.
  try {
    if (exchange.gone) return;
    const missing = mayBeCut(delivery, fault) ? closeEvent(last) : undefined;
    if (ending.outcome === "complete") exchange.end(missing);
    else if (!streamed) exchange.reset();
    else if (ending.reading?.end === "error") breakStream(delivery, missing);
    else breakStream(delivery, writeError(delivery, explainBreak(delivery, fault), last));
  } finally {
    settle(bill, ending, gateway);
  }
}

/** Sends the body. Returns why it stopped early, if it did, and its last two chunks. */
async function pump(
  delivery: Delivery,
  begun: readonly Uint8Array[],
): Promise<{ fault: UpstreamFault | null; last: readonly Uint8Array[] }> {
  const { from: answer, job, bill } = delivery;
  const { response, candidate } = answer;
  const { exchange } = job.call;
  const redactor = new StreamRedactor(candidate.channel, response.status);
  const early = [...begun];
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
      const chunk = early.shift() ?? (await response.read());
      const taken = pass(chunk === null ? redactor.end() : redactor.pass(chunk));
      if (!taken) await exchange.drained();
      else if (early.length > 0) await nextTurn();
      if (chunk === null) return { fault: null, last: takeLast() };
    }
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    pass(redactor.end());
    return { fault, last: takeLast() };
  }
}

/** Where the end of the connection ends an event stream, a cut is no fault. */
function mayBeCut({ from: { response }, streamed }: Delivery, fault: UpstreamFault | null): boolean {
  return streamed && (fault !== null || (response.closeDelimited && !isJsonResponse(response)));
}

/** The upstream broke inside the line end of its last event. Without that end clients drop the event, and take the clean
 *  end of the reply for a response that has none. */
function closeEvent(last: readonly Uint8Array[]): Buffer {
  const end = asBuffer(joinChunks(last)).toString("latin1");
  return Buffer.from(findMissingEnd(end, end.includes("\r\n") ? "\r\n\r\n" : "\n\n"));
}

/** Ends a stream so that no client takes it for a complete response. If the upstream has sent the error event itself, `last`
 *  is at most the end of it. */
function breakStream({ job: { call } }: Delivery, last?: Uint8Array): void {
  if (last !== undefined) call.exchange.write(last);
  if (call.target.endpoint.dialect.resetAfterErrorEvent) call.exchange.reset();
  else call.exchange.end();
}

function writeError(delivery: Delivery, error: GatewayError, last: readonly Uint8Array[]): Buffer {
  const { call } = delivery.job;
  const { dialect } = call.target.endpoint;
  const end = asBuffer(joinChunks(last)).toString("latin1");
  const event = dialect.errorEvent(error, call.id, describePlace(delivery, end));
  return Buffer.from(findMissingEnd(end, dialect.eventCloser) + event);
}

/** `end`: the last bytes that were sent, as latin-1. */
function describePlace({ from: answer, meter }: Delivery, end: string): StreamBreak {
  const { model = null, stored = null } = meter?.read() ?? {};
  return {
    form: isJsonResponse(answer.response) ? "json-array" : "sse",
    begun: end !== "",
    ...(model === null ? {} : { model }),
    ...(stored === null ? {} : { id: stored.id }),
    sequence: readNextNumber(end),
  };
}

/** Some dialects number their events. The error event continues the sequence. */
function readNextNumber(end: string): number {
  const numbers = end.match(/"sequence_number"\s*:\s*\d+/g);
  return Number(numbers?.at(-1)?.replace(/\D+/, "") ?? -1) + 1;
}
