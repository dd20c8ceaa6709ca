// A stream in another dialect than the client's: each upstream event is told in the client's
// words as it comes. The status is held until the bridge knows that there is an answer.

import type { ChatStream, Emitted } from "../bridges/responses-to-chat/stream.ts";
import { blameUpstream } from "../bridges/responses-to-chat/errors.ts";
import { type Inbound, UpstreamFault } from "../lib/http1/types.ts";
import { CONVERTED_LIMIT, joinChunks, readUpTo, saysJson } from "./answer.ts";
import type { Bridge } from "./bridge.ts";
import { answerFields, endAs, explainBreak, judge, learn, noteFirstByte, type Passage } from "./passage.ts";
import { redactBody, redactError, redactText, StreamRedactor } from "./redact.ts";
import { settle } from "./settle.ts";

/** So long an upstream may take to end an answer whose last event has come: only then can its connection be used again. */
const LINGER_MS = 1000;

export async function relayBridged(passage: Passage, bridge: Bridge): Promise<void> {
  const stream = bridge.openStream();
  const fault = saysJson(passage.answer.inbound)
    ? await tellWhole(passage, bridge, stream)
    : await pump(passage, stream);
  const why = fault === null ? undefined : explainBreak(passage, fault);
  const last = stream.end(why && blameUpstream(why.status, "upstream_closed", why.message));
  tell(passage, last);
  const ending = judge(passage, fault);
  const status = last.refusal !== null && last.phase === "refused" ? last.refusal.status : ending.status;
  settle(passage.bill, endAs(ending, status, last.phase === "done"), passage.gateway);
}

/** Some upstreams answer whole when a stream is asked for. */
async function tellWhole(
  passage: Passage,
  bridge: Bridge,
  stream: ChatStream,
): Promise<UpstreamFault | null> {
  const { inbound, candidate } = passage.answer;
  try {
    const { chunks, rest } = await readUpTo(inbound, CONVERTED_LIMIT);
    if (rest) inbound.cancel();
    const body = redactBody(joinChunks(chunks), candidate.channel);
    tell(passage, stream.push(bridge.spreadReply(body)));
    learn(passage, body);
    return null;
  } catch (fault) {
    if (fault instanceof UpstreamFault) return fault;
    throw fault;
  }
}

async function pump(passage: Passage, stream: ChatStream): Promise<UpstreamFault | null> {
  const { answer, errand } = passage;
  const { exchange } = errand.call;
  const redactor = new StreamRedactor(answer.candidate.channel, answer.inbound.status);
  let timer: Timer | null = null;
  let over = false;
  try {
    for (;;) {
      const chunk = await readNext(answer.inbound, redactor);
      if (chunk === null) return null;
      let taken = true;
      let plain = false;
      if (!exchange.gone) {
        const told = stream.push(chunk);
        taken = tell(passage, told);
        over = isOver(told);
        plain = told.plain;
        if (over) timer ??= setTimeout(() => answer.inbound.cancel(), LINGER_MS);
      }
      learn(passage, chunk, plain);
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
async function readNext(inbound: Inbound, redactor: StreamRedactor): Promise<Uint8Array | null> {
  const came = await inbound.read();
  if (came !== null) return redactor.pass(came);
  const held = redactor.end();
  return held.length > 0 ? held : null;
}

function isOver({ phase }: Emitted): boolean {
  return phase === "done" || phase === "broken" || phase === "refused";
}

/** False: the client reads slowly. */
function tell(passage: Passage, { bytes, phase, refusal }: Emitted): boolean {
  const { exchange } = passage.errand.call;
  if (exchange.gone || phase === "held") return true;
  noteFirstByte(passage.bill);
  if (phase === "refused") {
    if (refusal !== null && !exchange.begun) answerRefusal(passage, refusal);
    return true;
  }
  if (!exchange.begun) exchange.begin(200, answerFields(passage));
  // Hidden thinking says nothing to tell for a while: the head leaves all the same.
  if (bytes.length === 0) exchange.flush();
  // Then an error frame is in it, whose text was escaped in the upstream's.
  const { channel } = passage.answer.candidate;
  const taken = exchange.write(phase === "broken" ? redactError(bytes, channel) : bytes);
  if (phase === "done" || phase === "broken") exchange.end();
  return taken;
}

function answerRefusal(passage: Passage, refusal: { status: number; body: string }): void {
  const fields = answerFields(passage).filter(([name]) => name !== "content-type");
  fields.push(["content-type", "application/json"]);
  const body = redactText(refusal.body, passage.answer.candidate.channel);
  passage.errand.call.exchange.answer(refusal.status, fields, body);
}
