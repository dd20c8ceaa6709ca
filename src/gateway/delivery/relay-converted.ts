// A stream in another dialect than the client's: each upstream event is told in the client's
// words as it comes. The status is held until the bridge knows that there is an answer.

import type { ChatStream, Emitted } from "../../bridges/responses-to-chat/response/stream.ts";
import { blameUpstream } from "../../bridges/responses-to-chat/errors.ts";
import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";
import { CONVERTED_LIMIT, joinChunks, readUpTo, saysJson } from "../upstream/answer.ts";
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

/** So long an upstream may take to end an answer whose last event has come: only then can its connection be used again. */
const LINGER_MS = 1000;

export async function relayConverted(delivery: Delivery, bridge: Bridge): Promise<void> {
  const stream = bridge.openStream();
  const fault = saysJson(delivery.from.response)
    ? await tellWhole(delivery, bridge, stream)
    : await pump(delivery, stream);
  const why = fault === null ? undefined : explainBreak(delivery, fault);
  const last = stream.end(why && blameUpstream(why.status, "upstream_closed", why.message));
  tell(delivery, last);
  const ending = judgeDelivery(delivery, fault);
  const status = last.refusal !== null && last.phase === "refused" ? last.refusal.status : ending.status;
  settle(delivery.bill, convertEnding(ending, status, last.phase === "done"), delivery.gateway);
}

/** Some upstreams answer whole when a stream is asked for. */
async function tellWhole(
  delivery: Delivery,
  bridge: Bridge,
  stream: ChatStream,
): Promise<UpstreamFault | null> {
  const { response, candidate } = delivery.from;
  try {
    const { chunks, rest } = await readUpTo(response, CONVERTED_LIMIT);
    if (rest) response.cancel();
    const body = redactBody(joinChunks(chunks), candidate.channel);
    tell(delivery, stream.push(bridge.spreadReply(body)));
    meterChunk(delivery, body);
    return null;
  } catch (fault) {
    if (fault instanceof UpstreamFault) return fault;
    throw fault;
  }
}

async function pump(delivery: Delivery, stream: ChatStream): Promise<UpstreamFault | null> {
  const { from: answer, job } = delivery;
  const { exchange } = job.call;
  const redactor = new StreamRedactor(answer.candidate.channel, answer.response.status);
  let timer: Timer | null = null;
  let over = false;
  try {
    for (;;) {
      const chunk = await readNext(answer.response, redactor);
      if (chunk === null) return null;
      let taken = true;
      if (!exchange.gone) {
        const told = stream.push(chunk);
        taken = tell(delivery, told);
        over = isOver(told);
        if (over) timer ??= setTimeout(() => answer.response.cancel(), LINGER_MS);
      }
      meterChunk(delivery, chunk);
      if (!taken) await exchange.drained();
    }
  } catch (fault) {
    // How a connection ends after the answer's end says nothing of it.
    if (fault instanceof UpstreamFault) return over ? null : fault;
    throw fault;
  } finally {
    if (timer !== null) clearTimeout(timer);
  }
}

/** Null at the end, when nothing of the body waits any more. */
async function readNext(response: UpstreamResponse, redactor: StreamRedactor): Promise<Uint8Array | null> {
  const came = await response.read();
  if (came !== null) return redactor.pass(came);
  const held = redactor.end();
  return held.length > 0 ? held : null;
}

function isOver({ phase }: Emitted): boolean {
  return phase === "done" || phase === "broken" || phase === "refused";
}

/** False: the client reads slowly. */
function tell(delivery: Delivery, { text, phase, refusal }: Emitted): boolean {
  const { exchange } = delivery.job.call;
  if (exchange.gone || phase === "held") return true;
  noteFirstByte(delivery.bill);
  if (phase === "refused") {
    if (refusal !== null && !exchange.begun) answerRefusal(delivery, refusal);
    return true;
  }
  if (!exchange.begun) exchange.begin(200, answerFields(delivery));
  // Hidden thinking says nothing to tell for a while: the head leaves all the same.
  if (text === "") exchange.flush();
  // A broken stream ends with the upstream's own error text, in which a secret may have been escaped.
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
