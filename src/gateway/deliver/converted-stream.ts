// Converts a stream. The client gets no status before an answer has begun.

import type { AnswerOutput, AnswerStream } from "../../bridges/answer-stream.ts";
import { type Body, UpstreamFault } from "../../lib/http/upstream.ts";
import type { Slices } from "../../lib/json/slices.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { LARGE_BYTES } from "../../lib/memory/memory-budget.ts";
import { MAX_EVENT_BYTES } from "../../lib/sse.ts";
import { everySecond } from "../../lib/time/heartbeat.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";
import type { Gateway } from "../gateway.ts";
import { type Secrets, StreamRedactor } from "../intake/secrets.ts";
import type { Ending, Request } from "../request.ts";
import { isJsonResponse } from "../send/answer.ts";
import {
  answerFields,
  convertEnding,
  countUsage,
  explainBreak,
  judgeDelivery,
  meterChunk,
  passBody,
} from "./delivery.ts";
import { readWhole } from "./whole.ts";

/** How long to wait for a response's end, to reuse its connection. */
const MAX_LINGER_MS = 1000;
/** Gemini CLI gives up after a minute if no answer has begun. */
const MAX_QUIET_SECONDS = 15;
/** A large event needs this many times its size: for its
 *  bytes, text and values, and as much again for garbage. */
const EVENT_COPIES = 10;
/** The garbage collector lets the heap grow to twice its use. */
const KEPT_COPIES = 2;

export async function convertStream(r: Request, body: Body, gateway: Gateway): Promise<Ending> {
  const stream = new ConvertedStream(r, gateway);
  try {
    if (!isJsonResponse(r.served.response)) {
      const fault = await passBody(r, body, (piece) => stream.send(piece));
      await stream.paced;
      return stream.close(fault);
    }
    const whole = await readWhole(r, body, gateway);
    return whole instanceof UpstreamFault
      ? stream.close(whole)
      : stream.takeWhole(await r.secrets.maskInTurns(whole));
  } finally {
    stream.endBeat();
  }
}

/** Characters that are masked in one turn of the loop. */
const TURN_LENGTH = 16_384;
const SLICES = new RegExp(`.{1,${TURN_LENGTH}}`, "gsu");

/** The conversion may have joined the pieces of a secret. */
function maskTexts(texts: string | Slices, secrets: Secrets): Uint8Array | Slices {
  if (typeof texts !== "string") return maskSlices(texts, secrets);
  const isLong = texts.length > TURN_LENGTH && secrets.mayHold(texts);
  return isLong ? maskSlices([texts], secrets) : secrets.mask(Buffer.from(texts));
}

/** The result is no generator: a recording reads it again. */
const maskSlices = (texts: Iterable<string>, secrets: Secrets): Slices => ({
  *[Symbol.iterator]() {
    const redactor = new StreamRedactor(secrets);
    const slices = Iterator.from(texts).flatMap((text) => text.matchAll(SLICES));
    for (const [slice] of slices) yield asBuffer(redactor.pass(Buffer.from(slice))).toString();
    yield asBuffer(redactor.end(false)).toString();
  },
});

class ConvertedStream {
  readonly #r: Request;
  readonly #gateway: Gateway;
  readonly #stream: AnswerStream;
  #linger: Timer | null = null;
  #isLarge = false;
  #hasEnded = false;
  /** Set while a long text is on its way to the client. */
  paced: Promise<void> | null = null;
  /** Seconds since the client got something. */
  #quiet = 0;
  readonly endBeat = everySecond(() => this.#beat());

  constructor(r: Request, gateway: Gateway) {
    const { conversion, meter } = r;
    if (conversion === null || meter === null) throw new Error("a response that is not converted");
    this.#r = r;
    this.#gateway = gateway;
    this.#stream = conversion.openStream(meter, () => countUsage(r));
  }

  /** `body`: without secrets. */
  takeWhole(body: Uint8Array): Ending {
    meterChunk(this.#r, body);
    void this.#write(this.#stream.pushWhole(body));
    return this.close(null);
  }

  send(piece: Uint8Array): Promise<void> | null {
    const r = this.#r;
    // `push` counts the usage, too. The client's stream ends with that count.
    if (!r.exchange.gone) return this.#passEvents(this.#stream.push(piece));
    meterChunk(r, piece);
    return null;
  }

  #passEvents(emitted: AnswerOutput): Promise<void> | null {
    const slow = this.#pass(emitted);
    const isLarge = this.#stream.heldBytes > 2 * LARGE_BYTES;
    if (isLarge === this.#isLarge) return slow;
    this.#isLarge = isLarge;
    if (isLarge) return this.#reserve(slow);
    this.#r.memory?.free();
    return slow;
  }

  async #reserve(slow: Promise<void> | null): Promise<void> {
    await slow;
    this.#r.memory?.free();
    this.#r.memory = await this.#gateway.memory.reserve(EVENT_COPIES * MAX_EVENT_BYTES);
  }

  #pass(emitted: AnswerOutput): Promise<void> | null {
    const slow = this.#write(emitted);
    this.#hasEnded = emitted.phase !== "held" && emitted.phase !== "open";
    if (this.#hasEnded) this.#linger ??= setTimeout(() => this.#r.upstream.cancel(), MAX_LINGER_MS);
    return slow;
  }

  close(fault: UpstreamFault | null): Ending {
    const r = this.#r;
    const broken = this.#hasEnded ? null : fault;
    if (this.#linger !== null) clearTimeout(this.#linger);
    const last = this.#stream.end(broken === null ? undefined : explainBreak(r, broken));
    void this.#write(last);
    const ending = judgeDelivery(r, broken, this.#gateway);
    const refusal = last.phase === "refused" ? last.refusal : null;
    const { status } = refusal ?? ending;
    return convertEnding(ending, status, last.phase === "done");
  }

  #beat(): void {
    this.#quiet += 1;
    if (this.#quiet < MAX_QUIET_SECONDS || this.#hasEnded || this.paced !== null) return;
    void this.#pass(this.#stream.idle());
  }

  #write({ texts, phase, refusal }: AnswerOutput): Promise<void> | null {
    const { exchange, secrets } = this.#r;
    if (exchange.gone || phase === "held") return null;
    // Some upstream events, such as pings, give the client no text.
    if (texts !== "") this.#quiet = 0;
    this.#r.noteFirstByte();
    if (phase === "refused") {
      if (refusal !== null && !exchange.begun) this.#refuse(refusal);
      return null;
    }
    if (!exchange.begun) exchange.begin(200, answerFields(this.#r));
    const rest = maskTexts(texts, secrets);
    if (phase !== "open") {
      this.#r.memory?.shrink(KEPT_COPIES * this.#stream.heldBytes);
      exchange.end(rest);
      return null;
    }
    return rest instanceof Uint8Array ? exchange.write(rest) : (this.paced = this.#pace(rest));
  }

  async #pace(texts: Slices): Promise<void> {
    for (const text of texts) await (this.#r.exchange.write(Buffer.from(text)) ?? nextTurn());
    this.paced = null;
  }

  #refuse({ status, body }: { status: number; body: string }): void {
    const fields = answerFields(this.#r).without(new Set(["content-type"]));
    this.#r.exchange.answer(status, fields.add("content-type", "application/json"), body);
  }
}
