// One response on a WebSocket, from its `response.create` to its ledger line.

import {
  endsResponse,
  readErrorStatus,
  type SocketEvent,
} from "../../dialects/formats/responses-websocket.ts";
import { MESSAGES } from "../../dialects/meters/meter.ts";
import { Deadline } from "../../lib/time/deadline.ts";
import { Fields } from "../../lib/http/fields.ts";
import { UpstreamFault, UpstreamResponse } from "../../lib/http/upstream.ts";
import { finish } from "../bill/finish.ts";
import { beginDelivery, judgeDelivery, noteFirstByte } from "../deliver/delivery.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import type { Request } from "../request.ts";
import { addressOf } from "../upstream/address.ts";
import { failureOf, readFailure } from "../upstream/failures.ts";

/** How a turn ends that its response has not ended. */
export type Break = "client_left" | "upstream_gone" | "upstream_silent";

export class SocketTurn {
  readonly streamId: string | null;
  readonly #r: Request;
  readonly #candidate: Candidate;
  readonly #gateway: Gateway;
  readonly #sentAt = performance.now();
  /** Null while an earlier response on its stream runs: the upstream has not come to it. */
  #silence: Deadline | null = null;
  #begun = false;
  #ended = false;

  constructor(r: Request, candidate: Candidate, streamId: string | null, gateway: Gateway) {
    this.#r = r;
    this.#candidate = candidate;
    this.streamId = streamId;
    this.#gateway = gateway;
    gateway.channels.reportStart(candidate, gateway.now());
    const response = new UpstreamResponse(200, Fields.of([["content-type", MESSAGES]]), null);
    beginDelivery(r, response, candidate, gateway);
  }

  /** The upstream has responded to it. */
  get begun(): boolean {
    return this.#begun;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The upstream is at work on it: it may be silent for as long as over HTTP. */
  watchSilence(expired: () => void): void {
    if (this.#silence !== null) return;
    this.#silence = new Deadline(expired);
    this.awaitEvent();
  }

  awaitEvent(): void {
    const { firstByteMs, idleMs } = addressOf(this.#candidate.channel).deadlines;
    this.#silence?.arm(this.#begun ? idleMs : firstByteMs);
  }

  /** Call this after the event has been passed on, so that the client does not wait for the meter. */
  see(event: SocketEvent, message: Uint8Array): void {
    this.#r.recorded?.note(message);
    if (!this.#begun) this.#begin(event, message);
    if (this.#ended) return;
    this.awaitEvent();
    this.#r.meter?.see(message);
    if (endsResponse(event)) this.#finish(false, null);
  }

  /** The connection ended before the response did, or ends because of it. */
  break(how: Break): void {
    if (this.#ended) return;
    const fault = this.#describeFault(how);
    if (!this.#begun) {
      const { channel } = this.#candidate;
      const { channels, now } = this.#gateway;
      this.#r.attempts.push({ channel: channel.name, error: fault?.kind ?? "cancelled" });
      if (how === "upstream_silent" && fault !== null)
        channels.reportFailure(this.#candidate, failureOf(channel.name, fault), now());
      else channels.reportLeft(this.#candidate);
    }
    this.#finish(fault === null, fault);
  }

  #describeFault(how: Break): UpstreamFault | null {
    const begun = this.#begun;
    if (how === "client_left") return null;
    if (how === "upstream_silent")
      return begun
        ? new UpstreamFault("idle_timeout", "the response stopped arriving")
        : new UpstreamFault("first_byte_timeout", "no response in time");
    return new UpstreamFault(
      begun ? "cut" : "reset",
      "the upstream closed the connection during its response",
    );
  }

  #begin(event: SocketEvent, message: Uint8Array): void {
    this.#begun = true;
    noteFirstByte(this.#r);
    if (event.type === "error") this.#refuse(message);
    else {
      this.#r.attempts.push({ channel: this.#candidate.channel.name, status: 200 });
      this.#gateway.channels.reportAnswer(
        this.#candidate,
        performance.now() - this.#sentAt,
        this.#gateway.now(),
      );
    }
  }

  /** An error as the first event is a refusal, with the status of the same refusal over HTTP. */
  #refuse(message: Uint8Array): void {
    const { channel } = this.#candidate;
    const { channels, now } = this.#gateway;
    const status = readErrorStatus(message);
    this.#r.attempts.push({ channel: channel.name, status });
    const { dialect } = this.#r;
    const text = new TextDecoder().decode(message);
    const failure = readFailure(channel.name, { status }, text, { dialect, now: now() });
    if (failure === null) channels.reportAnswer(this.#candidate, performance.now() - this.#sentAt, now());
    else channels.reportFailure(this.#candidate, this.#r.secrets.removeIn(failure), now());
    this.#end();
    finish(
      this.#r,
      {
        outcome: "upstream_error",
        status,
        upstreamStatus: status,
        reading: null,
        problem: failure?.message ?? null,
      },
      this.#gateway,
    );
  }

  #finish(left: boolean, fault: UpstreamFault | null): void {
    this.#r.left = left;
    const ending = judgeDelivery(this.#r, fault, this.#gateway);
    this.#end();
    finish(this.#r, { ...ending, upstreamStatus: this.#begun ? 200 : null }, this.#gateway);
  }

  #end(): void {
    this.#ended = true;
    this.#silence?.disarm();
  }
}
