// Tries the channels in their order until one responds. This ends before the first byte of a response reaches the
// client; attempt.ts judges each response, and the files of deliver/ do the rest.

import type { Choice } from "../channels/channels.ts";
import type { Gateway } from "../gateway.ts";
import type { Candidate } from "../intake/match.ts";
import { repeatResponse, type ChannelResponse } from "../upstream/answer.ts";
import { describeFailure, type Failure, isForClient, isShortage } from "../upstream/failure-rules.ts";
import type { Request } from "../request.ts";

export interface FailedAttempt {
  /** Null: the channel works, but another one may have the model, or what the client refers to. */
  readonly failure: Failure | null;
  /** The upstream's response, if there is one that a client can get. */
  readonly answer: ChannelResponse | null;
}

/** One channel after another, for one request. */
export class Failover {
  readonly #r: Request;
  readonly #gateway: Gateway;
  readonly #choice: Choice;
  readonly #most: number;
  readonly #deadline: number;
  #next = 0;
  #tried = 0;
  #last: FailedAttempt | null = null;

  constructor(r: Request, gateway: Gateway) {
    const { channels, catalog } = gateway;
    this.#r = r;
    this.#gateway = gateway;
    this.#choice = channels.choose(r, gateway.now());
    this.#most = Math.min(catalog.failover.attempts, this.#choice.candidates.length);
    this.#deadline = performance.now() + catalog.failover.totalMs;
  }

  /** How long all channels together may still take. */
  get leftMs(): number {
    return this.#deadline - performance.now();
  }

  /** No other channel can be tried after this one. */
  get isLast(): boolean {
    return this.#tried === this.#most;
  }

  /** The channel to try now; null if there is none. */
  next(): Candidate | null {
    const { candidates } = this.#choice;
    while (this.#next < candidates.length && this.#tried < this.#most && this.leftMs > 0) {
      const candidate = candidates[this.#next];
      this.#next += 1;
      if (candidate === undefined) return null;
      // A cooldown may have begun while another channel was tried.
      if (this.#last !== null && !this.#gateway.channels.admits(candidate, this.#gateway.now())) continue;
      this.#tried += 1;
      this.#reportStart(candidate);
      return candidate;
    }
    return null;
  }

  #reportStart(candidate: Candidate): void {
    const r = this.#r;
    const { ledger, channels, now } = this.#gateway;
    r.requested = candidate.model;
    r.upstreamRequestId = undefined;
    if (!r.open) return;
    const isFirst = r.attempts.length === 0;
    const isNamed = isFirst && candidate === r.candidates[0];
    if (!isNamed) ledger.attempt(r.id, candidate.channel.name, isFirst);
    channels.reportStart(candidate, now());
  }

  /** The channel works. Requests that are not billed say little about it, because not every upstream serves them. */
  reportAnswer(candidate: Candidate, ms: number): void {
    const { channels, now } = this.#gateway;
    if (!this.#r.open) return;
    channels.reportAnswer(candidate, ms, now());
    channels.keepConversation(this.#choice, candidate, this.#r);
  }

  /** Returns false if nothing more is sent: the client has disconnected, or the upstream had begun to respond. */
  reportFailure(candidate: Candidate, failed: FailedAttempt, ms: number): boolean {
    const { channels, now } = this.#gateway;
    const { failure } = failed;
    this.#last = failed;
    if (this.#r.open) {
      if (failure === null) channels.reportAnswer(candidate, ms, now());
      else if (hasLeft(failure) || isShortage(failure)) channels.reportLeft(candidate);
      else channels.reportFailure(candidate, failure, now());
    }
    return !(failure?.kind === "fault" && (hasLeft(failure) || failure.fault.answered));
  }

  /** All channels failed. Returns the last response, or throws an error of the gateway. */
  conclude(): ChannelResponse {
    if (this.#last === null) return this.#repeatFailure();
    const { failure, answer } = this.#last;
    if (answer !== null && (failure === null || (failure.kind === "status" && isForClient(failure))))
      return answer;
    if (failure === null) throw new Error("a response without a body");
    throw describeFailure(failure);
  }

  /** No channel can be tried now. If there is only one, the client gets its last error again, with the remaining time. */
  #repeatFailure(): ChannelResponse {
    const r = this.#r;
    const { channels, now } = this.#gateway;
    const [candidate] = r.candidates;
    const only = channels.findOnlyFailure(r, now());
    if (only?.failure.kind !== "status" || candidate === undefined) throw channels.explainNone(r, now());
    const { failure, waitMs } = only;
    if (!isForClient(failure)) throw describeFailure({ ...failure, waitMs });
    if (failure.response?.dialect !== r.dialect.name) throw channels.explainNone(r, now());
    return repeatResponse(failure.response, candidate, waitMs);
  }
}

function hasLeft(failure: Failure): boolean {
  return (
    failure.kind === "fault" && (failure.fault.kind === "cancelled" || failure.fault.kind === "withdrawn")
  );
}
