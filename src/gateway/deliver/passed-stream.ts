// Passes a body as it comes. A broken stream never looks complete.

import type { StreamBreak } from "../../dialects/dialect.ts";
import type { GatewayError } from "../../lib/errors.ts";
import type { Body, UpstreamFault } from "../../lib/http/upstream.ts";
import { asBuffer, joinChunks, NOTHING } from "../../lib/memory/bytes.ts";
import { findMissingEnd, LF } from "../../lib/sse.ts";
import type { Gateway } from "../gateway.ts";
import type { Ending, Request } from "../request.ts";
import { UsageRemover } from "../../dialects/formats/chat.ts";
import { isJsonResponse } from "../send/answer.ts";
import { answerFields, explainBreak, judgeDelivery, keepStored, meterChunk, passBody } from "./delivery.ts";

export async function passStream(r: Request, body: Body, gateway: Gateway): Promise<Ending> {
  const stream = new PassedStream(r, gateway);
  return stream.close(await passBody(r, body, (piece) => stream.send(piece)));
}

const END_BYTES = 512;
/** A response's id is looked for in this many pieces with data. */
const MAX_LOOKS = 8;

class PassedStream {
  readonly #r: Request;
  readonly #gateway: Gateway;
  #last: Uint8Array[] = [];
  #lastBytes = 0;
  /** The last event number that was read, or null. */
  #number: number | null = null;
  readonly #remover: UsageRemover | null;
  #looks: number;

  constructor(r: Request, gateway: Gateway) {
    this.#r = r;
    this.#gateway = gateway;
    const { response } = r.served;
    this.#remover = r.asksUsage && !isJsonResponse(response) ? new UsageRemover() : null;
    this.#looks = r.streamed && r.clientDialect.storesAnswers === true ? MAX_LOOKS : 0;
    r.exchange.begin(response.status, answerFields(r));
  }

  send(piece: Uint8Array): Promise<void> | null {
    const slow = this.#write(this.#remover?.pass(piece) ?? piece);
    meterChunk(this.#r, piece);
    if (this.#looks > 0 && piece.at(-1) === LF && asBuffer(piece).includes("data:"))
      this.#looks = keepStored(this.#r, this.#gateway) ? 0 : this.#looks - 1;
    return slow;
  }

  #write(piece: Uint8Array): Promise<void> | null {
    if (piece.length === 0) return null;
    const slow = this.#r.exchange.write(piece);
    this.#r.noteFirstByte();
    if (this.#lastBytes > 2 * END_BYTES) this.#forget();
    this.#last.push(piece);
    this.#lastBytes += piece.length;
    return slow;
  }

  /** Only the last piece can be long, so it is not copied as a whole. */
  #forget(): void {
    const last = asBuffer(this.#last.at(-1) ?? NOTHING);
    const before = asBuffer(joinChunks([...this.#last.slice(0, -1), last.subarray(0, END_BYTES)]));
    const end = last.length < END_BYTES ? before : last;
    if (this.#r.clientDialect.numbersEvents === true)
      this.#number = readNumber(end) ?? readNumber(before) ?? this.#number;
    this.#last = [Buffer.from(end.subarray(-END_BYTES))];
    this.#lastBytes = END_BYTES;
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

  /** Clients drop an event without its line end, and see an empty response. */
  #findMissing(): string {
    const end = this.#end.toString("latin1");
    return findMissingEnd(end, end.includes("\r\n") ? "\r\n\r\n" : "\n\n");
  }

  get #end(): Buffer {
    return asBuffer(joinChunks(this.#last));
  }

  /** A stream that ends with its connection can be cut without a fault. */
  #mayBeCut(fault: UpstreamFault | null): boolean {
    const { response } = this.#r.served;
    return this.#r.streamed && (fault !== null || (response.closeDelimited && !isJsonResponse(response)));
  }

  /** Ends a broken stream. `last`: an error event, or the rest of one. */
  #break(last: string): void {
    const { exchange, clientDialect } = this.#r;
    if (last !== "") void exchange.write(Buffer.from(last));
    if (clientDialect.resetAfterErrorEvent) exchange.reset();
    else exchange.end();
  }

  #writeError(error: GatewayError): string {
    const dialect = this.#r.clientDialect;
    const end = this.#end;
    return (
      findMissingEnd(end.toString("latin1"), dialect.eventCloser) +
      dialect.errorEvent(error, this.#r.id, this.#describePlace(end))
    );
  }

  #describePlace(end: Buffer): StreamBreak {
    const { model = null, stored = null } = this.#r.meter?.read() ?? {};
    return {
      form: isJsonResponse(this.#r.served.response) ? "json-array" : "sse",
      begun: end.length > 0,
      ...(model === null ? {} : { model }),
      ...(stored === null ? {} : { id: stored.id }),
      sequence: (readNumber(end) ?? this.#number ?? -1) + 1,
    };
  }
}

const NUMBER_NAME = '"sequence_number"';
const NUMBER = /^"sequence_number"\s*:\s*(\d+)\D/;
const MAX_NUMBER_LENGTH = 64;

/** In dialects that number events, an error event has the next number. The last number
 *  in the bytes may be incomplete: then the one before it counts. */
function readNumber(bytes: Buffer, tries = 2): number | null {
  const at = bytes.lastIndexOf(NUMBER_NAME);
  if (at < 0 || tries === 0) return null;
  const text = bytes.toString("latin1", at, at + MAX_NUMBER_LENGTH);
  const [, digits] = NUMBER.exec(text) ?? [];
  return digits === undefined ? readNumber(bytes.subarray(0, at), tries - 1) : Number(digits);
}
