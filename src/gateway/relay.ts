// Upstream answer → client, shown to the meter on the way. Short answers go
// whole, with their charge; streams go chunk by chunk, as they come.

import type { Break } from "../dialects/dialect.ts";
import { asBuffer } from "../lib/bytes.ts";
import { GatewayError } from "../lib/errors.ts";
import { UpstreamFault } from "../lib/http1/types.ts";
import { CONVERTED_LIMIT, joinChunks, readUpTo, saysJson } from "./answer.ts";
import {
  answerFields,
  endAs,
  explainBreak,
  judge,
  learn,
  noteFirstByte,
  type Passage,
  showStream,
} from "./passage.ts";
import { redactBody, redactError, redactText, StreamRedactor } from "./redact.ts";
import { relayBridged } from "./relay-bridge.ts";
import { closeBill, recordBill, settle } from "./settle.ts";

/** Answers up to this size are read whole before they are passed on, so that their charge can go in a header. */
const WHOLE_LIMIT = 4 * 1024 * 1024;

export async function relay(passage: Passage): Promise<void> {
  const { bridge, request } = passage.errand;
  const hideStream = showStream(passage);
  try {
    // Some upstreams answer with a stream whatever they are asked: what is converted is told as it was asked for.
    if (!passage.streamed || (bridge !== null && !request.stream)) await relayWhole(passage);
    else if (bridge === null) await relayStream(passage, []);
    else await relayBridged(passage, bridge);
  } finally {
    hideStream();
  }
}

async function relayWhole(passage: Passage): Promise<void> {
  const { answer, bill, meter, errand, gateway } = passage;
  const whole = answer.whole ?? answer.inbound.takeRest();
  const read = whole === null ? await readWhole(passage) : { chunks: [whole], rest: false };
  noteFirstByte(bill);
  if (read.rest) return await relayStream(passage, read.chunks);
  const body = redactAnswer(passage, joinChunks(read.chunks));
  meter?.see(body);
  const ending = judge(passage, null);
  if (ending.outcome === "upstream_cut") throw settleCut(passage, null);
  const told = convert(passage, body);
  const closing = closeBill(bill, endAs(ending, told.status), gateway);
  const fields = answerFields(passage);
  const chargeUsd = closing.draft?.charge_usd ?? null;
  if (chargeUsd !== null) fields.push(["x-gateway-charge", chargeUsd]);
  // Nobody need wait for the books.
  try {
    errand.call.exchange.answer(told.status, fields, told.body);
  } finally {
    recordBill(closing, gateway);
  }
}

async function readWhole(passage: Passage): Promise<{ chunks: Uint8Array[]; rest: boolean }> {
  const { answer, errand } = passage;
  const { name } = answer.candidate.channel;
  try {
    if (errand.bridge === null) return await readUpTo(answer.inbound, WHOLE_LIMIT);
    const read = await readUpTo(answer.inbound, CONVERTED_LIMIT);
    if (!read.rest) return read;
    answer.inbound.cancel();
    throw new GatewayError("upstream_failed", `The answer of the channel "${name}" is too long to convert.`);
  } catch (fault) {
    throw fault instanceof UpstreamFault ? settleCut(passage, fault) : fault;
  }
}

/** Nothing of the answer has been told yet: the client gets an error instead. */
function settleCut(passage: Passage, fault: UpstreamFault | null): GatewayError {
  const error = explainBreak(passage, fault);
  settle(passage.bill, { ...judge(passage, fault), status: error.status }, passage.gateway);
  return error;
}

/** An upstream's error may quote the credential that it refuses. */
function redactAnswer({ answer }: Passage, body: Uint8Array): Uint8Array {
  const { channel } = answer.candidate;
  return answer.inbound.status < 400 ? redactBody(body, channel) : redactError(body, channel);
}

/** What the client is told: the answer as it is, or in its own dialect. */
function convert(
  { answer, errand }: Passage,
  body: Uint8Array,
): { status: number; body: Uint8Array | string } {
  const { status } = answer.inbound;
  const { bridge } = errand;
  if (bridge === null) return { status, body };
  const { channel } = answer.candidate;
  const converted = status < 400 ? bridge.convertReply(body) : bridge.convertError(status, body);
  // What was escaped, or apart, in the upstream's answer may be plain, or joined, in the converted one.
  if (converted.status >= 400) return { ...converted, body: redactText(converted.body, channel) };
  return { ...converted, body: redactBody(Buffer.from(converted.body), channel) };
}

async function relayStream(passage: Passage, begun: readonly Uint8Array[]): Promise<void> {
  const { answer, errand, bill, gateway, streamed } = passage;
  const { exchange } = errand.call;
  // A stream's length is not announced: what says that it broke would not fit in.
  const length = streamed ? null : answer.inbound.length;
  exchange.begin(answer.inbound.status, answerFields(passage), length ?? undefined);
  if (begun.length === 0 && !answer.inbound.buffered) exchange.flush();
  const { fault, last } = await pump(passage, begun);
  const ending = judge(passage, fault);
  // Nobody need wait for the books.
  try {
    if (exchange.gone) return;
    if (ending.outcome === "complete") exchange.end();
    else if (!streamed) exchange.reset();
    else breakStream(passage, ending.reading?.end === "error" ? null : explainBreak(passage, fault), last);
  } finally {
    settle(bill, ending, gateway);
  }
}

/** Moves the body. Returns why it stopped early, if it did, and its last two chunks. */
async function pump(
  passage: Passage,
  begun: readonly Uint8Array[],
): Promise<{ fault: UpstreamFault | null; last: readonly Uint8Array[] }> {
  const { answer, errand, bill } = passage;
  const { inbound, candidate } = answer;
  const { exchange } = errand.call;
  const redactor = new StreamRedactor(candidate.channel, inbound.status);
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
      learn(passage, chunk);
    }
    return taken;
  };
  try {
    for (;;) {
      const came = held.shift() ?? (await inbound.read());
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

/** Ends a stream so that no client takes it for a whole answer. `error` is null when the upstream has said it itself. */
function breakStream(passage: Passage, error: GatewayError | null, last: readonly Uint8Array[]): void {
  const { call } = passage.errand;
  const { dialect } = call.target.endpoint;
  if (error !== null) {
    const end = asBuffer(joinChunks(last)).toString("latin1");
    const event = dialect.errorEvent(error, call.id, describePlace(passage, end));
    call.exchange.write(Buffer.from(endsEvent(end) ? event : dialect.eventCloser + event));
  }
  if (dialect.resetAfterErrorEvent) call.exchange.reset();
  else call.exchange.end();
}

/** `end`: of what was passed on, as latin-1. */
function describePlace({ answer, meter }: Passage, end: string): Break {
  const { model = null, stored = null } = meter?.read() ?? {};
  return {
    form: saysJson(answer.inbound) ? "json-array" : "sse",
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
