// Reads a response whole. A cut one becomes an error, and a bridge converts it.

import type { Conversion } from "../../bridges/convert.ts";
import { GatewayError } from "../../lib/errors.ts";
import { type Body, UpstreamFault } from "../../lib/http/upstream.ts";
import { joinChunks } from "../../lib/memory/bytes.ts";
import { ANSWER_COPIES, LARGE_BYTES } from "../../lib/memory/memory-budget.ts";
import { isLongWork, nextTurn } from "../../lib/time/next-turn.ts";
import type { Gateway } from "../gateway.ts";
import { refuse } from "../intake/refuse.ts";
import type { Ending, Request } from "../request.ts";
import { resumeBody } from "../send/answer.ts";
import { ConvertedStream } from "./converted-stream.ts";
import { answerFields, convertEnding, countUsage, explainBreak, judgeDelivery } from "./delivery.ts";
import { passStream } from "./passed-stream.ts";

const MAX_WHOLE_BYTES = 4 * 1024 * 1024;
const MAX_CONVERTED_BYTES = 32 * 1024 * 1024;

export async function deliverWhole(r: Request, body: Body, gateway: Gateway): Promise<Ending> {
  // Some upstreams send a whole response instead of a stream.
  const converted = r.bridge !== null && r.streamed && r.stream ? new ConvertedStream(r, gateway) : null;
  try {
    const { chunks, isLonger, fault } = await readWhole(r, body, gateway);
    if (fault !== null) return converted === null ? refuseCut(r, fault, gateway) : converted.close(fault);
    if (isLonger) {
      const text = `The response of the channel "${r.served.candidate.channel.name}" is too long to convert.`;
      if (r.bridge !== null) throw new GatewayError("upstream_failed", text);
      return await passStream(r, resumeBody(chunks, body), gateway);
    }
    const whole = joinChunks(chunks);
    r.noteFirstByte();
    if (converted === null) return await answerWhole(r, whole, gateway);
    return converted.takeWhole(r.secrets.mask(whole));
  } finally {
    converted?.endBeat();
  }
}

/** `isLonger`: the body goes on, too long to be read whole. */
async function readWhole(r: Request, body: Body, { memory }: Gateway) {
  const limit = r.bridge === null ? MAX_WHOLE_BYTES : MAX_CONVERTED_BYTES;
  const most = Math.min(r.served.response.length ?? limit, limit);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    while (size < limit) {
      const chunk = await body.read();
      if (chunk === null) return { chunks, isLonger: false, fault: null };
      chunks.push(chunk);
      size += chunk.length;
      const isLarge = r.bridge !== null && size > LARGE_BYTES;
      if (isLarge && size - chunk.length <= LARGE_BYTES)
        r.memory = await memory.reserve(ANSWER_COPIES * most);
    }
    return { chunks, isLonger: true, fault: null };
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    return { chunks, isLonger: false, fault };
  }
}

async function answerWhole(r: Request, whole: Uint8Array, gateway: Gateway): Promise<Ending> {
  const isLong = isLongWork(whole.length);
  if (isLong) await nextTurn();
  const { status } = r.served.response;
  const body = r.secrets.mask(whole);
  r.meter?.see(body);
  if (isLong) await nextTurn();
  const converted = r.bridge === null ? { status, body } : await convert(r, body, r.bridge);
  const judged = judgeDelivery(r, null, gateway);
  if (judged.outcome === "upstream_cut") return refuseCut(r, null, gateway);
  r.memory?.shrink(converted.body.length);
  r.exchange.answer(converted.status, answerFields(r), converted.body);
  return convertEnding(judged, converted.status);
}

/** Nothing has been sent yet: the client gets an error instead. */
function refuseCut(r: Request, fault: UpstreamFault | null, gateway: Gateway): Ending {
  const error = explainBreak(r, fault);
  refuse(r.exchange, error, r.target.endpoint.dialect, r.id);
  return { ...judgeDelivery(r, fault, gateway), status: error.status };
}

async function convert(r: Request, body: Uint8Array, bridge: Conversion) {
  const { status } = r.served.response;
  const isLong = isLongWork(body.length);
  if (isLong) await nextTurn();
  const converted =
    status < 400 ? bridge.convertReply(body, () => countUsage(r)) : bridge.convertError(status, body);
  if (isLong) await nextTurn();
  // A secret in pieces may be joined by the conversion.
  return { ...converted, body: r.secrets.mask(Buffer.from(converted.body)) };
}
