// Relays a stream through a bridge: each upstream event is converted to the client's dialect as it comes. The status is
// held until the bridge knows that there is a response.

import type { ChatStream, ChatOutput } from "../../bridges/responses-to-chat/response/stream.ts";
import { blameUpstream } from "../../bridges/responses-to-chat/errors.ts";
import { UpstreamFault } from "../../lib/http1/types.ts";
import { MAX_CONVERTED_BYTES, joinChunks, readUpTo, isJsonResponse } from "../upstream/answer.ts";
import type { Bridge } from "../upstream/crossing.ts";
import {
  answerFields,
  convertEnding,
  explainBreak,
  judgeDelivery,
  meterChunk,
  noteFirstByte,
  type Delivery,
} from "./delivery.ts";
import { redactBody, redactError, redactText, StreamRedactor } from "../upstream/redact.ts";
import { settle } from "../bill/settle.ts";
import { LargeResponse } from "./large-response.ts";

/** How long an upstream may take to end a response after its last event. Its connection can be reused only then. */
const MAX_LINGER_MS = 1000;
/** The events of a converted response repeat its text. */
const COPIES_SENT = 2;

export async function relayConverted(delivery: Delivery, bridge: Bridge): Promise<void> {
  const stream = bridge.openStream();
  const fault = isJsonResponse(delivery.from.response)
    ? await convertWhole(delivery, bridge, stream)
    : await pump(delivery, stream);
  const why = fault === null ? undefined : explainBreak(delivery, fault);
  const last = stream.end(why && blameUpstream(why.status, "upstream_closed", why.message));
  write(delivery, last);
  const ending = judgeDelivery(delivery, fault);
  const status = last.refusal !== null && last.phase === "refused" ? last.refusal.status : ending.status;
  settle(delivery.bill, convertEnding(ending, status, last.phase === "done"), delivery.gateway);
}

/** Some upstreams send a whole response when a stream was requested. */
async function convertWhole(
  delivery: Delivery,
  bridge: Bridge,
  stream: ChatStream,
): Promise<UpstreamFault | null> {
  const { response, candidate } = delivery.from;
  const memory = new LargeResponse(delivery);
  try {
    const { chunks, hasMore } = await readUpTo(response, MAX_CONVERTED_BYTES, memory.admit);
    if (hasMore) response.cancel();
    const body = redactBody(joinChunks(chunks), candidate.channel);
    write(delivery, stream.push(bridge.spreadReply(body)));
    meterChunk(delivery, body);
    memory.shrink(COPIES_SENT * body.length);
    await memory.sent();
    return null;
  } catch (fault) {
    if (fault instanceof UpstreamFault) return fault;
    throw fault;
  } finally {
    memory.free();
  }
}

async function pump(delivery: Delivery, stream: ChatStream): Promise<UpstreamFault | null> {
  const { from: answer, job } = delivery;
  const { exchange } = job.call;
  const redactor = new StreamRedactor(answer.candidate.channel, answer.response.status);
  let timer: Timer | null = null;
  let hasEnded = false;
  const pass = (piece: Uint8Array): boolean => {
    if (piece.length === 0) return true;
    let taken = true;
    if (!exchange.gone) {
      const emitted = stream.push(piece);
      taken = write(delivery, emitted);
      hasEnded = isFinal(emitted);
      if (hasEnded) timer ??= setTimeout(() => answer.response.cancel(), MAX_LINGER_MS);
    }
    meterChunk(delivery, piece);
    return taken;
  };
  try {
    for (;;) {
      const chunk = await answer.response.read();
      const taken = pass(chunk === null ? redactor.end() : redactor.pass(chunk));
      if (chunk === null) return null;
      if (!taken) await exchange.drained();
    }
  } catch (fault) {
    // After the end of the response, it does not matter how the connection ends.
    if (fault instanceof UpstreamFault) return hasEnded ? null : fault;
    throw fault;
  } finally {
    if (timer !== null) clearTimeout(timer);
  }
}

function isFinal({ phase }: ChatOutput): boolean {
  return phase === "done" || phase === "broken" || phase === "refused";
}

/** Returns false if the client reads slowly. */
function write(delivery: Delivery, { text, phase, refusal }: ChatOutput): boolean {
  const { exchange } = delivery.job.call;
  if (exchange.gone || phase === "held") return true;
  noteFirstByte(delivery.bill);
  if (phase === "refused") {
    if (refusal !== null && !exchange.begun) answerRefusal(delivery, refusal);
    return true;
  }
  if (!exchange.begun) exchange.begin(200, answerFields(delivery));
  // Hidden thinking produces no text for a while. The client gets the head anyway.
  if (text === "") exchange.flush();
  // A broken stream ends with the upstream's error text, which may quote a secret.
  const { channel } = delivery.from.candidate;
  const bytes = Buffer.from(text);
  const taken = exchange.write(phase === "broken" ? redactError(bytes, channel) : bytes);
  if (phase === "done" || phase === "broken") exchange.end();
  return taken;
}

function answerRefusal(delivery: Delivery, refusal: { status: number; body: string }): void {
  const fields = answerFields(delivery).filter(([name]) => name !== "content-type");
  fields.push(["content-type", "application/json"]);
  const body = redactText(refusal.body, delivery.from.candidate.channel);
  delivery.job.call.exchange.answer(refusal.status, fields, body);
}
