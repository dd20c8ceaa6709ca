// A response that is read whole before it is sent: in one piece with its charge in a header, or converted by a bridge.
// Large ones wait for memory, and long work on them takes turns with everything else.

import type { Conversion } from "../../bridges/convert.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { UpstreamFault } from "../../lib/http/faults.ts";
import type { BodyListener } from "../../lib/http/upstream.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { LARGE_BYTES, type Reservation } from "../../lib/memory/memory-budget.ts";
import { isLongWork, nextTurn } from "../../lib/time/next-turn.ts";
import { failRequest } from "../bill/fail.ts";
import { closeBill, settle } from "../bill/settle.ts";
import type { Gateway } from "../gateway.ts";
import type { Request } from "../request.ts";
import { joinChunks, MAX_CONVERTED_BYTES } from "../upstream/answer.ts";
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
import { PassedStream } from "./passed-stream.ts";

/** A response up to this size is read whole before it is sent, so that its charge can be in a header. */
const MAX_WHOLE_BYTES = 4 * 1024 * 1024;
/** While a body is joined and searched for secrets, and while it is parsed and converted. */
const COPIES = 2;
const COPIES_CONVERTED = 6;
/** The events of a converted response repeat its text. */
const COPIES_SENT = 2;

export class WholeResponse implements BodyListener {
  readonly #r: Request;
  readonly #gateway: Gateway;
  /** Some upstreams send a whole response when a stream was requested: it becomes the client's stream. */
  readonly #converted: ConvertedStream | null;
  readonly #limit: number;
  #chunks: Uint8Array[] = [];
  #size = 0;
  #memory: Reservation | null = null;
  #state: "reading" | "awaiting memory" | "passing on" | "over" = "reading";
  /** How the body has ended: whole, or with a fault. */
  #end: "whole" | UpstreamFault | null = null;
  /** Gets a response that is longer than is read. */
  #rest: PassedStream | null = null;

  constructor(r: Request, gateway: Gateway) {
    this.#r = r;
    this.#gateway = gateway;
    this.#converted =
      r.bridge !== null && r.streamed && r.stream ? new ConvertedStream(r, r.bridge, gateway) : null;
    this.#limit = r.bridge === null ? MAX_WHOLE_BYTES : MAX_CONVERTED_BYTES;
  }

  receive(bytes: Buffer): void {
    if (this.#rest !== null) return this.#rest.receive(bytes);
    if (this.#state === "over") return;
    const before = this.#size;
    this.#chunks.push(bytes);
    this.#size += bytes.length;
    if (before <= LARGE_BYTES && this.#size > LARGE_BYTES) void this.#reserve();
    else this.#goOn();
  }

  end(): void {
    if (this.#rest !== null) return this.#rest.end();
    this.#end = "whole";
    this.#goOn();
  }

  fail(fault: UpstreamFault): void {
    if (this.#rest !== null) return this.#rest.fail(fault);
    this.#end = fault;
    if (this.#state === "passing on" || this.#state === "over") return;
    if (this.#converted === null) return this.#break(settleCut(this.#r, fault, this.#gateway));
    this.#stop();
    this.#converted.fail(fault);
  }

  /** Until there is memory for a large response, its upstream is paused. */
  async #reserve(): Promise<void> {
    const r = this.#r;
    const bytes = Math.min(responseOf(r).response.length ?? MAX_CONVERTED_BYTES, MAX_CONVERTED_BYTES);
    this.#state = "awaiting memory";
    r.upstream.pause();
    const copies = r.bridge === null ? COPIES : COPIES_CONVERTED;
    this.#memory = await this.#gateway.memory.reserve(bytes * copies);
    // It may have failed meanwhile.
    if (this.#end !== null && this.#end !== "whole") return this.#memory.free();
    this.#state = "reading";
    r.upstream.resume();
    this.#goOn();
  }

  #goOn(): void {
    if (this.#state !== "reading") return;
    if (this.#end === "whole") this.#finish();
    else if (this.#size >= this.#limit) this.#overflow();
  }

  /** Nothing more of the body is needed. */
  #stop(): void {
    this.#state = "over";
    this.#chunks = [];
    this.#memory?.free();
  }

  #overflow(): void {
    const r = this.#r;
    if (r.bridge !== null) {
      const { name } = responseOf(r).candidate.channel;
      const text = `The response of the channel "${name}" is too long to convert.`;
      return this.#break(new GatewayError("upstream_failed", text));
    }
    this.#state = "passing on";
    this.#passOn(new PassedStream(r, this.#gateway)).catch((error: unknown) => this.#break(error));
  }

  #break(error: unknown): void {
    this.#stop();
    failRequest(this.#r, error, this.#gateway);
  }

  /** What has been read takes turns with everything else. */
  async #passOn(rest: PassedStream): Promise<void> {
    const { upstream } = this.#r;
    for (let chunk = this.#chunks.shift(); chunk !== undefined; chunk = this.#chunks.shift()) {
      upstream.pause();
      await (rest.pass(chunk) ?? nextTurn());
    }
    this.#freeOnceSent();
    this.#rest = rest;
    if (this.#end === null) upstream.resume();
    else if (this.#end === "whole") rest.end();
    else rest.fail(this.#end);
  }

  #finish(): void {
    this.#state = "over";
    const r = this.#r;
    const body = joinChunks(this.#chunks);
    this.#chunks = [];
    noteFirstByte(r);
    if (this.#converted !== null) {
      this.#converted.takeWhole(r.secrets.mask(body));
      this.#memory?.shrink(COPIES_SENT * body.length);
    } else if (r.bridge === null && !isLongWork(body.length)) {
      const clean = redactWhole(r, body);
      r.meter?.see(clean);
      this.#answer(responseOf(r).response.status, clean);
    } else {
      this.#finishLong(body).catch((error: unknown) => this.#break(error));
      return;
    }
    this.#freeOnceSent();
  }

  async #finishLong(whole: Uint8Array): Promise<void> {
    const r = this.#r;
    const isLong = isLongWork(whole.length);
    if (isLong) await nextTurn();
    const body = redactWhole(r, whole);
    r.meter?.see(body);
    if (isLong) await nextTurn();
    const { status } = responseOf(r).response;
    const converted = r.bridge === null ? { status, body } : await convert(r, body, r.bridge);
    this.#memory?.shrink(converted.body.length);
    this.#answer(converted.status, converted.body);
    this.#freeOnceSent();
  }

  /** The response has been metered. */
  #answer(status: number, body: Uint8Array | string): void {
    const r = this.#r;
    const ending = judgeDelivery(r, null, this.#gateway);
    if (ending.outcome === "upstream_cut") throw settleCut(r, null, this.#gateway);
    closeBill(r, convertEnding(ending, status), this.#gateway);
    const fields = answerFields(r);
    const chargeUsd = r.draft?.charge_usd ?? null;
    if (chargeUsd !== null) fields.add("x-gateway-charge", chargeUsd);
    // Answer first, write the ledger after.
    try {
      r.exchange.answer(status, fields, body);
    } finally {
      this.#gateway.finished.add(r);
    }
  }

  #freeOnceSent(): void {
    const memory = this.#memory;
    if (memory !== null) void (this.#r.exchange.unsent ?? Promise.resolve()).then(memory.free);
  }
}

/** A response whose body is known already. */
export function answerKnown(r: Request, body: Uint8Array, gateway: Gateway): void {
  const whole = new WholeResponse(r, gateway);
  whole.receive(asBuffer(body));
  whole.end();
}

/** Nothing has been sent yet, so the client gets an error instead of the response. */
function settleCut(r: Request, fault: UpstreamFault | null, gateway: Gateway): GatewayError {
  const error = explainBreak(r, fault);
  settle(r, { ...judgeDelivery(r, fault, gateway), status: error.status }, gateway);
  return error;
}

/** An upstream's error may quote pieces of the credential that it refuses. */
function redactWhole(r: Request, body: Uint8Array): Uint8Array {
  return responseOf(r).response.status >= 400 ? r.secrets.removeFrom(body) : r.secrets.mask(body);
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
  // A secret that was escaped or in pieces in the upstream's response may be plain or joined in the converted one.
  if (converted.status >= 400) return { ...converted, body: r.secrets.remove(converted.body) };
  if (isLong) await nextTurn();
  return { ...converted, body: r.secrets.mask(Buffer.from(converted.body)) };
}
