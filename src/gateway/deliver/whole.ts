// Reads a response whole, and converts it. A cut response becomes an error.

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
  const { whole: came } = body;
  const chunks = came === undefined ? await readChunks(r, body, MAX_WHOLE_BYTES) : [came];
  if (chunks instanceof UpstreamFault) return refuseCut(r, chunks, gateway);
  const size = sizeOf(chunks);
  if (size >= MAX_WHOLE_BYTES) return await passStream(r, resumeBody(chunks, body), gateway);
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

export async function readWhole(
  r: Request,
  body: Body,
  { memory }: Gateway,
): Promise<Uint8Array | UpstreamFault> {
  if (body.whole !== undefined) return body.whole;
  const { response, candidate } = r.served;
  const most = Math.min(response.length ?? Infinity, MAX_CONVERTED_BYTES);
  const short = await readChunks(r, body, LARGE_BYTES);
  if (short instanceof UpstreamFault) return short;
  if (sizeOf(short) < LARGE_BYTES) return joinChunks(short);
  r.memory = await memory.reserve(ANSWER_COPIES * most);
  const chunks = await readChunks(r, resumeBody(short, body), MAX_CONVERTED_BYTES);
  if (chunks instanceof UpstreamFault) return chunks;
  if (sizeOf(chunks) < MAX_CONVERTED_BYTES) return joinChunks(chunks);
  const text = `The response of the channel "${candidate.channel.name}" is too long to convert.`;
  throw new GatewayError("upstream_failed", text);
}

async function readChunks(r: Request, body: Body, maxBytes: number): Promise<Buffer[] | UpstreamFault> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= maxBytes) break;
    }
    return chunks;
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    r.meter?.see(await r.secrets.maskInTurns(joinChunks(chunks), true));
    return fault;
  }
}

function sizeOf(chunks: readonly Buffer[]): number {
  let size = 0;
  for (const { length } of chunks) size += length;
  return size;
}

/** Nothing has been sent yet: the client gets an error instead. */
function refuseCut(r: Request, fault: UpstreamFault | null, gateway: Gateway): Ending {
  const error = explainBreak(r, fault);
  refuse(r.exchange, error, r.clientDialect, r.id);
  return { ...judgeDelivery(r, fault, gateway), status: error.status };
}
