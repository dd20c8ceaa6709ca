// Passes a body to the client as it comes. A stream that breaks ends so that no client takes it for a whole one.

import type { StreamBreak } from "../../dialects/dialect.ts";
import type { GatewayError } from "../../lib/errors.ts";
import type { Body, UpstreamFault } from "../../lib/http/upstream.ts";
import { asBuffer, joinChunks } from "../../lib/memory/bytes.ts";
import { findMissingEnd } from "../../lib/sse.ts";
import type { Gateway } from "../gateway.ts";
import type { Ending, Request } from "../request.ts";
import { UsageRemover } from "../../dialects/formats/chat.ts";
import { isJsonResponse } from "../send/answer.ts";
import { answerFields, explainBreak, judgeDelivery, meterChunk, passBody } from "./delivery.ts";

export async function passStream(r: Request, body: Body, gateway: Gateway): Promise<Ending> {
  const stream = new PassedStream(r, gateway);
  return stream.close(await passBody(r, body, (piece) => stream.send(piece)));
}

const END_BYTES = 512;

class PassedStream {
  readonly #r: Request;
  readonly #gateway: Gateway;
  /** The last pieces that were sent, with at least `END_BYTES` together. */
  readonly #last: Uint8Array[] = [];
  #lastBytes = 0;
  readonly #remover: UsageRemover | null;

  constructor(r: Request, gateway: Gateway) {
    this.#r = r;
    this.#gateway = gateway;
    const { response } = r.served;
    this.#remover = r.asksUsage && !isJsonResponse(response) ? new UsageRemover() : null;
    r.exchange.begin(response.status, answerFields(r));
  }

  send(piece: Uint8Array): Promise<void> | null {
    const slow = this.#write(this.#remover?.pass(piece) ?? piece);
    meterChunk(this.#r, piece);
    return slow;
  }

  #write(piece: Uint8Array): Promise<void> | null {
    if (piece.length === 0) return null;
    const r = this.#r;
    const slow = r.exchange.write(piece);
    r.noteFirstByte();
    this.#last.push(piece);
    this.#lastBytes += piece.length;
    while (this.#lastBytes - (this.#last[0]?.length ?? Infinity) >= END_BYTES)
      this.#lastBytes -= this.#last.shift()?.length ?? 0;
    return slow;
  }

  close(fault: UpstreamFault | null): Ending {
    const r = this.#r;
    const { exchange } = r;
    const ending = judgeDelivery(r, fault, this.#gateway);
    if (this.#remover !== null) void this.#write(this.#remover.end(ending.outcome !== "complete"));
    if (exchange.gone) return ending;
    const missing = this.#mayBeCut(fault) ? this.#findMissing() : "";
    if (ending.outcome === "complete") exchange.end(Buffer.from(missing));
    else if (!r.streamed) exchange.reset();
    else if (ending.reading?.end === "error") this.#break(missing);
    else this.#break(this.#writeError(explainBreak(r, fault)));
    return ending;
  }

  /** The upstream broke inside the line end of its last event. Without that end clients drop the event, and take the clean
   *  end of the reply for a response that has none. */
  #findMissing(): string {
    const tail = this.#tail;
    return findMissingEnd(tail, tail.includes("\r\n") ? "\r\n\r\n" : "\n\n");
  }

  get #tail(): string {
    return asBuffer(joinChunks(this.#last)).toString("latin1");
  }

  /** Where the end of the connection ends an event stream, a cut is not a fault. */
  #mayBeCut(fault: UpstreamFault | null): boolean {
    const { response } = this.#r.served;
    return this.#r.streamed && (fault !== null || (response.closeDelimited && !isJsonResponse(response)));
  }

  /** Ends a stream so that no client takes it for a complete response. If the upstream has sent the error event itself,
   *  `last` is at most the end of it. */
  #break(last: string): void {
    const { exchange, target } = this.#r;
    if (last !== "") void exchange.write(Buffer.from(last));
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
      form: isJsonResponse(this.#r.served.response) ? "json-array" : "sse",
      begun: end !== "",
      ...(model === null ? {} : { model }),
      ...(stored === null ? {} : { id: stored.id }),
      sequence: readNumber(end),
    };
  }
}

const NUMBER_NAME = '"sequence_number"';

/** Some dialects number their events, and an error event continues the sequence. */
function readNumber(tail: string): number {
  const at = tail.lastIndexOf(NUMBER_NAME);
  const [, digits] = /^\s*:\s*(\d+)/.exec(at < 0 ? "" : tail.slice(at + NUMBER_NAME.length)) ?? [];
  return digits === undefined ? 0 : Number(digits) + 1;
}
