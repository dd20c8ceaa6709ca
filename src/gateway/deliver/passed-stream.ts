// Passes a body to the client as it comes, without the credential, and shows it to the meter. A slow client slows the upstream
// down. A stream that breaks ends so that no client takes it for a whole one.

import type { StreamBreak } from "../../dialects/dialect.ts";
import type { GatewayError } from "../../lib/errors.ts";
import type { BodyListener, UpstreamFault } from "../../lib/http1/types.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import type { Reservation } from "../../lib/memory/memory-budget.ts";
import { findMissingEnd } from "../../lib/sse/sse-parser.ts";
import { nextTurn } from "../../lib/time/next-turn.ts";
import { settle } from "../bill/settle.ts";
import type { Gateway } from "../gateway.ts";
import type { Request } from "../request.ts";
import { isJsonResponse, joinChunks } from "../upstream/answer.ts";
import { StreamRedactor } from "../upstream/redact.ts";
import {
  answerFields,
  explainBreak,
  judgeDelivery,
  meterChunk,
  noteFirstByte,
  responseOf,
} from "./delivery.ts";

export class PassedStream implements BodyListener {
  readonly #r: Request;
  readonly #gateway: Gateway;
  readonly #redactor: StreamRedactor;
  /** Chunks that came before it was decided that this is a stream. They take turns with everything else. */
  #early: Uint8Array[];
  #isReplaying = false;
  /** The end came while early chunks were waiting: a fault, or null. */
  #earlyEnd: UpstreamFault | null | undefined = undefined;
  readonly #memory: Reservation | null;
  /** The last two chunks that were sent. */
  #before: Uint8Array | null = null;
  #last: Uint8Array | null = null;
  #isOver = false;
  readonly #resume = (): void => this.#r.upstream.resume();

  /** `memory`: what the early chunks hold. */
  constructor(r: Request, gateway: Gateway, early: Uint8Array[] = [], memory: Reservation | null = null) {
    const { response, candidate } = responseOf(r);
    this.#r = r;
    this.#gateway = gateway;
    this.#redactor = new StreamRedactor(candidate.channel, response.status);
    this.#early = early;
    this.#memory = memory;
    // A stream's length is not announced, because an error event at its end would not fit.
    const length = r.streamed ? null : response.length;
    r.exchange.begin(response.status, answerFields(r), length ?? undefined);
    if (early.length > 0) void this.#replay();
    // What has arrived with the head leaves with it.
    else queueMicrotask(() => r.exchange.flush());
  }

  receive(bytes: Buffer): void {
    if (this.#isOver) return;
    if (this.#isReplaying) this.#early.push(bytes);
    else this.#pass(this.#redactor.pass(bytes));
  }

  end(): void {
    if (this.#isReplaying) this.#earlyEnd = null;
    else this.#end(null);
  }

  fail(fault: UpstreamFault): void {
    if (this.#isReplaying) this.#earlyEnd = fault;
    else this.#end(fault);
  }

  async #replay(): Promise<void> {
    const { upstream, exchange } = this.#r;
    this.#isReplaying = true;
    upstream.pause();
    for (let chunk = this.#early.shift(); chunk !== undefined; chunk = this.#early.shift()) {
      const taken = this.#pass(this.#redactor.pass(chunk));
      await (taken ? nextTurn() : new Promise<void>((resolve) => exchange.onceSent(resolve)));
    }
    this.#isReplaying = false;
    if (this.#earlyEnd === undefined) upstream.resume();
    else this.#end(this.#earlyEnd);
  }

  #pass(chunk: Uint8Array): boolean {
    const r = this.#r;
    const { exchange } = r;
    if (chunk.length === 0) return true;
    const taken = exchange.gone || exchange.write(chunk);
    noteFirstByte(r);
    this.#before = this.#last;
    this.#last = chunk;
    if (!taken && !this.#isReplaying) {
      r.upstream.pause();
      exchange.onceSent(this.#resume);
    }
    meterChunk(r, chunk);
    return taken;
  }

  #end(fault: UpstreamFault | null): void {
    if (this.#isOver) return;
    const r = this.#r;
    const { exchange } = r;
    this.#pass(this.#redactor.end());
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#memory !== null) exchange.onceSent(this.#memory.free);
    const ending = judgeDelivery(r, fault, this.#gateway);
    // Answer first, write the ledger after.
    try {
      if (exchange.gone) return;
      const missing = this.#mayBeCut(fault) ? closeEvent(this.#tail) : "";
      if (ending.outcome === "complete") exchange.end(Buffer.from(missing));
      else if (!r.streamed) exchange.reset();
      else if (ending.reading?.end === "error") this.#break(missing);
      else this.#break(this.#writeError(explainBreak(r, fault)));
    } finally {
      settle(r, ending, this.#gateway);
    }
  }

  /** The last bytes that were sent. */
  get #tail(): string {
    const chunks = [this.#before, this.#last].filter((chunk) => chunk !== null);
    return asBuffer(joinChunks(chunks)).toString("latin1");
  }

  /** Where the end of the connection ends an event stream, a cut is no fault. */
  #mayBeCut(fault: UpstreamFault | null): boolean {
    const { response } = responseOf(this.#r);
    return this.#r.streamed && (fault !== null || (response.closeDelimited && !isJsonResponse(response)));
  }

  /** Ends a stream so that no client takes it for a complete response. If the upstream has sent the error event itself,
   *  `last` is at most the end of it. */
  #break(last: string): void {
    const { exchange, target } = this.#r;
    if (last !== "") exchange.write(Buffer.from(last));
    if (target.endpoint.dialect.resetAfterErrorEvent) exchange.reset();
    else exchange.end();
  }

  #writeError(error: GatewayError): string {
    const { dialect } = this.#r.target.endpoint;
    const end = this.#tail;
    return (
      findMissingEnd(end, dialect.eventCloser) +
      dialect.errorEvent(error, this.#r.id, this.#describePlace(end))
    );
  }

  #describePlace(end: string): StreamBreak {
    const { model = null, stored = null } = this.#r.meter?.read() ?? {};
    return {
      form: isJsonResponse(responseOf(this.#r).response) ? "json-array" : "sse",
      begun: end !== "",
      ...(model === null ? {} : { model }),
      ...(stored === null ? {} : { id: stored.id }),
      sequence: readNextNumber(end),
    };
  }
}

/** The upstream broke inside the line end of its last event. Without that end clients drop the event, and take the clean
 *  end of the reply for a response that has none. */
function closeEvent(end: string): string {
  return findMissingEnd(end, end.includes("\r\n") ? "\r\n\r\n" : "\n\n");
}

/** Some dialects number their events. The error event continues the sequence. */
function readNextNumber(end: string): number {
  const numbers = end.match(/"sequence_number"\s*:\s*\d+/g);
  return Number(numbers?.at(-1)?.replace(/\D+/, "") ?? -1) + 1;
}
