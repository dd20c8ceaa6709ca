// A response that is read whole before it is sent, so that one that is cut becomes an error, or because a bridge converts it.
// Large ones wait for memory, and long work on them takes turns with everything else.

import type { Conversion } from "../../bridges/convert.ts";
import { GatewayError } from "../../lib/errors.ts";
import { type Body, UpstreamFault } from "../../lib/http/upstream.ts";
import { joinChunks } from "../../lib/memory/bytes.ts";
import { LARGE_BYTES, type Reservation } from "../../lib/memory/memory-budget.ts";
import { isLongWork, nextTurn } from "../../lib/time/next-turn.ts";
import type { Gateway } from "../gateway.ts";
import { refuse } from "../intake/refuse.ts";
import type { Ending, Request } from "../request.ts";
import { ConvertedStream } from "./converted-stream.ts";
import {
  answerFields,
  convertEnding,
  countUsage,
  explainBreak,
  judgeDelivery,
  noteFirstByte,
  responseOf,
} from "./delivery.ts";
import { passStream } from "./passed-stream.ts";

/** A response up to this size is read whole before it is sent. */
const MAX_WHOLE_BYTES = 4 * 1024 * 1024;
/** A response that a bridge converts is read whole. A longer one is an error. */
const MAX_CONVERTED_BYTES = 64 * 1024 * 1024;
/** While a body is joined and searched for secrets, and while it is parsed and converted. */
const COPIES = 2;
const COPIES_CONVERTED = 6;
/** The events of a converted response repeat its text. */
const COPIES_SENT = 2;

export async function deliverWhole(r: Request, body: Body, gateway: Gateway): Promise<Ending> {
  // Some upstreams send a whole response when a stream was requested: it becomes the client's stream.
  const converted = r.bridge !== null && r.streamed && r.stream ? new ConvertedStream(r, gateway) : null;
  let memory: Reservation | null = null;
  try {
    const { chunks, isLonger, fault, ...read } = await readWhole(r, body, gateway);
    memory = read.memory;
    if (fault !== null) return converted === null ? refuseCut(r, fault, gateway) : converted.close(fault);
    if (isLonger) {
      if (r.bridge !== null) throw explainLength(r);
      return await passStream(r, passOn(chunks, body, memory), gateway);
    }
    if (converted === null) return await answerWhole(r, joinChunks(chunks), memory, gateway);
    noteFirstByte(r);
    const whole = r.secrets.mask(joinChunks(chunks));
    const ending = converted.takeWhole(whole);
    memory?.shrink(COPIES_SENT * whole.length);
    return ending;
  } finally {
    converted?.endBeat();
    memory?.free();
  }
}

interface WholeBody {
  readonly chunks: Buffer[];
  /** What a large one holds. */
  readonly memory: Reservation | null;
  /** It goes on, and is too long to be read whole. */
  readonly isLonger: boolean;
  readonly fault: UpstreamFault | null;
}

async function readWhole(r: Request, body: Body, gateway: Gateway): Promise<WholeBody> {
  const limit = r.bridge === null ? MAX_WHOLE_BYTES : MAX_CONVERTED_BYTES;
  const chunks: Buffer[] = [];
  let size = 0;
  let memory: Reservation | null = null;
  try {
    while (size < limit) {
      const chunk = await body.read();
      if (chunk === null) return { chunks, memory, isLonger: false, fault: null };
      chunks.push(chunk);
      size += chunk.length;
      // Nobody reads while it waits for memory, so the upstream is not read.
      if (memory === null && size > LARGE_BYTES) memory = await reserve(r, gateway);
    }
    return { chunks, memory, isLonger: true, fault: null };
  } catch (fault) {
    if (!(fault instanceof UpstreamFault)) throw fault;
    return { chunks, memory, isLonger: false, fault };
  }
}

function reserve(r: Request, { memory }: Gateway): Promise<Reservation> {
  const bytes = Math.min(responseOf(r).response.length ?? MAX_CONVERTED_BYTES, MAX_CONVERTED_BYTES);
  return memory.reserve(bytes * (r.bridge === null ? COPIES : COPIES_CONVERTED));
}

function explainLength(r: Request): GatewayError {
  const { name } = responseOf(r).candidate.channel;
  return new GatewayError("upstream_failed", `The response of the channel "${name}" is too long to convert.`);
}

/** What has been read takes turns with everything else. */
function passOn(chunks: Buffer[], rest: Body, memory: Reservation | null): Body {
  const read = async (): Promise<Buffer | null> => {
    if (chunks.length === 0) memory?.free();
    await nextTurn();
    return chunks.shift() ?? (await rest.read());
  };
  return { read, cancel: () => rest.cancel() };
}

async function answerWhole(
  r: Request,
  whole: Uint8Array,
  memory: Reservation | null,
  gateway: Gateway,
): Promise<Ending> {
  noteFirstByte(r);
  const isLong = isLongWork(whole.length);
  if (isLong) await nextTurn();
  const { status } = responseOf(r).response;
  const body = r.secrets.mask(whole);
  r.meter?.see(body);
  if (isLong) await nextTurn();
  const converted = r.bridge === null ? { status, body } : await convert(r, body, r.bridge);
  memory?.shrink(converted.body.length);
  const judged = judgeDelivery(r, null, gateway);
  if (judged.outcome === "upstream_cut") return refuseCut(r, null, gateway);
  r.exchange.answer(converted.status, answerFields(r), converted.body);
  return convertEnding(judged, converted.status);
}

/** Nothing has been sent yet, so the client gets an error instead of the response. */
function refuseCut(r: Request, fault: UpstreamFault | null, gateway: Gateway): Ending {
  const error = explainBreak(r, fault);
  refuse(r.exchange, error, r.target.endpoint.dialect, r.id);
  return { ...judgeDelivery(r, fault, gateway), status: error.status };
}

interface Converted {
  readonly status: number;
  readonly body: Uint8Array | string;
}

/** The response in the client's dialect. */
async function convert(r: Request, body: Uint8Array, bridge: Conversion): Promise<Converted> {
  const { status } = responseOf(r).response;
  const isLong = isLongWork(body.length);
  if (isLong) await nextTurn();
  const converted =
    status < 400 ? bridge.convertReply(body, () => countUsage(r)) : bridge.convertError(status, body);
  if (isLong) await nextTurn();
  // A secret that was in pieces in the upstream's response may be joined in the converted one.
  return { ...converted, body: r.secrets.mask(Buffer.from(converted.body)) };
}
