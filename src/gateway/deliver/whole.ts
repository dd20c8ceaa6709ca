// Reads a response whole. A cut one becomes an error. A bridge converts it.

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
import { answerFields, convertEnding, countUsage, explainBreak, judgeDelivery } from "./delivery.ts";
import { passStream } from "./passed-stream.ts";

const MAX_WHOLE_BYTES = 4 * 1024 * 1024;
const MAX_CONVERTED_BYTES = 32 * 1024 * 1024;

export async function passWhole(r: Request, body: Body, gateway: Gateway): Promise<Ending> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= MAX_WHOLE_BYTES) return await passStream(r, resumeBody(chunks, body), gateway);
    }
  } catch (fault) {
    return refuseCut(r, await meterCut(r, fault, chunks), gateway);
  }
  r.noteFirstByte();
  const isLong = isLongWork(size);
  if (isLong) await nextTurn();
  const whole = await r.secrets.maskInTurns(joinChunks(chunks));
  r.meter?.see(whole);
  if (isLong) await nextTurn();
  const judged = judgeDelivery(r, null, gateway);
  if (judged.outcome === "upstream_cut") return refuseCut(r, null, gateway);
  r.memory?.shrink(size);
  r.exchange.answer(judged.status, answerFields(r), whole);
  return judged;
}

export async function convertWhole(
  r: Request,
  body: Body,
  conversion: Conversion,
  gateway: Gateway,
): Promise<Ending> {
  const whole = await readWhole(r, body, gateway);
  if (whole instanceof UpstreamFault) return refuseCut(r, whole, gateway);
  const isLong = isLongWork(whole.length);
  if (isLong) await nextTurn();
  const clean = await r.secrets.maskInTurns(whole);
  r.noteFirstByte();
  r.meter?.see(clean);
  const judged = judgeDelivery(r, null, gateway);
  if (judged.outcome === "upstream_cut") return refuseCut(r, null, gateway);
  if (isLong) await nextTurn();
  const { status, body: converted } =
    judged.status < 400
      ? conversion.convertReply(clean, () => countUsage(r))
      : conversion.convertError(judged.status, clean);
  if (isLong) await nextTurn();
  // A secret in pieces may be joined by the conversion.
  const written = await r.secrets.maskInTurns(Buffer.from(converted));
  r.memory?.shrink(written.length);
  r.exchange.answer(status, answerFields(r), written);
  return convertEnding(judged, status);
}

/** Returns the fault that cuts the body. */
export async function readWhole(
  r: Request,
  body: Body,
  { memory }: Gateway,
): Promise<Uint8Array | UpstreamFault> {
  const { response, candidate } = r.served;
  const most = Math.min(response.length ?? MAX_CONVERTED_BYTES, MAX_CONVERTED_BYTES);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
      chunks.push(chunk);
      const isNowLarge = size <= LARGE_BYTES && size + chunk.length > LARGE_BYTES;
      size += chunk.length;
      if (isNowLarge) r.memory = await memory.reserve(ANSWER_COPIES * most);
      if (size < MAX_CONVERTED_BYTES) continue;
      const text = `The response of the channel "${candidate.channel.name}" is too long to convert.`;
      throw new GatewayError("upstream_failed", text);
    }
  } catch (fault) {
    return await meterCut(r, fault, chunks);
  }
  return joinChunks(chunks);
}

/** What came before the cut counts. */
async function meterCut(r: Request, fault: unknown, chunks: readonly Buffer[]): Promise<UpstreamFault> {
  if (!(fault instanceof UpstreamFault)) throw fault;
  r.meter?.see(await r.secrets.maskInTurns(joinChunks(chunks), true));
  return fault;
}

/** Nothing has been sent yet: the client gets an error instead. */
function refuseCut(r: Request, fault: UpstreamFault | null, gateway: Gateway): Ending {
  const error = explainBreak(r, fault);
  refuse(r.exchange, error, r.clientDialect, r.id);
  return { ...judgeDelivery(r, fault, gateway), status: error.status };
}
