// A response on a WebSocket, from `response.create` to its ledger line.

import {
  endsResponse,
  readErrorStatus,
  type SocketEvent,
} from "../../dialects/formats/responses-websocket.ts";
import { MESSAGES } from "../../dialects/meters/meter.ts";
import { Fields } from "../../lib/http/fields.ts";
import { UpstreamFault } from "../../lib/http/upstream.ts";
import { Deadline } from "../../lib/time/deadline.ts";
import { finish } from "../bill/finish.ts";
import { beginDelivery, judgeDelivery, keepStored } from "../deliver/delivery.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import type { Request } from "../request.ts";
import { addressOf } from "../upstream/address.ts";
import { type Failure, failureOf, readFailure } from "../upstream/failures.ts";

export type Break = "client_left" | "upstream_gone" | "upstream_silent";

export class SocketTurn {
  readonly streamId: string | null;
  begun = false;
  ended = false;
  readonly #r: Request;
  readonly #candidate: Candidate;
  readonly #gateway: Gateway;
  readonly #sentAt = performance.now();
  /** Null while an earlier response on the stream runs. */
  #silence: Deadline | null = null;

  constructor(r: Request, candidate: Candidate, streamId: string | null, gateway: Gateway) {
    this.#r = r;
    this.#candidate = candidate;
    this.streamId = streamId;
    this.#gateway = gateway;
    gateway.channels.setTrial(candidate, gateway.now());
    const fields = new Fields().addAll([["content-type", MESSAGES]]);
    const response = { status: 200, fields, length: null, closeDelimited: false };
    beginDelivery(r, response, candidate, gateway);
  }

  /** From now on, the upstream works on this turn.
   *  It may be silent as long as over HTTP. */
  watchSilence(expired: () => void): void {
    if (this.#silence !== null) return;
    this.#silence = new Deadline(expired);
    this.awaitEvent();
  }

  awaitEvent(): void {
    const { firstByteMs, idleMs } = addressOf(this.#candidate.channel).deadlines;
    this.#silence?.arm(this.begun ? idleMs : firstByteMs);
  }

  /** Meters a message that the client already has. */
  see(event: SocketEvent, message: Uint8Array): void {
    const r = this.#r;
    r.recorded?.note(message);
    if (!this.begun) {
      this.begun = true;
      r.noteFirstByte();
      // A first event that is an error is a refusal, with the status that it would have over HTTP.
      if (event.type === "error") return this.#refuse(message);
      this.#report({ status: 200 }, null);
    }
    this.awaitEvent();
    r.meter?.see(message);
    if (event.type === "response.created") keepStored(r, this.#gateway);
    if (endsResponse(event)) this.#finish(null, false);
  }

  break(how: Break): void {
    if (this.ended) return;
    const fault = describeBreak(how, this.begun);
    if (!this.begun)
      this.#report(
        { error: fault?.kind ?? "cancelled" },
        how === "upstream_silent" && fault ? failureOf(this.#candidate.channel.name, fault) : "nothing",
      );
    this.#finish(fault, fault === null);
  }

  #refuse(message: Uint8Array): void {
    const status = readErrorStatus(message);
    const text = new TextDecoder().decode(message);
    const failure = readFailure(this.#candidate.channel.name, { status }, text, this.#gateway.now());
    this.#report({ status }, failure);
    this.#end();
    const problem = failure?.message ?? null;
    finish(
      this.#r,
      { outcome: "upstream_error", status, upstreamStatus: status, reading: null, problem },
      this.#gateway,
    );
  }

  #report(
    attempt: { readonly status?: number; readonly error?: string },
    failure: Failure | "nothing" | null,
  ): void {
    const { channels, now } = this.#gateway;
    this.#r.tried = this.#candidate;
    this.#r.attempts.push({ channel: this.#candidate.channel.name, ...attempt });
    if (failure === "nothing") channels.setTrial(this.#candidate, null);
    else if (failure !== null) channels.reportFailure(this.#candidate, failure, now());
    else channels.reportAnswer(this.#candidate, performance.now() - this.#sentAt, now());
  }

  #finish(fault: UpstreamFault | null, left: boolean): void {
    this.#r.left = left;
    const ending = judgeDelivery(this.#r, fault, this.#gateway);
    this.#end();
    finish(this.#r, { ...ending, upstreamStatus: this.begun ? 200 : null }, this.#gateway);
  }

  #end(): void {
    this.ended = true;
    this.#silence?.disarm();
  }
}

function describeBreak(how: Break, begun: boolean): UpstreamFault | null {
  if (how === "client_left") return null;
  if (how === "upstream_gone")
    return new UpstreamFault(
      begun ? "cut" : "reset",
      "the upstream closed the connection during its response",
    );
  return begun
    ? new UpstreamFault("idle_timeout", "the response stopped arriving")
    : new UpstreamFault("first_byte_timeout", "no response in time");
}
